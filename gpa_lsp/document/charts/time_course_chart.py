"""A kernel's time over its runs as a Vega-Lite specification: the times with their ranges, regressions by shape and colour, commits as ticks."""

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any

from gpa_lsp.document.charts.roofline_chart import SCHEMA
from gpa_lsp.document.stall_picture import COLOURS
from gpa_lsp.document.time_course_words import (
    choose_named_ticks,
    choose_span,
    describe_step,
    format_moment,
    name_commit,
    write_range,
    write_time,
)
from gpa_lsp.profile.stall_reasons import ISSUED, MEMORY, THROTTLE
from gpa_lsp.report.history.model import TimeCourse, TimedRun

Row = dict[str, Any]

_HEIGHT = 190
_UNITS_NS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_LINE = COLOURS[MEMORY]
# What became of a time: how its mark looks
_KINDS = {
    "as before": ("circle", _LINE),
    "slower": ("triangle-up", COLOURS[THROTTLE]),
    "faster": ("triangle-down", COLOURS[ISSUED]),
}

_TOOLTIP = (
    ("run", "run"),
    ("at", "measured"),
    ("words", "time"),
    ("range", "range"),
    ("step", "since the run before"),
    ("commit", "commit"),
)
_NARROW_PIXELS = 230
_LABEL_PIXELS = 62  # A commit's name and a gap: names are left out where they would touch in the narrowest window

_NOTCH_PIXELS = 10  # Of a commit without a name: lines as high as the chart would hide the times


def build_course_chart(course: TimeCourse, description: str, zone: tzinfo | None = None) -> dict[str, Any]:
    """The chart.

    Args:
        course: at least one of its runs has a time.
        zone: of moments in tooltips; None for the user's.
    """
    low, high = choose_span(course)
    size, unit = _choose_unit(course, high)
    rows = [_describe_run(course, run, size, zone) for run in course.timed]
    x = {
        "field": "run",
        "type": "ordinal",
        "title": "run",
        "scale": {"domain": [str(run.number) for run in course.runs]},
        "axis": {"labelAngle": 0, "labelOverlap": True, "grid": False},
    }
    y = {
        "field": "time",
        "type": "quantitative",
        "title": f"time per launch, {unit}",
        "scale": {"domain": _widen(rows, low / size, high / size), "zero": False, "nice": True},
    }
    return {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "height": _HEIGHT,
        "data": {"values": rows},
        "layer": [*_draw_ticks(course, x), *_draw_times(x, y), _draw_runs(x, y)],
    }


def _widen(rows: Sequence[Row], low: float, high: float) -> list[float]:
    """The ends of the axis, so that every range lies between them."""
    return [min([low, *(row["low"] for row in rows)]), max([high, *(row["high"] for row in rows)])]


def _choose_unit(course: TimeCourse, high: float) -> tuple[float, str]:
    """What the times of the axis are divided by, and what they are in then."""
    if course.unit == "cycles":
        return 1.0, "cycles"
    return next(((size, unit) for size, unit in _UNITS_NS if high >= size), _UNITS_NS[-1])


def _describe_run(course: TimeCourse, run: TimedRun, size: float, zone: tzinfo | None) -> Row:
    assert run.time is not None
    times = {
        "time": run.time,
        "low": run.time if run.low is None else run.low,
        "high": run.time if run.high is None else run.high,
    }
    return {
        **{name: time / size for name, time in times.items()},
        "run": str(run.number),
        "kind": "slower" if run.is_regression else "faster" if run.is_gain else "as before",
        "at": format_moment(run.measured_ns, zone),
        "words": write_time(course, run.time),
        "range": write_range(course, run),
        "step": describe_step(run),
        "commit": name_commit(run.commit),
    }


def _draw_ticks(course: TimeCourse, x: Row) -> Iterator[Row]:
    """A line with its name where another commit begins; a notch where there is no room for the name."""
    named = choose_named_ticks(course, _LABEL_PIXELS * len(course.runs) / _NARROW_PIXELS)
    ticks = []
    for position, run in enumerate(course.runs):
        if run.commit is None or not course.begins_commit(position):
            continue
        label = run.commit.short if position in named else ""
        ticks.append({"run": str(run.number), "commit": name_commit(run.commit), "label": label})
    if not ticks:
        return
    at = {"x": x, "tooltip": {"field": "commit", "type": "nominal", "title": "commit"}}
    rule = {"type": "rule", "style": "now", "opacity": 0.5}
    named_ticks = [tick for tick in ticks if tick["label"]]
    others = [tick for tick in ticks if not tick["label"]]
    yield {"data": {"values": named_ticks}, "mark": rule, "encoding": at}
    if others:
        notch = {"y": {"value": 0}, "y2": {"value": _NOTCH_PIXELS}}
        yield {"data": {"values": others}, "mark": rule, "encoding": {**at, **notch}}
    label_mark = {"type": "text", "style": "peak-label", "align": "left", "baseline": "bottom", "dx": -3, "dy": -2}
    text = {"field": "label", "type": "nominal"}
    yield {"data": {"values": named_ticks}, "mark": {**label_mark, "y": 0}, "encoding": {**at, "text": text}}


def _draw_times(x: Row, y: Row) -> Iterator[Row]:
    """The line from run to run, and the range each time lies in."""
    yield {"mark": {"type": "line", "strokeWidth": 2, "color": _LINE}, "encoding": {"x": x, "y": y}}
    yield {
        "mark": {"type": "rule", "strokeWidth": 2, "color": _LINE, "opacity": 0.55},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }


def _draw_runs(x: Row, y: Row) -> Row:
    kind = {"field": "kind", "type": "nominal", "title": None}
    shapes, colours = ([look[part] for look in _KINDS.values()] for part in (0, 1))
    return {
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 90},
        "encoding": {
            "x": x,
            "y": y,
            "shape": {
                **kind,
                "scale": {"domain": list(_KINDS), "range": shapes},
                "legend": {"orient": "bottom"},
            },
            "color": {**kind, "scale": {"domain": list(_KINDS), "range": colours}},
            "tooltip": [{"field": field, "type": "nominal", "title": title} for field, title in _TOOLTIP],
        },
    }
