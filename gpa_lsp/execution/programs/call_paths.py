"""Code addresses of a running process → files and the addresses in them: :func:`place_addresses`."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from gpa_lsp.code.binary.byte_reader import FileBytes
from gpa_lsp.code.binary.elf import NO_BITS, read_elf
from gpa_lsp.foundation.errors import GpaError

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r.x. ([0-9a-f]+) \S+ +\d+ +(/.*)")


def place_addresses(process: int, addresses: Iterable[int]) -> tuple[tuple[str, int], ...]:
    """File of each address and the address in its debugging information; an empty name and the address if there is none.

    Args:
        process: its number; it has to be there still.

    Source: proc(5), /proc/pid/maps.
    """
    try:
        lines = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
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
