"""What a gate says, as text, rows of JSON, annotations of GitHub, Markdown and SARIF."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from gpa_lsp.document.comparison_text import describe_range
from gpa_lsp.document.github import make_command
from gpa_lsp.document.layout import Line, Style, hang
from gpa_lsp.document.markdown_text import escape_markdown, quote_code
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import Json, SarifParts
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.numbers import Quantity, format_change, format_count_of, format_quantity
from gpa_lsp.kernel.names import demangle, shorten_distinctly
from gpa_lsp.report.gate.model import GateKernel, GateResult, GateRow, Metric, Outcome
from gpa_lsp.report.model import Report

_STYLES = {Outcome.EXCEEDED: Style.ERROR, Outcome.KEPT: Style.DIM}


def render_gate(result: GateResult, places: PlaceNames, width: int | None = None) -> Iterator[Line]:
    """The verdict, then what exceeds a budget, then the rest.

    Args:
        result: what to show.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
    """
    names = name_gate_kernels(result)
    yield from hang(((describe_result(result), Style.ERROR if result.has_failed else Style.TITLE),), width)
    for row in (*result.exceeded, *(row for row in result.rows if row.outcome is not Outcome.EXCEEDED)):
        place = show_place(row, places) if row.outcome is Outcome.EXCEEDED else ""
        text = describe_row(row, names[row.kernel.name])
        style = _STYLES.get(row.outcome, Style.WARNING)
        yield from hang(((f"  {place}: " if place else "  ", Style.PATH), (text, style)), width)
    for _, text in describe_missing(result, names):
        yield from hang(((f"  {text}", Style.NOTE),), width)


def show_place(row: GateRow, places: PlaceNames) -> str:
    """``file:line``; empty where no line is known."""
    if row.line is None or row.kernel.report is None:
        return ""
    return places.show_line(row.kernel.report, row.line.file, row.line.line)


def render_gate_github(result: GateResult, places: PlaceNames) -> Iterator[str]:
    """One command per budget that was not kept or not judged, and per kernel that is on one side only."""
    names = name_gate_kernels(result)
    for row in result.rows:
        if row.outcome is Outcome.KEPT:
            continue
        properties: dict[str, str] = {}
        if row.line is not None and row.kernel.report is not None:
            shown = places.show_file(row.kernel.report, row.line.file)
            properties = {"file": PurePath(shown).as_posix(), "line": str(max(1, row.line.line))}
        title = f"GPU gate: {row.budget.metric.words}"
        is_error = row.outcome is Outcome.EXCEEDED or (
            row.outcome is Outcome.UNKNOWN and result.budgets.fails_on_missing
        )
        text = describe_row(row, names[row.kernel.name])
        yield make_command("error" if is_error else "notice", text, {**properties, "title": title})
    for _, text in describe_missing(result, names):
        yield make_command("error" if result.budgets.fails_on_missing else "notice", text, {"title": "GPU gate"})


def make_gate_document(result: GateResult, places: PlaceNames) -> dict[str, Any]:
    """The result as JSON: ``gpa-lsp/gate/1``."""
    names = name_gate_kernels(result)
    return {
        "schema": "gpa-lsp/gate/1",
        "failed": result.has_failed,
        "configuration": result.budgets.source or None,
        "rows": [
            {
                "kernel": row.kernel.mangled_name,
                "name": demangle(row.kernel.name),
                "metric": row.budget.metric.value,
                "limit": row.budget.text,
                "outcome": row.outcome.name.lower(),
                "origin": None if row.origin is None else row.origin.name.lower(),
                "unit": row.time.unit if row.time is not None else row.budget.metric.quantity.value,
                "before": row.before,
                "after": row.after,
                "bound": row.bound,
                "file": None if row.line is None else row.line.file,
                "line": None if row.line is None else row.line.line,
                "place": show_place(row, places) or None,
                "message": describe_row(row, names[row.kernel.name]),
            }
            for row in result.rows
        ],
        "new": [one.mangled_name for one in result.new],
        "gone": [one.mangled_name for one in result.gone],
    }


def name_gate_kernels(result: GateResult) -> Mapping[str, str]:
    """Readable name → short name, different for different kernels."""
    kernels = [*(row.kernel for row in result.rows), *result.new, *result.gone]
    return shorten_distinctly(kernel.name for kernel in kernels)


def show_value(row: GateRow, value: float | None) -> str:
    """One of the values of a row as its quantity is written; of a time in cycles where those were compared."""
    is_cycles = row.time is not None and row.time.unit == "cycles"
    return format_quantity(value, Quantity.CYCLES if is_cycles else row.budget.metric.quantity)


def show_change(row: GateRow) -> str:
    """``+20 %``; empty where there was nothing before."""
    if row.after is None or not row.before:
        return ""
    return format_change(row.after / row.before - 1)


def show_bound(row: GateRow) -> str:
    """``at most 10.3 µs``; empty where the bound is unknown."""
    if row.bound is None:
        return ""
    return f"at {'least' if row.budget.metric.is_better_high else 'most'} {show_value(row, row.bound)}"


def describe_row(row: GateRow, name: str) -> str:
    """One budget of one kernel: what there was and is, and what became of the budget."""
    if row.outcome is Outcome.UNKNOWN and row.note:
        return f"{row.budget.metric.words} of {name}: not compared ({row.note}), so the budget of {row.budget.text} was not judged"
    if row.outcome is Outcome.UNKNOWN:
        return f"{row.budget.metric.words} of {name}: not known {_name_sides(row)}, so the budget of {row.budget.text} was not judged"
    old, new = show_value(row, row.before), show_value(row, row.after)
    values = new if row.before is None else f"{old} → {new}"
    change = f", {text}" if (text := show_change(row)) else ""
    note = f"; {row.note}" if row.note else ""
    return f"{row.budget.metric.words} of {name}: {values}{change} ({row.origin}), {_describe_outcome(row)}{note}"


def _describe_outcome(row: GateRow) -> str:
    budget = f"the budget of {row.budget.text}" + (f" ({text})" if (text := show_bound(row)) else "")
    if row.outcome is Outcome.EXCEEDED:
        return f"exceeds {budget}"
    if row.outcome is Outcome.WITHIN_NOISE:
        between = f": {describe_range(row.time)}" if row.time is not None else ""
        return f"beyond {budget}, but within the noise{between}"
    if row.outcome is Outcome.SAME_CODE:
        return f"beyond {budget}, but of the same instructions launched the same way"
    return f"keeps {budget}"


def _name_sides(row: GateRow) -> str:
    """Which side lacks the figure, or that the two were not found in the same way."""
    metric = row.budget.metric
    lacking = [
        word
        for word, side in (("before", row.base), ("after", row.kernel))
        if not any(found is metric for found, _ in side.figures) and (metric != "time" or side.work is None)
    ]
    return " and ".join(lacking) or "in the same way before and after"


def describe_missing(result: GateResult, names: Mapping[str, str]) -> list[tuple[GateKernel, str]]:
    """A sentence for each kernel that is on one side only."""
    what = "which fails the gate" if result.budgets.fails_on_missing else "which was not judged"
    new = [(one, f"{names[one.name]} is new, {what}") for one in result.new]
    return new + [(one, f"{names[one.name]} is gone, {what}") for one in result.gone]


def describe_result(result: GateResult) -> str:
    """One line: passed or failed, and by how much."""
    exceeded = len(result.exceeded)
    judged = [row for row in result.rows if row.outcome is not Outcome.UNKNOWN]
    kernels = len({(row.kernel.mangled_name, id(row.kernel)) for row in result.rows})
    counted = f"{format_count_of(len(judged), 'budget')} of {format_count_of(kernels, 'kernel')} judged"
    if exceeded:
        return f"Gate failed: {format_count_of(exceeded, 'budget')} exceeded, {counted}"
    if result.has_failed:
        return f"Gate failed: something is missing, {counted}"
    return f"Gate passed: {counted}" if judged else "Gate undecided: nothing could be judged"


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


# What a gate says as SARIF 2.1.0: a result per budget that is exceeded, on the line to look at. Rules are the metrics.
# Source: as :mod:`gpa_lsp.document.sarif`; section numbers below are of the same standard.

_FINGERPRINT = "gpaLspGate/v1"


def build_gate_sarif(result: GateResult, report: Report, places: PlaceNames, folder: Path) -> Json:
    """A SARIF log with one run.

    Args:
        result: what was judged.
        report: after the change; its problems become notifications of the run.
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """
    parts = SarifParts(places, folder)
    names = name_gate_kernels(result)
    rows = [row for row in result.rows if row.outcome not in (Outcome.KEPT, Outcome.UNKNOWN)]
    rules = list(dict.fromkeys(row.budget.metric for row in rows))
    results = [_make_result(parts, row, rules, names[row.kernel.name]) for row in rows if row.kernel.report is not None]
    return parts.make_log(report, [_make_rule(metric) for metric in rules], results)


def _make_rule(metric: Metric) -> Json:
    """A reportingDescriptor (3.49)."""
    text = f"A budget of the project for the {metric.words} of a kernel is exceeded."
    return {
        "id": f"gate/{metric}",
        "name": "".join(word.capitalize() for word in metric.split("_")),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["performance", "gpu"]},
    }


def _make_result(parts: SarifParts, row: GateRow, rules: list[Metric], name: str) -> Json:
    kernel, metric = row.kernel.report, row.budget.metric
    assert kernel is not None
    frame = None if row.line is None else Frame(file=row.line.file, line=row.line.line)
    rule = f"gate/{metric}"
    fingerprint = parts.make_fingerprint(kernel, kernel.mangled_name, "" if frame is None else frame.file, rule)
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(metric),
        "level": "error" if row.outcome is Outcome.EXCEEDED else "note",
        "message": {"text": describe_row(row, name)},
        "locations": [parts.make_location(kernel, kernel.mangled_name, frame)],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "properties": {
            "metric": metric.value,
            "limit": row.budget.text,
            "outcome": row.outcome.value,
            "origin": None if row.origin is None else row.origin.value,
            "before": row.before,
            "after": row.after,
            "bound": row.bound,
        },
    }
