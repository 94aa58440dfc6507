"""Fat binaries: several device images, and PTX, for several architectures in one block.

A block is ``u32 magic, u16 version, u16 header size, u64 content size``, then entries, each with its own header (kind, sizes, architecture,
flags) and payload. Host programs hold one block per translation unit, one behind the other, in a section. Payloads may be compressed with
Zstandard (CUDA 12.8 and later, read here) or LZ4 (before that and for ``-compress-mode=speed``, left to NVIDIA's cuobjdump).

Source: blocks written by fatbinary of CUDA 13.0 in all its compression modes, compared with what was put in and with cuobjdump.
"""

import io
import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.byte_reader import DAMAGED
from gpa_lsp.code.binary.file_bytes import FileBytes
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.zstandard import ZstandardReader

FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)

_BLOCK_HEAD = struct.Struct("<IHHQ")
_ENTRY_HEAD = struct.Struct("<HHIQIIHHIIIQQQ")
_SMALLEST_ENTRY_BYTES = _ENTRY_HEAD.size
_COMPRESSED_LZ4 = 0x2000
_COMPRESSED_ZSTANDARD = 0x8000
_PIECE_BYTES = 1 << 20
# Between blocks there is only what aligns them; gigabytes of something else are not searched for more
_WIDEST_GAP_BYTES = 1 << 16


class EntryKind(IntEnum):
    """The kinds of entry that are told apart; there are others (intermediate code for link-time optimisation)."""

    PTX = 1
    CUBIN = 2


class FatbinEntry(Struct, frozen=True, kw_only=True):
    """One entry of a block, not yet unpacked."""

    kind: int  # see :class:`EntryKind`
    sm: int  # architecture number, e.g. 90.
    start: int  # offset of the payload in the data
    stored_bytes: int  # size of the payload as stored
    unpacked_bytes: int  # size of the payload after decompression
    is_zstandard: bool  # compressed with Zstandard
    is_lz4: bool  # compressed with LZ4


def read_fatbin_entries(
    data: bytes | FileBytes, *, start: int = 0, end: int | None = None, path: Path | None = None
) -> Iterator[FatbinEntry]:
    """List the entries of all blocks in a stretch of a file.

    Args:
        end: offset behind the last one; None means the end of the data.

    Raises:
        InputError: a block or an entry is longer than what holds it.
    """
    stop = len(data) if end is None else end
    block = data.find(FATBIN_MAGIC, start, min(start + _WIDEST_GAP_BYTES, stop))
    while block >= 0:
        if block + _BLOCK_HEAD.size > stop:
            raise _damaged("the block's header is cut off", block, path)
        _, _, head_bytes, content_bytes = _BLOCK_HEAD.unpack(data[block : block + _BLOCK_HEAD.size])
        first = block + max(head_bytes, _BLOCK_HEAD.size)
        if first + content_bytes > stop:
            raise _damaged(f"the block claims {content_bytes} bytes, more than there are", block, path)
        behind = first + content_bytes
        yield from _read_entries(data, first, behind, path)
        block = data.find(FATBIN_MAGIC, behind, min(behind + _WIDEST_GAP_BYTES, stop))


def unpack_entry(data: bytes | FileBytes, entry: FatbinEntry, *, path: Path | None = None) -> bytes:
    """The payload of an entry, decompressed.

    Raises:
        UnsupportedInputError: it is compressed with LZ4.
        InputError: it does not decompress to the size that it claims.
    """
    stored = bytes(data[entry.start : entry.start + entry.stored_bytes])
    if entry.is_lz4:
        raise UnsupportedInputError(
            "the entry is compressed with LZ4",
            path=path,
            place=f"offset 0x{entry.start:x}",
            remedy="extract it with cuobjdump -xelf all",
        )
    if not entry.is_zstandard:
        return stored
    unpacked = _decompress(stored, entry, path)
    if len(unpacked) != entry.unpacked_bytes:
        raise _damaged(
            f"the entry does not decompress to {entry.unpacked_bytes} bytes, as it claims", entry.start, path
        )
    return unpacked


def _decompress(stored: bytes, entry: FatbinEntry, path: Path | None) -> bytes:
    """Piece by piece and no further than just behind the claimed size, because both sizes in the file may lie."""
    unpacked = bytearray()
    reader = ZstandardReader(io.BytesIO(stored))
    try:
        while len(unpacked) <= entry.unpacked_bytes and (piece := reader.read(_PIECE_BYTES)):
            unpacked += piece
    except (EOFError, ValueError) as error:
        raise _damaged(f"the entry does not decompress ({error})", entry.start, path) from error
    return bytes(unpacked)


def _read_entries(data: bytes | FileBytes, position: int, stop: int, path: Path | None) -> Iterator[FatbinEntry]:
    while position + _SMALLEST_ENTRY_BYTES <= stop:
        head = _ENTRY_HEAD.unpack(data[position : position + _ENTRY_HEAD.size])
        kind, _, head_bytes, padded_bytes, compressed_bytes = head[:5]
        sm, flags, unpacked_bytes = head[8], head[11], head[13]
        payload = position + head_bytes
        if head_bytes < _SMALLEST_ENTRY_BYTES or payload + padded_bytes > stop or compressed_bytes > padded_bytes:
            raise _damaged("an entry is longer than its block", position, path)
        is_compressed = bool(flags & (_COMPRESSED_LZ4 | _COMPRESSED_ZSTANDARD))
        yield FatbinEntry(
            kind=kind,
            sm=sm,
            start=payload,
            stored_bytes=compressed_bytes if is_compressed else padded_bytes,
            unpacked_bytes=unpacked_bytes if is_compressed else padded_bytes,
            is_zstandard=bool(flags & _COMPRESSED_ZSTANDARD),
            is_lz4=bool(flags & _COMPRESSED_LZ4),
        )
        position = payload + padded_bytes


def _damaged(message: str, offset: int, path: Path | None) -> InputError:
    return InputError(message, path=path, place=f"fat binary at offset 0x{offset:x}", remedy=DAMAGED)
