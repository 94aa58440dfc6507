"""The answer about memory in words, bars, tables and marks."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.analyses.answers import Answer, Bar, Finding, LineMark, Missing, Weight
from gpa_lsp.analyses.decomposition.finding_order import order_findings
from gpa_lsp.analyses.decomposition.instruction_rows import view_rows
from gpa_lsp.analyses.decomposition.load_traffic import LOAD_COUNTERS
from gpa_lsp.analyses.decomposition.load_waits import list_wait_pairs
from gpa_lsp.analyses.decomposition.marks import mark_rows
from gpa_lsp.analyses.decomposition.memory_findings import find_constants, find_in_memory
from gpa_lsp.analyses.decomposition.memory_tables import list_memory_tables
from gpa_lsp.analyses.decomposition.memory_view import BUSY_RATIO, MemoryView, view_memory
from gpa_lsp.analyses.decomposition.unit_use import UnitUse
from gpa_lsp.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.basis.numbers import Quantity
from gpa_lsp.basis.prose import NOTHING, Sentence, count, percent, say
from gpa_lsp.blame.categories import LONG_SCOREBOARD

TITLE = "Memory latency: where stalled time goes"
_SHOWN_RATIO = 0.005
_HARDLY_RATIO = 0.005


def write_memory_answer(facts: KernelFacts, name: str) -> Answer:
    """The answer to :mod:`gpa_lsp.analyses.questions.memory_latency`."""
    time = read_warp_time(facts)
    if time is None:
        missing = lack("what warps are stalled on", section="SourceCounters")
        summary = say("Unknown: neither stall samples nor warp states were collected.")
        return Answer(analysis=name, title=TITLE, summary=summary, missing=(missing,), is_known=False)
    share = time.share_of(LONG_SCOREBOARD)
    view = view_memory(facts)
    if share < _HARDLY_RATIO:
        summary = say("Hardly any time is lost to stalls on global, local or texture memory.")
        finding = Finding(text=summary, weight=Weight.GOOD, share_ratio=share)
        findings = order_findings([finding, *find_constants(facts)])
        return Answer(analysis=name, title=TITLE, summary=summary, findings=findings, tables=list_memory_tables(view))
    return Answer(
        analysis=name,
        title=TITLE,
        summary=_summarise(share, view),
        findings=tuple(find_in_memory(share, facts, view)),
        bars=_draw_bars(view),
        tables=list_memory_tables(view),
        marks=_mark_loads(facts, view),
        missing=tuple(_list_missing(facts, view)),
    )


def _summarise(share: float, view: MemoryView) -> Sentence:
    start = say("Warps spend {share} of their time stalled on memory", share=percent(share))
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
            unit=_name_busy_unit(view.busiest),
        )
    return say(
        "{start}: {each} each time, mostly plain memory latency ({unloaded} without queues).",
        start=start,
        each=each,
        unloaded=count(split.unloaded_cycles, "cycle"),
    )


def _name_busy_unit(busiest: UnitUse | None) -> Sentence:
    if busiest is None or busiest.ratio < BUSY_RATIO:
        return NOTHING
    return say(
        " at {level} ({unit}, {share} of its peak)",
        level=busiest.unit.level,
        unit=busiest.unit.name,
        share=percent(busiest.ratio),
    )


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
        Bar(label=wait.kind.value, ratio=min(1.0, wait.samples / view.waits.samples)) for wait in view.waits.kinds
    )


def _mark_loads(facts: KernelFacts, view: MemoryView) -> tuple[LineMark, ...]:
    """The loads others are stalled on; the value is the mean stall per execution, or, where that is unknown, the samples."""
    pairs = list_wait_pairs(facts)
    if pairs is None:
        return ()
    size = len(facts.rows)
    weights = np.bincount(pairs.load, weights=pairs.samples, minlength=size).astype(np.float64)
    executions, rows = facts.rows.executions, view_rows(facts)
    scale = view.scale
    if scale is None:
        return mark_rows(
            facts,
            rows,
            weights,
            measure="samples stalled on this load",
            quantity=Quantity.SAMPLES,
            value_of=lambda _row, waited: waited,
            text_of=lambda _row, waited: say("{samples} stalled on its result", samples=count(waited, "sample")),
        )
    cycles = np.where(executions > 0, weights * scale.cycles / np.maximum(1, executions), 0.0)
    return mark_rows(
        facts,
        rows,
        weights,
        measure="cycles stalled on this load",
        quantity=Quantity.CYCLES,
        value_of=lambda row, _waited: float(cycles[row]),
        text_of=lambda row, _waited: say("{cycles} stalled per execution", cycles=count(float(cycles[row]), "cycle")),
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
        why = say("the table of this architecture has no memory latencies")
        yield Missing(what="the latency of a load without queues", why=why)
    if view.waits is not None and view.waits.uses is None:
        truncated = any(launch.samples_truncated for launch in facts.kernel.launches)
        why = say("the sampling buffer overflowed: samples cover only the first part of the run, executions all of it")
        if truncated:
            yield Missing(what="how long one stall takes", why=why)
        elif view.scale is None:
            yield lack("how long one stall takes", "inst_executed", section="SourceCounters")
    why = say("the profiler has no public counter of TLB misses; they show up as queueing")
    yield Missing(what="how many addresses missed the TLB", why=why)
    for doubt in () if view.unloaded is None else view.unloaded.doubts:
        yield Missing(what="an exact latency without queues", why=say(doubt))
