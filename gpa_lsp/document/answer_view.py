"""VIEW: answers of the analyses. Their vocabulary is closed: a new analysis needs no code here."""

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Advice, KernelAdvice
from gpa_lsp.diagnosis.analyses import answers, starlight
from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Chart, Finding, LineMark, Missing, Movement, Weight
from gpa_lsp.diagnosis.analyses.starlight import NAMES_BETWEEN, OUR_ADVICE, SUGGESTIONS_TITLE
from gpa_lsp.document.advice_words import describe_gain
from gpa_lsp.document.blocks import Block, Figure, Gauge, Item, Items, Part, Spot, Table, tabulate
from gpa_lsp.document.layout import Align, Column, Span, Style, flexible, left, right, style_of_share
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    Cell,
    Quantity,
    format_intensity,
    format_per_s,
    format_percent,
    format_quantity,
)
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import NOTHING, Amount, Code, Place, Sentence, join, percent, say
from gpa_lsp.report.model import KernelReport

MOST_MARKS = 10
MOST_ROWS = 12  # Of a table or of the marks where the reader set no limit

_BAR_CELLS = 12  # beside a unit's name, its share and its amount there is room for no more in 80 columns
_PLACE = re.compile(r"\.\w+:\d+$")
# Columns of a table that are shown however narrow the screen is; of the others the last go first.
_KEPT_COLUMNS = 3
_WEIGHT_STYLES = {Weight.HIGH: Style.WARNING, Weight.PLAIN: Style.PLAIN, Weight.GOOD: Style.DIM}


def build_answers(kernel: KernelReport, places: PlaceNames) -> list[Part]:
    """The answers of all analyses of a kernel, in their order; empty if none was run."""
    return [build_answer(answer, kernel, places) for answer in list_answers(kernel)]


def build_answer(
    answer: Answer, kernel: KernelReport | None = None, places: PlaceNames | None = None, *, brief: bool = False
) -> Part:
    """One answer: summary, bars, findings with their remedies, charts, tables, places, and what is unknown.

    Args:
        answer: what to show.
        kernel: whose; None for answers that belong to none that was measured: marks are named as they were compiled.
        places: how sources are shown.
        brief: only what was found: no charts, tables, movements and places.
    """
    movements = [Item(text=describe_movement(movement)) for movement in answer.movements]
    evidence: list[Block] = [
        *(Figure(title=chart.title, words=describe_chart(chart), chart=chart) for chart in answer.charts),
        *map(_build_table, answer.tables),
        Items(items=movements, fold="How the point on the roofline chart would move"),
        _tabulate_marks(answer.marks, kernel, places),
    ]
    blocks: list[Block] = [
        build_bars(answer.bars),
        build_findings(answer.findings),
        *(() if brief else evidence),
        list_missing(answer.missing),
    ]
    return Part(
        title=answer.title, blocks=blocks, summary=answer.summary, name=answer.analysis, is_known=answer.is_known
    )


def build_findings(findings: Sequence[Finding]) -> Items:
    """Findings with their remedies, marked by how much they matter."""
    items = [
        Item(
            text=finding.text,
            style=_WEIGHT_STYLES[finding.weight],
            lead=(describe_share(finding), style_of_share(finding.share_ratio or 0.0)),
            remedy=finding.remedy,
        )
        for finding in findings
    ]
    return Items(items=items, are_findings=True)


def list_missing(missing: Sequence[Missing]) -> Items:
    """Unknown facts, each with the profiler options that collect it."""
    return Items(items=[Item(text=describe_missing(one), style=Style.DIM) for one in missing], fold="Unknown")


def describe_missing(missing: Missing) -> Sentence:
    """An unknown fact, with the profiler options that collect it.

    >>> describe_missing(Missing(what="bytes from DRAM", metrics=("a.sum", "b.sum"), needs_all=True))
    'unknown: bytes from DRAM; add `--metrics a.sum,b.sum`'
    >>> describe_missing(Missing(what="bytes from DRAM", metrics=("a.sum", "b.sum"), section="Memory"))
    'unknown: bytes from DRAM; add `--metrics a.sum` (or `b.sum`) or `--section Memory`'
    >>> describe_missing(Missing(what="the trip count", why=say("the code does not say")))
    'unknown: the trip count; the code does not say'
    """
    ways: list[Sentence] = []
    if missing.metrics and (missing.needs_all or len(missing.metrics) == 1):
        ways.append(_quote(f"--metrics {','.join(missing.metrics)}"))
    elif missing.metrics:
        first, *others = missing.metrics
        either = join(map(_quote, others), ", or ")
        ways.append(say("{first} (or {others})", first=_quote(f"--metrics {first}"), others=either))
    if missing.section:
        ways.append(_quote(f"--section {missing.section}"))
    add = say("add {ways}", ways=join(ways, " or ")) if ways else NOTHING
    return join((say("unknown: {what}", what=missing.what), add, missing.why), "; ")


def _quote(text: str) -> Sentence:
    return Sentence((Code(text=text),))


def describe_chart(chart: Chart) -> str:
    """A chart in words: what it is of, the span of its values, and its value where the kernel is.

    >>> from gpa_lsp.diagnosis.analyses.answers import ChartKind, Series
    >>> describe_chart(Chart(title="Occupancy", kind=ChartKind.STEPS, x_label="block size", y_label="warps", y_quantity=Quantity.WARPS,
    ...     series=(Series(label="", xs=(32, 64, 128), ys=(16, 32, 48)),), current_x=100))
    'Occupancy: warps over block size, 16 to 48; the kernel as it is, at 100: 32'
    """
    axes = f"{chart.y_label} over {chart.x_label}"
    names_axes = chart.title.lower().startswith(f"{chart.y_label.lower()} over ")
    text = f"{chart.title} ({chart.x_label})" if names_axes else f"{chart.title}: {axes}"
    here: list[str] = []
    for series in chart.series:
        if not series.ys:
            continue
        low, high = (format_quantity(value, chart.y_quantity) for value in (min(series.ys), max(series.ys)))
        label = f" {series.label}" if series.label and len(chart.series) > 1 else ""
        text += f",{label} {low}" if low == high else f",{label} {low} to {high}"
        before = [
            y for x, y in zip(series.xs, series.ys, strict=True) if chart.current_x is not None and x <= chart.current_x
        ]
        if before:
            here.append(format_quantity(before[-1], chart.y_quantity))
    if here:
        where = format_quantity(chart.current_x, Quantity.NUMBER)
        text += f"; the kernel as it is, at {where}: {', '.join(dict.fromkeys(here))}"
    return text


def describe_movement(movement: Movement) -> str:
    """The movement of a point on the roofline chart, from rate and intensity to others."""
    unit = f"{movement.kind.operation}/B"
    start, end = (
        f"{format_per_s(rate, movement.kind.operation)} at {format_intensity(intensity, unit)}"
        for rate, intensity in (
            (movement.from_ops_per_s, movement.from_intensity),
            (movement.to_ops_per_s, movement.to_intensity),
        )
    )
    return f"{movement.label}: {movement.kind} over {movement.level} from {start} → {end}"


def describe_mark(mark: LineMark) -> Sentence:
    """Number on a line, its share, and its meaning."""
    share = "" if mark.share_ratio is None else say(" ({share})", share=percent(mark.share_ratio))
    value = Amount(value=mark.value, quantity=mark.quantity)
    return join((say("{measure} {value}{share}", measure=mark.measure, value=value, share=share), mark.text), ": ")


def build_bars(bars: Sequence[Bar], title: str = "", *, hot_ratio: float = math.inf) -> Table:
    """Bars with their labels, percent and amounts; hot from this part of what can be reached."""

    def draw(bar: Bar) -> Span:
        drawn = Gauge(bar.ratio, _BAR_CELLS, ceiling_ratio=bar.ceiling_ratio)
        return drawn, Style.HOT if bar.ratio >= hot_ratio * bar.ceiling_ratio else Style.BAR

    return tabulate(
        bars,
        [
            (flexible(), lambda bar: _name_bar(bar.label)),
            (left(drop_order=1), draw),
            (right(), lambda bar: format_percent(bar.ratio)),
            (flexible("", 8, drop_order=2), lambda bar: (bar.words, Style.DIM)),
        ],
        title,
    )


def _name_bar(label: str) -> str:
    """A unit as a row's name, without the article that it has within a sentence.

    >>> _name_bar("The FMA pipe"), _name_bar("The constant cache"), _name_bar("DRAM bandwidth")
    ('FMA pipe', 'Constant cache', 'DRAM bandwidth')
    """
    name = label.removeprefix("The ")
    return name if name == label else name[:1].upper() + name[1:]


def _build_table(table: answers.Table) -> Table:
    """A table of an analysis, its values written."""
    columns = [
        Column(
            title=column.name,
            align=Align.LEFT if column.quantity is Quantity.TEXT else Align.RIGHT,
            can_shrink=column.quantity is Quantity.TEXT,
            keeps_end=any(_PLACE.search(str(row[index])) for row in table.rows),
            drop_order=0 if index < _KEPT_COLUMNS else len(table.columns) - index,
        )
        for index, column in enumerate(table.columns)
    ]
    rows = [
        [
            (format_quantity(value, column.quantity), Style.PLAIN)
            for value, column in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]
    return Table(
        title=table.title,
        columns=columns,
        rows=rows,
        current_row=table.current_row,
        note=table.note,
        most_rows=MOST_ROWS,
    )


def describe_share(finding: Finding) -> str:
    """The part of the kernel a finding is about; empty where its text says that number itself, or nothing is lost.

    >>> describe_share(Finding(text=say("48 % of the stalls are on atomics."), share_ratio=0.27))
    '27 % of the kernel'
    >>> describe_share(Finding(text=say("27 % of the issue slots are lost."), share_ratio=0.27))
    ''
    """
    if not finding.share_ratio:
        return ""
    share = format_percent(finding.share_ratio)
    is_said = re.search(rf"(?<![\d.,]){re.escape(share)}", finding.text)
    return "" if is_said else f"{share} of the kernel"


def _tabulate_marks(marks: Sequence[LineMark], kernel: KernelReport | None, places: PlaceNames | None) -> Table:
    def show_share(mark: LineMark) -> Span:
        share = "" if mark.share_ratio is None else format_percent(mark.share_ratio)
        return share, style_of_share(mark.share_ratio or 0.0)

    return tabulate(
        marks,
        [
            (flexible("place", 16, keeps_end=True), lambda mark: (_point_at(mark, kernel, places), Style.PATH)),
            (right("value"), lambda mark: format_quantity(mark.value, mark.quantity)),
            (right("share"), show_share),
            (flexible("what"), lambda mark: (join((mark.measure, mark.text), ": "), Style.DIM)),
        ],
        most_rows=MOST_MARKS,
    )


def _point_at(mark: LineMark, kernel: KernelReport | None, places: PlaceNames | None) -> Spot:
    """``file:line``; for code without lines the offset in its function."""
    if mark.file is None or mark.line is None:
        return Spot(f"{mark.function or UNKNOWN}+0x{mark.pc_offset:x}", None)
    shown = mark.file if kernel is None or places is None else places.show_file(kernel, mark.file)
    return Spot(write_place(shown, mark.line), Place(file=mark.file, line=mark.line))


def list_answers(kernel: KernelReport) -> tuple[Answer, ...]:
    """Answers of a kernel as they are shown: Starlight's suggestions with our estimates. Empty where no analysis was run."""
    every, advice = () if kernel.analyses is None else kernel.analyses.answers, kernel.advice
    if advice is None:
        return every
    return tuple(
        replace(answer, tables=tuple(_pair_with_advice(table, kernel, advice) for table in answer.tables))
        if answer.analysis == "starlight"
        else answer
        for answer in every
    )


def _pair_with_advice(table: answers.Table, kernel: KernelReport, advice: KernelAdvice) -> answers.Table:
    """Starlight's table of suggestions with the advice of our optimizers in place of their names; other tables unchanged."""
    names = [column.name for column in table.columns]
    if table.title != SUGGESTIONS_TITLE or OUR_ADVICE not in names:
        return table
    at = names.index(OUR_ADVICE)
    rows = tuple((*row[:at], _describe(row[at], kernel, advice), *row[at + 1 :]) for row in table.rows)
    return replace(table, rows=rows)


def list_suggestions(kernel: KernelReport) -> tuple[tuple[str, str], ...]:
    """Rows of Starlight's Table 1: suggestion, and gain and line of our optimizer for it, or why that does not apply.

    Empty without the analysis, and for a kernel whose code is a library's.
    """
    tables = (table for answer in list_answers(kernel) for table in answer.tables)
    table = next((table for table in tables if table.title == SUGGESTIONS_TITLE), None)
    if table is None or kernel.library:
        return ()
    names = [column.name for column in table.columns]
    title, ours = names.index("suggestion"), names.index(OUR_ADVICE)
    nearest = {one.title: f" ({one.nearest})" for one in starlight.list_suggestions() if one.nearest}
    return tuple((str(row[title]), f"{row[ours]}{nearest.get(str(row[title]), '')}") for row in table.rows)


def _describe(names: Cell, kernel: KernelReport, advice: KernelAdvice) -> str:
    """Optimizers that apply to a suggestion with their gains, else the reason why the nearest does not."""
    if not isinstance(names, str) or not names:
        return ""
    listed = names.split(NAMES_BETWEEN)
    spoken = [one for name in listed for one in advice.advice if one.optimizer == name]
    if spoken:
        return "; ".join(_describe_advice(one, kernel) for one in spoken)
    silent = next((one for one in advice.silences if one.optimizer == listed[0]), None)
    return f"{_name(listed[0])}: {'not run' if silent is None else silent.message}"


def _describe_advice(advice: Advice, kernel: KernelReport) -> str:
    """Gain, and the line of the hottest instruction the advice is about; no line for the whole kernel."""
    place = f", {_locate(kernel, advice.hotspots[0].def_row)}" if advice.hotspots else ""
    return f"{_name(advice.optimizer)} {describe_gain(advice)}{place}"


def _locate(kernel: KernelReport, row: int) -> str:
    """``file:line`` of an instruction; its offset where it has no line."""
    columns = kernel.instructions
    chain = int(columns.chain_index[row])
    frame = choose_frame(columns.chains[chain]) if chain >= 0 else None
    if frame is None:
        return f"{int(columns.pc_offsets[row]):#x}"
    return str(Place(file=frame.file, line=frame.line, shown_file=PurePath(frame.file).name))


def _name(optimizer: str) -> str:
    return optimizer.replace("_", " ")
