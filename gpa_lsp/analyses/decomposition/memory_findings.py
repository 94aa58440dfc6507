"""Findings about the time that warps are stalled on memory."""

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
from gpa_lsp.basis.prose import NOTHING, count, percent, say

_MATTERS_RATIO = 0.1
_HOLDS_UP_RATIO = 0.25
"""Part of all warp-cycles from which memory stalls are likely to be what limits the kernel."""
_CONSTANTS_RATIO = 0.05
_CONSTANT_MISS = "imc_miss"


def find_in_memory(share: float, facts: KernelFacts, view: MemoryView) -> Iterator[Finding]:
    """What there is to say about stalls on memory.

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
            leg=_name_leg(longest.name),
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
    text = say(
        "{share} of the stalls are queueing: {queued} of {whole} exceed the memory's own latency",
        share=percent(split.queueing_ratio),
        queued=count(split.wait_cycles - split.exposed_cycles),
        whole=count(split.wait_cycles, "cycle"),
    )
    if busiest is None:
        return Finding(text=say("{text}.", text=text), weight=weight, remedy=LEG_REMEDIES[QUEUEING], share_ratio=share)
    is_busy = busiest.ratio >= BUSY_RATIO
    text = say(
        "{text}; the busiest unit on the way, {level} ({unit}), is at {only}{use} of its peak.",
        text=text,
        level=busiest.unit.level,
        unit=busiest.unit.name,
        only="" if is_busy else "only ",
        use=percent(busiest.ratio),
    )
    remedy = LEVEL_REMEDIES[busiest.unit.level] if is_busy else NOT_BUSY_REMEDY
    return Finding(text=text, weight=weight, remedy=remedy, share_ratio=share)


def _find_kinds(share: float, weight: Weight, view: MemoryView) -> Iterator[Finding]:
    if view.waits is None:
        return
    for wait in view.waits.kinds:
        part = wait.samples / view.waits.samples
        remedy = KIND_REMEDIES.get(wait.kind)
        if remedy is not None and part >= _MATTERS_RATIO:
            each = NOTHING
            if wait.wait_cycles is not None:
                each = say(", {cycles} per execution", cycles=count(wait.wait_cycles, "cycle"))
            text = say("{part} of the stalls are on {kind}{each}.", part=percent(part), kind=wait.kind.value, each=each)
            yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * part)


def find_constants(facts: KernelFacts) -> Iterator[Finding]:
    """Constants go another way: operands through their own cache, whose misses are a reason of their own."""
    time = read_warp_time(facts)
    share = 0.0 if time is None else time.share_of(_CONSTANT_MISS)
    if share < _CONSTANTS_RATIO:
        return
    rate = facts.metric("idc__request_hit_rate.pct")
    hits = NOTHING if rate is None else say(" ({rate} of the indexed-constant requests hit)", rate=percent(rate / 100))
    text = say(
        "Another {share} of the warps' time is stalled on operands in constant memory{hits}.",
        share=percent(share),
        hits=hits,
    )
    yield Finding(text=text, remedy=find_warp_state(_CONSTANT_MISS).remedy, share_ratio=share)


def _find_bound(share: float, weight: Weight, facts: KernelFacts, view: MemoryView) -> Iterator[Finding]:
    """Without hit rates: what is more than even a trip to DRAM takes is queueing."""
    uses = view.uses
    if uses is None or facts.architecture is None:
        text = say(
            "{share} of the warps' time is stalled on memory; what takes so long there is unknown.",
            share=percent(share),
        )
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)
        return
    hierarchy = facts.architecture.hierarchy
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
        busiest = view.busiest
        is_busy = busiest is not None and busiest.ratio >= BUSY_RATIO
        remedy = LEVEL_REMEDIES[busiest.unit.level] if busiest is not None and is_busy else LEG_REMEDIES[QUEUEING]
        yield Finding(text=text, weight=weight, remedy=remedy, share_ratio=share * queued)
    else:
        text = say(
            "A stall takes {mean}, no more than a load from DRAM without queues ({longest}).",
            mean=count(uses.mean_wait_cycles, "cycle"),
            longest=count(longest),
        )
        yield Finding(text=text, weight=weight, remedy=START_EARLIER, share_ratio=share)
