"""Answers of the analyses as text for a terminal or a file. The vocabulary is closed, so an analysis that is new needs nothing here."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Advice, KernelAdvice
from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Chart, Finding, LineMark, Missing, Movement, Table, Weight
from gpa_lsp.diagnosis.analyses.starlight import suggestions
from gpa_lsp.diagnosis.analyses.starlight.suggestions import NAMES_BETWEEN, OUR_ADVICE, SUGGESTIONS_TITLE
from gpa_lsp.document.advice_words import show_gain
from gpa_lsp.document.layout import (
    EMPTY_LINE,
    Align,
    Column,
    Line,
    Span,
    Style,
    draw_bar,
    hang,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    Cell,
    Quantity,
    format_count,
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

_BAR_CELLS = 20
_PLACE = re.compile(r"\.\w+:\d+$")
# Columns of a table that are shown however narrow the screen is; of the others the last go first.
_KEPT_COLUMNS = 3
_WEIGHT_SIGNS = {Weight.HIGH: "! ", Weight.PLAIN: "- ", Weight.GOOD: "+ "}
_WEIGHT_STYLES = {Weight.HIGH: Style.WARNING, Weight.PLAIN: Style.PLAIN, Weight.GOOD: Style.DIM}


def render_answers(
    kernel: KernelReport,
    places: PlaceNames,
    width: int | None = None,
    *,
    max_rows: int | None = None,
    brief: bool = False,
) -> Iterator[Line]:
    """All answers about a kernel, in their order; nothing where nobody asked.

    Args:
        width: characters per line; None for as many as it takes.
        max_rows: longest table; None for :data:`MOST_ROWS`.
    """
    for answer in list_answers(kernel):
        yield EMPTY_LINE
        yield from render_answer(answer, kernel, places, width, max_rows=max_rows, brief=brief)


def render_answer(
    answer: Answer,
    kernel: KernelReport | None,
    places: PlaceNames | None,
    width: int | None = None,
    *,
    max_rows: int | None = None,
    brief: bool = False,
) -> Iterator[Line]:
    """One answer: title, summary, bars, findings with their remedies, tables, places, and what is unknown.

    Without a kernel, as of answers that belong to none that was measured, marks are named as they were compiled.
    """
    most = MOST_ROWS if max_rows is None else max_rows
    yield text_line(answer.title, Style.HEADING)
    if answer.summary:
        yield from wrap(answer.summary, width, style=Style.PLAIN if answer.is_known else Style.DIM)
    yield from render_bars(answer.bars, width)
    for finding in answer.findings:
        yield from _render_finding(finding, width)
    if not brief:
        yield from _render_evidence(answer, kernel, places, width, most)
    for missing in answer.missing:
        yield from hang((("  ", Style.PLAIN), (describe_missing(missing), Style.DIM)), width)


def _render_evidence(
    answer: Answer, kernel: KernelReport | None, places: PlaceNames | None, width: int | None, most: int
) -> Iterator[Line]:
    for table in answer.tables:
        yield from render_table(table, width, most)
    for chart in answer.charts:
        yield from wrap(describe_chart(chart), width, style=Style.DIM)
    for movement in answer.movements:
        yield from hang((("  ", Style.PLAIN), (describe_movement(movement), Style.PLAIN)), width)
    yield from _render_marks(answer.marks, kernel, places, width, min(most, MOST_MARKS))


def describe_missing(missing: Missing) -> Sentence:
    """What is unknown, and which options of the profiler would tell.

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
    """How a point would move on the roofline chart."""
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
    """The number on a line, its share, and what it means."""
    share = "" if mark.share_ratio is None else say(" ({share})", share=percent(mark.share_ratio))
    value = Amount(value=mark.value, quantity=mark.quantity)
    return join((say("{measure} {value}{share}", measure=mark.measure, value=value, share=share), mark.text), ": ")


def render_bars(bars: Sequence[Bar], width: int | None) -> Iterator[Line]:
    """Bars with their labels, percent and amounts; a stroke stands at what can be reached, where that is not all."""
    columns = (
        Column(title="", can_shrink=True, min_chars=12),
        Column(title=""),
        Column(title="", align=Align.RIGHT),
        Column(title="", can_shrink=True, min_chars=8),
    )
    rows = [
        (
            (bar.label, Style.PLAIN),
            (draw_ceiling_bar(bar, _BAR_CELLS), Style.BAR),
            (format_percent(bar.ratio), Style.PLAIN),
            (bar.words, Style.DIM),
        )
        for bar in bars
    ]
    yield from lay_out_table(columns, rows, width=width)


def draw_ceiling_bar(bar: Bar, cells: int) -> str:
    """A bar of characters with a stroke at what can be reached, where that is less than all and the bar does not cover it.

    >>> draw_ceiling_bar(Bar(label="DRAM", ratio=0.5, ceiling_ratio=0.75), 8)
    '████  │ '
    """
    ceiling = bar.ceiling_ratio if 0 < bar.ceiling_ratio < 1 else 1.0
    drawn = draw_bar(min(max(bar.ratio, 0.0), 1.0) if bar.ratio > 0 else 0.0, cells)
    place = min(cells - 1, int(ceiling * cells))
    if ceiling < 1 and drawn[place] == " ":
        drawn = f"{drawn[:place]}│{drawn[place + 1 :]}"
    return drawn


def render_table(table: Table, width: int | None, max_rows: int) -> Iterator[Line]:
    """A table with its title, the row of the kernel as it is now marked, and its note; rows beyond the limit are counted."""
    shown = choose_rows(table, max_rows)
    yield text_line(f"  {table.title}", Style.DIM)
    columns = (
        Column(title=""),
        *(
            Column(
                title=column.name,
                align=Align.LEFT if column.quantity is Quantity.TEXT else Align.RIGHT,
                can_shrink=column.quantity is Quantity.TEXT,
                keeps_end=any(_PLACE.search(str(row[index])) for row in table.rows),
                drop_order=0 if index < _KEPT_COLUMNS else len(table.columns) - index,
            )
            for index, column in enumerate(table.columns)
        ),
    )
    rows: list[Sequence[Span]] = []
    for number in shown:
        style = Style.TITLE if number == table.current_row else Style.PLAIN
        cells = zip(table.rows[number], table.columns, strict=True)
        mark = ("→" if number == table.current_row else "", style)
        rows.append((mark, *((format_quantity(value, column.quantity), style) for value, column in cells)))
    yield from lay_out_table(columns, rows, width=width, indent=4)
    rest = len(table.rows) - len(shown)
    if rest:
        yield text_line(f"    and {format_count(rest)} more", Style.DIM)
    if table.note:
        yield from wrap(table.note, width, indent=4, style=Style.DIM)


def choose_rows(table: Table, max_rows: int) -> Sequence[int]:
    """The rows that are shown: the first, or where the kernel's own lies beyond them, those around it."""
    count = len(table.rows)
    if count <= max_rows or table.current_row is None or table.current_row < max_rows:
        return range(min(count, max_rows))
    start = min(table.current_row - max_rows // 2, count - max_rows)
    return range(start, start + max_rows)


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


def _render_finding(finding: Finding, width: int | None) -> Iterator[Line]:
    style = _WEIGHT_STYLES[finding.weight]
    head: Line = (("  ", Style.PLAIN), (_WEIGHT_SIGNS[finding.weight], style))
    share = describe_share(finding)
    if share:
        head = (*head, (f"{share}: ", style_of_share(finding.share_ratio or 0.0)))
    yield from hang((*head, (finding.text, style)), width)
    if finding.remedy:
        yield from hang((("    ", Style.PLAIN), ("→ ", Style.DIM), (finding.remedy, Style.PLAIN)), width, indent=6)


def _render_marks(
    marks: Sequence[LineMark], kernel: KernelReport | None, places: PlaceNames | None, width: int | None, most: int
) -> Iterator[Line]:
    columns = (
        Column(title="", keeps_end=True, can_shrink=True, min_chars=16),
        Column(title="", align=Align.RIGHT),
        Column(title="", align=Align.RIGHT),
        Column(title="", can_shrink=True),
    )
    rows = [
        (
            (show_place(mark, kernel, places), Style.PATH),
            (format_quantity(mark.value, mark.quantity), Style.PLAIN),
            (
                "" if mark.share_ratio is None else format_percent(mark.share_ratio),
                style_of_share(mark.share_ratio or 0.0),
            ),
            (join((mark.measure, mark.text), ": "), Style.DIM),
        )
        for mark in marks[:most]
    ]
    yield from lay_out_table(columns, rows, width=width)
    if len(marks) > most:
        yield text_line(f"  and {format_count(len(marks) - most)} more lines", Style.DIM)


def show_place(mark: LineMark, kernel: KernelReport | None, places: PlaceNames | None) -> str:
    """``file:line`` of a mark; for code without lines the offset in its function."""
    if mark.file is not None and mark.line is not None:
        if kernel is None or places is None:
            return write_place(mark.file, mark.line)
        return places.show_line(kernel, mark.file, mark.line)
    return f"{mark.function or UNKNOWN}+0x{mark.pc_offset:x}"


Locate = Callable[[int], str]  # The place of a row of the kernel, for people


def pair_with_advice(answer: Answer, advice: KernelAdvice | None, locate: Locate) -> Table | None:
    """The table of suggestions, with what our optimizers for the same change say in place of their names.

    Args:
        answer: of the analysis ``starlight``.
        advice: of the same kernel; None where no optimizer was asked, and the names stay.
        locate: says where the hottest instruction that advice is about stands.

    Returns:
        None where the answer has no such table.
    """
    table = next((one for one in answer.tables if one.title == SUGGESTIONS_TITLE), None)
    if table is None or advice is None:
        return table
    at = next((number for number, column in enumerate(table.columns) if column.name == OUR_ADVICE), None)
    if at is None:
        return table
    rows = tuple((*row[:at], _describe(row[at], advice, locate), *row[at + 1 :]) for row in table.rows)
    return Table(title=table.title, columns=table.columns, rows=rows, current_row=table.current_row, note=table.note)


def list_answers(kernel: KernelReport) -> tuple[Answer, ...]:
    """A kernel's answers as they are shown: Starlight's suggestions with our estimates. Empty where no question was asked."""
    if kernel.analyses is None:
        return ()
    return tuple(_pair(answer, kernel) for answer in kernel.analyses.answers)


def _pair(answer: Answer, kernel: KernelReport) -> Answer:
    paired = (
        pair_with_advice(answer, kernel.advice, lambda row: _locate(kernel, row))
        if answer.analysis == "starlight"
        else None
    )
    if paired is None:
        return answer
    tables = tuple(paired if table.title == paired.title else table for table in answer.tables)
    return replace(answer, tables=tables)


def list_suggestions(kernel: KernelReport) -> tuple[tuple[str, str], ...]:
    """A row for each suggestion of Starlight's Table 1: gain and line of the optimizer for it, or its reason; none without the analysis."""
    tables = (table for answer in list_answers(kernel) for table in answer.tables)
    table = next((table for table in tables if table.title == SUGGESTIONS_TITLE), None)
    if table is None:
        return ()
    names = [column.name for column in table.columns]
    title, ours = names.index("suggestion"), names.index(OUR_ADVICE)
    nearest = {one.title: f" ({one.nearest})" for one in suggestions.list_suggestions() if one.nearest}
    return tuple((str(row[title]), f"{row[ours]}{nearest.get(str(row[title]), '')}") for row in table.rows)


def _describe(names: Cell, advice: KernelAdvice, locate: Locate) -> str:
    """What the optimizers for a suggestion say: those that apply, or why the nearest does not."""
    if not isinstance(names, str) or not names:
        return ""
    listed = names.split(NAMES_BETWEEN)
    spoken = [one for name in listed for one in advice.advice if one.optimizer == name]
    if spoken:
        return "; ".join(_describe_advice(one, locate) for one in spoken)
    silent = next((one for one in advice.silences if one.optimizer == listed[0]), None)
    return f"{_name(listed[0])}: {'not run' if silent is None else silent.message}"


def _describe_advice(advice: Advice, locate: Locate) -> str:
    """Its gain, and the line of the hottest instruction it is about; of the whole kernel there is none."""
    place = f", {locate(advice.hotspots[0].def_row)}" if advice.hotspots else ""
    return f"{_name(advice.optimizer)} {show_gain(advice.speedup)}{place}"


def _locate(kernel: KernelReport, row: int) -> str:
    """Its own line; without lines its offset."""
    columns = kernel.instructions
    chain = int(columns.chain_index[row])
    frame = choose_frame(columns.chains[chain]) if chain >= 0 else None
    if frame is None:
        return f"{int(columns.pc_offsets[row]):#x}"
    return str(Place(file=frame.file, line=frame.line, shown_file=PurePath(frame.file).name))


def _name(optimizer: str) -> str:
    return optimizer.replace("_", " ")
