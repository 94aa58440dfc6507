"""Judgement of kernels before and after by budgets → :class:`~gpa_lsp.report.gate.model.GateResult`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial

from gpa_lsp.code.binary.sass import read_mnemonic
from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import LOOP_WEIGHT
from gpa_lsp.diagnosis.analyses.mix import WorkClass, classify_mnemonic
from gpa_lsp.execution.prediction.model import KernelPrediction
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import choose_frame
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
from gpa_lsp.report.compare import compare_kernels, measure_work, pair_by_name
from gpa_lsp.report.differences import Trait, compare_traits
from gpa_lsp.report.gate.model import (
    TRAITS,
    Budget,
    Budgets,
    Figure,
    GateKernel,
    GateResult,
    GateRow,
    LimitKind,
    Metric,
    Origin,
    Outcome,
)
from gpa_lsp.report.kernel_lines import find_body
from gpa_lsp.report.model import KernelReport

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
    pairs.sort(key=lambda pair: (-(pair[0].report.total_duration_ns if pair[0].report else 0.0), pair[0].mangled_name))
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


def find_budget(budgets: Budgets, metric: Metric, kernel: GateKernel) -> Budget | None:
    """The first budget of a metric whose pattern matches a kernel."""
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
    """Compare the most reliable origin that both sides have; an absolute limit takes the most reliable one after the change.

    What was counted while other work was done is not compared.
    """
    row = partial(GateRow, kernel=head, base=base, budget=budget)
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
        return row(
            outcome=Outcome.EXCEEDED if is_beyond else Outcome.KEPT,
            origin=origin,
            before=old,
            after=after.value,
            bound=bound,
            note=note if origin in _OF_LAUNCHES else NOTHING,
            line=after.line,
        )
    return row(outcome=Outcome.UNKNOWN, note=note, line=head.body)


def _is_beyond(value: float, bound: float, *, is_better_high: bool) -> bool:
    room = _ROUNDING * abs(bound)
    return value < bound - room if is_better_high else value > bound + room


def _judge_time(base: GateKernel, head: GateKernel, budget: Budget, judgement: MeasuredChange | None) -> GateRow:
    if budget.limit.kind is LimitKind.VALUE:
        return _judge_time_alone(base, head, budget)
    note = NOTHING if judgement is None else judgement.note
    row = partial(GateRow, kernel=head, base=base, budget=budget, note=note)
    unknown = row(outcome=Outcome.UNKNOWN, line=head.body)
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
    return row(
        outcome=outcome,
        origin=head.time_origin,
        before=time.before,
        after=time.after,
        bound=bound,
        time=time,
        line=_find_slower_line(base, head, outcome) or head.body,
    )


def _judge_time_alone(base: GateKernel, head: GateKernel, budget: Budget) -> GateRow:
    """Judge by an absolute limit of the time, in nanoseconds."""
    row = partial(GateRow, kernel=head, base=base, budget=budget)
    spread = None if head.work is None else head.work.times.ns
    if spread is None:
        return row(outcome=Outcome.UNKNOWN, line=head.body)
    bound = budget.limit.amount
    outcome = Outcome.KEPT
    if spread.mean > bound:
        is_clear = measure_range(spread, "ns")[0] > bound
        outcome = Outcome.EXCEEDED if is_clear else Outcome.WITHIN_NOISE
    old = None if base.work is None or base.work.times.ns is None else base.work.times.ns.mean
    return row(
        outcome=outcome,
        origin=head.time_origin,
        before=old,
        after=spread.mean,
        bound=bound,
        line=_find_slower_line(base, head, outcome) or head.body,
    )


def _find_slower_line(base: GateKernel, head: GateKernel, outcome: Outcome) -> SourceLine | None:
    """Line whose time grew most; None where unknown, and for a budget that was kept."""
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


def describe_kernel(
    kernel: KernelReport, code: KernelFindings | None = None, predictions: Iterable[KernelPrediction] = ()
) -> GateKernel:
    """All figures of a kernel that a gate can judge.

    Args:
        kernel: measured, or code without a profile.
        code: what its code says; None where only the report is known.
        predictions: its emulated launches.
    """
    body = find_body(kernel)
    first = None if body is None else SourceLine(file=body[0], line=body[1][0])
    figures = dict(_list_reported(kernel, first))
    if code is not None:
        figures.update(_list_static(kernel, code, first))
    figures.update(_list_emulated(tuple(predictions), first))
    is_measured = any(launch.failure is None for launch in kernel.launches)
    return GateKernel(
        mangled_name=kernel.mangled_name,
        name=kernel.name,
        figures=figures,
        work=measure_work(kernel) if is_measured else None,
        body=first,
        report=kernel,
    )


def _list_reported(kernel: KernelReport, first: SourceLine | None) -> Iterator[tuple[tuple[Metric, Origin], Figure]]:
    """Figures from a report; for code without a profile only static ones."""
    traits = compare_traits(kernel, kernel)
    lines = {Metric.LOCAL_ACCESSES: _find_local_line(kernel), Metric.SECTORS: _find_sector_line(kernel)}
    for metric, trait in TRAITS.items():
        found = traits.get(trait)
        if found is not None and isinstance(found.after, int | float):
            told = Origin.SIMULATED if kernel.is_simulated else Origin.MEASURED
            origin = Origin.STATIC if found.is_static or not kernel.launches else told
            yield (metric, origin), Figure(value=float(found.after), line=lines.get(metric) or first)
    local = traits.get(Trait.LOCAL_ACCESSES)
    if local is not None and not local.after:
        yield (Metric.SPILLS, Origin.STATIC), Figure(value=0.0, line=first)  # what never goes to local memory


def _list_static(
    kernel: KernelReport, code: KernelFindings, first: SourceLine | None
) -> Iterator[tuple[tuple[Metric, Origin], Figure]]:
    statics = code.statics
    if statics.registers is not None:
        yield (Metric.REGISTERS, Origin.STATIC), Figure(value=statics.registers, line=first)
    if statics.occupancy is not None:
        yield (Metric.OCCUPANCY, Origin.STATIC), Figure(value=statics.occupancy.ratio, line=first)
    yield (Metric.SPILLS, Origin.STATIC), Figure(value=statics.spill_bytes, line=_find_local_line(kernel) or first)
    requests = [] if code.warps is None else code.warps.found.accesses
    costs = [(one, one.cost) for one in requests if one.space is Space.GLOBAL and one.cost is not None]
    if costs:
        worst = max(costs, key=lambda one: one[1] - one[0].ideal)
        mean = sum(cost for _, cost in costs) / len(costs)
        yield (Metric.SECTORS, Origin.STATIC), Figure(value=mean, line=_find_line(worst[0]) or first)


def _find_line(access: SymbolicAccess) -> SourceLine | None:
    frame = next(iter(access.instruction.chain or ()), None)
    return None if frame is None or not frame.line else frame.source_line


def _list_emulated(
    predictions: tuple[KernelPrediction, ...], first: SourceLine | None
) -> Iterator[tuple[tuple[Metric, Origin], Figure]]:
    """Means over the described launches; instructions only where all blocks ran."""
    if predictions and all(one.execution.is_complete for one in predictions):
        executed = sum(one.execution.warp_instructions for one in predictions) / len(predictions)
        yield (Metric.INSTRUCTIONS, Origin.EMULATED), Figure(value=executed, line=first)
    facts = [fact for one in predictions for fact in one.accesses if fact.space is Space.GLOBAL and not fact.is_nested]
    requests = sum(fact.requests for fact in facts)
    if requests:
        excess: Counter[SourceLine] = Counter()
        for fact in facts:
            lost = (fact.sectors_per_request - fact.ideal_sectors_per_request) * fact.requests
            excess[SourceLine(file=fact.file, line=fact.line)] += lost  # type: ignore[assignment]
        mean = sum(fact.sectors for fact in facts) / requests
        yield (Metric.SECTORS, Origin.EMULATED), Figure(value=mean, line=excess.most_common(1)[0][0])


def _find_local_line(kernel: KernelReport) -> SourceLine | None:
    """Line with most accesses to local memory, by executions, else by loop depth."""
    columns = kernel.instructions
    weights: Counter[SourceLine] = Counter()
    for row, text in enumerate(columns.texts):
        mnemonic = read_mnemonic(text)
        chain = int(columns.chain_index[row])
        if chain < 0 or not mnemonic or classify_mnemonic(mnemonic) is not WorkClass.LOCAL:
            continue
        executed = int(columns.executions[row])
        weight = executed if executed >= 0 else LOOP_WEIGHT ** int(columns.loop_depths[row])
        weights[choose_frame(columns.chains[chain]).source_line] += weight  # type: ignore[assignment]
    return weights.most_common(1)[0][0] if weights else None


def _find_sector_line(kernel: KernelReport) -> SourceLine | None:
    """Line with most excess sectors, from the analysis of memory accesses."""
    answer = None if kernel.analyses is None else kernel.analyses.find("memory_access")
    best: tuple[float, str] | None = None
    for table in () if answer is None else answer.tables:
        if table.title != "Global memory, by line":
            continue
        names = [column.name for column in table.columns]
        for cells in table.rows:
            row = dict(zip(names, cells, strict=True))
            accesses, moved, least = row["accesses"], row["sectors per access"], row["at best"]
            if isinstance(accesses, int | float) and isinstance(moved, int | float) and isinstance(least, int | float):
                best = max(best or (0.0, ""), (accesses * (moved - least), str(row["line"])), key=lambda one: one[0])
    file, _, line = ("", "", "") if best is None else best[1].rpartition(":")
    return SourceLine(file=file, line=int(line)) if file and line.isdecimal() and int(line) else None
