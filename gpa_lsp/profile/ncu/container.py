"""The framing of a report: file header, blocks, and the places of sources and results in them.

::

    'N' 'V' 'R' 00 | u32 header size | header | block*
    block = u32 header size | header | payload of exactly header.payload_bytes
    payload = (u32 size | message)*      sources first, then results

The string table that metric names index is the concatenation of the tables of *all* blocks, and a result may use a string that only a later
block brings; so the headers are read first and the results afterwards. Nothing is allocated by a length the file does not cover.

Source: identical in every report seen (2019 to 2026.2, 4,383 blocks).
"""

import struct
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.profile.ncu import CONVERT_REMEDY, REPORT_MAGIC, find_compression
from gpa_lsp.profile.ncu.schema import BlockHeader, FileHeader

CONTAINER_VERSION = 7

_SIZE = struct.Struct("<I")
_MAX_BLOCKS = 1_000_000
_FREE_ENTRIES = 16
# No module and no launch takes less; a payload of a million empty entries is not worth a million objects
_BYTES_PER_ENTRY = 32
_DAMAGED_REMEDY = "the file is damaged or was cut off: copy it again or record it again"


class EntryPlace(Struct, frozen=True, kw_only=True):
    """Where one source or result lies."""

    offset: int  # of its first byte, behind its size field
    size_bytes: int  # its length; the file covers it
    process_id: int | None  # of the process it was recorded in; None when not stored


class Container(Struct, kw_only=True):
    """What the framing holds, in file order."""

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
    """The bytes of one entry; empty when its first byte already shows that it is no message.

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
    """The size field at ``offset``: where what it measures starts, and its length, which is neither 0 nor beyond ``end``."""
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
