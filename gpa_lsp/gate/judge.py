"""Kernels before and after, and budgets → :class:`~gpa_lsp.gate.model.GateResult`."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gpa_lsp.basis.locations import SourceLine
from gpa_lsp.gate.model import (
    Budget,
    Budgets,
    GateKernel,
    GateResult,
    GateRow,
    LimitKind,
    Metric,
    Origin,
    Outcome,
)
from gpa_lsp.report.changes import LaunchTimes, PartChange, compare_times, measure_range
from gpa_lsp.report.compare import compare_kernels
from gpa_lsp.report.kernel_pairs import pair_by_name
from gpa_lsp.report.names import shorten_name

_ROUNDING = 1e-9
"""Beyond a limit by less than this share of it is no more than rounding."""


def judge_kernels(base: Sequence[GateKernel], head: Sequence[GateKernel], budgets: Budgets) -> GateResult:
    """Judge every kernel that is on both sides.

    Args:
        base: before the change; those without a report are paired by their linkage names.
        head: after it, with reports.
        budgets: what it may cost.
    """
    pairs, gone, new = _pair(base, head)
    pairs.sort(key=lambda pair: (-_read_time(pair[0]), pair[0].mangled_name))
    rows = tuple(row for old, after in pairs for row in _judge_pair(old, after, budgets))
    return GateResult(rows=rows, new=tuple(new), gone=tuple(gone), budgets=budgets)


def _pair(
    base: Sequence[GateKernel], head: Sequence[GateKernel]
) -> tuple[list[tuple[GateKernel, GateKernel]], list[GateKernel], list[GateKernel]]:
    old = {id(kernel.report): kernel for kernel in base if kernel.report is not None}
    new = {id(kernel.report): kernel for kernel in head if kernel.report is not None}
    reports = [[one.report for one in side.values() if one.report is not None] for side in (old, new)]
    paired, lost, added = pair_by_name(*reports)
    pairs = [(old[id(before)], new[id(after)]) for before, after in paired]
    remembered = {kernel.mangled_name: kernel for kernel in base if kernel.report is None}
    left = [new[id(report)] for report in added]
    pairs += [(remembered[one.mangled_name], one) for one in left if one.mangled_name in remembered]
    return pairs, [old[id(one)] for one in lost], [one for one in left if one.mangled_name not in remembered]


def _read_time(kernel: GateKernel) -> float:
    return 0.0 if kernel.report is None else kernel.report.total_duration_ns


def find_budget(budgets: Budgets, metric: Metric, kernel: GateKernel) -> Budget | None:
    """The first budget of a metric that names a kernel."""
    names = (kernel.name, shorten_name(kernel.name), kernel.mangled_name)
    return next(
        (
            one
            for one in budgets.budgets
            if one.metric is metric and any(fnmatchcase(name, one.kernel) for name in names)
        ),
        None,
    )


def _judge_pair(base: GateKernel, head: GateKernel, budgets: Budgets) -> list[GateRow]:
    found = [(metric, find_budget(budgets, metric, head)) for metric in Metric]
    return [
        _judge_time(base, head, budget) if metric is Metric.TIME else _judge_figure(base, head, budget)
        for metric, budget in found
        if budget is not None
    ]


def _judge_figure(base: GateKernel, head: GateKernel, budget: Budget) -> GateRow:
    """By the surest origin that both have; a limit that needs nothing before takes the surest of what is after."""
    is_alone = budget.limit.kind is LimitKind.VALUE
    for origin in Origin:
        before, after = (side.figures.get((budget.metric, origin)) for side in (base, head))
        if after is None or (before is None and not is_alone):
            continue
        old = None if before is None else before.value
        bound = budget.limit.find_bound(old)
        is_beyond = bound is not None and _is_beyond(after.value, bound, is_better_high=budget.metric.is_better_high)
        return GateRow(
            kernel=head,
            base=base,
            budget=budget,
            outcome=Outcome.EXCEEDED if is_beyond else Outcome.KEPT,
            origin=origin,
            before=old,
            after=after.value,
            bound=bound,
            line=after.line,
        )
    return GateRow(kernel=head, base=base, budget=budget, outcome=Outcome.UNKNOWN, line=head.body)


def _is_beyond(value: float, bound: float, *, is_better_high: bool) -> bool:
    room = _ROUNDING * abs(bound)
    return value < bound - room if is_better_high else value > bound + room


def _judge_time(base: GateKernel, head: GateKernel, budget: Budget) -> GateRow:
    if budget.limit.kind is LimitKind.VALUE:
        return _judge_time_alone(base, head, budget)
    unknown = GateRow(kernel=head, base=base, budget=budget, outcome=Outcome.UNKNOWN, line=head.body)
    if base.times is None or head.times is None or base.time_origin is not head.time_origin:
        return unknown
    times = [base.times, head.times]
    if budget.limit.kind is LimitKind.DIFFERENCE:  # is in nanoseconds
        times = [LaunchTimes(cycles=None, ns=one.ns) for one in times]
    time = compare_times(*times)
    bound = None if time is None else budget.limit.find_bound(time.before)
    if time is None or bound is None:
        return unknown
    outcome = Outcome.KEPT
    if _is_beyond(time.after, bound, is_better_high=False):
        is_clear = time.high > 0 and time.before / time.high > min(time.before, bound)
        outcome = Outcome.EXCEEDED if is_clear else Outcome.WITHIN_NOISE
        if base.code_digest is not None and base.code_digest == head.code_digest:
            outcome = Outcome.SAME_CODE
    return GateRow(
        kernel=head,
        base=base,
        budget=budget,
        outcome=outcome,
        origin=head.time_origin,
        before=time.before,
        after=time.after,
        bound=bound,
        time=time,
        line=_find_slower_line(base, head, outcome) or head.body,
    )


def _judge_time_alone(base: GateKernel, head: GateKernel, budget: Budget) -> GateRow:
    """A limit of the time itself, in nanoseconds."""
    spread = None if head.times is None else head.times.ns
    if spread is None:
        return GateRow(kernel=head, base=base, budget=budget, outcome=Outcome.UNKNOWN, line=head.body)
    bound = budget.limit.amount
    outcome = Outcome.KEPT
    if spread.mean > bound:
        is_clear = measure_range(spread, "ns")[0] > bound
        outcome = Outcome.EXCEEDED if is_clear else Outcome.WITHIN_NOISE
    old = None if base.times is None or base.times.ns is None else base.times.ns.mean
    return GateRow(
        kernel=head,
        base=base,
        budget=budget,
        outcome=outcome,
        origin=head.time_origin,
        before=old,
        after=spread.mean,
        bound=bound,
        line=_find_slower_line(base, head, outcome) or head.body,
    )


def _find_slower_line(base: GateKernel, head: GateKernel, outcome: Outcome) -> SourceLine | None:
    """The line whose time grew most; None where nobody knows, and of a budget that was kept, where nobody looks."""
    if outcome is Outcome.KEPT or base.report is None or head.report is None:
        return None
    for change in compare_kernels(base.report, head.report).lines:
        if change.after_line and _has_grown(change):
            return SourceLine(file=change.name, line=change.after_line)
    return None


def _has_grown(change: PartChange) -> bool:
    if change.before_ns is None or change.after_ns is None:
        return change.after_ratio > change.before_ratio
    return change.after_ns > change.before_ns
