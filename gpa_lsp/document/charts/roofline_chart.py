"""The roofline chart as a Vega-Lite specification: :func:`build_roofline_chart`.

Both axes are logarithmic. A level of the memory is a diagonal (rate = bandwidth · intensity) that ends at the highest peak shown, a type of
operation a horizontal (rate = peak) that begins at the fastest memory shown; small circles mark the ridge points. A mark is a kernel or a launch:
its colour the level whose bytes were counted, its shape the type of operation, its area the time. Marks of one kernel and type that would hide one
another, since the levels have about the same intensity, are rings around the outermost level's. Shaded are the zones of the slowest level drawn.

What is shown is decided by parameters, which a page sets as signals (``view.signal(name, value)``):

* ``shown_rows``: ids of the kernels and launches drawn (``k0``, ``k0.3``; ``b0`` of the profile before);
* ``focused_row``: the one that stands out, with its name and its way up to its roofs; null for none;
* ``related_rows``: ids that stay as strong as the one in focus: what it was before;
* ``drawn_levels``, ``drawn_kinds``: levels and types drawn, roofs as well as points;
* ``all_peaks``: also draw the peaks of the other types;
* ``show_movements``: also draw where suggestions would take the points (of the row in focus, if there is one);
* ``shown_machine``: position of the machine whose roofs are drawn.

Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009; for the second view Ding and Williams, "An Instruction Roofline Model for
GPUs", PMBS 2019; a memory level each, as in Starlight, Equation 1.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from gpa_lsp.document.charts.chart_frame import (
    CLOSE_PEAKS,
    PEAK_NAME_PIXELS,
    RING_PIXELS,
    ChartAxes,
    ChartFrame,
    choose_frame,
    place_names,
    ring_points,
)
from gpa_lsp.document.charts.roofline_rows import (
    ISSUE,
    PlacedRow,
    Row,
    build_instruction_roofs,
    build_point,
    build_roofs,
    find_changes,
    find_movements,
    find_ridges,
    group_machines,
    is_drawable,
    list_transaction_bytes,
    place_kernels,
)
from gpa_lsp.document.charts.themes import (
    KIND_SHAPES,
    LEVEL_COLOURS,
    SCHEMA,
    Spec,
    calculate,
    either,
    layer,
    nominal,
    quantitative,
    reduce,
    tell,
)
from gpa_lsp.document.roofline_text import CLOCK_WORDS
from gpa_lsp.foundation.numbers import format_count_of, format_duration_ns, format_hz
from gpa_lsp.gpu.device.model import Machine, OperationKind
from gpa_lsp.report.model import KernelReport


class RooflineView(StrEnum):
    """Units of a roofline chart's axes."""

    TIME = "time"  # Operations per second over operations per byte
    INSTRUCTIONS = "instructions"  # Warp instructions per second over warp instructions per transaction


MOST_SHOWN = 12  # Kernels shown at first: more cover one another


class ChartLook(Struct, frozen=True, kw_only=True):
    """Layout of a chart."""

    width: int | None = 720  # in pixels, of the area between the axes; None to fill what it stands in (in a page)
    height: int | None = 440  # pixels, or None to fill it
    has_legend: bool = True  # explain colours and shapes; a page that does so itself leaves it out
    title: str = "Roofline"  # heading; empty for none


def build_roofline_chart(
    kernels: Sequence[KernelReport],
    *,
    before: Sequence[KernelReport] = (),
    view: RooflineView = RooflineView.TIME,
    look: ChartLook | None = None,
) -> dict[str, Any]:
    """The chart of some kernels, those of most time shown and no launch of its own.

    Args:
        kernels: in the order of a report; those without a roofline draw nothing.
        before: the kernels of an earlier profile; those of the same linkage name are joined to theirs by arrows.
        view: which of the two.
        look: size, legend and title.

    Returns:
        A specification that holds its data and needs no network.
    """
    return build_chart_of_rows(place_kernels(kernels, before), view=view, look=look or ChartLook())


def build_chart_of_rows(rows: Sequence[PlacedRow], *, view: RooflineView, look: ChartLook) -> dict[str, Any]:
    """The chart of rows that are placed already."""
    machines, machine_of = group_machines(rows)
    points = build_points(rows, view)
    roofs = _build_all_roofs(rows, machines, view)
    kinds = list_kinds(points)
    used = {point["level"] for point in points}
    levels = [level.value for level in LEVEL_COLOURS if level.value in used]
    shown = choose_rows(rows)
    frame = choose_frame(points, roofs, kinds)
    arrows = [*find_changes(rows), *find_movements(rows)] if view is RooflineView.TIME else []
    held = ring_points([point for point in points if frame.holds(point)], frame)
    datasets = {
        "rows": [build_row(row, machine_of[row.row_id]) for row in rows],
        "points": place_names(held, rows, set(shown), roofs, frame),
        "roofs": roofs,
        "ridges": list(find_ridges(roofs)),
        "arrows": arrows,
    }
    spec: dict[str, Any] = {
        "$schema": SCHEMA,
        "description": describe_chart(rows, view),
        "width": look.width or "container",
        "height": look.height or "container",
        "autosize": {"type": "fit", "contains": "padding"} if look.width is None else "pad",
        "padding": 8,
        "usermeta": {"left_out": Counter(point["row"] for point in points if not frame.holds(point))},
        "datasets": datasets,
        "params": [
            {"name": "shown_rows", "value": shown},
            {"name": "focused_row", "value": None},
            {"name": "related_rows", "value": []},
            {"name": "drawn_levels", "value": levels or [bandwidth.value for bandwidth in LEVEL_COLOURS]},
            {
                "name": "drawn_kinds",
                "value": kinds or list(dict.fromkeys(roof["name"] for roof in roofs if "limit" in roof)),
            },
            {"name": "all_peaks", "value": False},
            {"name": "show_movements", "value": False},
            {"name": "shown_machine", "value": machine_of[rows[0].row_id] if rows else 0},
        ],
        "layer": build_layers(frame, view is RooflineView.INSTRUCTIONS, _build_marks(rows, kinds, levels, look)),
    }
    if look.title:
        ringed = any(point["ring"] for point in held)
        rings = ["rings around a point: the same operations per byte of other levels"] if ringed else []
        hidden = _count_hidden(rows, shown, spec["usermeta"]["left_out"])
        spec["title"] = {"text": look.title, "subtitle": [describe_machine(machines), *rings, *hidden]}
    return spec


def build_points(rows: Sequence[PlacedRow], view: RooflineView) -> list[Row]:
    """All points of some rows that logarithmic axes can show."""
    is_time = view is RooflineView.TIME
    found = [
        build_point(row.row_id, point)
        for row in rows
        for point in (row.roofline.points if is_time else row.roofline.instruction_points)
    ]
    return [point for point in found if is_drawable(point["x"], point["y"])]


def build_row(row: PlacedRow, machine: int) -> Row:
    """A kernel or launch as a row of the chart."""
    launch = f"{row.launch}, before" if row.is_before else row.launch
    return {
        "id": row.row_id,
        "kernel": row.name,
        "launch": launch,
        "seconds": row.roofline.duration_s if is_drawable(row.roofline.duration_s) else 0.0,
        "time": format_duration_ns(row.roofline.duration_s * 1e9),
        "machine": machine,
        "before": row.is_before,
        "whole": row.is_whole,
    }


def list_kinds(points: Sequence[Row]) -> list[str]:
    """Types of operation that have points, in the order of the types."""
    found = {point["kind"] for point in points}
    return [kind for kind in (*(kind.value for kind in OperationKind), ISSUE) if kind in found]


def describe_chart(rows: Sequence[PlacedRow], view: RooflineView) -> str:
    """Description of a chart for screen readers."""
    axes = {
        RooflineView.TIME: "operations per second over operations per byte of each level of the memory",
        RooflineView.INSTRUCTIONS: "warp instructions per second over warp instructions per transaction of each level of the memory",
    }[view]
    count = sum(row.is_whole and not row.is_before for row in rows)
    return f"Roofline chart of {format_count_of(count, 'kernel')}: {axes}, under the ceilings of the GPU; both axes logarithmic."


def describe_machine(machines: Sequence[Machine]) -> str:
    """Machine and clocks of the roofs, one line."""
    if not machines:
        return "no kernel has a place in it"
    clocks = machines[0].clocks
    name = machines[0].name + (" (and other clocks or machines)" if len(machines) > 1 else "")
    sm = "" if clocks.sm_hz is None else f", SMs at {format_hz(clocks.sm_hz)}"
    return f"{name}: ceilings at {CLOCK_WORDS[clocks.basis]}{sm}"


def choose_rows(rows: Sequence[PlacedRow]) -> list[str]:
    """The rows a chart shows at first: the kernels of most time with their launch contexts, and what they were before."""
    whole = [row for row in rows if row.is_whole]
    longest = sorted((row for row in whole if not row.is_before), key=lambda row: -row.roofline.duration_s)[:MOST_SHOWN]
    names = {row.kernel.mangled_name for row in longest} or {row.kernel.mangled_name for row in whole[:MOST_SHOWN]}
    chosen = {row.row_id for row in longest} | {
        row.row_id for row in whole if row.is_before and row.kernel.mangled_name in names
    }
    drawn = {(row.kernel.mangled_name, row.is_before) for row in whole if row.row_id in chosen}
    return [
        row.row_id
        for row in rows
        if row.row_id in chosen or (row.context and (row.kernel.mangled_name, row.is_before) in drawn)
    ]


def _count_hidden(rows: Sequence[PlacedRow], shown: Sequence[str], left_out: Mapping[str, int]) -> list[str]:
    count = sum(row.is_whole and not row.is_before for row in rows)
    drawn = sum(row.is_whole and not row.is_before and row.row_id in shown for row in rows)
    lines = [f"the longest {drawn} of {format_count_of(count, 'kernel')}"] if drawn < count else []
    below = sum(left_out.get(row_id, 0) for row_id in shown)
    if below:
        lines.append(f"{format_count_of(below, 'point')} of negligible rate left out")
    return lines


def _build_all_roofs(rows: Sequence[PlacedRow], machines: Sequence[Machine], view: RooflineView) -> list[Row]:
    sizes = list_transaction_bytes(rows)
    return [
        roof
        for position, machine in enumerate(machines)
        for roof in (
            build_roofs(machine, position)
            if view is RooflineView.TIME
            else build_instruction_roofs(machine, position, sizes)
        )
    ]


def _build_marks(
    rows: Sequence[PlacedRow], kinds: Sequence[str], levels: Sequence[str], look: ChartLook
) -> dict[str, Any]:
    """The encodings of colour, shape and size."""
    times_s = [row.roofline.duration_s for row in rows if is_drawable(row.roofline.duration_s)]
    longest_s = max(times_s, default=1.0)
    shapes = {**{kind.value: shape for kind, shape in KIND_SHAPES.items()}, ISSUE: KIND_SHAPES[OperationKind.FP32]}
    colours = {level.value: colour for level, colour in LEVEL_COLOURS.items()}
    legend = {"orient": "bottom", "direction": "horizontal", "columns": 6} if look.has_legend else None
    level_scale = {"domain": list(colours), "range": list(colours.values())}
    kind_scale = {"domain": list(kinds), "range": [shapes[kind] for kind in kinds]}
    level_legend = legend and {**legend, "values": list(levels), "symbolType": "stroke"}
    kind_legend = None if list(kinds) == [ISSUE] else legend
    return {
        "color": nominal("level", title="bytes of", scale=level_scale, legend=level_legend),
        "shape": nominal("kind", title="operations", scale=kind_scale, legend=kind_legend),
        "size": quantitative("area", scale=None, legend=None),
        # An expression: from 45 to 420 square pixels by the root of the time, and each ring further out
        "area": f"pow(sqrt(45 + 375 * sqrt(datum.seconds / {longest_s!r})) + {2 * RING_PIXELS} * datum.ring, 2)",
    }


def build_layers(frame: ChartFrame, counts_instructions: bool, marks: Spec) -> list[Spec]:
    """All layers, from back to front; *counts_instructions* for warp instructions per transaction."""
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
        _draw_names(axes),
        _draw_focused_names(axes),
    ]


def _select_roofs(frame: ChartFrame, column: str) -> list[Spec]:
    """The roofs drawn that have a ``slope``, or a ``limit``, each with its two ends."""
    left, right = repr(frame.left), repr(frame.right)
    slope = f"max({left}, {frame.bottom!r} / datum.slope)"
    limit = f"datum.fastest > 0 ? max({left}, datum.limit / datum.fastest) : {left}"
    is_drawn = "isValid(datum.slope) ? indexof(drawn_levels, datum.name) >= 0 : all_peaks || indexof(drawn_kinds, datum.name) >= 0"
    return [
        {"filter": "datum.machine === shown_machine"},
        {"filter": is_drawn},
        {"joinaggregate": [reduce("max", "limit", "highest_limit"), reduce("max", "slope", "fastest")]},
        calculate("ceiling", f"datum.highest_limit > 0 ? datum.highest_limit : {frame.top!r}"),
        calculate("x1", f"isValid(datum.slope) ? {slope} : {limit}"),
        calculate("x2", f"isValid(datum.slope) ? min({right}, datum.ceiling / datum.slope) : {right}"),
        calculate("y1", "isValid(datum.slope) ? datum.x1 * datum.slope : datum.limit"),
        calculate("y2", "isValid(datum.slope) ? datum.x2 * datum.slope : datum.limit"),
        {"filter": "datum.x2 > datum.x1"},
        {"filter": f"isValid(datum.{column})"},
    ]


def draw_zones(axes: ChartAxes) -> list[Spec]:
    """The zones of the slowest level that is drawn: left of all its ridge points a kernel is memory-bound, right of them compute-bound.

    Between the ridge points of two types it depends on the type, and nothing is shaded.

    Source: Starlight, section 3 and Fig. 1.
    """
    left, right = repr(axes.frame.left), repr(axes.frame.right)
    layers: list[Spec] = []
    for style, start, end, align, words in (
        ("memory-zone", left, "datum.first", "right", "memory-bound"),
        ("compute-zone", "datum.last", right, "left", "compute-bound"),
    ):
        zone = [
            *_find_zones(),
            calculate("start", start),
            calculate("end", end),
            calculate("words", f"'{words} (' + datum.level + ')'"),
        ]
        looks = {
            "style": "zone-label",
            "align": align,
            "baseline": "bottom",
            "dy": -4,
            "dx": 6 if align == "left" else -6,
        }
        at = {"x": axes.x("start" if align == "left" else "end"), "y": {"value": "height"}, "text": nominal("words")}
        ends = {"x": axes.x("start"), "x2": {"field": "end"}}
        layers += [
            layer("ridges", "rect", {"style": style, "clip": True}, ends, *zone),
            layer("ridges", "text", looks, at, *zone),
        ]
    return layers


def _find_zones() -> list[Spec]:
    """One row: the slowest level that is drawn, with the first and the last of its ridge points; special functions count where they are all."""
    is_special = f"datum.kind === '{OperationKind.SPECIAL.value}'"
    return [
        {"filter": f"{_IS_RIDGE_SHOWN} && (length(drawn_kinds) === 1 || !({is_special}))"},
        {"joinaggregate": [reduce("min", "slope", "slowest")]},
        {"filter": "datum.slope === datum.slowest"},
        {"aggregate": [reduce("min", "x", "first"), reduce("max", "x", "last")], "groupby": ["level"]},
    ]


_IS_RIDGE_SHOWN = "datum.machine === shown_machine && indexof(drawn_levels, datum.level) >= 0 && indexof(drawn_kinds, datum.kind) >= 0"

_ENDS: Spec = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
_ROOF_TOOLTIP = tell(("words", "ceiling"), "source")


def draw_diagonals(axes: ChartAxes, colour: Spec) -> Spec:
    """A line of each level that is drawn, from the edge of the plane to the highest peak."""
    encoding = {**axes.both("x1", "y1"), **_ENDS, "color": colour, "tooltip": _ROOF_TOOLTIP}
    return layer("roofs", "rule", {"strokeWidth": 2, "clip": True}, encoding, *_select_roofs(axes.frame, "slope"))


def draw_peaks(axes: ChartAxes) -> Spec:
    """A line of each type that is drawn, from the fastest memory to the edge; types that are not in play are faint."""
    opacity = either("indexof(drawn_kinds, datum.name) >= 0", 1, 0.45)
    encoding = {**axes.both("x1", "y1"), **_ENDS, "opacity": opacity, "tooltip": _ROOF_TOOLTIP}
    return layer("roofs", "rule", {"style": "peak", "clip": True}, encoding, *_select_roofs(axes.frame, "limit"))


def _rank(column: str, lower: str) -> Spec:
    """Rows by a column, each with its ``rank`` and the value of the one before."""
    figures = [{"op": "row_number", "as": "rank"}, reduce("lag", column, lower)]
    return {"window": figures, "sort": [{"field": column, "order": "ascending"}]}


def name_diagonals(axes: ChartAxes, colour: Spec) -> Spec:
    """Names above the diagonals, from their left ends; the slowest below its line; one close above another further along."""
    angle = f"-atan2(height / ({axes.rise} / LN10), width / ({axes.run} / LN10)) * 180 / PI"
    looks = {
        "align": "left",
        "baseline": "bottom",
        "dx": 5,
        "dy": -3,
        "angle": {"expr": angle},
        "fontSize": 11,
        "clip": True,
    }
    return layer(
        "roofs",
        "text",
        looks,
        {**axes.both("label_x", "label_y"), "text": nominal("words"), "color": colour},
        *_select_roofs(axes.frame, "slope"),
        _rank("slope", "slower"),
        calculate("step", "datum.slower > 0 && datum.slope < 1.8 * datum.slower ? datum.rank - 1 : 0"),
        calculate("label_x", "datum.x1 * pow(datum.x2 / datum.x1, 0.03 + 0.33 * min(datum.step, 2))"),
        calculate("label_y", "datum.label_x * datum.slope"),
    )


def name_peaks(axes: ChartAxes) -> Spec:
    """Names above the peaks, at the right end; of close peaks side by side."""
    is_close = f"datum.lower > 0 && datum.limit < {CLOSE_PEAKS} * datum.lower"
    beside = {"expr": f"-2 - {PEAK_NAME_PIXELS} * datum.step"}
    return layer(
        "roofs",
        "text",
        {"style": "peak-label", "align": "right", "baseline": "bottom", "dx": beside, "dy": -3, "clip": True},
        {**axes.both("x2", "y2"), "text": nominal("words")},
        *_select_roofs(axes.frame, "limit"),
        _rank("limit", "lower"),
        calculate("step", f"{is_close} ? 1 + datum.rank % 2 : 0"),
    )


def draw_ridges(axes: ChartAxes) -> Spec:
    """Circles at the ridge points of the bandwidths and peaks drawn."""
    looks = {"style": "ridge", "shape": "circle", "size": 22, "filled": True, "clip": True}
    return layer(
        "ridges", "point", looks, {**axes.both("x", "y"), "tooltip": nominal("words")}, {"filter": _IS_RIDGE_SHOWN}
    )


_IS_SHOWN = "indexof(shown_rows, datum.row) >= 0 && indexof(drawn_levels, datum.level) >= 0 && indexof(drawn_kinds, datum.kind) >= 0"
_IS_ARROW_SHOWN = (
    f"{_IS_SHOWN} && (datum.measured || show_movements && (!isValid(focused_row) || focused_row === datum.row))"
)
_IS_QUIET = "isValid(focused_row) && focused_row !== datum.row && indexof(related_rows, datum.row) < 0"
_ARROW_HEAD = "M0,0L0.7,2L0,1.5L-0.7,2Z"  # Upright, its tip where the arrow ends
_LEAST_WIDTH = 500  # Pixels of the plane below which names would cover one another


def _look_up(*fields: str) -> Spec:
    """Columns of the row that a point belongs to."""
    return {"lookup": "row", "from": {"data": {"name": "rows"}, "key": "id", "fields": list(fields)}}


def _draw_spans(axes: ChartAxes) -> Spec:
    """A faint line through the points of one kernel and type, which differ in the level only."""
    figures = [reduce("min", "x", "x1"), reduce("max", "x", "x2"), reduce("mean", "y", "y1")]
    return layer(
        "points",
        "rule",
        {"style": "peak", "strokeWidth": 1, "clip": True},
        {**axes.both("x1", "y1"), "x2": {"field": "x2"}, "opacity": either(_IS_QUIET, 0.12, 0.55)},
        {"filter": _IS_SHOWN},
        {"aggregate": figures, "groupby": ["row", "kind"]},
        {"filter": "datum.x2 > datum.x1"},
    )


def _draw_headroom(axes: ChartAxes) -> Spec:
    """Lines from the points of the row in focus up to their attainable rates."""
    chosen = {"filter": f"datum.row === focused_row && datum.a > datum.y && {_IS_SHOWN}"}
    encoding = {**axes.both("x", "y"), "y2": {"field": "a"}}
    return layer("points", "rule", {"style": "headroom", "clip": True}, encoding, chosen)


def _draw_arrows(axes: ChartAxes) -> Spec:
    encoding = {
        **axes.both("x", "y"),
        **_ENDS,
        "strokeDash": either("datum.measured", [1, 0], [4, 3]),
        "opacity": either(_IS_QUIET, 0.2, 0.9),
        "tooltip": nominal("label"),
    }
    return layer("arrows", "rule", {"style": "arrow", "clip": True}, encoding, {"filter": _IS_ARROW_SHOWN})


def _draw_arrow_heads(axes: ChartAxes) -> Spec:
    """A triangle at the end of each arrow, turned as the arrow is on the screen."""
    across = f"log(datum.x2 / datum.x) * width / {axes.run}"
    up = f"log(datum.y2 / datum.y) * height / {axes.rise}"
    encoding = {
        **axes.both("x2", "y2"),
        "angle": quantitative("angle", scale=None),
        "opacity": either(_IS_QUIET, 0.2, 0.9),
        "tooltip": nominal("label"),
    }
    looks = {"style": "arrow-head", "shape": _ARROW_HEAD, "size": 60, "filled": True, "clip": True}
    angle = calculate("angle", f"atan2({across}, {up}) * 180 / PI")
    return layer("arrows", "point", looks, encoding, {"filter": _IS_ARROW_SHOWN}, angle)


def _draw_points(axes: ChartAxes, marks: Spec) -> Spec:
    encoding = {
        **axes.both("x", "y"),
        **{channel: marks[channel] for channel in ("color", "shape", "size")},
        "fill": {**marks["color"], "legend": None},
        "fillOpacity": either("datum.before || datum.ring > 0", 0, 0.55),
        "opacity": either(_IS_QUIET, 0.25, 1),
        "order": {"field": "seconds", "sort": "descending"},
        "tooltip": tell(
            "kernel",
            "launch",
            "time",
            ("kind", "operations"),
            ("level", "bytes of"),
            "intensity",
            "achieved",
            "attainable",
        ),
    }
    looks = {"strokeWidth": 1.5, "clip": True, "cursor": "pointer"}
    row = _look_up("kernel", "launch", "seconds", "time", "before", "whole")
    drawn = layer("points", "point", looks, encoding, {"filter": _IS_SHOWN}, row, calculate("area", marks["area"]))
    return {"name": "points", **drawn}


# The side of a point that its name stands on: how the name is aligned, and how far away it is
_SIDES = {
    "right": ("'left'", "13 + datum.pad", "0"),
    "left": ("'right'", "-13 - datum.pad", "0"),
    "above": ("'center'", "0", "-19 - datum.pad"),
    "below": ("'center'", "0", "19 + datum.pad"),
}


def _write_names(axes: ChartAxes, placed: Spec, *transforms: Spec) -> Spec:
    looks = {"style": "name", **placed, "baseline": "middle", "aria": False}
    return layer("points", "text", looks, {**axes.both("x", "y"), "text": nominal("name")}, *transforms)


def _draw_names(axes: ChartAxes) -> Spec:
    """Names where there is room, and always that of the kernel of most time."""

    def choose(position: int) -> Spec:
        *others, last = (values[position] for values in _SIDES.values())
        tests = (f"datum.side === '{side}' ? {value} : " for side, value in zip(_SIDES, others, strict=False))
        return {"expr": "".join(tests) + last}

    is_named = f"isValid(datum.name) && !isValid(focused_row) && (datum.first || width > {_LEAST_WIDTH})"
    placed = {"align": choose(0), "dx": choose(1), "dy": choose(2)}
    return _write_names(axes, placed, {"filter": f"{is_named} && {_IS_SHOWN}"})


def _draw_focused_names(axes: ChartAxes) -> Spec:
    """The name of the row in focus, right of its rightmost point, or above that in the right half, where a long name has no room."""
    is_right = f"datum.x > {math.sqrt(axes.frame.left * axes.frame.right)!r}"
    rank = {"window": [{"op": "row_number", "as": "rank"}], "sort": [{"field": "x", "order": "descending"}]}
    return _write_names(
        axes,
        {
            "align": {"expr": f"{is_right} ? 'right' : 'left'"},
            "dx": {"expr": f"{is_right} ? 0 : 13 + datum.pad"},
            "dy": {"expr": f"{is_right} ? -17 - datum.pad : 0"},
        },
        {"filter": f"datum.row === focused_row && {_IS_SHOWN}"},
        rank,
        {"filter": "datum.rank === 1"},
        _look_up("kernel"),
        calculate("name", "truncate(datum.kernel, 40)"),
    )
