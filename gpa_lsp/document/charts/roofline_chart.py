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

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from gpa_lsp.document.charts.chart_frame import RING_PIXELS, choose_frame, place_names, ring_points
from gpa_lsp.document.charts.roofline_layers import build_layers
from gpa_lsp.document.charts.roofline_rows import (
    ISSUE,
    PlacedRow,
    Row,
    build_arrow,
    build_instruction_point,
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
from gpa_lsp.document.charts.themes import KIND_SHAPES, LEVEL_COLOURS
from gpa_lsp.document.roofline_text import CLOCK_WORDS
from gpa_lsp.foundation.numbers import format_count_of, format_duration_ns, format_hz
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind
from gpa_lsp.report.model import KernelReport

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # The name of the language, which nothing loads


class RooflineView(StrEnum):
    """What the axes count."""

    TIME = "time"  # Operations per second over operations per byte
    INSTRUCTIONS = "instructions"  # Warp instructions per second over warp instructions per transaction


MOST_SHOWN = 12  # Kernels shown at first: more cover one another


class ChartLook(Struct, frozen=True, kw_only=True):
    """How a chart is laid out."""

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
    max_launches: int = 20,
) -> dict[str, Any]:
    """The chart of some kernels, those of most time shown and no launch of its own.

    Args:
        kernels: in the order of a report; those without a roofline draw nothing.
        before: the kernels of an earlier profile; those of the same linkage name are joined to theirs by arrows.
        view: which of the two.
        look: size, legend and title.
        max_launches: of each kernel that can be shown.

    Returns:
        A specification that holds its data and needs no network.
    """
    rows = place_kernels(kernels, before, max_launches=max_launches)
    return build_chart_of_rows(rows, view=view, look=look or ChartLook())


def build_chart_of_rows(rows: Sequence[PlacedRow], *, view: RooflineView, look: ChartLook) -> dict[str, Any]:
    """The same of rows that were placed already."""
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
        "arrows": [built for built in map(build_arrow, arrows) if built is not None],
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
            {"name": "drawn_kinds", "value": kinds or _list_roof_kinds(roofs)},
            {"name": "all_peaks", "value": False},
            {"name": "show_movements", "value": False},
            {"name": "shown_machine", "value": machine_of[rows[0].row_id] if rows else 0},
        ],
        "layer": build_layers(frame, view is RooflineView.INSTRUCTIONS, _build_marks(rows, kinds, levels, look)),
    }
    if look.title:
        spec["title"] = {
            "text": look.title,
            "subtitle": [
                describe_machine(machines),
                *_explain_rings(held),
                *_count_hidden(rows, shown, spec["usermeta"]["left_out"]),
            ],
        }
    return spec


def build_points(rows: Sequence[PlacedRow], view: RooflineView) -> list[Row]:
    """Every point of some rows that logarithmic axes can show."""
    found: list[Row] = []
    for row in rows:
        if view is RooflineView.TIME:
            found.extend(build_point(row.row_id, point) for point in row.roofline.points)
        else:
            found.extend(build_instruction_point(row.row_id, point) for point in row.roofline.instruction_points)
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
    """What the chart shows, for those who do not see it."""
    axes = {
        RooflineView.TIME: "operations per second over operations per byte of each level of the memory",
        RooflineView.INSTRUCTIONS: "warp instructions per second over warp instructions per transaction of each level of the memory",
    }[view]
    count = sum(row.is_whole and not row.is_before for row in rows)
    return f"Roofline chart of {format_count_of(count, 'kernel')}: {axes}, under the ceilings of the GPU; both axes logarithmic."


def describe_machine(machines: Sequence[Machine]) -> str:
    """Whose roofs they are and at which clocks, one line."""
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


def _explain_rings(points: Sequence[Row]) -> list[str]:
    return (
        ["rings around a point: the same operations per byte of other levels"]
        if any(point["ring"] for point in points)
        else []
    )


def _count_hidden(rows: Sequence[PlacedRow], shown: Sequence[str], left_out: Mapping[str, int]) -> list[str]:
    count = sum(row.is_whole and not row.is_before for row in rows)
    drawn = sum(row.is_whole and not row.is_before and row.row_id in shown for row in rows)
    lines = [f"the longest {drawn} of {format_count_of(count, 'kernel')}"] if drawn < count else []
    below = sum(left_out.get(row_id, 0) for row_id in shown)
    if below:
        lines.append(f"{format_count_of(below, 'point')} of negligible rate left out")
    return lines


def _build_all_roofs(rows: Sequence[PlacedRow], machines: Sequence[Machine], view: RooflineView) -> list[Row]:
    found: list[Row] = []
    sizes: dict[MemoryLevel, int] = list_transaction_bytes(rows)
    for position, machine in enumerate(machines):
        if view is RooflineView.TIME:
            found.extend(build_roofs(machine, position))
        else:
            found.extend(build_instruction_roofs(machine, position, sizes))
    return found


def _list_roof_kinds(roofs: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(roof["name"] for roof in roofs if "limit" in roof))


def _build_marks(
    rows: Sequence[PlacedRow], kinds: Sequence[str], levels: Sequence[str], look: ChartLook
) -> dict[str, Any]:
    """The encodings of colour, shape and size."""
    times_s = [row.roofline.duration_s for row in rows if is_drawable(row.roofline.duration_s)]
    longest_s = max(times_s, default=1.0)
    shapes = {**{kind.value: shape for kind, shape in KIND_SHAPES.items()}, ISSUE: KIND_SHAPES[OperationKind.FP32]}
    colours = {level.value: colour for level, colour in LEVEL_COLOURS.items()}
    legend: dict[str, Any] | None = {"orient": "bottom", "direction": "horizontal", "columns": 6}
    if not look.has_legend:
        legend = None
    return {
        "color": {
            "field": "level",
            "type": "nominal",
            "title": "bytes of",
            "scale": {"domain": list(colours), "range": list(colours.values())},
            "legend": legend and {**legend, "values": list(levels), "symbolType": "stroke"},
        },
        "shape": {
            "field": "kind",
            "type": "nominal",
            "title": "operations",
            "scale": {"domain": list(kinds), "range": [shapes[kind] for kind in kinds]},
            "legend": None if list(kinds) == [ISSUE] else legend,
        },
        "size": {"field": "area", "type": "quantitative", "scale": None, "legend": None},
        # An expression: from 45 to 420 square pixels by the root of the time, and each ring further out
        "area": f"pow(sqrt(45 + 375 * sqrt(datum.seconds / {longest_s!r})) + {2 * RING_PIXELS} * datum.ring, 2)",
    }
