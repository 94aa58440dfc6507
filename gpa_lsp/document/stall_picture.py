"""A line's stalls and its kernel's ceilings as a small picture for a hover: an SVG that reads on light and on dark ground.

An image in a hover knows nothing of the editor's theme, so every colour has a contrast of at least 3:1 to white and to the usual dark ground.
"""

from collections.abc import Iterator, Sequence
from html import escape

from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import UnitUse
from gpa_lsp.document.time_course_words import choose_named_ticks, choose_span, write_time
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.profile.stall_reasons import (
    EXECUTION,
    INSTRUCTION_SUPPLY,
    ISSUED,
    MEMORY,
    OTHER,
    SYNCHRONISATION,
    THROTTLE,
    describe_stall_reason,
)
from gpa_lsp.report.history.model import TimeCourse, TimedRun

# By group of stall reasons
COLOURS = {
    MEMORY: "#3b82c4",
    EXECUTION: "#b9772e",
    SYNCHRONISATION: "#9a68bd",
    INSTRUCTION_SUPPLY: "#2f948b",
    THROTTLE: "#cf5a56",
    ISSUED: "#5f9440",
    OTHER: "#858585",
}

TEXT_COLOUR = "#808080"

_WIDTH = 360
_MARGIN = 2
_BAR_HEIGHT = 12
_ROW_HEIGHT = 16
_LABEL_WIDTH = 58
_FIGURE_WIDTH = 44
_MOST_PARTS = 5
_MOST_ROOFS = 5
_LONGEST_NAME = 20
_AT_ROOF_RATIO = 0.95  # From this part of what a unit sustains on its bar has the colour of a full queue


class StallPart(Struct, frozen=True, kw_only=True):
    """One reason of a line."""

    reason: str  # stall reason
    ratio: float  # of the kernel's samples, 0 to 1


def draw_stall_picture(parts: Sequence[StallPart], roofs: Sequence[UnitUse]) -> str:
    """The picture as SVG: a stacked bar of the stall reasons with its legend, then a bar for each unit.

    Args:
        parts: largest first; what is beyond the first five is drawn as one.
        roofs: in the order they are drawn, five at most.
    """
    shown = _join_small(parts)
    rows = [*_draw_stack(shown, _MARGIN), *_draw_legend(shown, _MARGIN + _BAR_HEIGHT)]
    top = _MARGIN + (_BAR_HEIGHT + _ROW_HEIGHT * ((len(shown) + 1) // 2) + 6 if shown else 0)
    for position, roof in enumerate(roofs[:_MOST_ROOFS]):
        rows.extend(_draw_roof(roof, top + position * _ROW_HEIGHT))
    height = top + _ROW_HEIGHT * len(roofs[:_MOST_ROOFS]) + _MARGIN
    return frame_picture(rows, _WIDTH, height, letters=11)


def frame_picture(parts: Sequence[str], width: int, height: int, *, letters: int = 10) -> str:
    """Elements as one SVG, its letters of so many pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="{letters}" fill="{TEXT_COLOUR}">{"".join(parts)}</svg>'
    )


def draw_text(left: float, base: float, text: str, anchor: str = "start") -> str:
    """A text as an element; names in it come from profiles."""
    return f'<text x="{left:.1f}" y="{base:.1f}" text-anchor="{anchor}">{escape(make_visible(text))}</text>'


def describe_picture(parts: Sequence[StallPart], roofs: Sequence[UnitUse]) -> str:
    """What the picture shows, for those who do not see it.

    >>> describe_picture([StallPart(reason="wait", ratio=0.8)], [UnitUse(name="DRAM", achieved_ratio=0.5, ceiling_ratio=0.85)])
    "stalls of the line, of the kernel's samples: wait 80 %; of their peak: DRAM 50 %"
    """
    stalls = ", ".join(f"{_shorten(part.reason)} {format_percent(part.ratio)}" for part in _join_small(parts))
    units = ", ".join(f"{_shorten(roof.name)} {format_percent(roof.achieved_ratio)}" for roof in roofs[:_MOST_ROOFS])
    return "; ".join(
        text
        for text in (
            f"stalls of the line, of the kernel's samples: {stalls}" * bool(stalls),
            f"of their peak: {units}" * bool(units),
        )
        if text
    )


def _join_small(parts: Sequence[StallPart]) -> list[StallPart]:
    shown = [part for part in parts if part.ratio > 0]
    if len(shown) <= _MOST_PARTS:
        return shown
    rest = sum(part.ratio for part in shown[_MOST_PARTS - 1 :])
    return [*shown[: _MOST_PARTS - 1], StallPart(reason="others", ratio=rest)]


def _draw_stack(parts: Sequence[StallPart], top: int) -> list[str]:
    """All of the bar is the line, whatever it is of the kernel."""
    rows, left = [], 0.0
    whole = sum(max(part.ratio, 0.0) for part in parts)
    for part in parts:
        width = _WIDTH * (max(part.ratio, 0.0) / whole if whole > 0 else 0.0)
        rows.append(_draw_box(left, top, max(width - 1, 0.5), _find_colour(part.reason)))
        left += width
    return rows


def _draw_legend(parts: Sequence[StallPart], top: int) -> list[str]:
    """Two to a row."""
    rows = []
    for position, part in enumerate(parts):
        left = (position % 2) * _WIDTH // 2
        base = top + _ROW_HEIGHT * (position // 2)
        rows.append(f'<rect x="{left}" y="{base + 5}" width="8" height="8" fill="{_find_colour(part.reason)}"/>')
        rows.append(draw_text(left + 13, base + 13, f"{_shorten(part.reason)} {format_percent(part.ratio)}"))
    return rows


def _draw_roof(roof: UnitUse, top: int) -> list[str]:
    """A frame as wide as the peak, filled as far as was achieved, with a tick at what can be sustained."""
    width = _WIDTH - _LABEL_WIDTH - _FIGURE_WIDTH
    achieved = width * min(max(roof.achieved_ratio, 0.0), 1.0)
    tick = _LABEL_WIDTH + width * min(max(roof.ceiling_ratio, 0.0), 1.0)
    is_at_roof = roof.achieved_ratio >= roof.ceiling_ratio * _AT_ROOF_RATIO
    return [
        draw_text(0, top + 10, _shorten(roof.name)),
        f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width}" height="{_BAR_HEIGHT}" fill="none" stroke="{TEXT_COLOUR}"/>',
        _draw_box(_LABEL_WIDTH, top, achieved, COLOURS[THROTTLE if is_at_roof else MEMORY]),
        f'<path d="M{tick:.1f} {top - 1}v{_BAR_HEIGHT + 2}" stroke="{TEXT_COLOUR}" stroke-width="2"/>',
        draw_text(_WIDTH - _FIGURE_WIDTH + 6, top + 10, format_percent(roof.achieved_ratio)),
    ]


def _draw_box(left: float, top: int, width: float, colour: str) -> str:
    return f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR_HEIGHT}" fill="{colour}"/>'


def _find_colour(reason: str) -> str:
    return COLOURS[describe_stall_reason(reason).group]


def _shorten(name: str) -> str:
    """Names come from profiles."""
    plain = make_visible(name)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"


_COURSE_WIDTH, _HEIGHT = 360, 92
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 10, 12, 22
_MOST_RUNS = 24
_LABEL_PIXELS = 58  # A commit's name and a gap

_LINE, _SLOWER, _FASTER = COLOURS[MEMORY], COLOURS[THROTTLE], COLOURS[ISSUED]


def draw_course_picture(course: TimeCourse) -> str | None:
    """The picture as SVG: the last runs, oldest at the left, with the range each time lies in and a tick where a commit begins.

    A regression is a triangle that points up, a gain one that points down.

    Returns:
        None where fewer than two runs have a time.
    """
    if len(course.timed) < 2:
        return None
    plane = _Plane(course)
    parts = [*plane.draw_axes(), *plane.draw_ticks(), plane.draw_line()]
    parts.extend(plane.draw_run(position, run) for position, run in plane.runs)
    return frame_picture(parts, _COURSE_WIDTH, _HEIGHT)


class _Plane:
    """Where runs and times lie in the picture."""

    def __init__(self, course: TimeCourse) -> None:
        first = max(0, len(course.runs) - _MOST_RUNS)
        self._course = course
        self.runs = tuple(enumerate(course.runs))[first:]
        self._first = first
        self._step = (_COURSE_WIDTH - _LEFT - _RIGHT) / max(1, len(self.runs) - 1)
        self._low, self._high = choose_span(course)

    def _x(self, position: int) -> float:
        return _LEFT + (position - self._first) * self._step

    def _y(self, time: float) -> float:
        ratio = min(max((time - self._low) / (self._high - self._low), -0.1), 1.1)  # a range may reach a little further
        return _HEIGHT - _BOTTOM - ratio * (_HEIGHT - _BOTTOM - _TOP)

    def draw_axes(self) -> Iterator[str]:
        """Two times at the left, and where they are."""
        for value in (self._high, self._low):
            y = self._y(value)
            yield f'<path d="M{_LEFT - 4} {y:.1f}H{_COURSE_WIDTH - 4}" stroke="{TEXT_COLOUR}" stroke-opacity="0.35"/>'
            yield draw_text(_LEFT - 8, y + 3.5, write_time(self._course, value), "end")

    def draw_ticks(self) -> Iterator[str]:
        """Where a commit begins, with its name as far as there is room."""
        named = choose_named_ticks(self._course, _LABEL_PIXELS / self._step)
        for position, run in self.runs:
            if run.commit is None or not self._course.begins_commit(position):
                continue
            x, base = self._x(position), _HEIGHT - _BOTTOM + 4
            yield f'<path d="M{x:.1f} {base}v6" stroke="{TEXT_COLOUR}" stroke-width="1.5"/>'
            if position in named:
                is_last = x > _COURSE_WIDTH - _LABEL_PIXELS
                yield draw_text(
                    x + 3 if is_last else x - 2, _HEIGHT - 2, run.commit.short, "end" if is_last else "start"
                )

    def draw_line(self) -> str:
        """Draw a line from one time to the next."""
        ends = [
            f"{self._x(position):.1f} {self._y(run.time):.1f}" for position, run in self.runs if run.time is not None
        ]
        return f'<path d="M{"L".join(ends)}" fill="none" stroke="{_LINE}" stroke-width="1.5"/>'

    def draw_run(self, position: int, run: TimedRun) -> str:
        """The range of a time and its mark; empty where it is unknown."""
        if run.time is None or run.low is None or run.high is None:
            return ""
        x, y = self._x(position), self._y(run.time)
        bar = (
            f'<path d="M{x:.1f} {self._y(run.low):.1f}V{self._y(run.high):.1f}" stroke="{_LINE}" stroke-opacity="0.6"/>'
        )
        if run.is_regression:
            return f'{bar}<path d="M{x:.1f} {y - 6:.1f}l5 9h-10z" fill="{_SLOWER}"/>'
        if run.is_gain:
            return f'{bar}<path d="M{x:.1f} {y + 6:.1f}l5 -9h-10z" fill="{_FASTER}"/>'
        return f'{bar}<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{_LINE}"/>'
