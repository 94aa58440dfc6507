"""Static findings of a source, as it is or as an editor holds it, and the GPU they are for: :func:`examine_source`."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from math import prod
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.code.binary.cubin import read_compiled_limits, read_cubin
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.sources.host_launches import find_launch_sizes
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings, find_static_findings
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KnownBlock
from gpa_lsp.execution.compiler.job import read_source
from gpa_lsp.execution.compiler.model import (
    DEFAULT_COMPUTE_CAPABILITY,
    DEFAULT_SETTINGS,
    CompiledUnit,
    CompilerFlags,
    CompileSettings,
)
from gpa_lsp.execution.launches.read_launches import find_launch_file, read_launches
from gpa_lsp.execution.volumes.devices import VolumeDevice, build_device, build_paper_device
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.foundation.errors import GpaError, InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.device.products import Product, find_product, load_products, note_choice
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.names import choose_by_name, demangle, find_plain_name, list_named


def find_known_blocks(path: Path, text: str, mangled_name: str, names: Collection[str]) -> tuple[KnownBlock, ...]:
    """Sizes of block for one kernel, those of a description first.

    Args:
        path: of the source; ``kernel.launch.toml`` beside ``kernel.cu`` describes its launches.
    """
    return (*_find_described(path, mangled_name, names), *_find_launched(path, text, mangled_name))


def _find_launched(path: Path, text: str, mangled_name: str) -> Iterator[KnownBlock]:
    for line, block, shared_bytes in find_launch_sizes(str(path), text, find_plain_name(demangle(mangled_name))):
        yield KnownBlock(
            threads=prod(block),
            origin=BlockOrigin.SOURCE,
            dynamic_shared_bytes=shared_bytes,
            line=line,
            shape=block,
        )


def _find_described(path: Path, mangled_name: str, names: Collection[str]) -> Iterator[KnownBlock]:
    """Blocks of a description; none where it cannot be read, which its reader reports."""
    description = find_launch_file(path)
    if description is None:
        return
    try:
        launches = read_launches(description)
    except GpaError:
        return
    for launch in launches:
        if mangled_name in list_named(launch.kernel, names, lambda name: (name,)):
            yield KnownBlock(
                threads=prod(launch.block),
                origin=BlockOrigin.DESCRIPTION,
                dynamic_shared_bytes=launch.shared_bytes,
                shape=launch.block,
            )


_LARGEST_HEADER_BYTES = 512 << 10


class SourceStatics(Struct, frozen=True, kw_only=True):
    """Static findings of a source's code."""

    path: Path  # of the source, absolute
    text: str  # that was compiled
    unit: CompiledUnit  # output of the compiler, with its messages
    flags: CompilerFlags | None  # the source was compiled with; None when its command is unknown
    kernels: tuple[KernelFindings, ...]  # in image order; empty when compiling failed
    problems: tuple[Problem, ...] = ()  # met on the way


def examine_source(
    path: Path,
    *,
    text: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    kernel: str | None = None,
    roots: Sequence[Path] = (),
    settings: CompileSettings = DEFAULT_SETTINGS,
) -> SourceStatics:
    """Compile a source for one architecture, and ask every static check about its kernels. Nothing of the source is run.

    Args:
        path: of the source.
        text: what an editor holds of it; None to read the file.
        compute_capability: to compile for; None for the newest one its compile command asks for that has a table, else
            :data:`~gpa_lsp.execution.compiler.model.DEFAULT_COMPUTE_CAPABILITY`.
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        roots: folders below which headers are the user's own, so that lines in them are named; the source's folder always is one.
        settings: of the compiler.

    Raises:
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
        InputError: the source cannot be read.
    """
    # these look for compilers, which examining units does without
    from gpa_lsp.execution.compiler.compile import compile_source
    from gpa_lsp.execution.compiler.project import find_flags

    path = Path(os.path.abspath(path))  # noqa: PTH100 - line tables name files without ".."
    content = read_source(path, text)
    flags = find_flags(path)
    unit = compile_source(
        path,
        text=text,
        compute_capability=compute_capability or choose_compute_capability(flags),
        flags=flags,
        settings=settings,
    )
    return examine_unit(
        unit, path=path, text=content.decode("utf-8", "replace"), flags=flags, kernel=kernel, roots=roots
    )


def require_ptx(statics: SourceStatics, path: Path) -> str:
    """The PTX of a source.

    Raises:
        InputError: it does not compile; with the first error.
    """
    unit = statics.unit
    if unit.ptx is not None:
        return unit.ptx
    error = next((one for one in unit.messages if one.severity is ProblemSeverity.ERROR), None)
    remedy = "correct it, then ask again"
    if error is None:
        raise InputError("does not compile: it gave no code", path=path, remedy=remedy)
    is_here = error.path is None or error.path == statics.path
    place = None if error.line is None else f"line {error.line}"
    text = f"does not compile: {error.text}"
    raise InputError(text, path=path if is_here else error.path, place=place, remedy=remedy)


def examine_unit(
    unit: CompiledUnit,
    *,
    path: Path,
    text: str,
    flags: CompilerFlags | None = None,
    module: PtxModule | None = None,
    kernel: str | None = None,
    roots: Sequence[Path] = (),
) -> SourceStatics:
    """Ask every static check about the kernels of a compiled unit.

    Args:
        kernel: as in :func:`examine_source`.
        roots: as in :func:`examine_source`.
    """
    if unit.cubin is None:
        return SourceStatics(path=path, text=text, unit=unit, flags=flags, kernels=())
    cubin = read_cubin(unit.cubin)
    limits = read_compiled_limits(cubin)
    found, problems = list_unmeasured_kernels(cubin, choose=choose_by_name(kernel))
    sources = _Sources(path=path, text=text, roots=(path.parent, *roots))
    ptx = module or _parse_ptx(unit, path)
    names = [name for name, function in cubin.functions.items() if function.is_entry]
    kernels = tuple(
        find_static_findings(
            one,
            limits=limits,
            blocks=find_known_blocks(path, text, one.mangled_name, names),
            read_source=sources.read,
            ptx=ptx,
        )
        for one in found
    )
    failures = tuple(problem for one in kernels for problem in one.problems)
    return SourceStatics(path=path, text=text, unit=unit, flags=flags, kernels=kernels, problems=(*problems, *failures))


def _parse_ptx(unit: CompiledUnit, path: Path) -> PtxModule | None:
    """The PTX; None where there is none that can be read, and findings that need PTX are left out."""
    try:
        return None if unit.ptx is None else parse_ptx(unit.ptx, name=path.name)
    except InputError:
        return None


def choose_compute_capability(flags: CompilerFlags | None) -> tuple[int, int]:
    """The newest that a compile command asks for and that has a table; a default where it asks for none."""
    known = set(list_architectures())
    asked = () if flags is None else flags.compute_capabilities
    return max((one for one in asked if one in known), default=max(asked, default=DEFAULT_COMPUTE_CAPABILITY))


class _Sources(Struct, frozen=True, kw_only=True):
    """The texts of the user's own files."""

    path: Path  # of the source, whose text may not be the file's
    text: str  # of the source
    roots: tuple[Path, ...]  # folders of the user's
    read_files: dict[str, str | None] = field(default_factory=dict)  # texts of other files

    def read(self, file: str) -> str | None:
        """The text of a file; None for one that is not the user's, or cannot be read."""
        if file == str(self.path):
            return self.text
        if file not in self.read_files:
            self.read_files[file] = self._read_file(Path(file))
        return self.read_files[file]

    def _read_file(self, file: Path) -> str | None:
        is_own = any(file.is_relative_to(root) for root in self.roots) and "site-packages" not in file.parts
        try:
            if not is_own or not file.is_file() or file.stat().st_size > _LARGEST_HEADER_BYTES:
                return None
            return file.read_bytes().decode("utf-8", "replace")
        except OSError:
            return None


Capability = tuple[int, int]


class ExaminedSource(Struct, frozen=True, kw_only=True):
    """A source that was compiled for a GPU, or for the nearest that the compiler knows."""

    statics: SourceStatics  # of it
    notes: tuple[str, ...] = ()  # on the choice of the GPU, one sentence each


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
    """Note that code for one architecture is predicted for a GPU of another; none where they are the same.

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
        return (build_paper_device if mode is VolumeMode.PAPER else build_device)(product)
    except GpaError as error:
        return Problem.from_error(error)
