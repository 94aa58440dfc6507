"""The answer about memory in words, bars, tables and marks."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.analyses.answers import (
    Answer,
    Bar,
    Cell,
    Column,
    Finding,
    LineMark,
    Missing,
    Quantity,
    Table,
    Weight,
)
from gpa_lsp.analyses.decomposition.finding_order import order_findings
from gpa_lsp.analyses.decomposition.latency_split import OPERANDS, QUEUEING
from gpa_lsp.analyses.decomposition.load_traffic import LOAD_COUNTERS
from gpa_lsp.analyses.decomposition.load_waits import list_wait_pairs
from gpa_lsp.analyses.decomposition.marks import mark_rows
from gpa_lsp.analyses.decomposition.memory_view import BUSY_RATIO, MemoryView, view_memory
from gpa_lsp.analyses.decomposition.memory_words import (
    KIND_REMEDIES,
    LEG_REMEDIES,
    LEVEL_REMEDIES,
    NOT_BUSY_REMEDY,
    START_EARLIER,
)
from gpa_lsp.analyses.decomposition.reasons import find_warp_state
from gpa_lsp.analyses.decomposition.unit_use import UnitUse
from gpa_lsp.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.blame.categories import LONG_SCOREBOARD

TITLE = "Where the time goes that warps wait for memory"
_MATTERS_RATIO = 0.1
_SHOWN_RATIO = 0.005
_HARDLY_RATIO = 0.005
_CONSTANTS_RATIO = 0.05
_CONSTANT_MISS = "imc_miss"
_HOLDS_UP_RATIO = 0.25
"""Part of all warp-cycles from which waiting for memory is likely to be what holds the kernel up."""
_MOST_ROWS = 8


def write_memory_answer(facts: KernelFacts, name: str) -> Answer:
    """The answer to :mod:`gpa_lsp.analyses.questions.memory_latency`."""
    time = read_warp_time(facts)
    if time is None:
        missing = lack("what warps wait for", "smsp__pcsamp_sample_count", section="WarpStateStats")
        summary = "Unknown: neither stall samples nor warp states were collected."
        return Answer(analysis=name, title=TITLE, summary=summary, missing=(missing,), is_known=False)
    share = time.share_of(LONG_SCOREBOARD)
    view = view_memory(facts)
    if share < _HARDLY_RATIO:
        summary = "Hardly any time is lost waiting for global, local or texture memory."
        finding = Finding(text=summary, weight=Weight.GOOD, share_ratio=share)
        findings = order_findings([finding, *_find_constants(facts)])
        return Answer(analysis=name, title=TITLE, summary=summary, findings=findings, tables=_list_tables(view))
    return Answer(
        analysis=name,
        title=TITLE,
        summary=_summarise(share, view),
        findings=tuple(_find(share, facts, view)),
        bars=_draw_bars(view),
        tables=_list_tables(view),
        marks=_mark_loads(facts, view),
        missing=tuple(_list_missing(facts, view)),
    )


def _summarise(share: float, view: MemoryView) -> str:
    start = f"{share:.0%} of the warps' time is waiting for memory"
    split = view.split
    if split is None:
        return f"{start}." if view.uses is None else f"{start}, {view.uses.mean_wait_cycles:,.0f} cycles each time."
    if split.queueing_ratio >= 0.5:
        return f"{start}: {split.wait_cycles:,.0f} cycles each time, {split.queueing_ratio:.0%} of it queueing{_blame_unit(view.busiest)}."
    return (
        f"{start}: {split.wait_cycles:,.0f} cycles each time, mostly the plain latency of the memory "
        f"({split.unloaded_cycles:,.0f} cycles without queues)."
    )


def _blame_unit(busiest: UnitUse | None) -> str:
    if busiest is None or busiest.ratio < BUSY_RATIO:
        return ""
    return f" at {busiest.unit.level} ({busiest.unit.name}, {busiest.ratio:.0%} of its peak)"


def _find(share: float, facts: KernelFacts, view: MemoryView) -> Iterator[Finding]:
    weight = Weight.HIGH if share >= _HOLDS_UP_RATIO else Weight.PLAIN
    found = [*_find_split(share, weight, view), *_find_kinds(share, weight, view)]
    if view.split is None:
        found += _find_bound(share, weight, facts, view)
    found += _find_constants(facts)
    yield from order_findings(found)


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
            text = f"{part.share_ratio:.0%} of the time is no latency: instructions had not yet read their operands when these were to change."
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
        text = (
            f"{exposed:.0%} of it is plain latency: a load takes {split.unloaded_cycles:,.0f} cycles without queues, of which "
            f"{split.exposed_cycles:,.0f} are not hidden; most of them are spent {_name_leg(longest.name)}."
        )
        yield Finding(text=text, weight=weight, remedy=LEG_REMEDIES[longest.name], share_ratio=share * exposed)


def _name_leg(name: str) -> str:
    return {
        "L1": "in L1",
        "L1 to L2": "between L1 and L2",
        "to the far partition of L2": "on the way to the far partition of L2",
        "L2 to DRAM": "between L2 and DRAM",
        "several lines per request": "on further lines of the same request",
    }[name]


def _find_queueing(share: float, weight: Weight, view: MemoryView) -> Finding:
    split, busiest = view.split, view.busiest
    assert split is not None
    queued = split.wait_cycles - split.exposed_cycles
    text = f"{split.queueing_ratio:.0%} of it is queueing: {queued:,.0f} of {split.wait_cycles:,.0f} cycles are more than the memory's own latency"
    if busiest is not None and busiest.ratio >= BUSY_RATIO:
        text += f"; the busiest on the way is {busiest.unit.level} ({busiest.unit.name}) with {busiest.ratio:.0%} of its peak."
        return Finding(text=text, weight=weight, remedy=LEVEL_REMEDIES[busiest.unit.level], share_ratio=share)
    if busiest is not None:
        text += f"; the busiest on the way, {busiest.unit.level} ({busiest.unit.name}), is at {busiest.ratio:.0%} of its peak only"
        return Finding(text=text + ".", weight=weight, remedy=NOT_BUSY_REMEDY, share_ratio=share)
    return Finding(text=text + ".", weight=weight, remedy=LEG_REMEDIES[QUEUEING], share_ratio=share)


def _find_kinds(share: float, weight: Weight, view: MemoryView) -> Iterator[Finding]:
    if view.waits is None:
        return
    for wait in view.waits.kinds:
        part = wait.samples / view.waits.samples
        remedy = KIND_REMEDIES.get(wait.kind)
        if remedy is not None and part >= _MATTERS_RATIO:
            each = "" if wait.wait_cycles is None else f", {wait.wait_cycles:,.0f} cycles for each execution"
            text = f"{part:.0%} of it waits for {wait.kind.value}{each}."
            yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * part)


def _find_constants(facts: KernelFacts) -> Iterator[Finding]:
    """Constants go another way: operands through their own cache, whose misses are a reason of their own."""
    time = read_warp_time(facts)
    share = 0.0 if time is None else time.share_of(_CONSTANT_MISS)
    if share < _CONSTANTS_RATIO:
        return
    rate = facts.metric("idc__request_hit_rate.pct")
    hits = "" if rate is None else f" ({rate:.0f}% of the requests for constants with an address hit)"
    text = f"Another {share:.0%} of the warps' time is waiting for operands in constant memory{hits}."
    yield Finding(text=text, remedy=find_warp_state(_CONSTANT_MISS).remedy, share_ratio=share)


def _find_bound(share: float, weight: Weight, facts: KernelFacts, view: MemoryView) -> Iterator[Finding]:
    """Without hit rates: what is more than even a trip to DRAM takes is queueing."""
    uses = view.uses
    if uses is None or facts.architecture is None:
        text = f"{share:.0%} of the warps' time is waiting for memory; what takes so long there is unknown."
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)
        return
    hierarchy = facts.architecture.hierarchy
    longest = hierarchy.dram_tlb_cold_cycles.value or hierarchy.dram_tlb_warm_cycles.value
    if longest is None:
        return
    queued = 1 - uses.expose(longest) / uses.mean_wait_cycles
    if queued > _MATTERS_RATIO:
        text = (
            f"At least {queued:.0%} of it is queueing: a wait takes {uses.mean_wait_cycles:,.0f} cycles, a load from DRAM without queues "
            f"at most {longest:,.0f}."
        )
        busiest = view.busiest
        is_busy = busiest is not None and busiest.ratio >= BUSY_RATIO
        remedy = LEVEL_REMEDIES[busiest.unit.level] if busiest is not None and is_busy else LEG_REMEDIES[QUEUEING]
        yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * queued)
    else:
        text = f"A wait takes {uses.mean_wait_cycles:,.0f} cycles, no more than a load from DRAM without queues ({longest:,.0f})."
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)


def _draw_bars(view: MemoryView) -> tuple[Bar, ...]:
    if view.split is not None:
        return tuple(
            Bar(
                label=part.name,
                ratio=min(1.0, part.share_ratio),
                words="" if part.cycles is None else f"{part.cycles:,.0f} cycles",
            )
            for part in view.split.parts
            if part.share_ratio >= _SHOWN_RATIO
        )
    if view.waits is None:
        return ()
    return tuple(
        Bar(label=wait.kind.value, ratio=min(1.0, wait.samples / view.waits.samples)) for wait in view.waits.kinds
    )


def _list_tables(view: MemoryView) -> tuple[Table, ...]:
    return tuple(
        table for table in (_tabulate_loads(view), _tabulate_latency(view), _tabulate_units(view)) if table.rows
    )


def _tabulate_loads(view: MemoryView) -> Table:
    waits = {} if view.waits is None else {wait.kind: wait for wait in view.waits.kinds}
    traffic = {load.kind: load for load in view.loads}
    rows: list[tuple[Cell, ...]] = []
    for kind in (*traffic, *(kind for kind in waits if kind not in traffic)):
        load, wait = traffic.get(kind), waits.get(kind)
        rows.append(
            (
                kind.value,
                None if load is None else load.requests,
                None if load is None else load.sectors_per_request,
                None if load is None else load.l1_hit_ratio,
                0.0 if wait is None or view.waits is None else wait.samples / view.waits.samples,
                None if wait is None else wait.wait_cycles,
            )
        )
    return Table(
        title="Kinds of load",
        columns=(
            Column(name="kind"),
            Column(name="requests", quantity=Quantity.COUNT),
            Column(name="sectors per request", quantity=Quantity.NUMBER),
            Column(name="answered by L1", quantity=Quantity.RATIO),
            Column(name="share of the waiting", quantity=Quantity.RATIO),
            Column(name="wait per execution", quantity=Quantity.CYCLES),
        ),
        rows=tuple(rows),
        note="Asynchronous copies are counted among the loads from global memory, and waited for on their own.",
    )


def _tabulate_latency(view: MemoryView) -> Table:
    legs = () if view.unloaded is None else view.unloaded.parts
    split = view.split
    note = "Cycles of a mean load: those that do not go a leg count 0."
    if split is not None:
        note += f" A wait takes {split.wait_cycles:,.0f} cycles and begins {split.passed_cycles:,.0f} cycles after the load, on average."
    return Table(
        title="Latency of a load without queues",
        columns=(
            Column(name="leg"),
            Column(name="loads that go it", quantity=Quantity.RATIO),
            Column(name="cycles", quantity=Quantity.CYCLES),
        ),
        rows=tuple((leg.name, leg.share_ratio, leg.cycles) for leg in legs),
        note=note,
    )


def _tabulate_units(view: MemoryView) -> Table:
    return Table(
        title="How busy the units on the way are",
        columns=(Column(name="level"), Column(name="unit"), Column(name="of its peak", quantity=Quantity.RATIO)),
        rows=tuple((use.unit.level, use.unit.name, use.ratio) for use in view.units[:_MOST_ROWS]),
    )


def _mark_loads(facts: KernelFacts, view: MemoryView) -> tuple[LineMark, ...]:
    """The loads others wait for; the value is the mean wait per execution, or, where that is unknown, the samples."""
    pairs = list_wait_pairs(facts)
    if pairs is None:
        return ()
    size = int(facts.first_rows[-1])
    weights = np.bincount(pairs.load, weights=pairs.samples, minlength=size).astype(np.float64)
    executions = facts.executions
    scale = view.scale
    if scale is None:
        return mark_rows(
            facts,
            weights,
            measure="samples waiting for this load",
            quantity=Quantity.SAMPLES,
            value_of=lambda _row, waited: waited,
            text_of=lambda _row, waited: f"{waited:,.0f} samples wait for its result",
        )
    cycles = np.where(executions > 0, weights * scale.cycles / np.maximum(1, executions), 0.0)
    return mark_rows(
        facts,
        weights,
        measure="cycles waited for this load",
        quantity=Quantity.CYCLES,
        value_of=lambda row, _waited: float(cycles[row]),
        text_of=lambda row, _waited: f"{cycles[row]:,.0f} cycles are waited for it each time",
    )


def _list_missing(facts: KernelFacts, view: MemoryView) -> Iterator[Missing]:
    if not view.loads:
        names = [
            name for counters in LOAD_COUNTERS[:2] for name in (counters.requests, counters.sectors, counters.hits)
        ]
        yield lack("which level answers the loads", *names, section="MemoryWorkloadAnalysis_Tables", needs_all=True)
    if view.l2 is None:
        yield lack("how many reads L2 answers", "lts__t_sector_hit_rate.pct", section="MemoryWorkloadAnalysis")
    if view.loads and view.l2 is not None and view.unloaded is None:
        why = "the latencies of this architecture's memory are not in its table"
        yield Missing(what="the latency of a load without queues", why=why)
    if view.waits is not None and view.waits.uses is None:
        truncated = any(launch.samples_truncated for launch in facts.kernel.launches)
        why = "the sampling buffer ran full: samples are of the first part of the run only, executions of all of it"
        if truncated:
            yield Missing(what="how long one wait takes", why=why)
        elif view.scale is None:
            yield lack("how long one wait takes", "inst_executed", section="SourceCounters")
    why = "the profiler has no public counter of TLB misses; they show up as queueing"
    yield Missing(what="how many addresses missed the TLB", why=why)
    for doubt in () if view.unloaded is None else view.unloaded.doubts:
        yield Missing(what="an exact latency without queues", why=doubt)
