"""The axes of the roofline chart: :class:`ChartAxes`, the encodings of x and y that all layers share."""

from typing import Any

from gpa_lsp.render.charts.chart_frame import ChartFrame

Layer = dict[str, Any]
"""A part of a Vega-Lite specification."""


class ChartAxes:
    """The encodings of x and y, the same in every layer."""

    def __init__(self, frame: ChartFrame, counts_instructions: bool) -> None:
        self.frame = frame
        self.x_unit = "inst/transaction" if counts_instructions else "op/B"
        self.y_unit = "inst/s" if counts_instructions else "op/s"
        self._x_title = "warp instructions per transaction" if counts_instructions else "intensity: operations per byte"
        self._y_title = "warp instructions per second" if counts_instructions else "operations per second"

    def x(self, field: str) -> Layer:
        """Intensity."""
        return {
            "field": field,
            "type": "quantitative",
            "scale": {"type": "log", "domain": [self.frame.left, self.frame.right], "nice": False},
            "title": self._x_title,
            "axis": {
                "values": _list_decades(self.frame.left, self.frame.right),
                "labelExpr": "datum.value >= 1000 ? format(datum.value, '~s') : format(datum.value, '~r')",
                "labelFlush": False,
            },
        }

    def y(self, field: str) -> Layer:
        """Rate; with all peaks drawn the axis reaches further up."""
        frame = self.frame
        return {
            "field": field,
            "type": "quantitative",
            "scale": {
                "type": "log",
                "domain": [frame.bottom, {"expr": f"all_peaks ? {frame.highest!r} : {frame.top!r}"}],
                "nice": False,
            },
            "title": self._y_title,
            "axis": {"values": _list_decades(frame.bottom, frame.highest), "labelExpr": "format(datum.value, '~s')"},
        }

    def both(self, x: str, y: str) -> Layer:
        """Both encodings, of two fields."""
        return {"x": self.x(x), "y": self.y(y)}


def _list_decades(low: float, high: float) -> list[float]:
    values, value = [], low
    while value <= high * 1.001:
        values.append(float(f"{value:.6g}"))
        value *= 10
    return values
