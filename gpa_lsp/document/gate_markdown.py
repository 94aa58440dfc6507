"""What a gate says as Markdown: the summary of a run of GitHub's actions."""

from collections.abc import Iterator, Sequence

from gpa_lsp.document.gate_text import show_place
from gpa_lsp.document.gate_words import (
    describe_missing,
    describe_result,
    describe_row,
    name_gate_kernels,
    show_bound,
    show_change,
    show_value,
)
from gpa_lsp.document.markdown_text import escape_markdown, quote_code
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.report.gate.model import GateResult, GateRow, Outcome

_MARKS = {
    Outcome.KEPT: "✅",
    Outcome.EXCEEDED: "❌",
    Outcome.WITHIN_NOISE: "➖",
    Outcome.SAME_CODE: "➖",
    Outcome.UNKNOWN: "❔",
}
_MOST_ROWS = 200
_MOST_BARS = 20
_MOST_PERCENT = 400  # Longer bars are cut, so that the others can be told apart


def render_gate_summary(result: GateResult, places: PlaceNames) -> str:
    """The whole summary: verdict, picture, table, and what was not judged."""
    return "\n".join((*_list_lines(result, places), ""))


def _list_lines(result: GateResult, places: PlaceNames) -> Iterator[str]:
    names = name_gate_kernels(result)
    rows = sorted(result.rows, key=lambda row: row.outcome is not Outcome.EXCEEDED)[:_MOST_ROWS]
    yield f"## GPU gate: {'failed' if result.has_failed else 'passed' if result.is_judged else 'undecided'}"
    yield ""
    yield f"{escape_markdown(describe_result(result))}."
    yield ""
    yield from _draw_bars(rows)
    if rows:
        yield "| | | kernel | metric | before | after | change | budget | line |"
        yield "|-:|-|-|-|-:|-:|-:|-|-|"
    for number, row in enumerate(rows, start=1):
        budget = ", ".join(filter(None, (row.budget.text, show_bound(row))))
        place = show_place(row, places)
        cells = (
            quote_code(names[row.kernel.name]),
            escape_markdown(f"{row.budget.metric.words}" + (f" ({row.origin})" if row.origin is not None else "")),
            show_value(row, row.before),
            show_value(row, row.after),
            show_change(row),
            escape_markdown(budget),
            quote_code(place) if place else "",
        )
        yield f"| {number} | {_MARKS[row.outcome]} | {' | '.join(cells)} |"
    if len(result.rows) > len(rows):
        yield ""
        yield f"{len(result.rows) - len(rows)} more budgets were judged; the log has them."
    doubtful = [row for row in rows if row.outcome not in (Outcome.KEPT, Outcome.EXCEEDED)]
    remarks = [describe_row(row, names[row.kernel.name]) for row in doubtful]
    remarks += [text for _, text in describe_missing(result, names)]
    if remarks:
        yield ""
    yield from (f"- {escape_markdown(text)}" for text in remarks[:_MOST_ROWS])


def _draw_bars(rows: Sequence[GateRow]) -> Iterator[str]:
    """A chart that GitHub draws, of how much of each bound is used; bars bear the numbers of the table's rows, and no names."""
    used = [(number, share) for number, row in enumerate(rows, start=1) if (share := _measure_use(row)) is not None]
    if not used:
        return
    bars = used[:_MOST_BARS]
    top = max(120, *(share for _, share in bars))
    labels, shares = [f'"{number}"' for number, _ in bars], [share for _, share in bars]
    if len(bars) == 1:  # one place alone has no room for the line of the budget
        labels, shares = [*labels, '" "'], [*shares, 0]
    yield "```mermaid"
    yield "xychart-beta"
    yield '    title "How much of each budget is used, % (rows of the table)"'
    yield f"    x-axis [{', '.join(labels)}]"
    yield f'    y-axis "%" 0 --> {top}'
    yield f"    bar [{', '.join(map(str, shares))}]"
    yield f"    line [{', '.join('100' for _ in shares)}]"
    yield "```"
    yield ""


def _measure_use(row: GateRow) -> int | None:
    """Whole percent of the bound; None where it is unknown or nothing."""
    if row.after is None or not row.bound:
        return None
    if row.budget.metric.is_better_high:
        return _MOST_PERCENT if not row.after else min(_MOST_PERCENT, round(100 * row.bound / row.after))
    return min(_MOST_PERCENT, round(100 * row.after / row.bound))
