"""Compressed reports (``.ncu-repz``): recognised by magic bytes, decompressed within bounds, read as the report they hold.

Which compression Nsight Compute uses is not established (no such file could be had), so every common one is tried by its magic. A compressed
file that is none of these, or a container compressed inside, is refused with what to try.
"""

import bz2
import gzip
import lzma
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol, cast

from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.zstandard import ZstandardReader
from gpa_lsp.profile.ncu import CONVERT_REMEDY, REPORT_MAGIC

_MAX_BYTES = 4 << 30
_FREE_BYTES = 64 << 20
_MAX_RATIO = 256  # Reports are protobuf and ELF; anything that grows more than this beyond the first 64 MiB is not one
_CHUNK_BYTES = 1 << 20
_XZ_MEMORY_BYTES = 256 << 20
_IN_MEMORY_BYTES = 64 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextmanager
def decompress(stream: BinaryIO, size_bytes: int, compression: str) -> Iterator[tuple[BinaryIO, int]]:
    """Decompress a whole report, in bounded memory: beyond 64 MiB the result lies in a temporary file.

    Args:
        compression: as :func:`~gpa_lsp.profile.ncu.find_compression` names it.

    Yields:
        A seekable stream over the report, and its length in bytes.

    Raises:
        InputError: the compressed data is damaged or grows beyond every report.
        UnsupportedInputError: it holds something else than a report, or needs a library that is not installed.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as target:
        try:
            written = _copy(_OPENERS[compression](stream), cast(BinaryIO, target), size_bytes, compression)
        except (InputError, MemoryError):
            raise
        except _ERRORS as error:
            message = f"the {compression} data is damaged ({error})"
            raise InputError(
                message, place="compressed stream", remedy="copy the file again or record it again"
            ) from None
        yield cast(BinaryIO, target), written


def _copy(source: _Readable, target: BinaryIO, compressed_bytes: int, compression: str) -> int:
    limit = min(_MAX_BYTES, _FREE_BYTES + _MAX_RATIO * compressed_bytes)
    written = 0
    while chunk := source.read(_CHUNK_BYTES):
        if written == 0 and not chunk.startswith(REPORT_MAGIC):
            message = f"the {compression} data does not hold an Nsight Compute report"
            raise UnsupportedInputError(message, place="compressed stream", remedy=CONVERT_REMEDY)
        written += len(chunk)
        if written > limit:
            message = f"{format_bytes(compressed_bytes)} of compressed data expand to more than {format_bytes(limit)}: that is not a report"
            raise InputError(message, place="compressed stream", remedy="decompress it yourself if you trust it")
        target.write(chunk)
    if written == 0:
        raise InputError(f"the {compression} data is empty", place="compressed stream", remedy="record it again")
    return written


def _open_xz(stream: BinaryIO) -> _Readable:
    decompressor = lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)

    def inflate(size: int) -> bytes:
        data = stream.read(_CHUNK_BYTES) if decompressor.needs_input else b""
        return decompressor.decompress(data, size)

    return _Inflater(decompressor, inflate, stream)


def _open_zlib(stream: BinaryIO) -> _Readable:
    decompressor = zlib.decompressobj()

    def inflate(size: int) -> bytes:
        return decompressor.decompress(decompressor.unconsumed_tail or stream.read(_CHUNK_BYTES), size)

    return _Inflater(decompressor, inflate, stream)


def _open_zip(stream: BinaryIO) -> _Readable:
    archive = zipfile.ZipFile(stream)
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        message = f"the zip archive holds {len(members)} files, a compressed report would hold one"
        raise UnsupportedInputError(message, place="compressed stream", remedy="unpack it and name the report in it")
    return cast(_Readable, archive.open(members[0]))


def _open_lz4(stream: BinaryIO) -> _Readable:
    try:
        import lz4.frame  # type: ignore[import-not-found,unused-ignore]  # not a dependency: used where it happens to be
    except ImportError:
        remedy = f"install it (pip install lz4), or {CONVERT_REMEDY}"
        raise UnsupportedInputError(
            "reading lz4 data needs the package lz4", place="offset 0x0", remedy=remedy
        ) from None
    return cast(_Readable, lz4.frame.open(stream))


class _HasEnd(Protocol):
    @property
    def eof(self) -> bool: ...


class _Inflater:
    """A ``read`` over a decompressor object; each step's output is bounded.

    Raises:
        EOFError: (from ``read``) the compressed data ends before the decompressor is done.
    """

    def __init__(self, decompressor: _HasEnd, inflate: Callable[[int], bytes], stream: BinaryIO) -> None:
        self._decompressor = decompressor
        self._inflate = inflate
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        while not self._decompressor.eof:
            position = self._stream.tell()
            produced = self._inflate(size)
            if produced:
                return produced
            if self._stream.tell() == position and not self._decompressor.eof:
                raise EOFError("it ends early")
        return b""


_OPENERS: dict[str, Callable[[BinaryIO], _Readable]] = {
    "zstd": ZstandardReader,
    "gzip": lambda stream: cast(_Readable, gzip.GzipFile(fileobj=stream)),
    "xz": _open_xz,
    "bzip2": lambda stream: cast(_Readable, bz2.BZ2File(stream)),
    "zip": _open_zip,
    "lz4": _open_lz4,
    "zlib": _open_zlib,
}


# what the decompressors raise on damaged data, by their documentation and by mutation tests
_ERRORS = (
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    EOFError,
    OSError,
    struct.error,
    ValueError,
    RuntimeError,
    NotImplementedError,
)
