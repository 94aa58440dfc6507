"""A kernel's roofline for a page: the chart in both views, and the same as tables."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Roofline
from gpa_lsp.document.answer_view import build_bars, list_missing
from gpa_lsp.document.blocks import Block, Figure, Items, Part, Table
from gpa_lsp.document.charts.roofline_chart import ChartLook, RooflineView, build_roofline_chart
from gpa_lsp.document.context_words import count_contexts, list_context_lines
from gpa_lsp.document.layout import Align, Column, Span, Style
from gpa_lsp.document.roofline_text import describe_clock_rates, list_bars
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    Quantity,
    format_bytes,
    format_intensity,
    format_number,
    format_percent,
    format_quantity,
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
    charts: Sequence[Figure]  # first operations, then instructions; empty where there are no points
    has_movements: bool  # the chart can show where suggestions would take the points
    blocks: Sequence[
        Block
    ]  # the ceilings, nearest first; findings; points, operations and bytes with the counters they come from


def build_roofline_section(
    kernel: KernelReport, before: KernelReport | None, answer: Part | None
) -> RooflineSection | None:
    """The roofline of all launches together.

    Args:
        before: the kernel in an earlier profile; None without one.
        answer: what the analysis of the roofline says; None where it was not asked.

    Returns:
        None where nothing is known of the machine, or nothing was measured.
    """
    roofline = kernel.analyses.roofline if kernel.analyses is not None else None
    if roofline is None or roofline.whole is None:
        return None
    whole = roofline.whole
    bars = build_bars(
        list_bars(whole, most=None, with_headroom=True), "Ceilings, nearest first", hot_ratio=_AT_ROOF_RATIO
    )
    blocks: list[Block]
    if answer is None:
        tables = [*_tabulate_contexts(kernel, whole), _tabulate_amounts(whole)]
        blocks = [
            bars,
            Part(title="Points, operations and bytes", blocks=tables, folds=True),
            list_missing(whole.missing),
        ]
    else:
        findings = [block for block in answer.blocks if isinstance(block, Items) and block.are_findings]
        others = [
            block for block in answer.blocks if block not in (answer.blocks[0], *findings)
        ]  # the bars stand above
        title = "Points, operations, bytes and peaks, and the counters they come from"
        blocks = [bars, *findings, Part(title=title, blocks=others, folds=True)]
    return RooflineSection(
        summary=answer.summary if answer is not None else _summarise(whole),
        machine=_describe_machine(roofline),
        doubts=roofline.machine.doubts,
        charts=_build_charts(kernel, whole, before),
        has_movements=any(one.movements for one in kernel.analyses.answers) if kernel.analyses is not None else False,
        blocks=blocks,
    )


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


def _build_charts(kernel: KernelReport, whole: Roofline, before: KernelReport | None) -> list[Figure]:
    earlier = () if before is None else (before,)
    views = (
        (RooflineView.TIME, "Operations", bool(whole.points)),
        (RooflineView.INSTRUCTIONS, "Warp instructions", bool(whole.instruction_points)),
    )
    return [
        Figure(
            title=title,
            words=f"Roofline chart of {title.lower()}; the table below lists its points.",
            chart=build_roofline_chart([kernel], before=earlier, view=view, look=_LOOK),
        )
        for view, title, has_points in views
        if has_points
    ]


def _tabulate_contexts(kernel: KernelReport, whole: Roofline) -> Iterator[Table]:
    """The points of all launches together, then those of each launch context by its longest launch."""
    contexts = list_context_lines(kernel)
    yield _tabulate_points(whole, f"Points, sum of {count_contexts(kernel)}" if contexts else "Points")
    for name, line in contexts:
        yield _tabulate_points(line, f"Points, {name}")


def _tabulate_points(whole: Roofline, title: str) -> Table:
    columns = [
        Column(title="operations"),
        Column(title="memory"),
        Column(title="intensity", align=Align.RIGHT),
        Column(title="achieved", align=Align.RIGHT),
        Column(title="attainable", align=Align.RIGHT),
        Column(title="side"),
    ]
    sides = {True: "bandwidth", False: "peak", None: UNKNOWN}
    rows: list[list[Span]] = [
        [
            (point.kind.value, Style.PLAIN),
            (point.level.value, Style.PLAIN),
            (format_intensity(point.intensity, f"{point.kind.operation}/B"), Style.PLAIN),
            (format_quantity(point.achieved_ops_per_s, _unit_of(point.kind)), Style.PLAIN),
            (format_quantity(point.attainable_ops_per_s, _unit_of(point.kind)), Style.PLAIN),
            (sides[point.is_memory_side], Style.PLAIN),
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
        rows.append([(text, Style.PLAIN) for text in cells])
    return Table(title=title, columns=columns, rows=rows)


def _tabulate_amounts(whole: Roofline) -> Table:
    rows: list[list[Span]] = [
        [
            (count.kind.value, Style.PLAIN),
            (f"{format_quantity(count.operations, Quantity.COUNT)} operations", Style.PLAIN),
            (count.source if count.is_exact else f"{count.source} (not exact)", Style.DIM),
        ]
        for count in whole.operations
        if count.operations
    ]
    rows += [
        [
            (traffic.level.value, Style.PLAIN),
            (format_bytes(traffic.bytes), Style.PLAIN),
            (traffic.source, Style.DIM),
        ]
        for traffic in whole.traffic
    ]
    return Table(
        title="Operations and bytes",
        columns=[Column(title="what"), Column(title="amount", align=Align.RIGHT), Column(title="from")],
        rows=rows,
    )
