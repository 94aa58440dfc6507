"""The page: :func:`render_roofline_page`."""

from collections.abc import Sequence

from markupsafe import Markup

from gpa_lsp.basis.numbers import format_count_of
from gpa_lsp.render.charts.roofline_chart import ChartLook, RooflineView, build_chart_of_rows, choose_rows
from gpa_lsp.render.charts.roofline_rows import PlacedRow, group_machines, place_kernels
from gpa_lsp.render.charts.themes import KIND_SHAPES, LEVEL_COLOURS
from gpa_lsp.render.page.embedding import embed_compressed
from gpa_lsp.render.page.frame import read_asset, render_page
from gpa_lsp.render.roofline_page.items import build_details, build_items, build_machine_item
from gpa_lsp.report.model import Report

_PACKAGE = "gpa_lsp.render.roofline_page"
_MOST_LAUNCHES = 600
"""Over all kernels; each has at least :data:`_LEAST_LAUNCHES`."""

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
    values = {
        "data": embed_compressed(data),
        "items": build_items(rows, first),
        "machines": items,
        "gpus": list(dict.fromkeys(item["gpu"] for item in items)),
        "levels": [
            {"name": level.value, "colour": colour}
            for level, colour in LEVEL_COLOURS.items()
            if _has_level(rows, level.value)
        ],
        "kinds": [
            {"name": kind.value, "path": Markup(path)}
            for kind, path in KIND_SHAPES.items()
            if _has_kind(rows, kind.value)
        ],
        "view": view.value,
        "has_before": any(row.is_before for row in rows),
        "has_movements": _has_movements(rows),
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
    """Nothing loads the schema's address, but a page that names no address at all is easier to trust."""
    return {key: value for key, value in spec.items() if key != "$schema"}


def _has_level(rows: Sequence[PlacedRow], name: str) -> bool:
    levels = {point.level.value for row in rows for point in row.roofline.points}
    levels |= {point.level.value for row in rows for point in row.roofline.instruction_points}
    return name in levels


def _has_kind(rows: Sequence[PlacedRow], name: str) -> bool:
    return any(point.kind.value == name for row in rows for point in row.roofline.points)


def _has_movements(rows: Sequence[PlacedRow]) -> bool:
    return any(
        answer.movements for row in rows if row.kernel.analyses is not None for answer in row.kernel.analyses.answers
    )


def _name_unplaced(report: Report, rows: Sequence[PlacedRow]) -> list[str]:
    placed = {id(row.kernel) for row in rows}
    return [kernel.name for kernel in report.kernels if id(kernel) not in placed]
