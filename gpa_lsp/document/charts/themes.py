"""Parts of all charts: building blocks of Vega-Lite specifications, its configuration, and colours on light and on dark ground.

The colours of levels are Okabe and Ito's (2008), which people with any colour vision tell apart, two of them moved a little so that each has a
contrast of at least 3:1 to both grounds; they are therefore the same on both, and a chart can change its ground without changing its marks.
"""

from typing import Any

from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.profile.stall_reasons import (
    EXECUTION,
    INSTRUCTION_SUPPLY,
    ISSUED,
    MEMORY,
    OTHER,
    SYNCHRONISATION,
    THROTTLE,
)

LEVEL_COLOURS = {
    MemoryLevel.SHARED: "#0a8f6c",
    MemoryLevel.L1: "#c4669b",
    MemoryLevel.L2: "#d55e00",
    MemoryLevel.DRAM: "#1a7fc1",
}

# Paths of SVG in a square from -1 to 1, which Vega takes as symbols
KIND_SHAPES = {
    OperationKind.FP64: "M-0.85,-0.85L0.85,-0.85L0.85,0.85L-0.85,0.85Z",
    OperationKind.FP32: "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    OperationKind.FP16: "M0,-1L1,0.85L-1,0.85Z",
    OperationKind.INT32: "M0,-1.1L1.1,0L0,1.1L-1.1,0Z",
    OperationKind.SPECIAL: "M-0.35,-1L0.35,-1L0.35,-0.35L1,-0.35L1,0.35L0.35,0.35L0.35,1L-0.35,1L-0.35,0.35L-1,0.35L-1,-0.35L-0.35,-0.35Z",
    OperationKind.TENSOR_FP64: "M-1,-1L1,-1L1,1L-1,1ZM-0.4,-0.4L-0.4,0.4L0.4,0.4L0.4,-0.4Z",
    OperationKind.TENSOR_TF32: "M-1,0L0.85,-1L0.85,1Z",
    OperationKind.TENSOR_FP16: "M0,1L1,-0.85L-1,-0.85Z",
    OperationKind.TENSOR_BF16: "M1,0L-0.85,-1L-0.85,1Z",
    OperationKind.TENSOR_FP8: "M0,-1L0.95,-0.31L0.59,0.81L-0.59,0.81L-0.95,-0.31Z",
    OperationKind.TENSOR_FP4: "M0,-1L0.87,-0.5L0.87,0.5L0,1L-0.87,0.5L-0.87,-0.5Z",
    OperationKind.TENSOR_INT8: "M0,-1L0.25,-0.35L0.95,-0.31L0.4,0.13L0.59,0.81L0,0.42L-0.59,0.81L-0.4,0.13L-0.95,-0.31L-0.25,-0.35Z",
}

# Of charts whose series have no colour of their own; legible on both grounds
SERIES_COLOURS = ("#1a7fc1", "#d55e00", "#0a8f6c", "#c4669b", "#8a7a1f", "#7a6fd0")

# Zones of the roofline chart: no level's colours, and faint enough for marks and text on both grounds
MEMORY_ZONE, COMPUTE_ZONE, ZONE_OPACITY = "#8a7a1f", "#7a6fd0", 0.12

LIGHT_GROUND = "#ffffff"
DARK_GROUND = "#1b1f24"

_FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


def build_config(*, dark: bool) -> dict[str, Any]:
    """Vega-Lite's ``config`` of one of the two grounds."""
    text, quiet, line, grid = ("#e6e9ed", "#aab2bd", "#8b949e", "#353c45") if dark else _LIGHT
    ground = DARK_GROUND if dark else LIGHT_GROUND
    return {
        "background": ground,
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": text,
            "titleColor": text,
            "gridColor": grid,
            "domainColor": line,
            "tickColor": line,
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
        },
        "legend": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "symbolStrokeWidth": 1.5,
            "symbolBaseFillColor": line,
            "symbolBaseStrokeColor": line,
            "labelLimit": 220,
        },
        "title": {
            "color": text,
            "subtitleColor": quiet,
            "fontSize": 14,
            "subtitleFontSize": 11,
            "anchor": "start",
            "fontWeight": 600,
        },
        "text": {"color": text, "fontSize": 11},
        "rule": {"color": line},
        "style": {
            "peak": {"color": line, "strokeWidth": 1.75},
            "peak-label": {"color": quiet, "fontSize": 11},
            "name": {"color": text, "fontSize": 11},
            "memory-zone": {"color": MEMORY_ZONE, "opacity": ZONE_OPACITY},
            "compute-zone": {"color": COMPUTE_ZONE, "opacity": ZONE_OPACITY},
            "zone-label": {"color": quiet, "fontSize": 11},
            "ridge": {"color": line, "opacity": 1},
            "arrow": {"color": text, "strokeWidth": 1.25},
            "arrow-head": {"color": text},
            "headroom": {"color": text, "strokeWidth": 1, "strokeDash": [2, 3]},
            "now": {"color": text, "strokeWidth": 1.25, "strokeDash": [4, 3]},
        },
    }


_LIGHT = ("#1f2328", "#57606a", "#6e7781", "#e3e6ea")

# By group of stall reasons; each has a contrast of at least 3 : 1 to white and to the usual dark ground
STALL_COLOURS = {
    MEMORY: "#3b82c4",
    EXECUTION: "#b9772e",
    SYNCHRONISATION: "#9a68bd",
    INSTRUCTION_SUPPLY: "#2f948b",
    THROTTLE: "#cf5a56",
    ISSUED: "#5f9440",
    OTHER: "#858585",
}


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # The name of the language, which nothing loads

Spec = dict[str, Any]  # A specification, or a part of one


def quantitative(field: str, **more: Any) -> Spec:
    """The encoding of a column of numbers."""
    return {"field": field, "type": "quantitative", **more}


def nominal(field: str, **more: Any) -> Spec:
    """The encoding of a column of words."""
    return {"field": field, "type": "nominal", **more}


def tell(*columns: str | tuple[str, str]) -> list[Spec]:
    """A tooltip of some columns, each with a title where that differs from its name."""
    pairs = [(column, column) if isinstance(column, str) else column for column in columns]
    return [nominal(field, title=title) for field, title in pairs]


def either(test: str, value: Any, otherwise: Any) -> Spec:
    """The encoding of a value by a condition."""
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def calculate(name: str, expression: str) -> Spec:
    """A new column."""
    return {"calculate": expression, "as": name}


def reduce(operation: str, field: str, name: str) -> Spec:
    """One figure of a column, for transforms that aggregate."""
    return {"op": operation, "field": field, "as": name}


def layer(data: str, mark: str, looks: Spec, encoding: Spec, *transforms: Spec) -> Spec:
    """A layer that draws a named data set, after transforming it."""
    made = {"data": {"name": data}, "mark": {"type": mark, **looks}, "encoding": encoding}
    return {**made, "transform": list(transforms)} if transforms else made
