"""The interactive roofline page: one file that opens from disk, with a chart and the same numbers as tables."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gpa_lsp.document.answer_view import describe_missing, describe_movement, list_suggestions
from gpa_lsp.document.blocks import Table
from gpa_lsp.document.charts.roofline_chart import ChartLook, RooflineView, build_chart_of_rows, choose_rows
from gpa_lsp.document.charts.roofline_rows import PlacedRow, group_machines, is_drawable, place_kernels
from gpa_lsp.document.charts.themes import KIND_SHAPES, LEVEL_COLOURS
from gpa_lsp.document.layout import clamp_ratio
from gpa_lsp.document.page import embed_compressed, read_asset, render_page, render_prose
from gpa_lsp.document.roofline_text import CLOCK_WORDS, describe_line, list_bars
from gpa_lsp.document.roofline_view import (
    build_amount_table,
    build_instruction_table,
    build_point_table,
    build_roof_table,
    describe_clocks,
    list_movements,
)
from gpa_lsp.document.sampling_words import list_gpu_facts
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_count_of,
    format_duration_ns,
    format_hz,
    format_percent,
    format_speedup,
)
from gpa_lsp.gpu.device.model import Machine, explain_l2
from gpa_lsp.report.model import Report

_MOST_MISSING = 12


def build_items(rows: Sequence[PlacedRow], shown: Collection[str]) -> list[dict[str, Any]]:
    """Rows of the page's list of kernels: present ones, then those only in the earlier profile."""
    earlier = {row.kernel.mangled_name: row for row in rows if row.is_before and row.is_whole}
    now = {row.kernel.mangled_name for row in rows if not row.is_before}
    counts: dict[str, int] = {}
    for row in rows:
        if not row.is_whole:
            owner = row.row_id.partition(".")[0]
            counts[owner] = counts.get(owner, 0) + 1
    return [
        _build_item(row, earlier.get(row.kernel.mangled_name), counts.get(row.row_id, 0), row.row_id in shown)
        for row in rows
        if row.is_whole and (not row.is_before or row.kernel.mangled_name not in now)
    ]


def _build_item(row: PlacedRow, before: PlacedRow | None, launches: int, is_shown: bool) -> dict[str, Any]:
    nearest = row.roofline.tighter_unit or row.roofline.binding
    change = ""
    if before is not None and not row.is_before and is_drawable(_mean_time(before), _mean_time(row)):
        change = format_speedup(_mean_time(before) / _mean_time(row))
    return {
        **_describe_nearest(row),
        "row_id": row.row_id,
        "name": row.name,
        "full_name": row.kernel.name,
        "change": change,  # run time before over run time now; empty without an earlier profile
        "ratio": 0.0 if nearest is None else clamp_ratio(nearest.share_ratio),
        "ceiling": 1.0 if nearest is None else _clamp_ceiling(nearest.ceiling_ratio),
        "launches": launches,  # with rows of their own
        "is_shown": is_shown,  # drawn at first
        "is_before": row.is_before,  # only in the earlier profile
    }


def _describe_nearest(row: PlacedRow) -> dict[str, str]:
    """Time, nearest ceiling, its use and headroom."""
    nearest = row.roofline.tighter_unit or row.roofline.binding
    return {
        "time": format_duration_ns(row.roofline.duration_s * 1e9),
        "nearest": UNKNOWN if nearest is None else nearest.name,
        "share": UNKNOWN if nearest is None else format_percent(nearest.share_ratio),
        "headroom": UNKNOWN if nearest is None else format_speedup(nearest.headroom),
    }


def _mean_time(row: PlacedRow) -> float:
    """Mean time of one launch: the two profiles may hold different numbers of launches."""
    roofline = None if row.kernel.analyses is None else row.kernel.analyses.roofline
    count = 1 if roofline is None else len(roofline.launches) + roofline.left_out
    return row.roofline.duration_s / max(1, count)


def build_details(row: PlacedRow, machine: int) -> Mapping[str, Any]:
    """Details of a kernel or launch for the page's script: plain texts, except for ``missing``, which is escaped HTML."""
    line = row.roofline
    first, second = describe_line(line, row.machine)
    return {
        "id": row.row_id,
        "owner": row.row_id.partition(".")[0],
        "name": row.name,
        "launch": "" if row.is_whole else row.launch,
        "before": row.is_before,
        "symbol": row.kernel.mangled_name,
        "machine": machine,
        **_describe_nearest(row),
        "lines": [first, second],
        "bars": [
            [bar.label, clamp_ratio(bar.ratio), _clamp_ceiling(bar.ceiling_ratio), format_percent(bar.ratio), bar.words]
            for bar in list_bars(line, most=12)
        ],
        "points": _read_cells(build_point_table(line)),
        "warp_points": _read_cells(build_instruction_table(line)),
        "amounts": _read_cells(build_amount_table(line)),
        "missing": [str(render_prose(describe_missing(one))) for one in line.missing[:_MOST_MISSING]]
        if row.is_whole
        else [],
        "movements": list(map(describe_movement, list_movements(row.kernel))) if row.is_whole else [],
        "suggestions": list_suggestions(row.kernel) if row.is_whole and not row.is_before else (),
    }


def _read_cells(table: Table) -> list[list[str]]:
    return [[text for text, _ in row] for row in table.rows]


def build_machine_item(machine: Machine) -> Mapping[str, Any]:
    """A machine: name, clocks, roofs with their sources, and doubts."""
    clocks, facts = machine.clocks, list_gpu_facts(machine)
    return {
        "name": machine.name,
        "basis": CLOCK_WORDS[clocks.basis],
        "gpu": ", ".join(facts),
        "title": ", ".join(facts) + ("" if clocks.sm_hz is None else f", SMs at {format_hz(clocks.sm_hz)}"),
        "clocks": f"Ceilings {describe_clocks(machine)}.",
        "roofs": _read_cells(build_roof_table(machine)),
        "l2": explain_l2(machine),
        "doubts": list(machine.doubts),
    }


def _clamp_ceiling(ratio: float) -> float:
    return ratio if 0 < ratio < 1 else 1.0


_PACKAGE = "gpa_lsp.document.roofline_page"
_MOST_LAUNCHES = 600  # Over all kernels; each has at least :data:`_LEAST_LAUNCHES`

_LEAST_LAUNCHES = 3
_LOOK = ChartLook(width=None, height=None, has_legend=False, title="")


def render_roofline_page(
    report: Report, *, before: Report | None = None, view: RooflineView = RooflineView.TIME
) -> str:
    """Kernels and launches under their roofs.

    Args:
        report: what to show; kernels without a roofline are named with the reason.
        before: of an earlier profile; kernels of the same linkage name are joined to theirs by arrows.
        view: the one that is shown first.

    Returns:
        HTML that loads nothing.
    """
    earlier = () if before is None else before.kernels
    most = max(_LEAST_LAUNCHES, _MOST_LAUNCHES // max(1, len(report.kernels) + len(earlier)))
    rows = place_kernels(report.kernels, earlier, max_launches=most)
    machines, machine_of = group_machines(rows)
    first = set(choose_rows(rows))
    items = [build_machine_item(machine) for machine in machines]
    charts = {one.value: _drop_schema(build_chart_of_rows(rows, view=one, look=_LOOK)) for one in RooflineView}
    data = {
        "charts": charts,
        "rows": [build_details(row, machine_of[row.row_id]) for row in rows],
        "machines": items,
        "view": view.value,
    }
    kinds = {point.kind for row in rows for point in row.roofline.points}
    levels = {point.level for row in rows for point in row.roofline.points}
    levels |= {point.level for row in rows for point in row.roofline.instruction_points}
    values = {
        "data": embed_compressed(data),
        "items": build_items(rows, first),
        "machines": items,
        "gpus": list(dict.fromkeys(item["gpu"] for item in items)),
        "levels": [
            {"name": level.value, "colour": colour} for level, colour in LEVEL_COLOURS.items() if level in levels
        ],
        "kinds": [{"name": kind.value, "path": Markup(path)} for kind, path in KIND_SHAPES.items() if kind in kinds],
        "view": view.value,
        "has_before": any(row.is_before for row in rows),
        "has_movements": any(list_movements(row.kernel) for row in rows),
        "unplaced": _name_unplaced(report, rows),
        "counted": format_count_of(len(report.kernels), "kernel"),
    }
    return render_page(
        f"{_PACKAGE}/page.html.jinja",
        title="Roofline",
        values=values,
        styles=[read_asset(_PACKAGE, "page.css")],
        scripts=[read_asset(_PACKAGE, "page.js")],
        draws_charts=True,
    )


def _drop_schema(spec: dict[str, object]) -> dict[str, object]:
    """A specification without its schema: a page that names no address at all is easier to trust."""
    return {key: value for key, value in spec.items() if key != "$schema"}


def _name_unplaced(report: Report, rows: Sequence[PlacedRow]) -> list[str]:
    placed = {id(row.kernel) for row in rows}
    return [kernel.name for kernel in report.kernels if id(kernel) not in placed]
