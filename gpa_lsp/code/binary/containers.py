"""Files that hold device code: cubins, fat binaries, and host programs, objects and libraries that embed them."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from gpa_lsp.code.binary.byte_reader import Allowance
from gpa_lsp.code.binary.cubin import CUDA_MACHINE, OLDEST_ARCHITECTURE, read_architecture, read_cubin
from gpa_lsp.code.binary.elf import ELF_MAGIC, HEADER_BYTES, NO_BITS, measure_elf, read_elf
from gpa_lsp.code.binary.fatbin import FATBIN_MAGIC, EntryKind, FatbinEntry, read_fatbin_entries, unpack_entry
from gpa_lsp.code.binary.file_bytes import FileBytes
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.binary.tool_location import require_tool
from gpa_lsp.foundation.errors import InputError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.time_limits import TimeLimits, run_limited

TOOL = "cuobjdump"
_LONGEST_RUN = TimeLimits.for_work(120.0)
_POLL_INTERVAL_S = 0.02
_LOG_NAME = "output.log"
_LOG_TAIL = 2000
_NOTHING_FOUND = ("does not contain device code", "No device code")


def extract_images(path: Path, *, limit_bytes: int, longest_run: TimeLimits = _LONGEST_RUN) -> Iterator[bytes]:
    """Let cuobjdump take all cubins out of a file.

    Yields:
        Each image, in the tool's order; nothing when there is none.

    Raises:
        MissingToolError: cuobjdump is not installed.
        ToolError: it failed, or did not end in time.
        InputError: the images are larger than the limit.
    """
    tool = require_tool(TOOL, needed_for=f"taking the device code out of {path.name}")
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-") as name:
        folder = Path(name)
        _run(tool, path.resolve(), folder, limit_bytes=limit_bytes, longest_run=longest_run)
        for image in sorted(folder.glob("*.cubin"), key=_order):
            yield image.read_bytes()


def _order(image: Path) -> tuple[int, str]:
    """The tool numbers its files ``name.<number>.sm_90.cubin``; the number orders them."""
    numbers = [part for part in image.name.split(".") if part.isdigit()]
    return (int(numbers[-1]) if numbers else 0, image.name)


def _run(tool: Path, path: Path, folder: Path, *, limit_bytes: int, longest_run: TimeLimits) -> None:
    log = folder / _LOG_NAME
    with log.open("wb") as output:
        command = [str(tool), "-xelf", "all", str(path)]
        with run_limited(
            TOOL,
            command,
            longest_run,
            folder=folder,
            output=output,
            errors=subprocess.STDOUT,
            work=f"reading {path.name}",
        ) as process:
            while process.poll() is None:
                _check_size(path, folder, limit_bytes=limit_bytes)
                time.sleep(_POLL_INTERVAL_S)
    _check_size(path, folder, limit_bytes=limit_bytes)
    words = log.read_bytes()[-_LOG_TAIL:].decode("utf-8", errors="replace")
    if process.returncode != 0 and not any(phrase in words for phrase in _NOTHING_FOUND):
        raise ToolError(TOOL, f"could not read {path.name} (exit status {process.returncode})", output=words)


def _check_size(path: Path, folder: Path, *, limit_bytes: int) -> None:
    """What the tool writes is bounded by looking at it, because a small file can claim to unpack to any size."""
    if sum(file.stat().st_size for file in folder.iterdir()) > limit_bytes:
        raise InputError(
            f"the device code unpacks to more than {format_bytes(limit_bytes)}",
            path=path,
            remedy="extract the cubin you need with cuobjdump -xelf",
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
    """What a file is, by its first bytes."""

    CUBIN = "cubin"
    FATBIN = "fat binary"
    HOST_ELF = "host program"
    ARCHIVE = "static library"
    WINDOWS = "Windows program"


def recognise_container(path: Path) -> Container | None:
    """What kind of container a file is; None for anything else. Reads a few bytes and does not say whether there is device code in it.

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
        """The wanted images.

        Raises:
            InputError: there is none.
        """
        kind = _recognise(self.data[:HEADER_BYTES])
        if kind is Container.CUBIN:
            return (read_cubin(self.data[: measure_elf(self.data)], path=self.path),)
        cubins = tuple(read_cubin(image, path=self.path) for image in self._find_images(kind) if self._wants(image))
        with_code = tuple(cubin for cubin in cubins if cubin.functions)
        if not with_code:
            raise self._nothing_found()
        return with_code

    def _find_images(self, kind: Container | None) -> Iterator[bytes]:
        if kind is None:
            raise UnsupportedInputError(
                "this is not a file with device code", path=self.path, place="offset 0x0", remedy=_WHAT_TO_GIVE
            )
        if kind in (Container.ARCHIVE, Container.WINDOWS):
            yield from extract_images(self.path, limit_bytes=self.limit_bytes)
            return
        entries = list(self._find_entries(kind))
        if any(entry.is_lz4 for entry in entries):
            yield from extract_images(self.path, limit_bytes=self.limit_bytes)
            return
        allowance = Allowance(self.limit_bytes, path=self.path, place="fat binary")
        for entry in entries:
            allowance.spend(entry.unpacked_bytes)
            yield unpack_entry(self.data, entry, path=self.path)

    def _find_entries(self, kind: Container) -> Iterator[FatbinEntry]:
        """The entries with machine code for the wanted architectures."""
        for start, end in self._find_stretches(kind):
            for entry in read_fatbin_entries(self.data, start=start, end=end, path=self.path):
                self.has_ptx |= entry.kind == EntryKind.PTX
                if entry.kind == EntryKind.CUBIN and self._wants_architecture(entry.sm):
                    yield entry

    def _find_stretches(self, kind: Container) -> Iterator[tuple[int, int]]:
        if kind is Container.FATBIN:
            yield 0, len(self.data)
            return
        elf = read_elf(self.data, path=self.path)
        # A linked program also keeps the parts it was linked from; they hold the same functions once more.
        wanted = _LINKED_SECTION if elf.find_section(_LINKED_SECTION) is not None else _RELOCATABLE_SECTION
        for name, section in zip(elf.section_names, elf.sections, strict=True):
            if name == wanted and section["type"] != NO_BITS:
                yield int(section["offset"]), int(section["offset"]) + int(section["size"])

    def _wants(self, image: bytes) -> bool:
        return self._wants_architecture(read_architecture(read_elf(image, path=self.path)))

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
