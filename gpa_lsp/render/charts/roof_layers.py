"""The layers of the roofline chart that draw the machine: diagonals, horizontals, their names and the ridge points."""

from gpa_lsp.render.charts.chart_axes import ChartAxes, Layer
from gpa_lsp.render.charts.chart_frame import CLOSE_PEAKS, PEAK_NAME_PIXELS, ChartFrame


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
        "transform": [
            {
                "filter": "datum.machine === shown_machine && indexof(drawn_levels, datum.level) >= 0 && indexof(drawn_kinds, datum.kind) >= 0"
            },
        ],
        "mark": {"type": "point", "style": "ridge", "shape": "circle", "size": 22, "filled": True, "clip": True},
        "encoding": {**axes.both("x", "y"), "tooltip": {"field": "words", "type": "nominal"}},
    }
