"""What the library in a program wrote of one launch: :func:`read_raw_launch`."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass

_HEADING = ["gpa-lsp-launch", "1"]
_LONGEST_LINE = 1 << 16
_MOST_PARAMETERS = 4096

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
    content = b""
    while True:
        name, *values = _read_line(stream)
        if name == "parameter" and len(parameters) < _MOST_PARAMETERS:
            parameters.append((int(values[0]), int(values[1])))
        elif name == "variable":
            variables[int(values[1])] = values[0]
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
        variables={base: one for base, one in variables.items() if base in arrays},
        too_large_bytes=int(words.get("too-large", ["0"])[0]),
        is_whole=words["end"][0] == "1",
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
