"""Raw records of launches → descriptions with their code and data: :func:`describe_launches`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import list_reachable
from gpa_lsp.execution.compiler.ptx_files import read_build
from gpa_lsp.execution.launches.model import FIRST_ADDRESS, MOST_SPAN_BYTES, MovedMemory, TextureInput
from gpa_lsp.execution.launches.pointer_uses import PointerUse, find_pointer_uses
from gpa_lsp.execution.launches.write_recording import (
    Recording,
    choose_stem,
    hold_addresses,
    is_program_variable,
    write_recording,
)
from gpa_lsp.execution.programs.call_paths import list_own_frames, place_addresses, read_mappings
from gpa_lsp.execution.programs.loaded_code import place_image, read_sources
from gpa_lsp.execution.record.python_programs import HeldKernel, choose_held, read_held_parameters
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.prose import list_of
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.profile.collector.document import build_call_stacks
from gpa_lsp.profile.collector.records import CollectedPath
from gpa_lsp.profile.model import HostFrame

_HEADING = ["gpa-lsp-launch", "1"]
_LONGEST_LINE = 1 << 16
_MOST_FRAMES = 3  # that a description names of a call path
_MOST_PARAMETERS = 4096
# Source: cuda.h, CUarray_format
_ELEMENTS = {
    0x01: ScalarType.U8, 0x02: ScalarType.U16, 0x03: ScalarType.U32, 0x08: ScalarType.S8, 0x09: ScalarType.S16,
    0x0A: ScalarType.S32, 0x10: ScalarType.F16, 0x20: ScalarType.F32,
}  # fmt: skip
_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
_READS_INTEGERS, _IS_NORMALIZED = 1, 2  # Source: cuda.h, CU_TRSF_READ_AS_INTEGER and CU_TRSF_NORMALIZED_COORDINATES

Dim3 = tuple[int, int, int]


class RawLaunch(ColumnRecord, frozen=True, kw_only=True):
    """A raw record."""

    image: str  # number of what was loaded, in hexadecimal digits
    kernel: str  # mangled name
    number: int  # among the launches of its kernel, from 1
    grid: Dim3  # blocks in x, y, z
    block: Dim3  # threads in x, y, z
    shared_bytes: int  # dynamic shared memory
    cluster: Dim3 | None  # blocks of a cluster in x, y, z; None where the launch names none
    parameters: tuple[tuple[int, int], ...]  # offset and size of each, in bytes
    content: bytes  # bytes of all of them
    arrays: dict[int, npt.NDArray[np.uint8]]  # address → what lay there, those of variables among them
    variables: dict[int, str]  # address → name, of variables of the module
    # handle → texture or surface whose handle is among the parameters, or a number like it
    textures: dict[int, TextureInput]
    # return addresses of the host's call paths, innermost first: of the launch, and by address of an array of its allocation and of
    # what allocated the memory of the host that was copied to it or from it
    path: tuple[int, ...]
    allocated: dict[int, tuple[int, ...]]
    counterparts: dict[int, list[tuple[int, ...]]]
    mappings: Path  # a copy of what the process's maps said then, which gives these places
    too_large_bytes: int  # of arrays that were not written; 0 where they were
    is_whole: bool  # all of the arrays could be read


def read_raw_launch(path: Path) -> RawLaunch:
    """Read a raw record.

    Raises:
        InputError: it is none, or damaged.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream, path.with_name(f"maps{path.stem.removeprefix('launch')}.txt"))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"is no record of a launch: {error}", path=path, remedy="record it again") from error


def _read(stream: BinaryIO, mappings: Path) -> RawLaunch:
    if _read_line(stream) != _HEADING:
        raise ValueError("another format")
    words: dict[str, list[str]] = {}
    parameters: list[tuple[int, int]] = []
    arrays: dict[int, npt.NDArray[np.uint8]] = {}
    variables: dict[int, str] = {}
    textures: dict[int, TextureInput] = {}
    allocated: dict[int, tuple[int, ...]] = {}
    counterparts: dict[int, list[tuple[int, ...]]] = {}
    content = b""
    while True:
        name, *values = _read_line(stream)
        if name == "parameter" and len(parameters) < _MOST_PARAMETERS:
            parameters.append((int(values[0]), int(values[1])))
        elif name == "variable":
            variables[int(values[1])] = values[0]
        elif name == "texture":
            textures[int(values[0])] = _read_texture(stream, list(map(int, values)))
        elif name == "content":
            content = _read_bytes(stream, int(values[0]))
        elif name == "array":
            arrays[int(values[0])] = np.frombuffer(_read_bytes(stream, int(values[1])), np.uint8)
        elif name == "allocated":
            allocated[int(values[0])] = tuple(map(int, values[1:]))
        elif name == "host":
            counterparts.setdefault(int(values[0]), []).append(tuple(map(int, values[1:])))
        else:
            words[name] = values
        if name == "end":
            break
    return RawLaunch(
        image=words["image"][0],
        kernel=words["kernel"][0],
        number=int(words["number"][0]),
        grid=_read_dim3(words["grid"]),
        block=_read_dim3(words["block"]),
        shared_bytes=int(words["shared"][0]),
        cluster=_read_dim3(words["cluster"]) if "cluster" in words else None,
        parameters=tuple(parameters),
        content=content,
        arrays=arrays,
        textures=textures,
        variables={base: one for base, one in variables.items() if base in arrays},
        mappings=mappings,
        path=tuple(map(int, words.get("path", ()))),
        allocated=allocated,
        counterparts=counterparts,
        too_large_bytes=int(words.get("too-large", ["0"])[0]),
        is_whole=words["end"][0] == "1",
    )


def _read_texture(stream: BinaryIO, values: list[int]) -> TextureInput:
    handle, number, channels, width, height, depth, has_layers, address, filtered, flags, is_surface, size = values
    element = _ELEMENTS[number]
    texels = np.frombuffer(_read_bytes(stream, size), element.natural_dtype)
    return TextureInput(
        name="texture",
        buffer=0,
        texels=texels.reshape(max(depth, 1), max(height, 1), width, channels),
        element=element,
        dimensions=3 if depth and not has_layers else 2 if height else 1,
        is_linear_filter=filtered == 1,
        address_mode="clamp" if is_surface else _ADDRESS_MODES[address],
        is_normalized=bool(flags & _IS_NORMALIZED),
        reads_normalized=not is_surface and element.is_integer and not flags & _READS_INTEGERS,
        parameter_offset_bytes=None,
        handle=handle,
    )


def _read_line(stream: BinaryIO) -> list[str]:
    line = stream.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ValueError("it ends early")
    words = line.decode().split()
    if not words:
        raise ValueError("an empty line")
    return words


def _read_bytes(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size or stream.read(1) != b"\n":
        raise ValueError("it ends early")
    return data


def _read_dim3(values: list[str]) -> Dim3:
    x, y, z = (int(value) for value in values)
    return x, y, z


_ALIGNMENT_BYTES = 512
_GAP_BYTES = 512
_BEGIN = FIRST_ADDRESS + 4096
_END = FIRST_ADDRESS + MOST_SPAN_BYTES


def relocate(launch: RawLaunch) -> RawLaunch:
    """Move arrays that hold addresses to where emulator and simulator have memory; other launches stay as they are."""
    arrays = launch.arrays
    bases = np.array(sorted(arrays), np.uint64)
    if all(FIRST_ADDRESS <= base <= base + data.nbytes <= _END for base, data in arrays.items()):
        return launch
    if not hold_addresses(arrays, bases):
        return launch
    places: dict[int, int] = {}
    end = _BEGIN
    for base in sorted(arrays):
        places[base] = end + base % _ALIGNMENT_BYTES
        end = -(-(places[base] + arrays[base].nbytes + _GAP_BYTES) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    if end > _END:
        return launch
    moved = MovedMemory({base: (data.nbytes, places[base]) for base, data in arrays.items()})
    return replace(
        launch,
        arrays={places[base]: moved.move_content(data) for base, data in arrays.items()},
        variables={places[base]: name for base, name in launch.variables.items()},
        allocated={places[base]: one for base, one in launch.allocated.items() if base in places},
        counterparts={places[base]: some for base, some in launch.counterparts.items() if base in places},
        content=moved.move_parameters(np.frombuffer(launch.content, np.uint8)).tobytes(),
    )


_NAME = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)


class _FoundKernel(Struct, frozen=True, kw_only=True):
    """A kernel in PTX, and the module's variables it uses."""

    function: PtxFunction
    variables: tuple[str, ...]


_TYPES = {1: ScalarType.U8, 2: ScalarType.U16, 4: ScalarType.U32, 8: ScalarType.U64}


class Recorded(Struct, frozen=True, kw_only=True):
    """A recorded launch."""

    kernel: str  # mangled name
    number: int  # of the launch among those of its kernel, from 1
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    module: Path  # its code, a file of the folder; PTX where it is known
    description: Path | None  # the TOML beside it; None where there is none, see ``problem``
    has_ptx: bool  # the code can be emulated and traced; machine code alone can be simulated and launched
    problem: str = ""  # why it is not described; empty where it is
    # of the module that the kernel uses and that are not kept: compressed code does not tell names, and the program asked for none
    variables: tuple[str, ...] = ()
    # CUDA C++ it was compiled from while the program ran, a file beside the description; None where there is none
    source: Path | None = None
    # the library of Python that made the kernel, with its place and constants; empty where it was none
    origin: str = ""


def describe_launches(raw: Path, images: Path, folder: Path, held: Sequence[HeldKernel] = ()) -> tuple[Recorded, ...]:
    """Describe the last record of each kernel.

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
            _describe(launch, images, folder, stems, choose_held(launch.kernel, launch.image, held))
            for launch in kept.values()
        )
    except OSError as error:
        raise InputError(
            f"cannot be written to: {error.strerror or error}", path=folder, remedy="choose another"
        ) from error


def _describe(launch: RawLaunch, images: Path, folder: Path, stems: set[str], held: HeldKernel | None) -> Recorded:
    stem = choose_stem(launch.kernel, stems)
    module, found = _place_module(launch, images, folder, held)
    kernel = None if found is None else found.function
    problem = _find_problem(launch)
    description = source = None
    if not problem:
        recording = _make_recording(launch, found, held, _find_origins(launch))
        description = write_recording(recording, folder, stem)
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


class _Origins(Struct, frozen=True, kw_only=True):
    """Place of the host, in words; empty where no line is known."""

    launched: str
    arrays: dict[int, str]  # by address


def _find_origins(launch: RawLaunch) -> _Origins:
    """Places of the host's call paths: of the launch, and of each array's allocation and its counterparts on the host.

    Source: CUDAAdvisor, Figures 8 and 9.
    """
    walks = {launch.path, *launch.allocated.values(), *(one for some in launch.counterparts.values() for one in some)}
    numbers = {walk: number for number, walk in enumerate(walks)}
    lines = read_mappings(launch.mappings)
    stacks = build_call_stacks(
        {number: CollectedPath(native=place_addresses(lines, walk)) for walk, number in numbers.items()}
    )
    places = {walk: _word_path(stacks[number], launch.kernel) for walk, number in numbers.items()}
    arrays = {}
    for base, walk in launch.allocated.items():
        hosts = dict.fromkeys(place for one in launch.counterparts.get(base, ()) if (place := places[one]))
        allocated = f"allocated at {places[walk]}" if places[walk] else ""
        copied = f"copied to or from what is allocated at {list_of(hosts)}" if hosts else ""
        arrays[base] = "; ".join(filter(None, (allocated, copied)))
    return _Origins(launched=places[launch.path], arrays=arrays)


def _word_path(path: Sequence[HostFrame], kernel: str) -> str:
    own = list_own_frames(path, kernel)[:_MOST_FRAMES]
    return " from ".join(write_place(PurePath(one.file or "").name, one.line) for one in own)


def _make_recording(
    launch: RawLaunch, found: _FoundKernel | None, held: HeldKernel | None, origins: _Origins
) -> Recording:
    kernel = None if found is None else found.function
    known = () if held is None else read_held_parameters(held, launch.kernel)
    uses = {} if kernel is None else find_pointer_uses(kernel)
    variables = {base: name for base, name in launch.variables.items() if _is_used(name, found)}
    arrays = {base: data for base, data in launch.arrays.items() if base not in launch.variables or base in variables}
    bases = np.array(sorted(arrays), np.uint64)
    return Recording(
        kernel=launch.kernel,
        heading=f"Launch {launch.number} of this kernel, recorded on a GPU{'' if held is None else f' ({held.describe()})'}"
        f"{f', at {origins.launched}' if origins.launched else ''}.",
        origins=origins.arrays,
        grid=launch.grid,
        block=launch.block,
        shared_bytes=launch.shared_bytes,
        cluster=launch.cluster,
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
    """Textures that the kernel accesses by a parameter: other parameters may equal a handle by chance."""
    read = [one for one in kernel.parameters if one.name in uses and uses[one.name].texture_dimensions]
    content = (launch.content[one.offset_bytes : one.offset_bytes + one.size_bytes] for one in read)
    handles = {int.from_bytes(word, "little") for word in content}
    return {handle: one for handle, one in launch.textures.items() if handle in handles}


def _is_used(variable: str, found: _FoundKernel | None) -> bool:
    return is_program_variable(variable) if found is None else variable in found.variables


def _guess_parameters(launch: RawLaunch) -> tuple[PtxVariable, ...]:
    """Parameters of machine code, of known size and unknown type."""
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
    """File with the code, and the kernel if its PTX is known."""
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
    """Variables in global and constant memory that a kernel names, without the compiler's own."""
    functions = list_reachable(module, kernel.name)
    named = {name for one in functions for instruction in one.instructions for name in _NAME.findall(instruction.text)}
    return tuple(
        name
        for name, one in module.variables.items()
        if one.space in (Space.GLOBAL, Space.CONST) and name in named and is_program_variable(name)
    )


class RecordSettings(Struct, frozen=True, kw_only=True):
    """Selection and size limit of recorded launches."""

    limit_bytes: int = 256 << 20  # of the data of one launch; larger ones are not kept
    number: int = 0  # the launch of each kernel that is kept, from 1; 0 for the first with the most threads
