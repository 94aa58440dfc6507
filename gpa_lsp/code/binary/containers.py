"""Files that hold device code: cubins, fat binaries, and host programs, objects and libraries that embed them."""

import io
import struct
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator
from enum import Enum, IntEnum
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.byte_reader import Allowance, FileBytes, damaged
from gpa_lsp.code.binary.cubin import CUDA_MACHINE, OLDEST_ARCHITECTURE, read_architecture, read_cubin
from gpa_lsp.code.binary.elf import ELF_MAGIC, HEADER_BYTES, NO_BITS, measure_elf, read_elf
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.binary.tool_location import require_tool
from gpa_lsp.foundation.errors import InputError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.watched_command import TimeLimits, run_limited
from gpa_lsp.foundation.zstandard import ZstandardReader

# A fat binary holds device images, and PTX, for several architectures in one block. A block is ``u32 magic, u16 version, u16 header size,
# u64 content size``, then entries, each with its own header (kind, sizes, architecture, flags) and payload. Host programs hold one block per
# translation unit, one behind the other, in a section. Payloads may be compressed with Zstandard (CUDA 12.8 and later, read here) or LZ4 (before
# that and for ``-compress-mode=speed``, left to NVIDIA's cuobjdump).
#
# Source: blocks written by fatbinary of CUDA 13.0 in all its compression modes, compared with what was put in and with cuobjdump.

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
    """The kinds of entry that are read; there are others (intermediate code for link-time optimisation)."""

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
    """List the entries of all blocks in a stretch of a file, up to the end of the data where none is given."""
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
    """The payload of an entry, decompressed."""
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
    """Decompress piece by piece and stop just past the claimed size, because both sizes in the file may lie."""
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
    return damaged(message, path=path, place=f"fat binary at offset 0x{offset:x}")


_TOOL = "cuobjdump"
_LONGEST_RUN = TimeLimits.for_work(120.0)
_POLL_INTERVAL_S = 0.02
_LOG_NAME = "output.log"
_LOG_TAIL = 2000
_NOTHING_FOUND = ("does not contain device code", "No device code")


def extract_images(
    path: Path, option: str, *, limit_bytes: int, longest_run: TimeLimits = _LONGEST_RUN
) -> Iterator[bytes]:
    """Let cuobjdump take all cubins (``-xelf``) or PTX (``-xptx``) out of a file: of static libraries, Windows programs, and what is compressed in a
    way that is not read here.

    Yields:
        Each image, in the tool's order; nothing when there is none.
    """
    tool = require_tool(_TOOL, needed_for=f"taking the device code out of {path.name}")
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log = folder / _LOG_NAME
        with (
            log.open("wb") as output,
            run_limited(
                _TOOL,
                [str(tool), option, "all", str(path.resolve())],
                longest_run,
                folder=folder,
                output=output,
                errors=subprocess.STDOUT,
                work=f"reading {path.name}",
            ) as process,
        ):
            while process.poll() is None:
                _check_size(path, folder, option, limit_bytes)
                time.sleep(_POLL_INTERVAL_S)
        _check_size(path, folder, option, limit_bytes)
        words = log.read_bytes()[-_LOG_TAIL:].decode("utf-8", errors="replace")
        if process.returncode != 0 and not any(phrase in words for phrase in _NOTHING_FOUND):
            raise ToolError(_TOOL, f"could not read {path.name} (exit status {process.returncode})", output=words)
        for file in sorted(set(folder.iterdir()) - {log}, key=_order):
            yield file.read_bytes()


def _order(file: Path) -> tuple[int, str]:
    """The tool numbers its files ``name.<number>.sm_90.cubin``; the number orders them."""
    numbers = [part for part in file.name.split(".") if part.isdigit()]
    return (int(numbers[-1]) if numbers else 0, file.name)


def _check_size(path: Path, folder: Path, option: str, limit_bytes: int) -> None:
    """Bound what the tool writes by looking at it, because a small file can claim to unpack to any size."""
    if sum(file.stat().st_size for file in folder.iterdir()) > limit_bytes:
        raise InputError(
            f"the device code unpacks to more than {format_bytes(limit_bytes)}",
            path=path,
            remedy=f"extract what you need with cuobjdump {option}",
        )


_LINKED_SECTION = ".nv_fatbin"
_RELOCATABLE_SECTION = "__nv_relfatbin"
_MACHINE_OFFSET = 18
_ARCHIVE_MAGICS = (b"!<arch>\n", b"!<thin>\n")
_WINDOWS_MAGIC = b"MZ"
_WHAT_TO_GIVE = "give a cubin, a fat binary, or a program or library built by nvcc"
_UNPACKED_PER_BYTE = 32
_UNPACKED_AT_LEAST = 64 << 20


class Container(Enum):
    """Kinds of files with device code, told apart by their first bytes."""

    CUBIN = "cubin"
    FATBIN = "fat binary"
    HOST_ELF = "host program"
    ARCHIVE = "static library"
    WINDOWS = "Windows program"


def recognise_container(path: Path) -> Container | None:
    """Recognise a file by its first bytes; None when it is no container. Whether there is device code in it is not looked at.

    Raises:
        InputError: the file cannot be read.
    """
    with FileBytes(path) as data:
        return _recognise(data[:HEADER_BYTES])


def find_cubins(path: Path, *, sm: int | None = None) -> tuple[Cubin, ...]:
    """Read the device images in a file.

    Args:
        path: a cubin, a fat binary, or a host program, object or library.
        sm: only images for this architecture number; None takes all from sm_70 on.

    Returns:
        The images that have functions, in file order. Of a program that has both, the linked ones and not their unlinked parts.

    Raises:
        InputError: the file cannot be read, is damaged, or holds no such image; says which it does hold.
        MissingToolError: it needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    with FileBytes(path) as data:
        return _Finder(path, data, sm).find()


def _recognise(head: bytes) -> Container | None:
    if head[:4] == ELF_MAGIC:
        machine = int.from_bytes(head[_MACHINE_OFFSET : _MACHINE_OFFSET + 2], "little")
        return Container.CUBIN if machine == CUDA_MACHINE else Container.HOST_ELF
    if head[:4] == FATBIN_MAGIC:
        return Container.FATBIN
    if head.startswith(_ARCHIVE_MAGICS):
        return Container.ARCHIVE
    return Container.WINDOWS if head.startswith(_WINDOWS_MAGIC) else None


class _Finder:
    """One reading of one file."""

    def __init__(self, path: Path, data: FileBytes, sm: int | None) -> None:
        self.path = path
        self.data = data
        self.sm = sm
        self.limit_bytes = max(_UNPACKED_PER_BYTE * len(data), _UNPACKED_AT_LEAST)
        self.left_out: set[int] = set()
        self.has_ptx = False

    def find(self) -> tuple[Cubin, ...]:
        """The wanted images."""
        kind = _recognise(self.data[:HEADER_BYTES])
        if kind is Container.CUBIN:
            return (read_cubin(self.data[: measure_elf(self.data)], path=self.path),)
        cubins = tuple(
            read_cubin(image, path=self.path)
            for image in self._find_images(kind)
            if self._wants_architecture(read_architecture(read_elf(image, path=self.path)))
        )
        with_code = tuple(cubin for cubin in cubins if cubin.functions)
        if not with_code:
            raise self._nothing_found()
        return with_code

    def _find_images(self, kind: Container | None) -> Iterator[bytes]:
        if kind is None:
            raise UnsupportedInputError(
                "this is not a file with device code", path=self.path, place="offset 0x0", remedy=_WHAT_TO_GIVE
            )
        wanted = (entry for entry in self._find_entries(kind) if self._is_wanted(entry))
        return _unpack_entries(self.data, wanted, kind, "-xelf", limit_bytes=self.limit_bytes, path=self.path)

    def _find_entries(self, kind: Container) -> Iterator[FatbinEntry]:
        sections = [_LINKED_SECTION]
        # A linked program also keeps the parts it was linked from; they hold the same functions once more.
        if kind is Container.HOST_ELF and read_elf(self.data, path=self.path).find_section(_LINKED_SECTION) is None:
            sections = [_RELOCATABLE_SECTION]
        return _list_entries(self.data, kind, sections, path=self.path)

    def _is_wanted(self, entry: FatbinEntry) -> bool:
        self.has_ptx |= entry.kind == EntryKind.PTX
        return entry.kind == EntryKind.CUBIN and self._wants_architecture(entry.sm)

    def _wants_architecture(self, sm: int) -> bool:
        if sm >= OLDEST_ARCHITECTURE and self.sm in (None, sm):
            return True
        self.left_out.add(sm)
        return False

    def _nothing_found(self) -> InputError:
        wanted = f"sm_{self.sm}" if self.sm is not None else f"sm_{OLDEST_ARCHITECTURE} or later"
        if self.left_out:
            held = ", ".join(f"sm_{sm}" for sm in sorted(self.left_out))
            message = f"the device code is for {held}, none for {wanted}"
        elif self.has_ptx:
            message = "there is PTX but no machine code"
        else:
            message = "there is no device code"
        return UnsupportedInputError(message, path=self.path, remedy="build with -gencode arch=compute_XX,code=sm_XX")


def _list_entries(data: FileBytes, kind: Container, sections: Collection[str], *, path: Path) -> Iterator[FatbinEntry]:
    """The entries of a fat binary, or of the named sections of a host program."""
    stretches = [(0, len(data))]
    if kind is Container.HOST_ELF:
        elf = read_elf(data, path=path)
        stretches = [
            (int(section["offset"]), int(section["offset"]) + int(section["size"]))
            for name, section in zip(elf.section_names, elf.sections, strict=True)
            if name in sections and section["type"] != NO_BITS
        ]
    for start, end in stretches:
        yield from read_fatbin_entries(data, start=start, end=end, path=path)


def _unpack_entries(
    data: FileBytes, wanted: Iterator[FatbinEntry], kind: Container, option: str, *, limit_bytes: int, path: Path
) -> Iterator[bytes]:
    """The payloads of the wanted entries, or what cuobjdump takes out with an option where it alone reads the file."""
    entries = None if kind in (Container.ARCHIVE, Container.WINDOWS) else list(wanted)
    if entries is None or any(entry.is_lz4 for entry in entries):
        return extract_images(path, option, limit_bytes=limit_bytes)
    allowance = Allowance(limit_bytes, path=path, place="fat binary")

    def unpack(entry: FatbinEntry) -> bytes:
        allowance.spend(entry.unpacked_bytes)
        return unpack_entry(data, entry, path=path)

    return map(unpack, entries)


_PTX_UNPACKED_PER_BYTE = 64


def read_built_ptx(path: Path) -> Iterator[str]:
    """The PTX texts in a file, in its order; nothing when there is none.

    Args:
        path: a fat binary, or a program, object or library. A cubin has no such entries.

    Raises:
        InputError: the file cannot be read, is damaged, or unpacks to many times its size.
        MissingToolError: it needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    kind = recognise_container(path)
    if kind is None or kind is Container.CUBIN:
        return
    with FileBytes(path) as data:
        limit_bytes = max(_PTX_UNPACKED_PER_BYTE * len(data), _UNPACKED_AT_LEAST)
        # Unlinked parts count, too: linking keeps no PTX.
        entries = _list_entries(data, kind, (_LINKED_SECTION, _RELOCATABLE_SECTION), path=path)
        wanted = (entry for entry in entries if entry.kind == EntryKind.PTX)
        for text in _unpack_entries(data, wanted, kind, "-xptx", limit_bytes=limit_bytes, path=path):
            yield text.rstrip(b"\0").decode("utf-8", "replace")
