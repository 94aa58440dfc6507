"""Files that fill arrays: ``.npy`` or raw bytes, below the description's folder and nowhere else."""

import math
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.records import ColumnRecord

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 4096
_DESCRIPTION = re.compile(rb"'descr'\s*:\s*'([<>|=]?[a-zA-Z]\d{1,3})'")
_ORDER = re.compile(rb"'fortran_order'\s*:\s*(True|False)")
_SHAPE = re.compile(rb"'shape'\s*:\s*\(\s*((?:\d{1,18}\s*,?\s*){0,32})\)")
_MOST_ELEMENTS = 1 << 40


class ArrayFile(ColumnRecord, frozen=True, kw_only=True):
    """Layout of a file's elements."""

    count: int  # elements
    offset_bytes: int  # of the first one
    dtype: "np.dtype[np.generic]"  # of the elements


def resolve_file(folder: Path, name: str) -> Path:
    """File that a description names.

    Raises:
        InputError: it is not below the folder, links followed, or is not there.
    """
    refused = InputError(
        f"{name[:200]!r} is not below the description's folder",
        remedy="copy the file beside the description; links are followed, and absolute paths and .. are not used",
    )
    try:
        written = Path(name)
        if written.is_absolute() or ".." in written.parts or "\0" in name:
            raise refused
        home = folder.resolve()
        path = (home / written).resolve()
        if not path.is_relative_to(home):
            raise refused
        if not path.is_file():
            raise InputError(f"there is no file {name[:200]!r}", remedy=f"put it below {folder}")
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{name[:200]!r} cannot be found: {error}", remedy="check the name") from None
    return path


def read_array_file(path: Path, kind: ScalarType) -> ArrayFile:
    """Read a file's head.

    Raises:
        InputError: it cannot be read, or its elements are of another type.
    """
    with _open(path) as stream:
        return _read_head(stream, path, kind)


def load_array_file(path: Path, kind: ScalarType, count: int) -> npt.NDArray[np.generic]:
    """Elements of a file, in one dimension, of the type's natural dtype.

    Args:
        path: as :func:`resolve_file` gave it.
        count: as many as the file must hold.

    Raises:
        InputError: it cannot be read, is of another type, or has changed since its elements were counted.
    """
    with _open(path) as stream:
        found = _read_head(stream, path, kind)
        if found.count != count:
            raise InputError(
                f"the file holds {found.count} elements, but {count} are requested",
                path=path,
                remedy="correct the count",
            )
        stream.seek(found.offset_bytes)
        elements = np.fromfile(stream, dtype=found.dtype, count=count)
    if len(elements) != count:
        raise InputError("the file ends early", path=path, remedy="write it again")
    return elements.view(kind.natural_dtype)


def _open(path: Path) -> BinaryIO:
    """Open a regular file; others could block."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy="check its permissions") from None
    stream = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        stream.close()
        raise InputError("is not a regular file", path=path, remedy="give a file with the array's elements")
    return stream


def _read_head(stream: BinaryIO, path: Path, kind: ScalarType) -> ArrayFile:
    size_bytes = os.fstat(stream.fileno()).st_size
    try:
        start = stream.read(_LONGEST_HEADER)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy="check the file") from None
    if not start.startswith(_MAGIC):
        return _read_raw(path, kind, size_bytes)
    found = _read_numpy(start, path, kind)
    if found.offset_bytes + found.count * found.dtype.itemsize > size_bytes:
        raise InputError("the file ends early", path=path, remedy="write it again with numpy.save")
    return found


def _read_raw(path: Path, kind: ScalarType, size_bytes: int) -> ArrayFile:
    if path.suffix.lower() in (".npy", ".npz"):
        raise InputError("is not an array of numpy.save", path=path, remedy="write it with numpy.save")
    if size_bytes % kind.bytes:
        raise InputError(
            f"{size_bytes} bytes are not a whole number of {kind.value}",
            path=path,
            remedy="check the type of the array",
        )
    return ArrayFile(count=size_bytes // kind.bytes, offset_bytes=0, dtype=kind.natural_dtype.newbyteorder("<"))


def _read_numpy(start: bytes, path: Path, kind: ScalarType) -> ArrayFile:
    """Head of a file of ``numpy.save``, matched by regular expressions so that nothing in it is evaluated."""
    wide = start[6:7] in (b"\2", b"\3")
    length = int.from_bytes(start[8:12] if wide else start[8:10], "little")
    begin = 12 if wide else 10
    header = start[begin : begin + length]
    description, order, shape = (pattern.search(header) for pattern in (_DESCRIPTION, _ORDER, _SHAPE))
    if len(header) < length or description is None or order is None or shape is None:
        raise UnsupportedInputError(
            "is not a plain array of numpy.save", path=path, remedy="save an array of one type of numbers"
        )
    sizes = [int(size) for size in re.findall(rb"\d+", shape[1])]
    count = math.prod(sizes)
    if count > _MOST_ELEMENTS:
        raise InputError(f"{count} elements", path=path, remedy="save a smaller array")
    if order[1] == b"True" and len(sizes) > 1:
        raise UnsupportedInputError("its columns come first", path=path, remedy="save numpy.ascontiguousarray(array)")
    code = description[1].decode()
    if not _is_same_type(code, kind):
        raise InputError(
            f"holds elements of {code}, but the array is of {kind.value}",
            path=path,
            remedy=f"save array.astype({kind.natural_dtype.str!r})",
        )
    return ArrayFile(count=count, offset_bytes=begin + length, dtype=np.dtype(code))


def _is_same_type(code: str, kind: ScalarType) -> bool:
    """Whether elements are little-endian and of the type's width; signedness is ignored, and bits may hold anything."""
    plain = code.lstrip("<>|=")
    letter, width = plain[0], int(plain[1:])
    if code[0] == ">" or width != kind.bytes:
        return False
    if kind in (ScalarType.F32, ScalarType.F64):
        return letter == "f"
    if kind == ScalarType.F16:
        return letter in "fu"
    if kind == ScalarType.BF16:
        return letter == "u"
    return letter in "iu" or (letter == "b" and width == 1) or (letter == "f" and kind.value[0] == "b")
