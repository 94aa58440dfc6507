"""The GPU a prediction is for, and which architecture a source is compiled for where that GPU says so, or something else."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.prediction.static_source import SourceStatics, examine_source
from gpa_lsp.execution.volumes.devices import VolumeDevice, build_device, build_paper_device
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.foundation.errors import GpaError, Problem, UnsupportedInputError
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.device.products import Product, find_product, load_products, note_choice

Capability = tuple[int, int]


class ExaminedSource(Struct, frozen=True, kw_only=True):
    """A source that was compiled for a GPU, or for the nearest that the compiler knows."""

    statics: SourceStatics  # of it
    notes: tuple[str, ...] = ()  # what a reader must know of the choice, one sentence each


def examine_for_machine(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    machine: str | None = None,
    compute_capability: Capability | None = None,
    settings: CompileSettings = DEFAULT_SETTINGS,
) -> ExaminedSource:
    """Compile for a GPU.

    Args:
        text: what an editor holds of it; None to read the file.
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        machine: name of the GPU; None for none in particular.
        compute_capability: to compile for; None for that of the GPU, and without one for what the compile command says.

    Raises:
        InputError: no GPU has the name, the source cannot be read, or the compiler knows no such architecture.
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
    """
    product = None if machine is None else find_product(machine)

    def examine(capability: Capability | None) -> SourceStatics:
        return examine_source(path, text=text, compute_capability=capability, kernel=kernel, settings=settings)

    if product is None:
        return ExaminedSource(statics=examine(compute_capability))
    if compute_capability is not None:
        statics = examine(compute_capability)
    else:
        statics = _examine_nearest(product.compute_capability, examine)
    notes = (*note_choice(machine), *note_difference(product, statics.unit.compute_capability))
    return ExaminedSource(statics=statics, notes=notes)


def _examine_nearest(wanted: Capability, examine: Callable[[Capability], SourceStatics]) -> SourceStatics:
    try:
        return examine(wanted)
    except UnsupportedInputError as error:
        for capability in _list_nearest(wanted):
            try:
                return examine(capability)
            except UnsupportedInputError:
                continue
        raise error from None


def _list_nearest(wanted: Capability) -> list[Capability]:
    """Newer architectures, the oldest first, but first those whose SMs hold as many threads: for others the compiler gives out other registers.

    >>> _list_nearest((7, 0))[0], _list_nearest((8, 0))[0]
    ((8, 0), (9, 0))
    """
    newer = [capability for capability in list_architectures() if capability > wanted]
    if wanted not in list_architectures():
        return newer
    threads = find_architecture(wanted).occupancy.max_threads_per_sm.value
    return sorted(newer, key=lambda one: (find_architecture(one).occupancy.max_threads_per_sm.value != threads, one))


def note_difference(product: Product, compiled_for: Capability) -> tuple[str, ...]:
    """What is to be said of code for one architecture that is predicted for a GPU of another; nothing where they are the same.

    >>> note_difference(find_product("V100 PCIe"), (7, 5))[0].split(";")[0]
    'This is code for sm_75, but the V100 PCIe is sm_70'
    """
    if compiled_for == product.compute_capability:
        return ()
    major, minor = product.compute_capability
    return (
        f"This is code for sm_{compiled_for[0]}{compiled_for[1]}, but the {product.name} is sm_{major}{minor}; registers and occupancy may differ",
    )


def choose_product(name: str | None, compute_capability: tuple[int, int]) -> Product | None:
    """The product of a name, or else the first known of a compute capability; None when none is of that capability.

    Raises:
        InputError: no product has the name.
    """
    if name is not None:
        return find_product(name)
    return next((one for one in load_products() if one.compute_capability == compute_capability), None)


def choose_volume_device(product: Product | None, mode: VolumeMode) -> VolumeDevice | Problem:
    """The product as the volume model sees it, or why it cannot."""
    if product is None:
        problem = "data volumes are not predicted: no GPU of this compute capability is known"
        return Problem.from_error(GpaError(problem))
    try:
        if mode is VolumeMode.PAPER:
            return build_paper_device(product)
        return build_device(product)
    except GpaError as error:
        return Problem.from_error(error)
