"""A kernel's roofline for a page: the chart in both views, and the same as tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Roof, Roofline
from gpa_lsp.document.answer_text import describe_missing
from gpa_lsp.document.charts.roofline_chart import ChartLook, RooflineView, build_roofline_chart
from gpa_lsp.document.context_words import count_contexts, list_context_lines
from gpa_lsp.document.html_report.tables import AnswerSection, Cell, ChartItem, Meter, PageTable
from gpa_lsp.document.layout import clamp_ratio
from gpa_lsp.document.page import render_prose
from gpa_lsp.document.roofline_text import describe_clock_rates
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    Quantity,
    format_bytes,
    format_intensity,
    format_number,
    format_percent,
    format_quantity,
    format_speedup,
)
from gpa_lsp.gpu.device.model import Clocks, OperationKind
from gpa_lsp.report.model import KernelReport

_LOOK = ChartLook(width=None, height=440, title="")
_AT_ROOF_RATIO = 0.95


class RooflineSection(Struct, frozen=True, kw_only=True):
    """A kernel under its ceilings."""

    summary: str  # one sentence
    machine: str  # whose ceilings, at which clocks
    doubts: Sequence[str]  # what is assumed
    meters: Sequence[Meter]  # the ceilings, nearest first; before them the busiest unit where it is nearer than any
    charts: Sequence[ChartItem]  # first operations, then instructions; empty where there are no points
    tables: Sequence[PageTable]  # points, operations and bytes
    missing: Sequence[Markup]  # what could not be known
    has_movements: bool  # the chart can show where suggestions would take the points
    # what the analysis of the roofline says; its tables stand for the section's own. None where it was not asked.
    answer: AnswerSection | None


def build_roofline_section(
    kernel: KernelReport,
    charts: dict[str, Mapping[str, Any]],
    before: KernelReport | None,
    answer: AnswerSection | None,
) -> RooflineSection | None:
    """The roofline of all launches together.

    Args:
        answer: what the analysis of the roofline says; None where it was not asked.

    Returns:
        None where nothing is known of the machine, or nothing was measured.
    """
    roofline = kernel.analyses.roofline if kernel.analyses is not None else None
    if roofline is None or roofline.whole is None:
        return None
    whole = roofline.whole
    return RooflineSection(
        summary=_summarise(whole),
        machine=_describe_machine(roofline),
        doubts=roofline.machine.doubts,
        meters=_list_meters(whole),
        charts=_build_charts(kernel, whole, charts, before),
        tables=[table for table in (*_tabulate_contexts(kernel, whole), _tabulate_amounts(whole)) if table.rows],
        missing=[render_prose(describe_missing(missing)) for missing in whole.missing],
        has_movements=any(one.movements for one in kernel.analyses.answers) if kernel.analyses is not None else False,
        answer=answer,
    )


def _list_meters(whole: Roofline) -> list[Meter]:
    meters = [convert_roof(roof) for roof in whole.shown_roofs]
    unit = whole.tighter_unit
    if unit is None:
        return meters
    first = Meter(
        label=unit.name,
        ratio=clamp_ratio(unit.share_ratio),
        text=format_percent(unit.share_ratio),
        words=f"headroom {format_speedup(unit.headroom)}",
        ceiling=clamp_ratio(unit.ceiling_ratio) if unit.ceiling_ratio < 1 else None,
        tone="high" if unit.nearness >= _AT_ROOF_RATIO else "",
    )
    return [first, *meters]


def convert_roof(roof: Roof) -> Meter:
    """A ceiling as a bar: how much of it is used, with a tick at what is known to be sustained."""
    unit = _choose_unit(roof)
    achieved, limit = format_quantity(roof.achieved_per_s, unit), format_quantity(roof.limit_per_s, unit)
    is_at_roof = roof.share_ratio >= _AT_ROOF_RATIO * roof.ceiling_ratio
    return Meter(
        label=roof.name,
        ratio=clamp_ratio(roof.share_ratio),
        text=format_percent(roof.share_ratio),
        words=f"{achieved} of {limit}, headroom {format_speedup(roof.headroom)}",
        ceiling=clamp_ratio(roof.ceiling_ratio) if roof.ceiling_ratio < 1 else None,
        tone="high" if is_at_roof else "",
    )


def _choose_unit(roof: Roof) -> Quantity:
    if roof.level is not None:
        return Quantity.BYTES_PER_S
    if roof.kind is None:
        return Quantity.INSTRUCTIONS_PER_S
    return _unit_of(roof.kind)


def _unit_of(kind: OperationKind) -> Quantity:
    return Quantity(f"{kind.operation}/s")


def _summarise(whole: Roofline) -> str:
    unit, nearest = whole.tighter_unit, whole.binding
    if unit is not None:
        return (
            f"{unit.phrase[0].upper()}{unit.phrase[1:]} is the nearest ceiling, at {format_percent(unit.share_ratio)}."
        )
    if nearest is None:
        return "How close the kernel is to its ceilings is unknown."
    return f"The nearest ceiling is {nearest.name}, at {format_percent(nearest.share_ratio)}."


def _describe_machine(roofline: KernelRoofline) -> str:
    return f"{roofline.machine.name}, {_describe_clocks(roofline.machine.clocks)}"


def _describe_clocks(clocks: Clocks) -> str:
    return f"clocks {clocks.basis.value}: {describe_clock_rates(clocks) or UNKNOWN} ({clocks.source})"


def _build_charts(
    kernel: KernelReport, whole: Roofline, charts: dict[str, Mapping[str, Any]], before: KernelReport | None
) -> list[ChartItem]:
    items = []
    earlier = () if before is None else (before,)
    views = (
        (RooflineView.TIME, "Operations", bool(whole.points)),
        (RooflineView.INSTRUCTIONS, "Warp instructions", bool(whole.instruction_points)),
    )
    for view, title, has_points in views:
        if not has_points:
            continue
        number = f"chart{len(charts)}"
        charts[number] = build_roofline_chart([kernel], before=earlier, view=view, look=_LOOK)
        words = f"Roofline chart of {title.lower()}; the table below lists its points."
        items.append(ChartItem(number=number, title=title, words=words))
    return items


def _tabulate_contexts(kernel: KernelReport, whole: Roofline) -> Iterator[PageTable]:
    """The points of all launches together, then those of each launch context by its longest launch."""
    contexts = list_context_lines(kernel)
    yield _tabulate_points(whole, f"Points, sum of {count_contexts(kernel)}" if contexts else "Points")
    for name, line in contexts:
        yield _tabulate_points(line, f"Points, {name}")


def _tabulate_points(whole: Roofline, title: str) -> PageTable:
    columns = [
        ("operations", False),
        ("memory", False),
        ("intensity", True),
        ("achieved", True),
        ("attainable", True),
        ("side", False),
    ]
    sides = {True: "bandwidth", False: "peak", None: UNKNOWN}
    rows = [
        [
            Cell(text=point.kind.value),
            Cell(text=point.level.value),
            Cell(text=format_intensity(point.intensity, f"{point.kind.operation}/B")),
            Cell(text=format_quantity(point.achieved_ops_per_s, _unit_of(point.kind))),
            Cell(text=format_quantity(point.attainable_ops_per_s, _unit_of(point.kind))),
            Cell(text=sides[point.is_memory_side]),
        ]
        for point in whole.points
    ]
    for warp in whole.instruction_points:
        cells = (
            "warp instructions",
            warp.level.value,
            f"{format_number(warp.intensity)} per {format_bytes(warp.transaction_bytes)}",
            format_quantity(warp.achieved_per_s, Quantity.INSTRUCTIONS_PER_S),
            format_quantity(warp.attainable_per_s, Quantity.INSTRUCTIONS_PER_S),
            "",
        )
        rows.append([Cell(text=text) for text in cells])
    return PageTable(title=title, columns=columns, rows=rows)


def _tabulate_amounts(whole: Roofline) -> PageTable:
    rows = [
        [
            Cell(text=count.kind.value),
            Cell(text=f"{format_quantity(count.operations, Quantity.COUNT)} operations"),
            Cell(text=count.source if count.is_exact else f"{count.source} (not exact)", tone="dim"),
        ]
        for count in whole.operations
        if count.operations
    ]
    rows += [
        [
            Cell(text=traffic.level.value),
            Cell(text=format_bytes(traffic.bytes)),
            Cell(text=traffic.source, tone="dim"),
        ]
        for traffic in whole.traffic
    ]
    return PageTable(
        title="Operations and bytes", columns=[("what", False), ("amount", True), ("from", False)], rows=rows
    )
