"""Kernels before and after, and budgets → :class:`~gpa_lsp.report.gate.model.GateResult`."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.prose import NOTHING
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.changes import (
    LaunchTimes,
    MeasuredChange,
    PartChange,
    Verdict,
    compare_measurements,
    compare_times,
    measure_range,
)
from gpa_lsp.report.compare import compare_kernels, pair_by_name
from gpa_lsp.report.gate.model import (
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

_ROUNDING = 1e-9  # Beyond a limit by less than this share of it is no more than rounding

# Metrics whose figures depend on the work, where they come from launches and not from code.
_COUNTED = frozenset({Metric.INSTRUCTIONS, Metric.LOCAL_ACCESSES, Metric.SECTORS})
_OF_LAUNCHES = frozenset({Origin.MEASURED, Origin.SIMULATED})


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
    is_measured = base.work is not None and head.work is not None and base.time_origin is head.time_origin
    judgement = compare_measurements(base.work, head.work) if is_measured and base.work and head.work else None
    found = [(metric, find_budget(budgets, metric, head)) for metric in Metric]
    return [
        _judge_time(base, head, budget, judgement)
        if metric is Metric.TIME
        else _judge_figure(base, head, budget, judgement)
        for metric, budget in found
        if budget is not None
    ]


def _judge_figure(base: GateKernel, head: GateKernel, budget: Budget, judgement: MeasuredChange | None) -> GateRow:
    """By the surest origin that both have; a limit that needs nothing before takes the surest of what is after.

    What was counted while other work was done is not compared.
    """
    is_alone = budget.limit.kind is LimitKind.VALUE
    is_counted = judgement is not None and budget.metric in _COUNTED
    note = judgement.note if judgement is not None and is_counted and not is_alone else NOTHING
    is_other = judgement is not None and bool(note) and judgement.verdict is Verdict.OTHER_WORK
    for origin in Origin:
        before, after = (side.figures.get((budget.metric, origin)) for side in (base, head))
        if after is None or (before is None and not is_alone) or (is_other and origin in _OF_LAUNCHES):
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
            note=note if origin in _OF_LAUNCHES else NOTHING,
            line=after.line,
        )
    return GateRow(kernel=head, base=base, budget=budget, outcome=Outcome.UNKNOWN, note=note, line=head.body)


def _is_beyond(value: float, bound: float, *, is_better_high: bool) -> bool:
    room = _ROUNDING * abs(bound)
    return value < bound - room if is_better_high else value > bound + room


def _judge_time(base: GateKernel, head: GateKernel, budget: Budget, judgement: MeasuredChange | None) -> GateRow:
    if budget.limit.kind is LimitKind.VALUE:
        return _judge_time_alone(base, head, budget)
    note = NOTHING if judgement is None else judgement.note
    unknown = GateRow(kernel=head, base=base, budget=budget, outcome=Outcome.UNKNOWN, note=note, line=head.body)
    if judgement is None or judgement.verdict is Verdict.OTHER_WORK or base.work is None or head.work is None:
        return unknown
    time = judgement.time
    if budget.limit.kind is LimitKind.DIFFERENCE:  # is in nanoseconds
        time = compare_times(*(LaunchTimes(cycles=None, ns=side.times.ns) for side in (base.work, head.work)))
    bound = None if time is None else budget.limit.find_bound(time.before)
    if time is None or bound is None:
        return unknown
    outcome = Outcome.KEPT
    if _is_beyond(time.after, bound, is_better_high=False):
        is_clear = time.high > 0 and time.before / time.high > min(time.before, bound)
        outcome = Outcome.EXCEEDED if is_clear else Outcome.WITHIN_NOISE
        if judgement.verdict is Verdict.SAME_CODE:
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
        note=note,
        line=_find_slower_line(base, head, outcome) or head.body,
    )


def _judge_time_alone(base: GateKernel, head: GateKernel, budget: Budget) -> GateRow:
    """A limit of the time itself, in nanoseconds."""
    spread = None if head.work is None else head.work.times.ns
    if spread is None:
        return GateRow(kernel=head, base=base, budget=budget, outcome=Outcome.UNKNOWN, line=head.body)
    bound = budget.limit.amount
    outcome = Outcome.KEPT
    if spread.mean > bound:
        is_clear = measure_range(spread, "ns")[0] > bound
        outcome = Outcome.EXCEEDED if is_clear else Outcome.WITHIN_NOISE
    old = None if base.work is None or base.work.times.ns is None else base.work.times.ns.mean
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
