"""The axes of charts: what stands beside them, and :class:`ChartAxes`, the encodings of x and y that all layers of the roofline chart share.

The numbers beside an axis are the only ones that a chart writes itself: what a tooltip shows comes written, by :mod:`gpa_lsp.foundation.numbers`.
"""

from typing import Any

from gpa_lsp.document.charts.chart_frame import ChartFrame
from gpa_lsp.foundation.numbers import Quantity

Layer = dict[str, Any]  # A part of a Vega-Lite specification


_PREFIXED = "format(datum.value, '~s')"  # 10k, 1.5M: as :func:`gpa_lsp.foundation.numbers.format_decade` writes them

_PERCENT = "format(100 * datum.value, ',~r') + ' %'"
_PREFIXED_QUANTITIES = (
    Quantity.BYTES,
    Quantity.BYTES_PER_S,
    Quantity.FLOPS_PER_S,
    Quantity.OPS_PER_S,
    Quantity.INTEGER_OPS_PER_S,
    Quantity.INSTRUCTIONS_PER_S,
    Quantity.HZ,
)


def label_axis(quantity: Quantity) -> Layer:
    """How the ticks of a quantity are written; empty where Vega's own way, all digits with separators, is ours."""
    if quantity is Quantity.RATIO:
        return {"labelExpr": _PERCENT}
    return {"labelExpr": _PREFIXED} if quantity in _PREFIXED_QUANTITIES else {}


class ChartAxes:
    """The encodings of x and y, the same in every layer."""

    def __init__(self, frame: ChartFrame, counts_instructions: bool) -> None:
        self.frame = frame
        self._x_title = (
            "warp instructions per transaction" if counts_instructions else "operational intensity: operations per byte"
        )
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
                "labelExpr": f"datum.value >= 1000 ? {_PREFIXED} : format(datum.value, '~r')",
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
            "axis": {"values": _list_decades(frame.bottom, frame.highest), "labelExpr": _PREFIXED},
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
