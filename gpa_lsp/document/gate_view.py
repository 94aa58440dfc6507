"""VIEW: result of a gate: a page, notices on lines, and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpa_lsp.document.blocks import Gauge, Item, Items, Part, Table, tabulate
from gpa_lsp.document.check_view import identify
from gpa_lsp.document.comparison_view import describe_range
from gpa_lsp.document.layout import Span, Style, flexible, left, right
from gpa_lsp.document.notices import Notice, Rule, list_problems
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.json_records import pick
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.numbers import Quantity, format_change, format_count_of, format_percent, format_quantity
from gpa_lsp.kernel.names import demangle, shorten_distinctly
from gpa_lsp.report.gate.model import GateKernel, GateResult, GateRow, Metric, Outcome

_OUTCOMES = {
    Outcome.EXCEEDED: ("exceeded", Style.ERROR),
    Outcome.KEPT: ("kept", Style.DIM),
    Outcome.WITHIN_NOISE: ("noise", Style.NOTE),
    Outcome.SAME_CODE: ("same code", Style.NOTE),
    Outcome.UNKNOWN: ("unknown", Style.NOTE),
}
_MOST_ROWS = 200
_BAR_CELLS = 12
_BUDGET_RATIO = 0.5  # Of a bar: where the budget ends, so that as much again can be seen beyond it


def build_gate(result: GateResult, places: PlaceNames) -> Part:
    """The verdict, a sentence for each budget exceeded or not judged, then a table of all budgets.

    Args:
        result: what to show.
        places: how sources are shown.
    """
    names = name_gate_kernels(result)
    rows = sorted(result.rows, key=lambda row: row.outcome is not Outcome.EXCEEDED)
    items = [
        Item(text=(*_lead_in(row, places), (describe_row(row, names[row.kernel.name]), _OUTCOMES[row.outcome][1])))
        for row in rows
        if row.outcome is not Outcome.KEPT
    ]
    items += [Item(text=text, style=Style.NOTE) for _, text in describe_missing(result, names)]
    return Part(
        title=f"GPU gate {_judge(result)}",
        style=Style.ERROR if result.has_failed else Style.HEADING,
        blocks=[
            Items(items=items, most_items=_MOST_ROWS),
            _tabulate_rows(rows, names, places),
        ],
    )


def _judge(result: GateResult) -> str:
    """The verdict, with numbers of budgets and kernels."""
    judged = [row for row in result.rows if row.outcome is not Outcome.UNKNOWN]
    kernels = len({(row.kernel.mangled_name, id(row.kernel)) for row in result.rows})
    counted = f"{format_count_of(len(judged), 'budget')} of {format_count_of(kernels, 'kernel')} judged"
    if result.exceeded:
        return f"failed: {format_count_of(len(result.exceeded), 'budget')} exceeded, {counted}"
    if result.has_failed:
        return f"failed: something is missing, {counted}"
    return f"passed: {counted}" if judged else "undecided: nothing could be judged"


def _lead_in(row: GateRow, places: PlaceNames) -> Sequence[Span]:
    place = _show_place(row, places) if row.outcome is Outcome.EXCEEDED else ""
    return ((place, Style.PATH), (": ", Style.PLAIN)) if place else ()


def _tabulate_rows(rows: Sequence[GateRow], names: Mapping[str, str], places: PlaceNames) -> Table:
    def show_used(row: GateRow) -> str:
        used = _measure_use(row)
        return "" if used is None else format_percent(used)

    def draw_used(row: GateRow) -> Span:
        used = _measure_use(row)
        drawn = "" if used is None else Gauge(used * _BUDGET_RATIO, _BAR_CELLS, ceiling_ratio=_BUDGET_RATIO)
        return drawn, Style.BAR

    return tabulate(
        rows,
        [
            (left(), lambda row: _OUTCOMES[row.outcome]),
            (flexible("kernel"), lambda row: (names[row.kernel.name], Style.CODE)),
            (flexible("metric", 15), lambda row: row.budget.metric.words),
            (left("origin", drop_order=2), lambda row: ("" if row.origin is None else str(row.origin), Style.DIM)),
            (right("before", drop_order=5), lambda row: _show_value(row, row.before)),
            (right("after"), lambda row: _show_value(row, row.after)),
            (right("change", drop_order=6), _show_change),
            (left("budget"), lambda row: row.budget.text),
            (right("used", drop_order=4), show_used),
            (left(drop_order=1), draw_used),
            (
                flexible("line", 16, keeps_end=True, drop_order=3),
                lambda row: (_show_place(row, places), Style.PATH),
            ),
        ],
        most_rows=_MOST_ROWS,
    )


def _measure_use(row: GateRow) -> float | None:
    """Used share of the bound; None where either is unknown or zero."""
    after, bound = row.after, row.bound
    if after is None or not bound:
        return None
    if row.budget.metric.is_better_high:
        return bound / after if after else None
    return after / bound


def _show_place(row: GateRow, places: PlaceNames) -> str:
    """Place of a row, ``file:line``; empty where no line is known."""
    if row.line is None or row.kernel.report is None:
        return ""
    return places.show_line(row.kernel.report, row.line.file, row.line.line)


def list_gate_notices(result: GateResult, problems: Sequence[Problem]) -> list[Notice]:
    """A notice per problem, per budget that was not kept or not judged, and per kernel that is on one side only.

    Args:
        result: what was judged.
        problems: of the side after the change.
    """
    names = name_gate_kernels(result)
    level = ProblemSeverity.ERROR if result.budgets.fails_on_missing else ProblemSeverity.NOTE
    return [
        *list_problems(problems),
        *(_make_notice(row, names, level) for row in result.rows if row.outcome is not Outcome.KEPT),
        *(Notice(text=text, level=level, title="GPU gate") for _, text in describe_missing(result, names)),
    ]


def _make_notice(row: GateRow, names: Mapping[str, str], unknown: ProblemSeverity) -> Notice:
    """A notice under the metric's rule; what could not be judged has none, and the level *unknown*."""
    kernel, metric = row.kernel.report, row.budget.metric
    frame = None if row.line is None or kernel is None else Frame(file=row.line.file, line=row.line.line)
    rule, mangled = f"gate/{metric}", row.kernel.mangled_name
    file = "" if frame is None else frame.file
    is_judged = row.outcome is not Outcome.UNKNOWN
    level = ProblemSeverity.ERROR if row.outcome is Outcome.EXCEEDED else ProblemSeverity.NOTE
    return Notice(
        text=describe_row(row, names[row.kernel.name]),
        level=level if is_judged else unknown,
        title=f"GPU gate: {metric.words}",
        rule=_make_rule(metric) if is_judged else None,
        kernel=kernel,
        function=mangled,
        frame=frame,
        path=None if kernel is None else kernel.profile_path,
        identity=("gpaLspGate/v1", mangled, mangled, "", rule)
        if kernel is None
        else identify("gpaLspGate/v1", kernel, mangled, file, rule),
        properties={
            "metric": metric.value,
            "limit": row.budget.text,
            "outcome": row.outcome.value,
            "origin": None if row.origin is None else row.origin.value,
            **pick(row, "before after bound"),
        },
    )


def _make_rule(metric: Metric) -> Rule:
    text = f"A budget of the project for the {metric.words} of a kernel is exceeded."
    return Rule(name=f"gate/{metric}", text=text, level=ProblemSeverity.ERROR)


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
                **pick(row, "before after bound"),
                "file": None if row.line is None else row.line.file,
                "line": None if row.line is None else row.line.line,
                "place": _show_place(row, places) or None,
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


def _show_value(row: GateRow, value: float | None) -> str:
    """A value in the metric's unit; in cycles where those were compared."""
    is_cycles = row.time is not None and row.time.unit == "cycles"
    return format_quantity(value, Quantity.CYCLES if is_cycles else row.budget.metric.quantity)


def _show_change(row: GateRow) -> str:
    """Change in percent: ``+20 %``; empty where there was nothing before."""
    if row.after is None or not row.before:
        return ""
    return format_change(row.after / row.before - 1)


def _show_bound(row: GateRow) -> str:
    """Bound of a row: ``at most 10.3 µs``; empty where it is unknown."""
    if row.bound is None:
        return ""
    return f"at {'least' if row.budget.metric.is_better_high else 'most'} {_show_value(row, row.bound)}"


def describe_row(row: GateRow, name: str) -> str:
    """One budget of one kernel: what there was and is, and what became of the budget."""
    if row.outcome is Outcome.UNKNOWN and row.note:
        return f"{row.budget.metric.words} of {name}: not compared ({row.note}), so the budget of {row.budget.text} was not judged"
    if row.outcome is Outcome.UNKNOWN:
        return f"{row.budget.metric.words} of {name}: not known {_name_sides(row)}, so the budget of {row.budget.text} was not judged"
    old, new = _show_value(row, row.before), _show_value(row, row.after)
    values = new if row.before is None else f"{old} → {new}"
    change = f", {text}" if (text := _show_change(row)) else ""
    note = f"; {row.note}" if row.note else ""
    return f"{row.budget.metric.words} of {name}: {values}{change} ({row.origin}), {_describe_outcome(row)}{note}"


def _describe_outcome(row: GateRow) -> str:
    budget = f"the budget of {row.budget.text}" + (f" ({text})" if (text := _show_bound(row)) else "")
    if row.outcome is Outcome.EXCEEDED:
        return f"exceeds {budget}"
    if row.outcome is Outcome.WITHIN_NOISE:
        between = f": {describe_range(row.time)}" if row.time is not None else ""
        return f"beyond {budget}, but within the noise{between}"
    if row.outcome is Outcome.SAME_CODE:
        return f"beyond {budget}, but of the same instructions launched the same way"
    return f"keeps {budget}"


def _name_sides(row: GateRow) -> str:
    """The side that lacks the figure; or that both sides were not measured the same way."""
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
