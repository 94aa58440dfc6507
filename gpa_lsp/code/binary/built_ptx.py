"""The PTX entries of a file that was built: a fat binary, or a program, object or library with one in it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.code.binary.byte_reader import Allowance
from gpa_lsp.code.binary.containers import Container, recognise_container
from gpa_lsp.code.binary.elf import NO_BITS, read_elf
from gpa_lsp.code.binary.fatbin import EntryKind, FatbinEntry, read_fatbin_entries, unpack_entry
from gpa_lsp.code.binary.file_bytes import FileBytes
from gpa_lsp.code.binary.tool_location import require_tool
from gpa_lsp.foundation.errors import InputError, ToolError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.time_limits import TimeLimits
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, run_command

_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_TOOL = "cuobjdump"
_LIMIT_S = 120.0
_MEMORY_LIMIT_BYTES = 8 << 30
_UNPACKED_PER_BYTE = 64
_UNPACKED_AT_LEAST = 64 << 20
_NOTHING_FOUND = ("does not contain device code", "No device code")


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
    if kind in (None, Container.CUBIN):
        return
    with FileBytes(path) as data:
        limit_bytes = max(_UNPACKED_PER_BYTE * len(data), _UNPACKED_AT_LEAST)
        if kind in (Container.FATBIN, Container.HOST_ELF):
            entries = list(_find_entries(data, path, kind))
            if not any(entry.is_lz4 for entry in entries):
                allowance = Allowance(limit_bytes, path=path, place="fat binary")
                for entry in entries:
                    allowance.spend(entry.unpacked_bytes)
                    yield _decode(unpack_entry(data, entry, path=path))
                return
    yield from _extract(path, limit_bytes)


def _find_entries(data: FileBytes, path: Path, kind: Container | None) -> Iterator[FatbinEntry]:
    stretches = [(0, len(data))]
    if kind is Container.HOST_ELF:
        elf = read_elf(data, path=path)
        # Unlinked parts count, too: linking keeps no PTX.
        stretches = [
            (int(section["offset"]), int(section["offset"]) + int(section["size"]))
            for name, section in zip(elf.section_names, elf.sections, strict=True)
            if name in _SECTIONS and section["type"] != NO_BITS
        ]
    for start, end in stretches:
        for entry in read_fatbin_entries(data, start=start, end=end, path=path):
            if entry.kind == EntryKind.PTX:
                yield entry


def _extract(path: Path, limit_bytes: int) -> Iterator[str]:
    """By NVIDIA's own tool: from static libraries, Windows programs, and what is compressed in a way that is not read here."""
    tool = require_tool(_TOOL, needed_for=f"taking the PTX out of {path.name}")
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        command = [str(tool), "-xptx", "all", str(path.resolve())]
        limits = RunLimits(
            time=TimeLimits.for_work(_LIMIT_S),
            memory_limit_bytes=_MEMORY_LIMIT_BYTES,
            largest_file_bytes=limit_bytes,
        )
        is_well, output = run_command(_TOOL, command, folder=folder, environment={}, limits=limits)
        if not is_well and not any(phrase in output for phrase in _NOTHING_FOUND):
            raise ToolError(_TOOL, f"could not read {path.name}", output=output[-2000:])
        files = sorted(folder.glob("*.ptx"))
        if sum(file.stat().st_size for file in files) > limit_bytes:
            raise InputError(
                f"the PTX unpacks to more than {format_bytes(limit_bytes)}", path=path, remedy="give one object of it"
            )
        for file in files:
            yield _decode(file.read_bytes())


def _decode(content: bytes) -> str:
    return content.rstrip(b"\0").decode("utf-8", "replace")
