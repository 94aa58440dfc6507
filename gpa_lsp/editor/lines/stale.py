"""Lines that were changed since they were measured: they carry no numbers, and the editor says so instead of saying nothing.

A line is stale when it stands in the place of a measured line that had something to say and cannot be found any more. Where a stretch of lines was
replaced by as many, each stands for the one it replaced; else all lines of the stretch do. A stretch that was deleted leaves nothing to mark.
"""

from collections.abc import Container, Iterator, Sequence

from msgspec import Struct

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.lines.index import MeasuredText
from gpa_lsp.editor.settings import Settings
from gpa_lsp.report.line_map import LineMap


def find_stale_lines(
    texts: Sequence[MeasuredText],
    finder: LineFinder,
    *,
    lines: Sequence[str],
    settings: Settings,
    measured: Sequence[Container[int]],
) -> tuple[int, ...]:
    """The stale lines of a document, ascending and 1-based."""
    stale: set[int] = set()
    for text in texts:
        line_map = finder.map(text.file)
        if line_map is not None and not line_map.unchanged and finder.knows(text.file):
            stale.update(_mark_gaps(text, line_map, settings.least_share_ratio, lines))
    return tuple(line for line in sorted(stale) if not any(line in some for some in measured))


class Gap(Struct, frozen=True, kw_only=True):
    """A stretch of lines without partners; both spans are 1-based, half-open, and may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def list_gaps(line_map: LineMap, line_count: int) -> Iterator[Gap]:
    """The stretches between lines that were found again, where lines are missing on both sides.

    >>> one = LineMap(current_lines=(1, 0, 0, 4), unchanged=False)
    >>> [(gap.old_start, gap.old_end, gap.new_start, gap.new_end) for gap in list_gaps(one, 4)]
    [(2, 4, 2, 4)]
    """
    old_start, new_start = 1, 1
    for old_line, new_line in enumerate((*line_map.current_lines, line_count + 1), start=1):
        if not new_line:
            continue
        if old_start < old_line and new_start < new_line:
            yield Gap(old_start=old_start, old_end=old_line, new_start=new_start, new_end=new_line)
        old_start, new_start = old_line + 1, new_line + 1


def _mark_gaps(text: MeasuredText, line_map: LineMap, least_ratio: float, lines: Sequence[str]) -> Iterator[int]:
    hot = {*text.hot.list_above(least_ratio), *text.causes.list_above(least_ratio)}
    measured = text.file.lines
    for gap in list_gaps(line_map, len(lines)):
        lost = [line for line in range(gap.old_start, gap.old_end) if line in hot]
        if not lost:
            continue
        is_as_long = gap.old_end - gap.old_start == gap.new_end - gap.new_start
        shift = gap.new_start - gap.old_start
        standing = [line + shift for line in lost] if is_as_long else range(gap.new_start, gap.new_end)
        before = () if measured is None else {line.strip() for line in measured[gap.old_start - 1 : gap.old_end - 1]}
        for line in standing:
            now = lines[line - 1].strip()
            # A line that says what one of the lost lines said was not changed: there are several of it, and nobody can tell which one it is.
            if now not in before and any(character.isalnum() for character in now):
                yield line
