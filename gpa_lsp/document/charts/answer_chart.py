"""The charts of the analyses' closed vocabulary as Vega-Lite specifications."""

import math
from collections.abc import Sequence
from typing import Any

from gpa_lsp.diagnosis.analyses.answers import Chart, ChartKind
from gpa_lsp.document.answer_view import describe_chart
from gpa_lsp.document.charts.chart_frame import label_axis
from gpa_lsp.document.charts.roofline_chart import SCHEMA
from gpa_lsp.document.charts.themes import SERIES_COLOURS
from gpa_lsp.foundation.numbers import Quantity, format_quantity

_HEIGHT = 200
_LOGARITHMIC = {"type": "log", "nice": False, "padding": 12}
_MOST_DOTS = 100  # Points beyond which the line alone is drawn


def build_answer_chart(chart: Chart, *, width: int | None = 420, height: int = _HEIGHT) -> dict[str, Any]:
    """A small chart: steps, lines, bars or points, with a dashed line at the kernel as it is.

    Args:
        chart: what to draw; points that are no finite numbers are left out.
        width: pixels between the axes; None to fill what it stands in (in a page).
        height: pixels between the axes.
    """
    labels = [series.label for series in chart.series]
    values: list[dict[str, Any]] = [
        {
            "series": series.label,
            "x": x,
            "y": y,
            "at": format_quantity(x, chart.y_quantity if chart.kind is ChartKind.SCATTER else Quantity.NUMBER),
            "words": format_quantity(y, chart.y_quantity),
        }
        for series in chart.series
        for x, y in zip(series.xs, series.ys, strict=True)
        if math.isfinite(x) and math.isfinite(y) and (chart.kind is not ChartKind.SCATTER or min(x, y) > 0)
    ]
    layers: list[dict[str, Any]] = [
        {"mark": _choose_mark(chart.kind, len(values)), "encoding": _encode(chart, labels)},
    ]
    if chart.kind is ChartKind.SCATTER and values:
        layers.insert(0, _draw_diagonal([value for point in values for value in (point["x"], point["y"])]))
    if chart.current_x is not None and math.isfinite(chart.current_x):
        layers.append(
            {
                "data": {"values": [{"x": chart.current_x, "words": "as measured"}]},
                "mark": {"type": "rule", "style": "now"},
                "encoding": {
                    "x": {"field": "x", "type": "ordinal" if chart.kind is ChartKind.BARS else "quantitative"},
                    "tooltip": {"field": "words", "type": "nominal", "title": "the kernel"},
                },
            }
        )
    return {
        "$schema": SCHEMA,
        "description": describe_chart(chart),
        "width": width or "container",
        "height": height,
        "title": {"text": chart.title, "fontSize": 12},
        "data": {"values": values},
        "layer": layers,
    }


def _draw_diagonal(ends: Sequence[float]) -> dict[str, Any]:
    return {
        "data": {"values": [{"x": end, "y": end} for end in (min(ends), max(ends))]},
        "mark": {"type": "line", "style": "now"},
        "encoding": {axis: {"field": axis, "type": "quantitative", "scale": _LOGARITHMIC} for axis in ("x", "y")},
    }


def _choose_mark(kind: ChartKind, points: int) -> dict[str, Any]:
    if kind is ChartKind.BARS:
        return {"type": "bar"}
    if kind is ChartKind.SCATTER:
        return {"type": "point", "filled": True, "size": 40, "opacity": 0.8}
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 2, "point": {"size": 18} if points <= _MOST_DOTS else False}
    return {**mark, "interpolate": "step-after"} if kind is ChartKind.STEPS else mark


def _encode(chart: Chart, labels: Sequence[str]) -> dict[str, Any]:
    is_bars = chart.kind is ChartKind.BARS
    encoding: dict[str, Any] = {
        "x": {
            "field": "x",
            "type": "ordinal" if is_bars else "quantitative",
            "title": chart.x_label,
            "axis": {"labelAngle": 0, "labelOverlap": True, "labelSeparation": 6},
        },
        "y": {
            "field": "y",
            "type": "quantitative",
            "title": chart.y_label,
            "axis": label_axis(chart.y_quantity),
            "scale": {"zero": True},
        },
        "color": {
            "field": "series",
            "type": "nominal",
            "title": None,
            "scale": {
                "domain": list(labels),
                "range": [SERIES_COLOURS[i % len(SERIES_COLOURS)] for i in range(len(labels))],
            },
            "legend": {"orient": "bottom"} if len(labels) > 1 else None,
        },
        "tooltip": [
            {"field": "at", "type": "nominal", "title": chart.x_label},
            {"field": "words", "type": "nominal", "title": chart.y_label},
            {"field": "series", "type": "nominal", "title": "of"},
        ],
    }
    if chart.kind is ChartKind.SCATTER:
        for axis in ("x", "y"):
            encoding[axis] |= {"axis": label_axis(chart.y_quantity), "scale": _LOGARITHMIC}
    if is_bars and len(labels) > 1:
        encoding["xOffset"] = {"field": "series", "type": "nominal"}
    return encoding
