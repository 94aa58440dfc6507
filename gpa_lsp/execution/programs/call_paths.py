"""Code addresses of a running process → files and the addresses in them: :func:`place_addresses`; the user's frames: :func:`list_own_frames`."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from gpa_lsp.code.binary.byte_reader import FileBytes
from gpa_lsp.code.binary.elf import NO_BITS, read_elf
from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.sources.host_syntax import read_last_name, strip_casts
from gpa_lsp.code.sources.trees import list_parts, part, read_text, read_tree, walk_lines
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.foundation.ownership import is_library_file
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.profile.model import HostFrame

_STUB = ".cudafe1.stub.c"  # a file of nvcc's, with what stands between a launch and the runtime
_MOST_SOURCE_BYTES = 2 << 20
_MOST_NAME_CHARS = 40
_ALLOCATING = "cudaMalloc"  # how functions begin that give their first argument an array
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r.x. ([0-9a-f]+) \S+ +\d+ +(/.*)")


def read_mappings(path: Path) -> list[str]:
    """Lines of a process's ``maps``, or of a copy; none where it is not there any more. Source: proc(5), /proc/pid/maps."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def list_own_frames(path: Sequence[HostFrame], kernel: str = "") -> list[HostFrame]:
    """Frames of the user's code, innermost first, without the compiler's stubs around a launch of *kernel* (linkage name)."""
    between = shorten_name(demangle(kernel)) if kernel else None
    return [
        frame
        for frame in path
        if frame.file
        and frame.line
        and not frame.file.endswith(_STUB)
        and not is_library_file(frame.file)
        and frame.function is not None
        and shorten_name(frame.function) != between
    ]


def name_allocated(path: Sequence[HostFrame]) -> str:
    """The variable that gets what a call path allocates: ``out`` of ``cudaMalloc(&out, size)``; empty where its source does not say."""
    own = list_own_frames(path)
    return _name_allocated(own[0].file or "", own[0].line) if own else ""


@lru_cache(maxsize=256)
def _name_allocated(file: str, line: int) -> str:
    try:
        tree = read_tree(file, read_bounded(Path(file), _MOST_SOURCE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""
    for node in () if tree is None else walk_lines(tree.root, (line,)):
        if node.type == "call_expression" and read_last_name(part(node, "function")).startswith(_ALLOCATING):
            first = strip_casts(next(iter(list_parts(part(node, "arguments"))), None))
            given = part(first, "argument") if first is not None and first.type == "pointer_expression" else first
            return " ".join(read_text(given).split())[:_MOST_NAME_CHARS]
    return ""


def place_addresses(lines: Iterable[str], addresses: Iterable[int]) -> tuple[tuple[str, int], ...]:
    """File of each address and the address in its debugging information; an empty name and the address if there is none.

    Args:
        lines: those of :func:`read_mappings`.
    """
    found = [match for line in lines if (match := _MAPPING.fullmatch(line)) is not None]
    rows = sorted((int(one[1], 16), int(one[2], 16), int(one[3], 16), one[4]) for one in found)
    return tuple(_place(rows, address) for address in addresses)


def _place(rows: list[tuple[int, int, int, str]], address: int) -> tuple[str, int]:
    at = bisect_right(rows, address, key=lambda row: row[0]) - 1
    if at < 0 or address >= rows[at][1]:
        return "", address
    begin, _, offset, path = rows[at]
    for low, high, moved in _list_moves(path):
        if low <= address - begin + offset < high:
            return path, address - begin + offset + moved
    return path, address - begin + offset


@lru_cache(maxsize=256)
def _list_moves(path: str) -> tuple[tuple[int, int, int], ...]:
    """Sections with content: their begin and end in the file, and load address minus file offset."""
    try:
        with FileBytes(Path(path)) as data:
            sections = read_elf(data, path=Path(path)).sections
    except (GpaError, OSError):
        return ()
    held = sections[(sections["type"] != NO_BITS) & (sections["address"] != 0)]
    return tuple(
        (int(one["offset"]), int(one["offset"] + one["size"]), int(one["address"]) - int(one["offset"])) for one in held
    )
