"""Kernels of a device image without any profile: code, lines and loops, and no sample."""

from collections.abc import Callable

from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.foundation.errors import GpaError, Problem
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.address_map import list_reachable_functions
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.place import PlacedKernel
from gpa_lsp.kernel.scatter import scatter_function
from gpa_lsp.profile.model import Device


def list_unmeasured_kernels(
    cubin: Cubin, *, choose: Callable[[list[str]], list[str]] | None = None, with_text: bool = True
) -> tuple[tuple[Kernel, ...], tuple[Problem, ...]]:
    """Every kernel of an image with the device functions it can call, and zero samples.

    Args:
        cubin: the image; an image without kernels (device functions only) gives one entry per function instead.
        choose: of the mangled names of all kernels, those to keep; None keeps all.
        with_text: disassemble.

    Returns:
        Kernels in image order, and the problems met.
    """
    problems: list[Problem] = []
    entries = [name for name, function in cubin.functions.items() if function.is_entry] or list(cubin.functions)
    chosen = entries if choose is None else choose(entries)
    needed = {name: tuple(list_reachable_functions(cubin, name)) for name in chosen}
    texts = {}
    if with_text and chosen:
        try:
            texts = dict(disassemble(cubin, sorted({name for names in needed.values() for name in names})))
        except GpaError as error:
            problems.append(Problem.from_error(error))
    capability = divmod(cubin.sm, 10) if cubin.sm else None
    try:
        architecture = find_architecture(capability) if capability is not None else None
    except GpaError:
        architecture = None  # nothing was measured, so nothing is lost; a profile of this image would say so
    kernels = []
    for name in chosen:
        placed = PlacedKernel(launches=(), module=None, cubin=cubin, needed=needed[name])
        order = sorted(needed[name], key=lambda other, own=name: (other != own, other))  # type: ignore[misc]
        kernels.append(
            Kernel(
                mangled_name=name,
                name=name,
                profile_path=cubin.path,
                module=None,
                cubin=cubin,
                device=Device(name=None, compute_capability=capability, sm_count=None, sm_clock_hz=None),
                architecture=architecture,
                launches=(),
                reasons=(),
                functions=tuple(scatter_function(other, placed, (), texts.get(other), problems) for other in order),
            )
        )
    return tuple(kernels), tuple(problems)
