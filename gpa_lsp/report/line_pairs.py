"""Which line of the source before is which line of the source after."""

from collections.abc import Sequence

from gpa_lsp.report.line_map import map_edited_lines, split_lines
from gpa_lsp.report.model import KernelReport


def pair_lines(
    before: KernelReport, after: KernelReport, wanted: Sequence[tuple[str | None, int | None]]
) -> dict[tuple[str, int], int | None]:
    """Follow lines from one source to the next.

    Args:
        before: with embedded sources, or without: then lines keep their numbers.
        after: with embedded sources, or without.
        wanted: (file, line) of the source before.

    Returns:
        (file, line) → the line after; None for one that is gone.
    """
    maps: dict[str, tuple[int, ...] | None] = {}
    found: dict[tuple[str, int], int | None] = {}
    for file, line in wanted:
        if file is None or line is None:
            continue
        if file not in maps:
            maps[file] = _map_texts(before.embedded_sources.get(file), after.embedded_sources.get(file))
        table = maps[file]
        found[(file, line)] = line if table is None or not 0 < line <= len(table) else table[line - 1] or None
    return found


def _map_texts(before: str | None, after: str | None) -> tuple[int, ...] | None:
    """None where both are the same or cannot be compared."""
    if before is None or after is None or before == after:
        return None
    return map_edited_lines(split_lines(before), split_lines(after))
