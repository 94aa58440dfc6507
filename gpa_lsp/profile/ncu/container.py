"""Framing of a report: file header, blocks, and the places of sources and results in them.

::

    'N' 'V' 'R' 00 | u32 header size | header | block*
    block = u32 header size | header | payload of exactly header.payload_bytes
    payload = (u32 size | message)*      sources first, then results

The string table that metric names index is the concatenation of the tables of *all* blocks, and a result may use a string that only a later
block brings; so the headers are read first and the results afterwards. Nothing is allocated by a length the file does not cover.

Source: identical in every report seen (2019 to 2026.2, 4,383 blocks). Which compression Nsight Compute uses for ``.ncu-repz`` is not established
(no such file could be had), so every common one is tried by its magic. A compressed file that is none of these, or a container compressed inside, is
refused with what to try.
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
from typing import Any, BinaryIO, Protocol, cast

from google.protobuf.message import DecodeError
from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.zstandard import ZstandardReader
from gpa_lsp.profile.ncu import CONVERT_REMEDY, REPORT_MAGIC, find_compression
from gpa_lsp.profile.ncu.schema import BlockHeader, FileHeader

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
    """Stream interface to a decompressor object; each step's output is bounded.

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


CONTAINER_VERSION = 7

_SIZE = struct.Struct("<I")
_MAX_BLOCKS = 1_000_000
_FREE_ENTRIES = 16
# No module and no launch takes less; a payload of a million empty entries is not worth a million objects
_BYTES_PER_ENTRY = 32
_DAMAGED_REMEDY = "the file is damaged or was cut off: copy it again or record it again"


class EntryPlace(Struct, frozen=True, kw_only=True):
    """Position of one source or result."""

    offset: int  # of its first byte, behind its size field
    size_bytes: int  # its length; the file covers it
    process_id: int | None  # of the process it was recorded in; None when not stored


class Container(Struct, kw_only=True):
    """Content of the framing, in file order."""

    strings: list[bytes] = field(default_factory=list)  # the global string table, undecoded
    # encoded pieces of session details; each holds any subset of the fields
    sessions: list[bytes] = field(default_factory=list)
    sources: list[EntryPlace] = field(default_factory=list)  # places of the modules
    results: list[EntryPlace] = field(default_factory=list)  # places of the launches
    # places of entries the block headers do not account for
    unknown_entries: list[EntryPlace] = field(default_factory=list)


def read_container(stream: BinaryIO, size_bytes: int) -> Container:
    """Walk all blocks of a report.

    Raises:
        InputError: the framing is broken; names the offset.
        UnsupportedInputError: a container of another version, or compressed inside.
    """
    offset = _read_file_header(stream, size_bytes)
    container = Container()
    blocks = 0
    while offset < size_bytes:
        blocks += 1
        if blocks > _MAX_BLOCKS:
            raise InputError(f"more than {_MAX_BLOCKS} blocks", place=f"offset {offset:#x}", remedy=_DAMAGED_REMEDY)
        offset = _read_block(stream, offset, size_bytes, container)
    return container


def read_entry(stream: BinaryIO, place: EntryPlace) -> bytes:
    """Bytes of one entry; empty if its first byte shows that it is no message.

    Raises:
        InputError: the file became shorter since its blocks were walked.
    """
    if _read_at(stream, place.offset, 1) == b"\0":
        return b""
    return _read_at(stream, place.offset, place.size_bytes)


def _read_file_header(stream: BinaryIO, size_bytes: int) -> int:
    magic = _read_at(stream, 0, min(len(REPORT_MAGIC), size_bytes))
    if magic != REPORT_MAGIC:
        message = f"does not start with the bytes of an Nsight Compute report ({magic.hex(' ') or 'nothing'})"
        raise InputError(message, place="offset 0x0", remedy="name a file that Nsight Compute wrote")
    header_offset, header_size = _read_size(stream, len(REPORT_MAGIC), size_bytes, "the file header")
    header = _decode(FileHeader, stream, header_offset, header_size, "the file header")
    if header.container_version != CONTAINER_VERSION:
        message = f"container version {header.container_version} is not read, only {CONTAINER_VERSION}"
        raise UnsupportedInputError(message, place=f"offset {header_offset:#x}", remedy=CONVERT_REMEDY)
    return header_offset + header_size


def _read_block(stream: BinaryIO, offset: int, size_bytes: int, container: Container) -> int:
    """Read one block header, note its entries, and return the offset behind its payload."""
    try:
        header_offset, header_size = _read_size(stream, offset, size_bytes, "a block header")
        header = _decode(BlockHeader, stream, header_offset, header_size, "a block header")
    except InputError:
        # Only now: the size of a sound header may look like a compressor's magic.
        if find_compression(_read_at(stream, offset, min(16, size_bytes - offset))) is None:
            raise
        message = "the report is compressed inside its container, in an unsupported way"
        raise UnsupportedInputError(message, place=f"offset {offset:#x}", remedy=CONVERT_REMEDY) from None
    payload_offset = header_offset + header_size
    payload_end = payload_offset + header.payload_bytes
    if payload_end > size_bytes:
        message = f"a payload of {header.payload_bytes} bytes is longer than the rest of the file"
        raise InputError(message, place=f"offset {payload_offset:#x}", remedy=_DAMAGED_REMEDY)
    if header.HasField("string_table"):
        container.strings.extend(header.string_table.strings)
    container.sessions.extend(header.sessions)
    process_id = header.process.process_id if header.HasField("process") else None
    places = _walk_payload(stream, payload_offset, payload_end, process_id)
    source_count, result_count = header.source_count, header.result_count
    if source_count + result_count > len(places):
        message = f"a block declares {source_count} sources and {result_count} results, but holds {len(places)} entries"
        raise InputError(message, place=f"offset {payload_offset:#x}", remedy=_DAMAGED_REMEDY)
    container.sources.extend(places[:source_count])
    container.results.extend(places[source_count : source_count + result_count])
    container.unknown_entries.extend(places[source_count + result_count :])
    return int(payload_end)


def _walk_payload(stream: BinaryIO, offset: int, end: int, process_id: int | None) -> list[EntryPlace]:
    places: list[EntryPlace] = []
    most = _FREE_ENTRIES + (end - offset) // _BYTES_PER_ENTRY
    while offset < end:
        if len(places) == most:
            message = f"more than {most} entries in a payload of this size"
            raise InputError(message, place=f"offset {offset:#x}", remedy=_DAMAGED_REMEDY)
        entry_offset, entry_size = _read_size(stream, offset, end, "an entry")
        places.append(EntryPlace(offset=entry_offset, size_bytes=entry_size, process_id=process_id))
        offset = entry_offset + entry_size
    return places


def _read_size(stream: BinaryIO, offset: int, end: int, what: str) -> tuple[int, int]:
    """Start and length of what the size field at ``offset`` measures; neither 0 nor beyond ``end``."""
    if end - offset < _SIZE.size:
        raise InputError(
            f"the file ends inside the size of {what}", place=f"offset {offset:#x}", remedy=_DAMAGED_REMEDY
        )
    size = int(_SIZE.unpack(_read_at(stream, offset, _SIZE.size))[0])
    start = offset + _SIZE.size
    if size == 0:
        raise InputError(f"{what} has size 0", place=f"offset {offset:#x}", remedy=_DAMAGED_REMEDY)
    if size > end - start:
        message = f"{what} of {size} bytes does not fit into the {end - start} bytes left"
        raise InputError(message, place=f"offset {offset:#x}", remedy=_DAMAGED_REMEDY)
    return start, size


def _decode(message_class: Any, stream: BinaryIO, offset: int, size: int, what: str) -> Any:
    # A message cannot start with a zero byte (field number 0): a hole of a sparse file is not read to learn that it is one.
    if _read_at(stream, offset, 1) != b"\0":
        try:
            return message_class.FromString(_read_at(stream, offset, size))
        except DecodeError:
            pass
    raise InputError(f"{what} cannot be decoded", place=f"offset {offset:#x}", remedy=_DAMAGED_REMEDY)


def _read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    stream.seek(offset)
    data = stream.read(size)
    if len(data) != size:
        raise InputError(
            "the file became shorter while it was read", place=f"offset {offset:#x}", remedy="read it again"
        )
    return data
