"""The findings about waves and about uneven units, in sentences."""

from collections.abc import Iterator

from gpa_lsp.analyses.answers import Finding, Weight
from gpa_lsp.analyses.balance.units import UnitLoad, find_unit
from gpa_lsp.analyses.balance.waves import Waves
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.occupancy.launch import read_amount

WORTH_TELLING_RATIO = 0.05
"""Less is not worth a word."""

LARGE_RATIO = 0.2
"""From this part of the time on it is likely to be what holds the kernel up; Nsight Compute's rule for the tail takes the same figure."""

UNEVEN = 1.1
"""The busiest slice or channel over their mean, from which on it is told."""

_MEMORY_MEASURES = (
    ("lts__t_sectors.avg", "lts__t_sectors.max.pct_of_peak_sustained_elapsed"),
    ("dram__cycles_active.avg", "dram__cycles_active.max.pct_of_peak_sustained_elapsed"),
)
"""What a slice or channel did on average, and how busy the busiest one was."""

IDLE_PERCENT = 10.0
"""Where even the busiest slice or channel is used less than this, it does not matter which of them is."""

BUSY_PERCENT = 60.0
"""A slice or channel that is busier than this is likely to make others wait. Ours."""


def describe_waves(waves: Waves, idle_ratio: float | None, empty_ratio: float | None) -> Finding:
    """What the division into waves costs, by the two bounds of :mod:`gpa_lsp.analyses.balance.waves`, each no more than what was measured allows.

    Args:
        waves: of the grid.
        idle_ratio: part of the time in which the mean SM had no block, or more; None when not collected.
        empty_ratio: part of the places for blocks, over time, that stood empty; None when not collected.
    """
    if waves.idle_sms:
        return Finding(
            text=f"{waves.idle_sms:,} of {waves.sm_count:,} SMs get no block: the grid has {say_count(waves.blocks, 'block')}.",
            weight=Weight.HIGH,
            remedy="Cut the problem into more blocks, with fewer threads or less work each.",
            share_ratio=waves.idle_sms / waves.sm_count,
        )
    by_sms, by_waves = waves.lost_by_sms_ratio, waves.lost_by_waves_ratio
    low, high = sorted((_cap(by_sms, idle_ratio), _cap(by_waves, empty_ratio)))
    if high < WORTH_TELLING_RATIO:
        text = _say_waves(waves) + (
            f" That costs at most {100 * high:.2g} % of the time." if by_waves or by_sms else ""
        )
        return Finding(text=text, weight=Weight.GOOD, share_ratio=high)
    text = (
        f"{_say_waves(waves)} With blocks of equal work that costs {100 * by_sms:.2g} % of the time if SMs work at the same rate however "
        f"many blocks they have, and {100 * by_waves:.2g} % if blocks take as long however many share an SM."
    )
    if (low, high) != tuple(sorted((by_sms, by_waves))):
        text += f" By the measured idle time it is {_say_range(low, high)}."
    return Finding(
        text=text,
        weight=Weight.HIGH if (low + high) / 2 >= LARGE_RATIO else Weight.PLAIN,
        remedy="A grid of whole waves (the work of a block divided evenly among so many), or smaller blocks.",
        share_ratio=(low + high) / 2,
    )


def describe_units(facts: KernelFacts, loads: tuple[UnitLoad, ...], elapsed_cycles: float | None) -> Iterator[Finding]:
    """What uneven SMs, schedulers, slices and channels cost.

    Args:
        facts: of the kernel.
        loads: as measured.
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
                text=f"A scheduler has a warp in {100 * part:.0f} % of the active cycles of its SM.",
                remedy="Blocks of a multiple of four warps, with equal work for each, keep all four schedulers busy.",
                share_ratio=1 - part,
            )
    for metric, busiest in _MEMORY_MEASURES:
        load = find_unit(loads, metric)
        percent = read_amount(facts, busiest)
        if load is not None and load.excess >= UNEVEN and (percent is None or percent >= IDLE_PERCENT):
            yield _describe_memory(load, percent)


def describe_idle_ends(
    elapsed_cycles: float | None, mean_cycles: float | None, longest_cycles: float | None
) -> Finding | None:
    """Time of the launch in which no SM works, or the mean one does not; None where it is short or unknown.

    Args:
        elapsed_cycles: of the launch, in the SMs' clock; None when not collected.
        mean_cycles: in which an SM was active on average; likewise.
        longest_cycles: in which the SM was active that was so longest; likewise.
    """
    if not elapsed_cycles or mean_cycles is None:
        return None
    if longest_cycles is None:
        idle = (elapsed_cycles - mean_cycles) / elapsed_cycles
        text = f"For {100 * idle:.0f} % of the launch the mean SM has no block: it starts, it ends, or the blocks are divided unevenly."
        weight = Weight.HIGH if idle >= LARGE_RATIO else Weight.PLAIN
        return None if idle < WORTH_TELLING_RATIO else Finding(text=text, weight=weight, share_ratio=idle)
    idle = (elapsed_cycles - longest_cycles) / elapsed_cycles
    if idle < WORTH_TELLING_RATIO:
        return None
    return Finding(
        text=(
            f"For {100 * idle:.0f} % of the launch ({elapsed_cycles - longest_cycles:,.0f} cycles) not even the busiest SM works: "
            "it starts and ends."
        ),
        weight=Weight.HIGH if idle >= LARGE_RATIO else Weight.PLAIN,
        remedy="More work in one launch, kernels fused, or launches overlapped in streams or a graph.",
        share_ratio=idle,
    )


def _say_waves(waves: Waves) -> str:
    last = f"{waves.last_blocks:,} of {say_count(waves.capacity_blocks, 'block')}"
    if not waves.whole:
        return f"The grid is less than one wave: {last} that fit at once, {waves.blocks / waves.sm_count:.2f} per SM."
    if not waves.last_blocks:
        return f"The grid is {say_count(waves.whole, 'whole wave')}: none is partly filled."
    return f"After {say_count(waves.whole, 'whole wave')} comes a last one with {last}."


def _describe_sms(sms: UnitLoad, instructions: UnitLoad | None, elapsed_cycles: float | None) -> Finding:
    text = f"The mean SM is active for {100 * (1 - sms.idle_ratio):.3g} % of the cycles of the busiest"
    if sms.least is not None and sms.most > 0:
        text += (
            ", one has no work at all" if sms.least == 0 else f", the least busy for {100 * sms.least / sms.most:.3g} %"
        )
    if instructions is not None and instructions.excess >= UNEVEN:
        text += f"; the one with most to do executes {instructions.excess:.2f} times the mean number of instructions"
    if sms.idle_ratio < WORTH_TELLING_RATIO:
        return Finding(text=text + ".", weight=Weight.GOOD, share_ratio=sms.idle_ratio)
    lost = sms.idle_ratio * (min(1.0, sms.most / elapsed_cycles) if elapsed_cycles else 1.0)
    return Finding(
        text=text + f". Evened out, {100 * lost:.3g} % of the time would go.",
        weight=Weight.HIGH if lost >= LARGE_RATIO else Weight.PLAIN,
        remedy="Smaller blocks, equal work per block, or blocks that fetch their work from a queue.",
        share_ratio=lost,
    )


def _describe_memory(load: UnitLoad, busiest: float | None) -> Finding:
    """Uneven slices or channels; ``busiest`` is how much of its peak the busiest reached, in percent, None when not collected."""
    is_busy = busiest is not None and busiest >= BUSY_PERCENT
    text = f"The busiest of the {load.unit} has {load.excess:.2f} times the mean ({load.measure})"
    if busiest is not None:
        text += f" and is at {busiest:.0f} % of its peak"
    return Finding(
        text=text + ".",
        weight=Weight.HIGH if is_busy else Weight.PLAIN,
        remedy="Strides that are a power of two let addresses fall on few of them; pad rows, or walk the data in another order."
        if is_busy
        else "",
    )


def say_count(number: int, noun: str) -> str:
    """A number of things.

    >>> say_count(1, "block"), say_count(1200, "block")
    ('1 block', '1,200 blocks')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def say_waves(count: float) -> str:
    """A number of waves with as many digits as it takes to see that it is not a whole number.

    >>> say_waves(2.0), say_waves(1.25), say_waves(1.0039), say_waves(0.000762)
    ('2 waves', '1.25 waves', '1.004 waves', '0.000762 waves')
    """
    if count == int(count):
        return say_count(int(count), "wave")
    texts = (f"{count:.{digits}g}" for digits in range(3, 12))
    return next((text for text in texts if float(text) % 1), f"{count}") + " waves"


def _cap(lost_ratio: float, measured_ratio: float | None) -> float:
    return lost_ratio if measured_ratio is None else min(lost_ratio, measured_ratio)


def _say_range(low: float, high: float) -> str:
    return f"{100 * high:.2g} %" if high - low < 0.005 else f"between {100 * low:.2g} and {100 * high:.2g} %"
