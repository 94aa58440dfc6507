"""The answer about memory in words, bars, tables and marks."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.answers import Answer, Bar, Finding, LineMark, Missing, Weight
from gpa_lsp.analyses.decomposition.finding_order import order_findings
from gpa_lsp.analyses.decomposition.instruction_rows import InstructionRows, view_rows
from gpa_lsp.analyses.decomposition.load_traffic import LOAD_COUNTERS
from gpa_lsp.analyses.decomposition.load_waits import LOAD_KINDS, list_wait_pairs
from gpa_lsp.analyses.decomposition.marks import mark_rows
from gpa_lsp.analyses.decomposition.memory_findings import find_constants, find_in_memory
from gpa_lsp.analyses.decomposition.memory_tables import list_memory_tables
from gpa_lsp.analyses.decomposition.memory_view import BUSY_RATIO, MemoryView, view_memory
from gpa_lsp.analyses.decomposition.row_kinds import select_kinds
from gpa_lsp.analyses.decomposition.unit_use import UnitUse
from gpa_lsp.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import Quantity
from gpa_lsp.basis.prose import NOTHING, Sentence, count, percent, say
from gpa_lsp.blame.categories import LONG_SCOREBOARD

TITLE = "Memory latency: where stalled time goes"
_SHOWN_RATIO = 0.005
_HARDLY_RATIO = 0.005
_OTHER_RATIO = 0.02
"""Counters and samples that differ by less say the same."""


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
        summary=_summarise(share, _find_other_share(facts, share), view),
        findings=tuple(find_in_memory(share, facts, view)),
        bars=_draw_bars(view),
        tables=list_memory_tables(view),
        marks=_mark_loads(facts, view),
        missing=tuple(_list_missing(facts, view)),
    )


def _find_other_share(facts: KernelFacts, share: float) -> float | None:
    """Of the samples, where the share of the warps' time is by counters and other views of the kernel therefore say something else."""
    samples = facts.kernel.total_samples
    if samples == 0:
        return None
    sampled = facts.rows.count_reason(LONG_SCOREBOARD) / samples
    return sampled if abs(sampled - share) >= _OTHER_RATIO else None


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
    """The loads others are stalled on; the value is the mean stall per execution of a load of the line, or, where that is unknown, the samples."""
    pairs = list_wait_pairs(facts)
    if pairs is None:
        return ()
    results = pairs.is_result
    weights = np.bincount(pairs.load[results], weights=pairs.samples[results], minlength=len(facts.rows)).astype(
        np.float64
    )
    rows = view_rows(facts)
    if view.scale is None:
        return mark_rows(
            facts,
            rows,
            weights,
            measure="samples stalled on loads and atomics",
            quantity=Quantity.SAMPLES,
            value_of=lambda _row, waited: waited,
            text_of=lambda _row, _waited: say("waiting for the result of this access"),
        )
    loads = _list_line_loads(facts, rows, weights)
    cycles = view.scale.cycles
    return mark_rows(
        facts,
        rows,
        weights,
        measure="stall per execution of a load",
        quantity=Quantity.CYCLES,
        value_of=lambda row, waited: waited * cycles / max(1, loads.executions[loads.places[row]]),
        text_of=lambda row, _waited: loads.describe(row, float(weights[row]) * cycles),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineLoads:
    """The loads of each line.

    Attributes:
        places: int64[n], the number of each row's line.
        executions: int64[p], of all loads of a line.
        loads: int64[p], how many were executed.
        own_executions: int64[n], of each row.
    """

    places: npt.NDArray[np.int64]
    executions: npt.NDArray[np.int64]
    loads: npt.NDArray[np.int64]
    own_executions: npt.NDArray[np.int64]

    def describe(self, row: int, most_cycles: float) -> Sentence:
        """The row with most of its line, where the mean is of several."""
        loads = int(self.loads[self.places[row]])
        if loads < 2:
            return NOTHING
        most = count(most_cycles / max(1, int(self.own_executions[row])), "cycle")
        return say("the mean of its {loads}, {most} of the one with most", loads=count(loads, "load"), most=most)


def _list_line_loads(facts: KernelFacts, rows: InstructionRows, weights: npt.NDArray[np.float64]) -> _LineLoads:
    """Those of kinds that anything is stalled on, as the table of kinds counts them, and whatever else has stalls."""
    kinds = select_kinds(rows.kinds, LOAD_KINDS) & np.isin(rows.kinds, rows.kinds[weights > 0])
    is_load = kinds | (weights > 0)
    own = np.where(is_load, np.maximum(0, facts.rows.executions), 0).astype(np.int64)
    size = int(rows.places.max()) + 1
    executions = np.bincount(rows.places, weights=own, minlength=size).astype(np.int64)
    loads = np.bincount(rows.places, weights=own > 0, minlength=size).astype(np.int64)
    return _LineLoads(places=rows.places, executions=executions, loads=loads, own_executions=own)


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
            yield Missing(what="how long the stalls of each load take", why=why)
        elif view.scale is None:
            yield lack("how long the stalls of each load take", "inst_executed", section="SourceCounters")
    why = say("the profiler has no public counter of TLB misses; they show up as queueing")
    yield Missing(what="how many addresses missed the TLB", why=why)
    for doubt in () if view.unloaded is None else view.unloaded.doubts:
        yield Missing(what="an exact latency without queues", why=say(doubt))
