"""The charts of the analyses' closed vocabulary as Vega-Lite specifications."""

import math
from collections.abc import Sequence

from gpa_lsp.diagnosis.analyses.answers import Chart, ChartKind
from gpa_lsp.document.answer_view import describe_chart
from gpa_lsp.document.charts.chart_frame import label_axis
from gpa_lsp.document.charts.themes import SCHEMA, SERIES_COLOURS, Spec, nominal, quantitative, tell
from gpa_lsp.foundation.numbers import Quantity, format_quantity

_HEIGHT = 200
_LOGARITHMIC = {"type": "log", "nice": False, "padding": 12}
_MOST_DOTS = 100  # Points beyond which the line alone is drawn


def build_answer_chart(chart: Chart, *, width: int | None = 420, height: int = _HEIGHT) -> Spec:
    """A small chart: steps, lines, bars or points, with a dashed line at the kernel as it is.

    Args:
        chart: what to draw; points that are no finite numbers are left out.
        width: pixels between the axes; None to fill what it stands in (in a page).
        height: pixels between the axes.
    """
    labels = [series.label for series in chart.series]
    values: list[Spec] = [
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
    is_bars = chart.kind is ChartKind.BARS
    layers: list[Spec] = [{"mark": _choose_mark(chart.kind, len(values)), "encoding": _encode(chart, labels)}]
    if chart.kind is ChartKind.SCATTER and values:
        layers.insert(0, _draw_diagonal([value for point in values for value in (point["x"], point["y"])]))
    if chart.current_x is not None and math.isfinite(chart.current_x):
        now = nominal("words", title="the kernel")
        x = {"field": "x", "type": "ordinal" if is_bars else "quantitative"}
        layers.append(_draw_now("rule", [{"x": chart.current_x, "words": "as measured"}], {"x": x, "tooltip": now}))
    return {
        "$schema": SCHEMA,
        "description": describe_chart(chart),
        "width": width or "container",
        "height": height,
        "title": {"text": chart.title, "fontSize": 12},
        "data": {"values": values},
        "layer": layers,
    }


def _draw_now(mark: str, values: Sequence[Spec], encoding: Spec) -> Spec:
    """A layer of the reference that the points are compared with."""
    return {"data": {"values": values}, "mark": {"type": mark, "style": "now"}, "encoding": encoding}


def _draw_diagonal(ends: Sequence[float]) -> Spec:
    axes = {axis: quantitative(axis, scale=_LOGARITHMIC) for axis in ("x", "y")}
    return _draw_now("line", [{"x": end, "y": end} for end in (min(ends), max(ends))], axes)


def _choose_mark(kind: ChartKind, points: int) -> Spec:
    if kind is ChartKind.BARS:
        return {"type": "bar"}
    if kind is ChartKind.SCATTER:
        return {"type": "point", "filled": True, "size": 40, "opacity": 0.8}
    mark: Spec = {"type": "line", "strokeWidth": 2, "point": {"size": 18} if points <= _MOST_DOTS else False}
    return {**mark, "interpolate": "step-after"} if kind is ChartKind.STEPS else mark


def _encode(chart: Chart, labels: Sequence[str]) -> Spec:
    is_bars, is_scatter = chart.kind is ChartKind.BARS, chart.kind is ChartKind.SCATTER
    y_axis = label_axis(chart.y_quantity)
    x_axis = y_axis if is_scatter else {"labelAngle": 0, "labelOverlap": True, "labelSeparation": 6}
    x = quantitative("x", title=chart.x_label, axis=x_axis, **({"scale": _LOGARITHMIC} if is_scatter else {}))
    scale = _LOGARITHMIC if is_scatter else {"zero": True}
    colours = {"domain": list(labels), "range": [SERIES_COLOURS[i % len(SERIES_COLOURS)] for i in range(len(labels))]}
    legend = {"orient": "bottom"} if len(labels) > 1 else None
    encoding: Spec = {
        "x": {**x, "type": "ordinal"} if is_bars else x,
        "y": quantitative("y", title=chart.y_label, axis=y_axis, scale=scale),
        "color": nominal("series", title=None, scale=colours, legend=legend),
        "tooltip": tell(("at", chart.x_label), ("words", chart.y_label), ("series", "of")),
    }
    return {**encoding, "xOffset": nominal("series")} if is_bars and len(labels) > 1 else encoding
