"""Raw records of launches → descriptions with their code and data: :func:`describe_launches`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gpa_lsp.basis.errors import GpaError, InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes
from gpa_lsp.basis.whole_files import atomic_write
from gpa_lsp.binary.linkage_names import find_bare_name
from gpa_lsp.compiler.builds import read_build
from gpa_lsp.launches.model import TextureInput
from gpa_lsp.launches.pointer_uses import PointerUse, find_pointer_uses
from gpa_lsp.launches.write_recording import Recording, hold_addresses, write_recording
from gpa_lsp.programs.images import place_image
from gpa_lsp.programs.loaded_code import read_sources
from gpa_lsp.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.ptx.parse import parse_ptx
from gpa_lsp.ptx.reachable import list_reachable
from gpa_lsp.ptx.scalar_types import ScalarType
from gpa_lsp.record.model import Recorded
from gpa_lsp.record.python_programs import HeldKernel, choose_held, read_held_parameters
from gpa_lsp.record.raw_records import RawLaunch, read_raw_launch
from gpa_lsp.record.relocation import relocate

_NAME = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundKernel:
    """A kernel in PTX, and the variables of the module it uses."""

    function: PtxFunction
    variables: tuple[str, ...]


_TYPES = {1: ScalarType.U8, 2: ScalarType.U16, 4: ScalarType.U32, 8: ScalarType.U64}
_LONGEST_STEM = 80


def describe_launches(raw: Path, images: Path, folder: Path, held: Sequence[HeldKernel] = ()) -> tuple[Recorded, ...]:
    """Describe the last record of each kernel.

    Args:
        raw: folder that the library wrote launches to.
        images: that it wrote code to.
        folder: that gets descriptions, code and data; made when it is missing.
        held: what libraries of Python know of the kernels.

    Raises:
        InputError: the folder cannot be written to.
    """
    kept: dict[tuple[str, str], RawLaunch] = {}
    for path in sorted(raw.glob("launch-*.raw")):
        launch = relocate(read_raw_launch(path))
        kept[launch.image, launch.kernel] = launch
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stems: set[str] = set()
        return tuple(
            _describe(
                launch,
                images,
                folder,
                _choose_stem(launch.kernel, stems),
                choose_held(launch.kernel, launch.image, held),
            )
            for launch in kept.values()
        )
    except OSError as error:
        raise InputError(
            f"cannot be written to: {error.strerror or error}", path=folder, remedy="choose another"
        ) from error


def _choose_stem(kernel: str, taken: set[str]) -> str:
    bare = find_bare_name(kernel)
    wanted = (
        "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in bare)[:_LONGEST_STEM] or "kernel"
    )
    stem, number = wanted, 1
    while stem in taken:
        number += 1
        stem = f"{wanted}_{number}"
    taken.add(stem)
    return stem


def _describe(launch: RawLaunch, images: Path, folder: Path, stem: str, held: HeldKernel | None) -> Recorded:
    module, found = _place_module(launch, images, folder, held)
    kernel = None if found is None else found.function
    problem = _find_problem(launch)
    description = source = None
    if not problem:
        description = write_recording(_make_recording(launch, found, held), folder, stem)
        if held is not None and held.source:
            source = folder / f"{stem}.cu"
            with atomic_write(source) as stream:
                stream.write(held.source)
    kept = set(launch.variables.values())
    return Recorded(
        kernel=launch.kernel,
        number=launch.number,
        grid=launch.grid,
        block=launch.block,
        module=module,
        description=description,
        has_ptx=kernel is not None,
        problem=problem,
        variables=() if found is None else tuple(name for name in found.variables if name not in kept),
        source=source,
        origin="" if held is None else held.describe(),
    )


def _find_problem(launch: RawLaunch) -> str:
    if launch.too_large_bytes:
        return f"its arrays have {format_bytes(launch.too_large_bytes)}, more than are kept"
    if not launch.is_whole:
        return "its arrays could not be read"
    return ""


def _make_recording(launch: RawLaunch, found: _FoundKernel | None, held: HeldKernel | None) -> Recording:
    kernel = None if found is None else found.function
    known = () if held is None else read_held_parameters(held, launch.kernel)
    uses = {} if kernel is None else find_pointer_uses(kernel)
    variables = {base: name for base, name in launch.variables.items() if _is_used(name, found)}
    arrays = {base: data for base, data in launch.arrays.items() if base not in launch.variables or base in variables}
    bases = np.array(sorted(arrays), np.uint64)
    return Recording(
        kernel=launch.kernel,
        heading=f"Launch {launch.number} of this kernel, recorded on a GPU{'' if held is None else f' ({held.describe()})'}.",
        grid=launch.grid,
        block=launch.block,
        shared_bytes=launch.shared_bytes,
        parameters=_guess_parameters(launch) if kernel is None else kernel.parameters,
        content=launch.content,
        arrays=arrays,
        variables=variables,
        sources=known or (() if kernel is None else read_sources(kernel)),
        uses=uses,
        textures={} if kernel is None else _find_textures(launch, kernel, uses),
        has_addresses=hold_addresses(arrays, bases),
    )


def _find_textures(launch: RawLaunch, kernel: PtxFunction, uses: Mapping[str, PointerUse]) -> dict[int, TextureInput]:
    """Those that the kernel reads or writes by a parameter: handles are small numbers, as others are."""
    read = [one for one in kernel.parameters if one.name in uses and uses[one.name].texture_dimensions]
    content = (launch.content[one.offset_bytes : one.offset_bytes + one.size_bytes] for one in read)
    handles = {int.from_bytes(word, "little") for word in content}
    return {handle: one for handle, one in launch.textures.items() if handle in handles}


def _is_used(variable: str, found: _FoundKernel | None) -> bool:
    return is_program_variable(variable) if found is None else variable in found.variables


def is_program_variable(name: str) -> bool:
    """Whether a variable is the program's own: texts and tables of the compiler never change."""
    return not name.startswith(("$", "__unnamed", ".L"))


def _guess_parameters(launch: RawLaunch) -> tuple[PtxVariable, ...]:
    """Parameters of machine code: their sizes are known, their types are not."""
    return tuple(
        PtxVariable(
            name=f"parameter{number}",
            space=Space.PARAM,
            type=_TYPES.get(size, ScalarType.B8),
            count=1 if size in _TYPES else size,
            alignment_bytes=1,
            offset_bytes=offset,
        )
        for number, (offset, size) in enumerate(launch.parameters)
    )


def _place_module(
    launch: RawLaunch, images: Path, folder: Path, held: HeldKernel | None
) -> tuple[Path, _FoundKernel | None]:
    """The file with the code, and the kernel where its PTX is known."""
    image = images / f"image-{launch.image}.bin"
    path = place_image(image.read_bytes(), folder)
    found = _find_kernel(path, launch.kernel)
    if found is not None:
        return path, found
    linked = (
        one.read_text(encoding="utf-8", errors="replace") for one in sorted(images.glob(f"link-{launch.image}-*.ptx"))
    )
    for text in (*linked, "" if held is None else held.ptx):
        if launch.kernel not in text:
            continue
        other = place_image(text.encode(), folder)
        found = _find_kernel(other, launch.kernel)
        if found is not None:
            path.unlink(missing_ok=True)
            return other, found
        other.unlink(missing_ok=True)
    return path, None


def _find_kernel(path: Path, name: str) -> _FoundKernel | None:
    try:
        units = [unit for unit in read_build(path, assembles=False) if unit.ptx is not None]
        for unit in units:
            module = parse_ptx(unit.ptx or "", name=path.name)
            found = next((entry for entry in module.entries if entry.name == name), None)
            if found is not None:
                return _FoundKernel(function=found, variables=_list_variables(module, found))
    except GpaError:
        return None  # machine code without PTX is kept as it is
    return None


def _list_variables(module: PtxModule, kernel: PtxFunction) -> tuple[str, ...]:
    """Variables in global and constant memory that a kernel names, but for those that the compiler made."""
    functions = list_reachable(module, kernel.name)
    named = {name for one in functions for instruction in one.instructions for name in _NAME.findall(instruction.text)}
    return tuple(
        name
        for name, one in module.variables.items()
        if one.space in (Space.GLOBAL, Space.CONST) and name in named and is_program_variable(name)
    )
