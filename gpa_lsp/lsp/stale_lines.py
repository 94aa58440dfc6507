"""Lines that were changed since they were measured: they carry no numbers, and the editor says so instead of saying nothing.

A line is stale when it stands in the place of a measured line that had something to say and cannot be found any more. Where a stretch of lines was
replaced by as many, each stands for the one it replaced; else all lines of the stretch do. A stretch that was deleted leaves nothing to mark.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gpa_lsp.lsp.line_finder import LineFinder
from gpa_lsp.lsp.session import MeasuredFile, VisibleKernel
from gpa_lsp.lsp.settings import Settings
from gpa_lsp.lsp.thresholds import find_least_share
from gpa_lsp.report.line_map import LineMap


def find_stale_lines(
    kernels: Sequence[VisibleKernel],
    local_path: str,
    finder: LineFinder,
    *,
    lines: Sequence[str],
    settings: Settings,
    measured: Collection[int],
) -> tuple[int, ...]:
    """The stale lines of a document, ascending and 1-based.

    Args:
        kernels: with lines in it.
        local_path: the document's file, links resolved.
        finder: maps measured lines to the document's.
        lines: of the document now.
        settings: the options.
        measured: lines that carry numbers, and are therefore not stale whatever another measurement lost there.
    """
    stale: set[int] = set()
    for hot in _list_hot_lines(kernels, local_path, finder, settings):
        stale.update(_mark_gaps(hot, lines))
    return tuple(sorted(stale - set(measured)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _HotLines:
    """The lines of one measured text that have something to say.

    Attributes:
        file: with that text.
        line_map: where its lines are now.
        hot: its hot lines, 1-based.
    """

    file: MeasuredFile
    line_map: LineMap
    hot: set[int]


def _list_hot_lines(
    kernels: Sequence[VisibleKernel], local_path: str, finder: LineFinder, settings: Settings
) -> list[_HotLines]:
    """By measured text, those texts only that are not the document's own."""
    found: dict[int, _HotLines] = {}
    least = find_least_share(settings)
    for shown in kernels:
        edited = dict(_list_edited(shown, local_path, finder, settings, found))
        total = shown.kernel.report.total_samples
        if not edited or not total:
            continue
        for row in shown.kernel.report.lines:
            one = edited.get(row.file or "")
            if one is not None and row.line and row.inclusive_samples + row.called_samples >= least * total:
                one.hot.add(row.line)
        for place, causes in shown.kernel.causes.items():
            one = edited.get(place[0])
            if one is not None and causes.caused_samples >= least * total:
                one.hot.add(place[1])
    return list(found.values())


def _list_edited(
    shown: VisibleKernel, local_path: str, finder: LineFinder, settings: Settings, found: dict[int, _HotLines]
) -> Iterator[tuple[str, _HotLines]]:
    for path, file in shown.profile.files.items():
        if file.local_path != local_path or not (file.is_verified or settings.shows_unverified_lines):
            continue
        line_map = finder.map(file)
        if line_map is None or line_map.unchanged:
            continue
        yield path, found.setdefault(id(line_map), _HotLines(file=file, line_map=line_map, hot=set()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch of lines without partners; both spans are 1-based, half-open, and may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def list_gaps(line_map: LineMap, line_count: int) -> Iterator[Gap]:
    """The stretches between lines that were found again, where lines are missing on both sides.

    Args:
        line_map: of the measured lines.
        line_count: of the document now.

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


def _mark_gaps(hot: _HotLines, lines: Sequence[str]) -> Iterator[int]:
    measured = hot.file.lines
    for gap in list_gaps(hot.line_map, len(lines)):
        lost = [line for line in range(gap.old_start, gap.old_end) if line in hot.hot]
        if not lost:
            continue
        is_as_long = gap.old_end - gap.old_start == gap.new_end - gap.new_start
        shift = gap.new_start - gap.old_start
        standing = [line + shift for line in lost] if is_as_long else range(gap.new_start, gap.new_end)
        texts = () if measured is None else {text.strip() for text in measured[gap.old_start - 1 : gap.old_end - 1]}
        for line in standing:
            text = lines[line - 1].strip()
            # A line that says what one of the lost lines said was not changed: there are several of it, and nobody can tell which one it is.
            if text not in texts and any(character.isalnum() for character in text):
                yield line
