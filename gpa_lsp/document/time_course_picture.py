"""A kernel's time over its runs as a small picture for a hover: an SVG that reads on light and on dark ground."""

from collections.abc import Iterator
from html import escape

from gpa_lsp.document.stall_picture import COLOURS, TEXT_COLOUR
from gpa_lsp.document.time_course_words import choose_named_ticks, choose_span, write_time
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.profile.stall_reasons import ISSUED, MEMORY, THROTTLE
from gpa_lsp.report.history.model import TimeCourse, TimedRun

MOST_BYTES = 8192  # Of the picture as it stands in the text of a hover

_WIDTH, _HEIGHT = 360, 92
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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" '
        f'font-size="10" fill="{TEXT_COLOUR}">{"".join(parts)}</svg>'
    )


class _Plane:
    """Where runs and times lie in the picture."""

    def __init__(self, course: TimeCourse) -> None:
        first = max(0, len(course.runs) - _MOST_RUNS)
        self._course = course
        self.runs = tuple(enumerate(course.runs))[first:]
        self._first = first
        self._step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(self.runs) - 1)
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
            yield f'<path d="M{_LEFT - 4} {y:.1f}H{_WIDTH - 4}" stroke="{TEXT_COLOUR}" stroke-opacity="0.35"/>'
            yield _write(_LEFT - 8, y + 3.5, write_time(self._course, value), "end")

    def draw_ticks(self) -> Iterator[str]:
        """Where a commit begins, with its name as far as there is room."""
        named = choose_named_ticks(self._course, _LABEL_PIXELS / self._step)
        for position, run in self.runs:
            if run.commit is None or not self._course.begins_commit(position):
                continue
            x, base = self._x(position), _HEIGHT - _BOTTOM + 4
            yield f'<path d="M{x:.1f} {base}v6" stroke="{TEXT_COLOUR}" stroke-width="1.5"/>'
            if position in named:
                is_last = x > _WIDTH - _LABEL_PIXELS
                yield _write(x + 3 if is_last else x - 2, _HEIGHT - 2, run.commit.short, "end" if is_last else "start")

    def draw_line(self) -> str:
        """From one time to the next."""
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


def _write(left: float, base: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{left:.1f}" y="{base:.1f}" text-anchor="{anchor}">{escape(make_visible(text))}</text>'
