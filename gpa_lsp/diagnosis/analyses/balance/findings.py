"""The findings about waves and about uneven units."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Finding, Weight
from gpa_lsp.diagnosis.analyses.balance.units import UnitLoad, find_unit
from gpa_lsp.diagnosis.analyses.balance.waves import Waves
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.occupancy.launch import read_amount
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, factor, join, number, percent, say

WORTH_TELLING_RATIO = 0.05  # Less is not worth a word

# From this part of the time on it is likely to be what holds the kernel up; Nsight Compute's rule for the tail takes the same figure
LARGE_RATIO = 0.2

UNEVEN = 1.1  # The busiest slice or channel over their mean, from which on it is named

# What a slice or channel did on average, and how busy the busiest one was
_MEMORY_MEASURES = (
    ("lts__t_sectors.avg", "lts__t_sectors.max.pct_of_peak_sustained_elapsed"),
    ("dram__cycles_active.avg", "dram__cycles_active.max.pct_of_peak_sustained_elapsed"),
)

# Where even the busiest slice or channel is used less than this, it does not matter which of them is
IDLE_PERCENT = 10.0

BUSY_PERCENT = 60.0  # A slice or channel that is busier than this is likely to limit the others. Ours.


def describe_waves(waves: Waves, idle_ratio: float | None, empty_ratio: float | None) -> Finding:
    """What the division into waves costs, by the two bounds of :mod:`gpa_lsp.diagnosis.analyses.balance.waves`, each no more than what was
    measured allows.

    Args:
        idle_ratio: part of the time in which the mean SM had no block, or more; None when not collected.
        empty_ratio: part of the places for blocks, over time, that stood empty; None when not collected.
    """
    if waves.idle_sms:
        return Finding(
            text=say(
                "{idle} of {sms} get no block: the grid has {blocks}.",
                idle=count(waves.idle_sms),
                sms=count(waves.sm_count, "SM"),
                blocks=count(waves.blocks, "block"),
            ),
            weight=Weight.HIGH,
            remedy=say("Split the problem into more blocks, with fewer threads or less work each."),
            share_ratio=waves.idle_sms / waves.sm_count,
        )
    by_sms, by_waves = waves.lost_by_sms_ratio, waves.lost_by_waves_ratio
    low, high = sorted((_cap(by_sms, idle_ratio), _cap(by_waves, empty_ratio)))
    if high < WORTH_TELLING_RATIO:
        cost = say("That costs at most {most} of the time.", most=percent(high)) if by_waves or by_sms else NOTHING
        return Finding(text=join([_describe_grid(waves), cost]), weight=Weight.GOOD, share_ratio=high)
    cost = _say_cost(by_sms, by_waves)
    measured = NOTHING
    if (low, high) != tuple(sorted((by_sms, by_waves))):
        measured = say("By the measured idle time it costs {range}.", range=_say_range(low, high))
    return Finding(
        text=join([_describe_grid(waves), cost, measured]),
        weight=Weight.HIGH if (low + high) / 2 >= LARGE_RATIO else Weight.PLAIN,
        remedy=say("Launch whole waves (divide the work evenly among as many blocks), or use smaller blocks."),
        share_ratio=(low + high) / 2,
    )


def describe_units(facts: KernelFacts, loads: tuple[UnitLoad, ...], elapsed_cycles: float | None) -> Iterator[Finding]:
    """What uneven SMs, schedulers, slices and channels cost.

    Args:
        elapsed_cycles: of the launch, in the SMs' clock; None when not collected.
    """
    sms = find_unit(loads, "sm__cycles_active.avg")
    if sms is not None:
        yield _describe_sms(sms, find_unit(loads, "sm__inst_executed.avg"), elapsed_cycles)
    schedulers = find_unit(loads, "smsp__cycles_active.avg")
    if schedulers is not None and sms is not None and sms.mean > 0:
        part = schedulers.mean / sms.mean
        if part < 1 - WORTH_TELLING_RATIO:
            yield Finding(
                text=say("A scheduler has a warp in {part} of the active cycles of its SM.", part=percent(part)),
                remedy=say("Blocks of a multiple of four warps with equal work keep all four schedulers busy."),
                share_ratio=1 - part,
            )
    for metric, busiest in _MEMORY_MEASURES:
        load = find_unit(loads, metric)
        use_percent = read_amount(facts, busiest)
        if load is not None and load.excess >= UNEVEN and (use_percent is None or use_percent >= IDLE_PERCENT):
            yield _describe_memory(load, use_percent)


def describe_idle_ends(
    elapsed_cycles: float | None, mean_cycles: float | None, longest_cycles: float | None
) -> Finding | None:
    """Time of the launch in which no SM works, or the mean one does not; None where it is short or unknown.

    Args:
        elapsed_cycles: of the launch, in the SMs' clock; None when not collected.
        mean_cycles: in which an SM was active on average; None when not collected.
        longest_cycles: in which the SM was active that was so longest; None when not collected.
    """
    if not elapsed_cycles or mean_cycles is None:
        return None
    if longest_cycles is None:
        idle = (elapsed_cycles - mean_cycles) / elapsed_cycles
        text = say(
            "For {idle} of the launch the average SM has no block: launch start and end, or uneven distribution.",
            idle=percent(idle),
        )
        weight = Weight.HIGH if idle >= LARGE_RATIO else Weight.PLAIN
        return None if idle < WORTH_TELLING_RATIO else Finding(text=text, weight=weight, share_ratio=idle)
    idle = (elapsed_cycles - longest_cycles) / elapsed_cycles
    if idle < WORTH_TELLING_RATIO:
        return None
    return Finding(
        text=say(
            "For {idle} of the launch ({cycles}) not even the busiest SM is active: launch start and end.",
            idle=percent(idle),
            cycles=count(elapsed_cycles - longest_cycles, "cycle"),
        ),
        weight=Weight.HIGH if idle >= LARGE_RATIO else Weight.PLAIN,
        remedy=say("Do more work per launch, fuse kernels, or overlap launches in streams or a graph."),
        share_ratio=idle,
    )


def _describe_grid(waves: Waves) -> Sentence:
    capacity = count(waves.capacity_blocks, "block")
    last = say("{last} of {capacity}", last=count(waves.last_blocks), capacity=capacity)
    if not waves.whole:
        return say(
            "The grid is less than one wave: {last} that fit at once, {each} per SM.",
            last=last,
            each=number(waves.blocks / waves.sm_count),
        )
    whole = count(waves.whole, "whole wave")
    if not waves.last_blocks:
        return say("The grid is {whole}, with no tail.", whole=whole)
    return say("After {whole} comes a tail of {last}.", whole=whole, last=last)


def _describe_sms(sms: UnitLoad, instructions: UnitLoad | None, elapsed_cycles: float | None) -> Finding:
    least = more = NOTHING
    if sms.least is not None and sms.most > 0:
        share = percent(sms.least / sms.most)
        least = (
            say(", and one has no work at all") if sms.least == 0 else say(", the least busy for {share}", share=share)
        )
    if instructions is not None and instructions.excess >= UNEVEN:
        more = say(
            "; the busiest executes {excess} the mean number of instructions", excess=factor(instructions.excess)
        )
    text = say(
        "The average SM is active for {mean} of the cycles of the busiest{least}{more}.",
        mean=percent(1 - sms.idle_ratio),
        least=least,
        more=more,
    )
    if sms.idle_ratio < WORTH_TELLING_RATIO:
        return Finding(text=text, weight=Weight.GOOD, share_ratio=sms.idle_ratio)
    lost = sms.idle_ratio * (min(1.0, sms.most / elapsed_cycles) if elapsed_cycles else 1.0)
    return Finding(
        text=join([text, say("An even load would save {lost} of the time.", lost=percent(lost))]),
        weight=Weight.HIGH if lost >= LARGE_RATIO else Weight.PLAIN,
        remedy=say("Use smaller blocks, equal work per block, or blocks that fetch their work from a queue."),
        share_ratio=lost,
    )


def _describe_memory(load: UnitLoad, busiest: float | None) -> Finding:
    """Uneven slices or channels; ``busiest`` is how much of its peak the busiest reached, in percent, None when not collected."""
    is_busy = busiest is not None and busiest >= BUSY_PERCENT
    return Finding(
        text=say(
            "The busiest of the {units} has {excess} the mean ({measure}){use}.",
            units=load.unit,
            excess=factor(load.excess),
            measure=load.measure,
            use=NOTHING if busiest is None else say(" and is at {use} of its peak", use=percent(busiest / 100)),
        ),
        weight=Weight.HIGH if is_busy else Weight.PLAIN,
        remedy=say("Power-of-two strides send addresses to few of them; pad rows, or change the traversal order.")
        if is_busy
        else NOTHING,
    )


def _say_cost(by_sms: float, by_waves: float) -> Sentence:
    """What equal blocks cost by either assumption; said once where both agree."""
    sms, waves = percent(by_sms), percent(by_waves)
    if say("{share}", share=sms) == say("{share}", share=waves):
        return say("With equal blocks that costs {share} of the time.", share=sms)
    return say(
        "With equal blocks that costs {by_sms} of the time if an SM's throughput does not depend on its number of blocks, and {by_waves} if a "
        "block's duration does not.",
        by_sms=sms,
        by_waves=waves,
    )


def _cap(lost_ratio: float, measured_ratio: float | None) -> float:
    return lost_ratio if measured_ratio is None else min(lost_ratio, measured_ratio)


def _say_range(low: float, high: float) -> Sentence:
    if high - low < 0.005:
        return say("{high}", high=percent(high))
    return say("between {low} and {high}", low=percent(low), high=percent(high))
