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
from gpa_lsp.basis.numbers import Quantity, format_percent
from gpa_lsp.blame.categories import LONG_SCOREBOARD

TITLE = "Where the time goes that warps wait for memory"
_SHOWN_RATIO = 0.005
_HARDLY_RATIO = 0.005


def write_memory_answer(facts: KernelFacts, name: str) -> Answer:
    """The answer to :mod:`gpa_lsp.analyses.questions.memory_latency`."""
    time = read_warp_time(facts)
    if time is None:
        missing = lack("what warps wait for", section="SourceCounters")
        summary = "Unknown: neither stall samples nor warp states were collected."
        return Answer(analysis=name, title=TITLE, summary=summary, missing=(missing,), is_known=False)
    share = time.share_of(LONG_SCOREBOARD)
    view = view_memory(facts)
    if share < _HARDLY_RATIO:
        summary = "Hardly any time is lost waiting for global, local or texture memory."
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


def _summarise(share: float, view: MemoryView) -> str:
    start = f"{format_percent(share)} of the warps' time is waiting for memory"
    split = view.split
    if split is None:
        return f"{start}." if view.uses is None else f"{start}, {view.uses.mean_wait_cycles:,.0f} cycles each time."
    if split.queueing_ratio >= 0.5:
        queueing = format_percent(split.queueing_ratio)
        return (
            f"{start}: {split.wait_cycles:,.0f} cycles each time, {queueing} of it queueing{_blame_unit(view.busiest)}."
        )
    return (
        f"{start}: {split.wait_cycles:,.0f} cycles each time, mostly the plain latency of the memory "
        f"({split.unloaded_cycles:,.0f} cycles without queues)."
    )


def _blame_unit(busiest: UnitUse | None) -> str:
    if busiest is None or busiest.ratio < BUSY_RATIO:
        return ""
    return f" at {busiest.unit.level} ({busiest.unit.name}, {format_percent(busiest.ratio)} of its peak)"


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


def _mark_loads(facts: KernelFacts, view: MemoryView) -> tuple[LineMark, ...]:
    """The loads others wait for; the value is the mean wait per execution, or, where that is unknown, the samples."""
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
            measure="samples waiting for this load",
            quantity=Quantity.SAMPLES,
            value_of=lambda _row, waited: waited,
            text_of=lambda _row, waited: f"{waited:,.0f} samples wait for its result",
        )
    cycles = np.where(executions > 0, weights * scale.cycles / np.maximum(1, executions), 0.0)
    return mark_rows(
        facts,
        rows,
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
