"""Which line of the source before is which line of the source after."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from gpa_lsp.report.model import KernelReport

MOST_LINES = 20_000
"""Longer sources are compared line number by line number: matching them takes too long."""


def pair_lines(
    before: KernelReport, after: KernelReport, wanted: Sequence[tuple[str | None, int | None]]
) -> dict[tuple[str, int], int | None]:
    """Follow lines from one source to the next.

    Args:
        before: with embedded sources, or without: then lines keep their numbers.
        after: likewise.
        wanted: (file, line) of the source before.

    Returns:
        (file, line) → the line after; None for one that is gone.
    """
    maps: dict[str, list[int | None] | None] = {}
    found: dict[tuple[str, int], int | None] = {}
    for file, line in wanted:
        if file is None or line is None:
            continue
        if file not in maps:
            maps[file] = _map_lines(before.embedded_sources.get(file), after.embedded_sources.get(file))
        table = maps[file]
        found[(file, line)] = line if table is None or not 0 < line <= len(table) else table[line - 1]
    return found


def _map_lines(before: str | None, after: str | None) -> list[int | None] | None:
    """For each line before (0-based) its number after (1-based); None where both are the same or cannot be compared.

    A changed block of as many lines as before keeps its lines paired: an edited line is still that line.

    >>> _map_lines("a\\nb\\nc", "a\\nx\\ny\\nb\\nC")
    [1, 4, 5]
    """
    if before is None or after is None or before == after:
        return None
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return None
    table: list[int | None] = [None] * len(old)
    for tag, first, last, other, other_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and last - first == other_last - other):
            for step in range(last - first):
                table[first + step] = other + step + 1
    return table
