"""A flame graph as a Vega specification: frames from the top down, as wide as their samples, in the colour of their stall reasons.

Vega's own ``partition`` lays it out, so that pages need no library beside the one that draws their other charts. Which frame is in focus, which one
fills the width and what is searched for are signals, which a page sets (``view.signal(name, value)``):

* ``chosen``: id of the frame that stands out; -1 for none;
* ``left``, ``right``: the part of all samples that fills the width, 0 to 1;
* ``wanted``: a text in lower case; frames without it are drawn pale. Empty for none.

Source: B. Gregg, "The Flame Graph", CACM 59(6), 2016; upside down (icicles), so that the kernel stands at the top.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from gpa_lsp.document.stall_picture import COLOURS

ROW_PIXELS = 21
# Of a label: legible on every colour of a stall reason, and so on light and on dark ground
_INK = "#0d1117"

_LEAST_LABEL_PIXELS = 26


class FlameFrame(Struct, frozen=True, kw_only=True):
    """A frame."""

    parent: int | None  # position of the frame above; None for the topmost
    label: str  # what is written on it
    words: str  # what is said when it is chosen
    samples: float  # that are in no frame below
    group: str  # of stall reasons, which decides the colour
    link: str = ""  # fragment of its line; may be empty


def build_flame_chart(frames: Sequence[FlameFrame], description: str) -> dict[str, Any]:
    """The graph."""
    rows = [
        {
            "id": number,
            "parent": frame.parent,
            "label": frame.label,
            "words": frame.words,
            "samples": frame.samples,
            "group": frame.group,
            "link": frame.link,
        }
        for number, frame in enumerate(frames)
    ]
    groups = [group for group in COLOURS if any(frame.group == group for frame in frames)]
    return {
        "description": description,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 0,
        "height": ROW_PIXELS * _count_levels(frames),
        "signals": _list_signals(),
        "data": [
            {"name": "frames", "values": rows, "transform": _lay_out()},
            {
                "name": "shown",
                "source": "frames",
                "transform": [{"type": "filter", "expr": "datum.x1 > left && datum.x0 < right"}],
            },
        ],
        "scales": [
            {
                "name": "across",
                "type": "linear",
                "domain": [{"signal": "left"}, {"signal": "right"}],
                "range": [0, {"signal": "width"}],
            },
            {"name": "reason", "type": "ordinal", "domain": groups, "range": [COLOURS[group] for group in groups]},
        ],
        "legends": [
            {"fill": "reason", "orient": "bottom", "direction": "horizontal", "columns": 7, "symbolType": "square"}
        ],
        "marks": [
            {
                "type": "group",
                "clip": True,
                "encode": {"update": {"width": {"signal": "width"}, "height": {"signal": "height"}}},
                "marks": [_draw_frames(), _write_labels()],
            }
        ],
    }


def _list_signals() -> list[dict[str, Any]]:
    """The width of the page, and what the reader chose, zoomed to and searched for."""
    return [
        {
            "name": "width",
            "init": "isFinite(containerSize()[0]) ? containerSize()[0] : 800",
            "on": [
                {
                    "events": "window:resize",
                    "update": "isFinite(containerSize()[0]) && containerSize()[0] > 0 ? containerSize()[0] : width",
                }
            ],
        },
        {"name": "chosen", "value": -1},
        {"name": "left", "value": 0},
        {"name": "right", "value": 1},
        {"name": "wanted", "value": ""},
    ]


def _count_levels(frames: Sequence[FlameFrame]) -> int:
    depths: list[int] = []
    for frame in frames:
        depths.append(0 if frame.parent is None else depths[frame.parent] + 1)
    return 1 + max(depths, default=0)


def _lay_out() -> list[dict[str, Any]]:
    return [
        {"type": "stratify", "key": "id", "parentKey": "parent"},
        {
            "type": "partition",
            "field": "samples",
            "sort": {"field": "value", "order": "descending"},
            "size": [1, 1],
            "as": ["x0", "y0", "x1", "y1", "depth", "children"],
        },
    ]


_IS_PALE = "wanted !== '' && indexof(lower(datum.words), wanted) < 0"
_PIXELS = "(scale('across', min(datum.x1, right)) - scale('across', max(datum.x0, left)))"


def _draw_frames() -> dict[str, Any]:
    return {
        "name": "frames",
        "type": "rect",
        "from": {"data": "shown"},
        "encode": {
            "update": {
                "x": {"signal": "scale('across', max(datum.x0, left))"},
                "x2": {"signal": "scale('across', min(datum.x1, right))"},
                "y": {"signal": f"datum.depth * {ROW_PIXELS}"},
                "height": {"value": ROW_PIXELS - 1},
                "fill": {"scale": "reason", "field": "group"},
                "fillOpacity": [{"test": _IS_PALE, "value": 0.22}, {"value": 1}],
                "stroke": [{"test": "datum.id === chosen", "value": _INK}, {"value": "transparent"}],
                "strokeWidth": [{"test": "datum.id === chosen", "value": 3}, {"value": 0}],
                "cursor": {"value": "pointer"},
                "tooltip": {"field": "words"},
            }
        },
    }


def _write_labels() -> dict[str, Any]:
    return {
        "type": "text",
        "from": {"data": "shown"},
        "interactive": False,
        "encode": {
            "update": {
                "x": {"signal": "scale('across', max(datum.x0, left)) + 4"},
                "y": {"signal": f"datum.depth * {ROW_PIXELS} + {ROW_PIXELS / 2}"},
                "baseline": {"value": "middle"},
                "fontSize": {"value": 12},
                "fontWeight": [{"test": "datum.id === chosen", "value": "bold"}, {"value": "normal"}],
                "fill": {"value": _INK},
                "opacity": [{"test": f"{_PIXELS} < {_LEAST_LABEL_PIXELS} || {_IS_PALE}", "value": 0}, {"value": 1}],
                "text": {"field": "label"},
                "limit": {"signal": f"max(1, {_PIXELS} - 8)"},
            }
        },
    }
