"""Findings about the time that warps wait for memory."""

from collections.abc import Iterator

from gpa_lsp.analyses.answers import Finding, Weight
from gpa_lsp.analyses.decomposition.finding_order import order_findings
from gpa_lsp.analyses.decomposition.latency_split import OPERANDS, QUEUEING
from gpa_lsp.analyses.decomposition.memory_view import BUSY_RATIO, MemoryView
from gpa_lsp.analyses.decomposition.memory_words import (
    KIND_REMEDIES,
    LEG_REMEDIES,
    LEVEL_REMEDIES,
    NOT_BUSY_REMEDY,
    START_EARLIER,
)
from gpa_lsp.analyses.decomposition.reasons import find_warp_state
from gpa_lsp.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.basis.numbers import format_percent

_MATTERS_RATIO = 0.1
_HOLDS_UP_RATIO = 0.25
"""Part of all warp-cycles from which waiting for memory is likely to be what holds the kernel up."""
_CONSTANTS_RATIO = 0.05
_CONSTANT_MISS = "imc_miss"


def find_in_memory(share: float, facts: KernelFacts, view: MemoryView) -> Iterator[Finding]:
    """What there is to say about the waiting for memory.

    Args:
        share: of the warps' time, 0..1.
        facts: of the kernel.
        view: of its memory.
    """
    weight = Weight.HIGH if share >= _HOLDS_UP_RATIO else Weight.PLAIN
    found = [*_find_split(share, weight, view), *_find_kinds(share, weight, view)]
    if view.split is None:
        found += _find_bound(share, weight, facts, view)
    found += find_constants(facts)
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
            text = (
                f"{format_percent(part.share_ratio)} of the waiting is no latency: "
                "instructions had not yet read their operands when these were to change."
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
        text = (
            f"{format_percent(exposed)} of the waiting is plain latency: a load takes {split.unloaded_cycles:,.0f} cycles without queues, "
            f"of which {split.exposed_cycles:,.0f} are not hidden; most of them are spent {_name_leg(longest.name)}."
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
    text = (
        f"{format_percent(split.queueing_ratio)} of the waiting is queueing: {queued:,.0f} of {split.wait_cycles:,.0f} cycles are more than "
        f"the memory's own latency"
    )
    if busiest is not None and busiest.ratio >= BUSY_RATIO:
        text += f"; the busiest on the way is {busiest.unit.level} ({busiest.unit.name}) with {format_percent(busiest.ratio)} of its peak."
        return Finding(text=text, weight=weight, remedy=LEVEL_REMEDIES[busiest.unit.level], share_ratio=share)
    if busiest is not None:
        text += f"; the busiest on the way, {busiest.unit.level} ({busiest.unit.name}), is at {format_percent(busiest.ratio)} of its peak only"
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
            text = f"{format_percent(part)} of the waiting waits for {wait.kind.value}{each}."
            yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * part)


def find_constants(facts: KernelFacts) -> Iterator[Finding]:
    """Constants go another way: operands through their own cache, whose misses are a reason of their own."""
    time = read_warp_time(facts)
    share = 0.0 if time is None else time.share_of(_CONSTANT_MISS)
    if share < _CONSTANTS_RATIO:
        return
    rate = facts.metric("idc__request_hit_rate.pct")
    hits = "" if rate is None else f" ({rate:.0f}% of the requests for constants with an address hit)"
    text = f"Another {format_percent(share)} of the warps' time is waiting for operands in constant memory{hits}."
    yield Finding(text=text, remedy=find_warp_state(_CONSTANT_MISS).remedy, share_ratio=share)


def _find_bound(share: float, weight: Weight, facts: KernelFacts, view: MemoryView) -> Iterator[Finding]:
    """Without hit rates: what is more than even a trip to DRAM takes is queueing."""
    uses = view.uses
    if uses is None or facts.architecture is None:
        text = f"{format_percent(share)} of the warps' time is waiting for memory; what takes so long there is unknown."
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)
        return
    hierarchy = facts.architecture.hierarchy
    longest = hierarchy.dram_tlb_cold_cycles.value or hierarchy.dram_tlb_warm_cycles.value
    if longest is None:
        return
    queued = 1 - uses.expose(longest) / uses.mean_wait_cycles
    if queued > _MATTERS_RATIO:
        text = (
            f"At least {format_percent(queued)} of the waiting is queueing: a wait takes {uses.mean_wait_cycles:,.0f} cycles, "
            f"a load from DRAM without queues at most {longest:,.0f}."
        )
        busiest = view.busiest
        is_busy = busiest is not None and busiest.ratio >= BUSY_RATIO
        remedy = LEVEL_REMEDIES[busiest.unit.level] if busiest is not None and is_busy else LEG_REMEDIES[QUEUEING]
        yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * queued)
    else:
        text = f"A wait takes {uses.mean_wait_cycles:,.0f} cycles, no more than a load from DRAM without queues ({longest:,.0f})."
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)
