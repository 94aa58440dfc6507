"""Question: where does the time of long-scoreboard stalls go? Memory level, latency or queues, kind of load, line.

The expected latency of a load without queues is the sum over the levels of the part they answer times the architecture's latency
(:mod:`~gpa_lsp.diagnosis.analyses.decomposition.memory_view`); the measured wait is warp-cycles over executions
(:mod:`~gpa_lsp.diagnosis.analyses.decomposition.load_waits`); the difference is queueing, attributed to the busiest unit on the way. There is no
counter of TLB misses; they count as queueing.

Source: after DrGPU (Hao et al., "DrGPU: A Top-Down Profiler for GPU Applications", ICPE 2023), node ``long_scoreboard``.
"""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Finding,
    LineMark,
    Missing,
    Table,
    Weight,
    know_nothing,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.decomposition.load_waits import LOAD_KINDS, list_wait_pairs, mark_results
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import (
    KIND_REMEDIES,
    LEG_REMEDIES,
    LOAD_COUNTERS,
    OPERANDS,
    QUEUEING,
    START_EARLIER,
    MemoryView,
    name_load_counters,
    view_memory,
)
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import UnitUse, tabulate_units
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import find_warp_state, read_warp_time
from gpa_lsp.diagnosis.analyses.line_sums import mark_rows
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, percent, say
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind, list_kinds, select_kinds

_MATTERS_RATIO = 0.1
_HOLDS_UP_RATIO = 0.25  # Part of all warp-cycles from which memory stalls are likely to be what limits the kernel
_CONSTANTS_RATIO = 0.05
_CONSTANT_MISS = "imc_miss"

# Leg of a load's way → where on it
_LEGS = {
    "L1": "in L1",
    "L1 to L2": "between L1 and L2",
    "to the far partition of L2": "on the way to the far partition of L2",
    "L2 to DRAM": "between L2 and DRAM",
    "several lines per request": "on further lines of the same request",
}


def find_in_memory(share: float, subject: Subject, view: MemoryView) -> Iterator[Finding]:
    """Find statements about stalls on memory."""
    weight = Weight.HIGH if share >= _HOLDS_UP_RATIO else Weight.PLAIN
    found = [*_find_split(share, weight, view), *_find_kinds(share, weight, view)]
    if view.split is None:
        found += _find_bound(share, weight, subject, view)
    found += find_constants(subject)
    yield from order_findings(found, by_share=True)


def _find_split(share: float, weight: Weight, view: MemoryView) -> Iterator[Finding]:
    split = view.split
    if split is None:
        return
    exposed = 0.0
    for part in split.parts:
        if part.name == QUEUEING and part.share_ratio < _MATTERS_RATIO:
            continue
        if part.name == QUEUEING:
            yield _find_queueing(share * part.share_ratio, weight, view)
        elif part.name == OPERANDS and part.share_ratio >= _MATTERS_RATIO:
            text = say(
                "{share} of the stalls are not latency: instructions had not yet read operands that were to be overwritten.",
                share=percent(part.share_ratio),
            )
            yield Finding(
                text=text, weight=weight, remedy=LEG_REMEDIES[part.name], share_ratio=share * part.share_ratio
            )
        elif part.cycles is not None:
            exposed += part.share_ratio
    longest = max(
        (part for part in split.parts if part.cycles is not None and part.name != QUEUEING),
        key=lambda part: part.share_ratio,
        default=None,
    )
    if longest is not None and exposed >= _MATTERS_RATIO:
        text = say(
            "{share} of the stalls are plain latency: without queues a load takes {unloaded}, of which {exposed} are not hidden, most of them {leg}.",
            share=percent(exposed),
            unloaded=count(split.unloaded_cycles, "cycle"),
            exposed=count(split.exposed_cycles),
            leg=_LEGS[longest.name],
        )
        yield Finding(text=text, weight=weight, remedy=LEG_REMEDIES[longest.name], share_ratio=share * exposed)


def _find_queueing(share: float, weight: Weight, view: MemoryView) -> Finding:
    split = view.split
    assert split is not None
    text = say(
        "{share} of the stalls are queueing: {queued} of {whole} exceed the memory's own latency",
        share=percent(split.queueing_ratio),
        queued=count(split.wait_cycles - split.exposed_cycles),
        whole=count(split.wait_cycles, "cycle"),
    )
    unit = NOTHING
    for busiest in view.units[:1]:
        unit = say(
            "; the busiest unit on the way, {level} ({unit}), is at {only}{use} of its peak",
            level=busiest.level,
            unit=busiest.name,
            only="only " if view.full_unit is None else "",
            use=percent(busiest.ratio),
        )
    text = say("{text}{unit}.", text=text, unit=unit)
    return Finding(text=text, weight=weight, remedy=view.queueing_remedy, share_ratio=share)


def _find_kinds(share: float, weight: Weight, view: MemoryView) -> Iterator[Finding]:
    if view.waits is None:
        return
    for kind, (samples, cycles) in view.waits.kinds.items():
        part = samples / view.waits.samples
        remedy = KIND_REMEDIES.get(kind)
        if remedy is not None and part >= _MATTERS_RATIO:
            each = NOTHING
            if cycles is not None:
                each = say(", {cycles} per execution", cycles=count(cycles, "cycle"))
            text = say("{part} of the stalls are on {kind}{each}.", part=percent(part), kind=kind.value, each=each)
            yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * part)


def find_constants(subject: Subject) -> Iterator[Finding]:
    """Constants go another way: operands through their own cache, whose misses are a reason of their own."""
    time = read_warp_time(subject)
    share = 0.0 if time is None else time.share_of(_CONSTANT_MISS)
    if share < _CONSTANTS_RATIO:
        return
    rate = subject.metric("idc__request_hit_rate.pct")
    hits = NOTHING if rate is None else say(" ({rate} of the indexed-constant requests hit)", rate=percent(rate / 100))
    text = say(
        "Another {share} of the warps' time is stalled on operands in constant memory{hits}.",
        share=percent(share),
        hits=hits,
    )
    yield Finding(text=text, remedy=find_warp_state(_CONSTANT_MISS).remedy, share_ratio=share)


def _find_bound(share: float, weight: Weight, subject: Subject, view: MemoryView) -> Iterator[Finding]:
    """Bound queueing without hit rates: stalls longer than a trip to DRAM are queueing."""
    uses = view.uses
    if uses is None or subject.architecture is None:
        text = say(
            "{share} of the warps' time is stalled on memory; what takes so long there is unknown.",
            share=percent(share),
        )
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)
        return
    hierarchy = subject.architecture.hierarchy
    longest = hierarchy.dram_tlb_cold_cycles.value or hierarchy.dram_tlb_warm_cycles.value
    if longest is None:
        return
    queued = 1 - uses.expose(longest) / uses.mean_wait_cycles
    if queued > _MATTERS_RATIO:
        text = say(
            "At least {queued} of the stalls are queueing: a stall takes {mean}, a load from DRAM without queues at most {longest}.",
            queued=percent(queued),
            mean=count(uses.mean_wait_cycles, "cycle"),
            longest=count(longest),
        )
        remedy = LEG_REMEDIES[QUEUEING] if view.full_unit is None else view.queueing_remedy
        yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * queued)
    else:
        text = say(
            "A stall takes {mean}, no more than a load from DRAM without queues ({longest}).",
            mean=count(uses.mean_wait_cycles, "cycle"),
            longest=count(longest),
        )
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)


_MOST_ROWS = 8


def list_memory_tables(view: MemoryView) -> tuple[Table, ...]:
    """Kinds of load, the legs of their way, and the units on it."""
    units = tabulate_units("How busy the units on the way are", "level", "unit", view.units[:_MOST_ROWS])
    return _tabulate_loads(view), _tabulate_latency(view), units


def _tabulate_loads(view: MemoryView) -> Table:
    waits = {} if view.waits is None else view.waits.kinds
    traffic = {load.kind: load for load in view.loads}
    rows: list[tuple[Cell, ...]] = []
    for kind in (*traffic, *(kind for kind in waits if kind not in traffic)):
        load, (samples, cycles) = traffic.get(kind), waits.get(kind, (0.0, None))
        rows.append(
            (
                kind.value,
                None if load is None else load.requests,
                None if load is None else load.sectors_per_request,
                None if load is None else load.l1_hit_ratio,
                0.0 if view.waits is None else samples / view.waits.samples,
                cycles,
            )
        )
    return Table(
        title="Kinds of load",
        columns=list_columns(
            "kind | requests [count] | sectors per request [number] | answered by L1 [ratio] | "
            "share of the stalls [ratio] | stall per execution [cycles]"
        ),
        rows=tuple(rows),
        note=say("Asynchronous copies count as loads from global memory, and their stalls on their own."),
    )


def _tabulate_latency(view: MemoryView) -> Table:
    legs = () if view.unloaded is None else view.unloaded.parts
    split = view.split
    note = say("Cycles of an average load: loads that do not take a leg count as 0.")
    if split is not None:
        note = say(
            "{note} On average a stall takes {stall} and begins {passed} after the load.",
            note=note,
            stall=count(split.wait_cycles, "cycle"),
            passed=count(split.passed_cycles, "cycle"),
        )
    return Table(
        title="Latency of a load without queues",
        columns=list_columns("leg | loads that take it [ratio] | cycles [cycles]"),
        rows=tuple((leg.name, leg.share_ratio, leg.cycles) for leg in legs),
        note=note,
    )


_SHOWN_RATIO = 0.005
_HARDLY_RATIO = 0.005
_OTHER_RATIO = 0.02  # Counters and samples that differ by less say the same


def answer(subject: Subject) -> Answer:
    """Answer where the time of stalls on memory goes."""
    time = read_warp_time(subject)
    if time is None:
        missing = lack("what warps are stalled on", section="SourceCounters")
        return know_nothing(say("Unknown: neither stall samples nor warp states were collected."), missing)
    share = time.share_of(LONG_SCOREBOARD)
    view = view_memory(subject)
    if share < _HARDLY_RATIO:
        summary = say("Hardly any time is lost to stalls on global, local or texture memory.")
        finding = Finding(text=summary, weight=Weight.GOOD, share_ratio=share)
        findings = order_findings([finding, *find_constants(subject)], by_share=True)
        return Answer(summary=summary, findings=findings, tables=list_memory_tables(view))
    return Answer(
        summary=_summarise(share, _find_other_share(subject, share), view),
        findings=tuple(find_in_memory(share, subject, view)),
        bars=_draw_bars(view),
        tables=list_memory_tables(view),
        marks=_mark_loads(subject, view),
        missing=tuple(_list_missing(subject, view)),
    )


def _find_other_share(subject: Subject, share: float) -> float | None:
    """Share of the samples, where the share of warp time by counters differs from it and from other views of the kernel."""
    sampled = subject.share_of(subject.rows.count_reason(LONG_SCOREBOARD))
    return sampled if sampled is not None and abs(sampled - share) >= _OTHER_RATIO else None


def _summarise(share: float, sampled: float | None, view: MemoryView) -> Sentence:
    start = say("Warps spend {share} of their time stalled on memory", share=percent(share))
    if sampled is not None:
        start = say("{start} by counters ({sampled} of the samples)", start=start, sampled=percent(sampled))
    split = view.split
    if split is None:
        if view.uses is None:
            return say("{start}.", start=start)
        each = count(view.uses.mean_wait_cycles, "cycle")
        return say("{start}, {each} each time.", start=start, each=each)
    each = count(split.wait_cycles, "cycle")
    if split.queueing_ratio >= 0.5:
        return say(
            "{start}: {each} each time, {queueing} of it queueing{unit}.",
            start=start,
            each=each,
            queueing=percent(split.queueing_ratio),
            unit=_name_unit(view.full_unit),
        )
    return say(
        "{start}: {each} each time, mostly plain memory latency ({unloaded} without queues).",
        start=start,
        each=each,
        unloaded=count(split.unloaded_cycles, "cycle"),
    )


def _name_unit(use: UnitUse | None) -> Sentence:
    if use is None:
        return NOTHING
    return say(" at {level} ({unit}, {share} of its peak)", level=use.level, unit=use.name, share=percent(use.ratio))


def _draw_bars(view: MemoryView) -> tuple[Bar, ...]:
    if view.split is not None:
        return tuple(
            Bar(
                label=part.name,
                ratio=min(1.0, part.share_ratio),
                words=NOTHING if part.cycles is None else say("{cycles}", cycles=count(part.cycles, "cycle")),
            )
            for part in view.split.parts
            if part.share_ratio >= _SHOWN_RATIO
        )
    if view.waits is None:
        return ()
    return tuple(
        Bar(label=kind.value, ratio=min(1.0, samples / view.waits.samples))
        for kind, (samples, _) in view.waits.kinds.items()
    )


def _mark_loads(subject: Subject, view: MemoryView) -> tuple[LineMark, ...]:
    """The loads others are stalled on; the value is the mean stall per execution of a load of the line, or, where that is unknown, the samples."""
    pairs = list_wait_pairs(subject)
    if pairs is None:
        return ()
    results = mark_results(pairs)
    weights = np.bincount(
        pairs.def_row[results], weights=pairs.all_samples[results], minlength=len(subject.rows)
    ).astype(np.float64)
    if view.scale_cycles is None:
        return mark_rows(
            subject,
            weights,
            measure="samples stalled on loads and atomics",
            quantity=Quantity.SAMPLES,
            describe=lambda _row: say("waiting for the result of this access"),
        )
    cycles, places = view.scale_cycles, subject.rows.own_lines
    # of kinds that anything is stalled on, as the table of kinds counts them, and all else that has stalls
    kinds = list_kinds(subject.rows)
    is_load = select_kinds(subject.rows, LOAD_KINDS) & np.isin(kinds, kinds[weights > 0]) | (weights > 0)
    own = np.where(is_load, subject.executed, 0)
    executions, loads = np.bincount(places, weights=own), np.bincount(places, weights=own > 0)

    def write_text(row: int) -> Sentence:
        if loads[places[row]] < 2:
            return NOTHING
        most = count(float(weights[row]) * cycles / max(1, int(own[row])), "cycle")
        several = count(int(loads[places[row]]), "load")
        return say("the mean of its {loads}, {most} of the one with most", loads=several, most=most)

    return mark_rows(
        subject,
        weights,
        measure="stall per execution of a load",
        quantity=Quantity.CYCLES,
        value_of=lambda row, waited: waited * cycles / max(1, int(executions[places[row]])),
        describe=write_text,
    )


def _list_missing(subject: Subject, view: MemoryView) -> Iterator[Missing]:
    if not view.loads:
        loads = (InstructionKind.GLOBAL_LOAD, InstructionKind.LOCAL_LOAD)
        names = [name for kind in loads for name in name_load_counters(LOAD_COUNTERS[kind][0])]
        yield lack("which level answers the loads", *names, section="MemoryWorkloadAnalysis_Tables", needs_all=True)
    if view.l2 is None:
        yield lack("how many reads L2 answers", "lts__t_sector_hit_rate.pct", section="MemoryWorkloadAnalysis")
    if view.loads and view.l2 is not None and view.unloaded is None:
        why = say("the table of this architecture has no memory latencies")
        yield Missing(what="the latency of a load without queues", why=why)
    if view.waits is not None and view.waits.uses is None:
        truncated = any(launch.samples_truncated for launch in subject.kernel.launches)
        why = say("the sampling buffer overflowed: samples cover only the first part of the run, executions all of it")
        if truncated:
            yield Missing(what="how long the stalls of each load take", why=why)
        elif view.scale_cycles is None:
            yield lack("how long the stalls of each load take", "inst_executed", section="SourceCounters")
    why = say("the profiler has no public counter of TLB misses; they show up as queueing")
    yield Missing(what="how many addresses missed the TLB", why=why)
    for doubt in () if view.unloaded is None else view.unloaded.doubts:
        yield Missing(what="an exact latency without queues", why=say(doubt))


ANALYSIS = Analysis(name="memory_latency", title="Memory latency: where stalled time goes", order=60, answer=answer)
