"""The layers of the roofline chart, from back to front: zones, roofs, ridge points, ways to the roofs, arrows, points, names."""

import math
from typing import Any

from gpa_lsp.document.charts.chart_frame import CLOSE_PEAKS, PEAK_NAME_PIXELS, ChartAxes, ChartFrame, Layer
from gpa_lsp.gpu.device.model import OperationKind


def _select_roofs(frame: ChartFrame) -> list[Layer]:
    """The roofs drawn, each with its two ends."""
    return [
        {"filter": "datum.machine === shown_machine"},
        {
            "filter": "isValid(datum.slope) ? indexof(drawn_levels, datum.name) >= 0 "
            ": all_peaks || indexof(drawn_kinds, datum.name) >= 0"
        },
        {
            "joinaggregate": [
                {"op": "max", "field": "limit", "as": "highest_limit"},
                {"op": "max", "field": "slope", "as": "fastest"},
            ]
        },
        {"calculate": f"datum.highest_limit > 0 ? datum.highest_limit : {frame.top!r}", "as": "ceiling"},
        {
            "calculate": f"isValid(datum.slope) ? max({frame.left!r}, {frame.bottom!r} / datum.slope) "
            f": datum.fastest > 0 ? max({frame.left!r}, datum.limit / datum.fastest) : {frame.left!r}",
            "as": "x1",
        },
        {
            "calculate": f"isValid(datum.slope) ? min({frame.right!r}, datum.ceiling / datum.slope) : {frame.right!r}",
            "as": "x2",
        },
        {"calculate": "isValid(datum.slope) ? datum.x1 * datum.slope : datum.limit", "as": "y1"},
        {"calculate": "isValid(datum.slope) ? datum.x2 * datum.slope : datum.limit", "as": "y2"},
        {"filter": "datum.x2 > datum.x1"},
    ]


def draw_zones(axes: ChartAxes) -> list[Layer]:
    """The zones of the slowest level that is drawn: left of all its ridge points a kernel is memory-bound, right of them compute-bound.

    Between the ridge points of two types it depends on the type, and nothing is shaded.

    Source: Starlight, section 3 and Fig. 1.
    """
    left, right = repr(axes.frame.left), repr(axes.frame.right)
    zones = (
        ("memory-zone", left, "datum.first", "right", "memory-bound"),
        ("compute-zone", "datum.last", right, "left", "compute-bound"),
    )
    layers: list[Layer] = []
    for style, start, end, align, words in zones:
        transform = [
            *_find_zones(),
            {"calculate": start, "as": "start"},
            {"calculate": end, "as": "end"},
            {"calculate": f"'{words} (' + datum.level + ')'", "as": "words"},
        ]
        data: Layer = {"data": {"name": "ridges"}, "transform": transform}
        label = {"type": "text", "style": "zone-label", "align": align, "baseline": "bottom", "dy": -4}
        label["dx"] = 6 if align == "left" else -6
        layers += [
            {
                **data,
                "mark": {"type": "rect", "style": style, "clip": True},
                "encoding": {"x": axes.x("start"), "x2": {"field": "end"}},
            },
            {
                **data,
                "mark": label,
                "encoding": {
                    "x": axes.x("start" if align == "left" else "end"),
                    "y": {"value": "height"},
                    "text": {"field": "words", "type": "nominal"},
                },
            },
        ]
    return layers


def _find_zones() -> list[Layer]:
    """One row: the slowest level that is drawn, with the first and the last of its ridge points; special functions count where they are all."""
    is_special = f"datum.kind === '{OperationKind.SPECIAL.value}'"
    return [
        {"filter": f"{_IS_RIDGE_SHOWN} && (length(drawn_kinds) === 1 || !({is_special}))"},
        {"joinaggregate": [{"op": "min", "field": "slope", "as": "slowest"}]},
        {"filter": "datum.slope === datum.slowest"},
        {
            "aggregate": [{"op": "min", "field": "x", "as": "first"}, {"op": "max", "field": "x", "as": "last"}],
            "groupby": ["level"],
        },
    ]


_IS_RIDGE_SHOWN = "datum.machine === shown_machine && indexof(drawn_levels, datum.level) >= 0 && indexof(drawn_kinds, datum.kind) >= 0"

_ROOF_TOOLTIP = [
    {"field": "words", "type": "nominal", "title": "ceiling"},
    {"field": "source", "type": "nominal", "title": "source"},
]


def draw_diagonals(axes: ChartAxes, colour: Layer) -> Layer:
    """A line of each level that is drawn, from the edge of the plane to the highest peak."""
    return {
        "data": {"name": "roofs"},
        "transform": [*_select_roofs(axes.frame), {"filter": "isValid(datum.slope)"}],
        "mark": {"type": "rule", "strokeWidth": 2, "clip": True},
        "encoding": {
            **axes.both("x1", "y1"),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "color": colour,
            "tooltip": _ROOF_TOOLTIP,
        },
    }


def draw_peaks(axes: ChartAxes) -> Layer:
    """A line of each type that is drawn, from the fastest memory to the edge; types that are not in play are faint."""
    return {
        "data": {"name": "roofs"},
        "transform": [*_select_roofs(axes.frame), {"filter": "isValid(datum.limit)"}],
        "mark": {"type": "rule", "style": "peak", "clip": True},
        "encoding": {
            **axes.both("x1", "y1"),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "opacity": {"condition": {"test": "indexof(drawn_kinds, datum.name) >= 0", "value": 1}, "value": 0.45},
            "tooltip": _ROOF_TOOLTIP,
        },
    }


def name_diagonals(axes: ChartAxes, colour: Layer) -> Layer:
    """Along the line, above it, from its left end; the slowest below it; a line close above another one further along."""
    decades = f"(log({axes.frame.right!r} / {axes.frame.left!r}) / LN10)"
    rise = f"(log((all_peaks ? {axes.frame.highest!r} : {axes.frame.top!r}) / {axes.frame.bottom!r}) / LN10)"
    angle = f"-atan2(height / {rise}, width / {decades}) * 180 / PI"
    return {
        "data": {"name": "roofs"},
        "transform": [
            *_select_roofs(axes.frame),
            {"filter": "isValid(datum.slope)"},
            {
                "window": [
                    {"op": "row_number", "as": "rank"},
                    {"op": "lag", "field": "slope", "as": "slower"},
                ],
                "sort": [{"field": "slope", "order": "ascending"}],
            },
            {"calculate": "datum.slower > 0 && datum.slope < 1.8 * datum.slower ? datum.rank - 1 : 0", "as": "step"},
            {"calculate": "datum.x1 * pow(datum.x2 / datum.x1, 0.03 + 0.33 * min(datum.step, 2))", "as": "label_x"},
            {"calculate": "datum.label_x * datum.slope", "as": "label_y"},
        ],
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "bottom",
            "dx": 5,
            "dy": -3,
            "angle": {"expr": angle},
            "fontSize": 11,
            "clip": True,
        },
        "encoding": {
            **axes.both("label_x", "label_y"),
            "text": {"field": "words", "type": "nominal"},
            "color": colour,
        },
    }


def name_peaks(axes: ChartAxes) -> Layer:
    """Above the line, at its right end; of peaks that stand close, one beside the other."""
    return {
        "data": {"name": "roofs"},
        "transform": [
            *_select_roofs(axes.frame),
            {"filter": "isValid(datum.limit)"},
            {
                "window": [
                    {"op": "row_number", "as": "rank"},
                    {"op": "lag", "field": "limit", "as": "lower"},
                ],
                "sort": [{"field": "limit", "order": "ascending"}],
            },
            {
                "calculate": f"datum.lower > 0 && datum.limit < {CLOSE_PEAKS} * datum.lower ? 1 + datum.rank % 2 : 0",
                "as": "step",
            },
        ],
        "mark": {
            "type": "text",
            "style": "peak-label",
            "align": "right",
            "baseline": "bottom",
            "dx": {"expr": f"-2 - {PEAK_NAME_PIXELS} * datum.step"},
            "dy": -3,
            "clip": True,
        },
        "encoding": {**axes.both("x2", "y2"), "text": {"field": "words", "type": "nominal"}},
    }


def draw_ridges(axes: ChartAxes) -> Layer:
    """Where bandwidths and peaks that are drawn meet."""
    return {
        "data": {"name": "ridges"},
        "transform": [{"filter": _IS_RIDGE_SHOWN}],
        "mark": {"type": "point", "style": "ridge", "shape": "circle", "size": 22, "filled": True, "clip": True},
        "encoding": {**axes.both("x", "y"), "tooltip": {"field": "words", "type": "nominal"}},
    }


_IS_SHOWN = "indexof(shown_rows, datum.row) >= 0 && indexof(drawn_levels, datum.level) >= 0 && indexof(drawn_kinds, datum.kind) >= 0"
_IS_ARROW_SHOWN = (
    f"{_IS_SHOWN} && (datum.measured || show_movements && (!isValid(focused_row) || focused_row === datum.row))"
)
_IS_QUIET = "isValid(focused_row) && focused_row !== datum.row && indexof(related_rows, datum.row) < 0"
_ARROW_HEAD = "M0,0L0.7,2L0,1.5L-0.7,2Z"  # Upright, its tip where the arrow ends
_LEAST_WIDTH = 500  # Pixels of the plane below which names would cover one another
_ROW_FIELDS = ["kernel", "launch", "seconds", "time", "before", "whole"]


def build_layers(frame: ChartFrame, counts_instructions: bool, marks: dict[str, Any]) -> list[Layer]:
    """All of them.

    Args:
        counts_instructions: the second view.
    """
    axes = ChartAxes(frame, counts_instructions)
    colour = {**marks["color"], "field": "name"}
    return [
        *draw_zones(axes),
        draw_diagonals(axes, colour),
        draw_peaks(axes),
        name_diagonals(axes, colour),
        name_peaks(axes),
        draw_ridges(axes),
        _draw_spans(axes),
        _draw_headroom(axes),
        _draw_arrows(axes),
        _draw_points(axes, marks),
        _draw_arrow_heads(axes),
        _draw_names(axes, is_focus=False),
        _draw_names(axes, is_focus=True),
    ]


def _draw_spans(axes: ChartAxes) -> Layer:
    """A faint line through the points of one kernel and type, which differ in the level only."""
    return {
        "data": {"name": "points"},
        "transform": [
            {"filter": _IS_SHOWN},
            {
                "aggregate": [
                    {"op": "min", "field": "x", "as": "x1"},
                    {"op": "max", "field": "x", "as": "x2"},
                    {"op": "mean", "field": "y", "as": "y1"},
                ],
                "groupby": ["row", "kind"],
            },
            {"filter": "datum.x2 > datum.x1"},
        ],
        "mark": {"type": "rule", "style": "peak", "strokeWidth": 1, "clip": True},
        "encoding": {
            **axes.both("x1", "y1"),
            "x2": {"field": "x2"},
            "opacity": {"condition": {"test": _IS_QUIET, "value": 0.12}, "value": 0.55},
        },
    }


def _draw_headroom(axes: ChartAxes) -> Layer:
    """From the points of the row in focus up to what is attainable."""
    return {
        "data": {"name": "points"},
        "transform": [{"filter": f"datum.row === focused_row && datum.a > datum.y && {_IS_SHOWN}"}],
        "mark": {"type": "rule", "style": "headroom", "clip": True},
        "encoding": {**axes.both("x", "y"), "y2": {"field": "a"}},
    }


def _draw_arrows(axes: ChartAxes) -> Layer:
    return {
        "data": {"name": "arrows"},
        "transform": [{"filter": _IS_ARROW_SHOWN}],
        "mark": {"type": "rule", "style": "arrow", "clip": True},
        "encoding": {
            **axes.both("x", "y"),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "strokeDash": {"condition": {"test": "datum.measured", "value": [1, 0]}, "value": [4, 3]},
            "opacity": {"condition": {"test": _IS_QUIET, "value": 0.2}, "value": 0.9},
            "tooltip": {"field": "label", "type": "nominal"},
        },
    }


def _draw_arrow_heads(axes: ChartAxes) -> Layer:
    """A triangle at the end of each arrow, turned as the arrow is on the screen."""
    frame = axes.frame
    decades = f"log({frame.right!r} / {frame.left!r})"
    rise = f"log((all_peaks ? {frame.highest!r} : {frame.top!r}) / {frame.bottom!r})"
    return {
        "data": {"name": "arrows"},
        "transform": [
            {"filter": _IS_ARROW_SHOWN},
            {
                "calculate": f"atan2(log(datum.x2 / datum.x) * width / {decades}, log(datum.y2 / datum.y) * height / {rise}) * 180 / PI",
                "as": "angle",
            },
        ],
        "mark": {
            "type": "point",
            "style": "arrow-head",
            "shape": _ARROW_HEAD,
            "size": 60,
            "filled": True,
            "clip": True,
        },
        "encoding": {
            **axes.both("x2", "y2"),
            "angle": {"field": "angle", "type": "quantitative", "scale": None},
            "opacity": {"condition": {"test": _IS_QUIET, "value": 0.2}, "value": 0.9},
            "tooltip": {"field": "label", "type": "nominal"},
        },
    }


def _draw_points(axes: ChartAxes, marks: dict[str, Any]) -> Layer:
    return {
        "name": "points",
        "data": {"name": "points"},
        "transform": [
            {"filter": _IS_SHOWN},
            {"lookup": "row", "from": {"data": {"name": "rows"}, "key": "id", "fields": _ROW_FIELDS}},
            {"calculate": marks["area"], "as": "area"},
        ],
        "mark": {"type": "point", "strokeWidth": 1.5, "clip": True, "cursor": "pointer"},
        "encoding": {
            **axes.both("x", "y"),
            **{channel: marks[channel] for channel in ("color", "shape", "size")},
            "fill": {**marks["color"], "legend": None},
            "fillOpacity": {"condition": {"test": "datum.before || datum.ring > 0", "value": 0}, "value": 0.55},
            "opacity": {"condition": {"test": _IS_QUIET, "value": 0.25}, "value": 1},
            "order": {"field": "seconds", "sort": "descending"},
            "tooltip": [
                {"field": field, "type": "nominal", "title": title}
                for field, title in (
                    ("kernel", "kernel"),
                    ("launch", "launch"),
                    ("time", "time"),
                    ("kind", "operations"),
                    ("level", "bytes of"),
                    ("intensity", "intensity"),
                    ("achieved", "achieved"),
                    ("attainable", "attainable"),
                )
            ],
        },
    }


def _choose_by_side(values: dict[str, str]) -> str:
    """An expression of the side a name stands on."""
    *others, (_, last) = values.items()
    return "".join(f"datum.side === '{side}' ? {value} : " for side, value in others) + last


def _draw_names(axes: ChartAxes, *, is_focus: bool) -> Layer:
    """Names where there is room, and always that of the kernel of most time; of the row in focus, right of its rightmost point of each type."""
    frame = axes.frame
    sides = {
        "right": ("left", "13 + datum.pad", "0"),
        "left": ("right", "-13 - datum.pad", "0"),
        "above": ("center", "0", "-19 - datum.pad"),
        "below": ("center", "0", "19 + datum.pad"),
    }
    side: Layer = {
        "align": {"expr": _choose_by_side({name: repr(align) for name, (align, _, _) in sides.items()})},
        "dx": {"expr": _choose_by_side({name: dx for name, (_, dx, _) in sides.items()})},
        "dy": {"expr": _choose_by_side({name: dy for name, (_, _, dy) in sides.items()})},
    }
    chosen: list[Layer] = [
        {
            "filter": f"isValid(datum.name) && !isValid(focused_row) && (datum.first || width > {_LEAST_WIDTH}) && {_IS_SHOWN}"
        },
    ]
    if is_focus:
        middle = f"datum.x > {math.sqrt(frame.left * frame.right)!r}"
        # Right of the middle of the plane a long name has no room on its right.
        side = {"align": {"expr": f"{middle} ? 'right' : 'left'"}, "dx": {"expr": f"{middle} ? 0 : 13 + datum.pad"}}
        side["dy"] = {"expr": f"{middle} ? -17 - datum.pad : 0"}
        chosen = [
            {"filter": f"datum.row === focused_row && {_IS_SHOWN}"},
            {
                "window": [{"op": "row_number", "as": "rank"}],
                "sort": [{"field": "x", "order": "descending"}],
                "groupby": ["kind"],
            },
            {"filter": "datum.rank === 1"},
            {"lookup": "row", "from": {"data": {"name": "rows"}, "key": "id", "fields": ["kernel"]}},
            {"calculate": "truncate(datum.kernel, 40)", "as": "name"},
        ]
    return {
        "data": {"name": "points"},
        "transform": chosen,
        "mark": {"type": "text", "style": "name", **side, "baseline": "middle", "aria": False},
        "encoding": {**axes.both("x", "y"), "text": {"field": "name", "type": "nominal"}},
    }
