"""What the library in a program wrote of one launch: :func:`read_raw_launch`."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.launches.model import TextureInput
from gpa_lsp.ptx.scalar_types import ScalarType

_HEADING = ["gpa-lsp-launch", "1"]
_LONGEST_LINE = 1 << 16
_MOST_PARAMETERS = 4096
_ELEMENTS = {
    0x01: ScalarType.U8, 0x02: ScalarType.U16, 0x03: ScalarType.U32, 0x08: ScalarType.S8, 0x09: ScalarType.S16,
    0x0A: ScalarType.S32, 0x10: ScalarType.F16, 0x20: ScalarType.F32,
}  # fmt: skip
"""Source: cuda.h, CUarray_format."""
_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
_READS_INTEGERS, _IS_NORMALIZED = 1, 2
"""Source: cuda.h, CU_TRSF_READ_AS_INTEGER and CU_TRSF_NORMALIZED_COORDINATES."""

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLaunch:
    """One launch.

    Attributes:
        image: number of what was loaded, in hexadecimal digits.
        kernel: mangled name.
        number: among the launches of its kernel, from 1.
        grid: blocks in x, y, z.
        block: threads in x, y, z.
        shared_bytes: dynamic shared memory.
        parameters: offset and size of each, in bytes.
        content: bytes of all of them.
        arrays: address → what lay there, those of variables among them.
        variables: address → name, of variables of the module.
        textures: handle → texture or surface whose handle is among the parameters, or a number like it.
        too_large_bytes: of arrays that were not written; 0 where they were.
        is_whole: all of the arrays could be read.
    """

    image: str
    kernel: str
    number: int
    grid: Dim3
    block: Dim3
    shared_bytes: int
    parameters: tuple[tuple[int, int], ...]
    content: bytes
    arrays: dict[int, npt.NDArray[np.uint8]]
    variables: dict[int, str]
    textures: dict[int, TextureInput]
    too_large_bytes: int
    is_whole: bool


def read_raw_launch(path: Path) -> RawLaunch:
    """Read one.

    Raises:
        InputError: it is none, or damaged.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"is no record of a launch: {error}", path=path, remedy="record it again") from error


def _read(stream: BinaryIO) -> RawLaunch:
    if _read_line(stream) != _HEADING:
        raise ValueError("another format")
    words: dict[str, list[str]] = {}
    parameters: list[tuple[int, int]] = []
    arrays: dict[int, npt.NDArray[np.uint8]] = {}
    variables: dict[int, str] = {}
    textures: dict[int, TextureInput] = {}
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
        parameters=tuple(parameters),
        content=content,
        arrays=arrays,
        textures=textures,
        variables={base: one for base, one in variables.items() if base in arrays},
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
