"""A gate's rows as sentences, the same in every view."""

from collections.abc import Mapping

from gpa_lsp.document.changes_text import describe_range
from gpa_lsp.foundation.numbers import Quantity, format_change, format_count_of, format_quantity
from gpa_lsp.kernel.names import shorten_distinctly
from gpa_lsp.report.gate.model import GateKernel, GateResult, GateRow, Outcome


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
