"""Question: how evenly is the work divided? Waves of blocks and their tail, SMs, schedulers, slices of L2 and channels of DRAM."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Chart,
    ChartKind,
    Finding,
    Missing,
    Series,
    Table,
    Weight,
    know_nothing,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.limiter import measure_idle
from gpa_lsp.diagnosis.analyses.occupancy import (
    ACHIEVED,
    THEORETICAL,
    UnitLoad,
    Waves,
    find_unit,
    find_waves,
    list_compared_launches,
    list_grid_sizes,
    measure_units,
    read_launch_shape,
)
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import ELAPSED_METRICS, Subject, lack
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, factor, join, number, percent, say
from gpa_lsp.profile.model import Launch

_MOST_GRIDS = 50


def tabulate_waves(subject: Subject, launch: Launch, waves: Waves | None) -> list[Table]:
    """Grids around the present one, and those of the other launches; nothing without waves."""
    if waves is None:
        return []
    sizes = list_grid_sizes(waves)
    heads = (
        "blocks [count] | waves [number] | blocks of the last wave [count] | waves filled [ratio] | SMs filled [ratio]"
    )
    tables = [
        Table(
            title="Other grids",
            columns=list_columns(heads),
            rows=tuple(_list_cells(_resize(waves, size)) for size in sizes),
            current_row=sizes.index(waves.blocks),
            note=say(
                "Slots used if all blocks take equally long (waves filled), and mean over largest number of blocks per SM (SMs filled). Between "
                "grids that divide the same work, time goes with the inverse of one of the two, or lies in between."
            ),
        )
    ]
    found: dict[Waves, int] = {}
    launches, left_out = list_compared_launches(subject)
    for other in launches:
        its = find_waves(subject, other)
        if its is not None:
            found[its] = found.get(its, 0) + 1
    if len(found) > 1:
        rows = tuple((*_list_cells(its), times) for its, times in list(found.items())[:_MOST_GRIDS])
        current = next((i for i, its in enumerate(list(found)[:_MOST_GRIDS]) if its == waves), None)
        tables.append(
            Table(
                title="Grids of all launches",
                columns=list_columns(heads, "launches [count]"),
                rows=rows,
                current_row=current,
                note=join([say("All else is about launch {index}, the longest.", index=count(launch.index)), left_out]),
            )
        )
    return tables


def tabulate_units(loads: tuple[UnitLoad, ...]) -> Table:
    """Least, mean and most of every measure."""
    return Table(
        title="How evenly units were busy",
        columns=list_columns(
            "units | measure | least [number] | mean [number] | most [number] | most over mean [number]"
        ),
        rows=tuple((load.unit, load.measure, load.least, load.mean, load.most, load.excess) for load in loads),
    )


def chart_grids(waves: Waves) -> Chart:
    """Room used over the grid, from half of it to twice, at the places where it jumps and between."""
    low, high = max(1, waves.blocks // 2), waves.blocks * 2
    step = max(1, (high - low) // 200)
    places = sorted({waves.blocks, high, *range(low, high + 1, step), *_list_whole(waves, low, high)})
    points = {
        float(place): _resize(waves, place).efficiency_ratio for place in places
    }  # grids of 2^60 blocks share one
    return Chart(
        title="Waves filled over the grid",
        kind=ChartKind.LINE,
        x_label="blocks",
        y_label="waves filled",
        y_quantity=Quantity.RATIO,
        series=(
            Series(
                label="waves filled",
                xs=tuple(points),
                ys=tuple(points.values()),
            ),
        ),
        current_x=float(waves.blocks),
    )


def _list_cells(waves: Waves) -> tuple[Cell, ...]:
    return waves.blocks, waves.count, waves.last_blocks, waves.efficiency_ratio, waves.balance_ratio


def _resize(waves: Waves, blocks: int) -> Waves:
    return Waves(blocks=blocks, sm_count=waves.sm_count, capacity_blocks=waves.capacity_blocks)


def _list_whole(waves: Waves, low: int, high: int) -> set[int]:
    """The first 100 whole waves and the block behind each: the ends of the saw's teeth."""
    first = -(-low // waves.capacity_blocks)
    tops = [
        count * waves.capacity_blocks for count in range(first, min(first + 100, high // waves.capacity_blocks + 1))
    ]
    return {place for top in tops for place in (top, top + 1) if low <= place <= high}


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
    """Describe the cost of waves, by the two bounds of :mod:`gpa_lsp.diagnosis.analyses.occupancy`, cut at the measured idle time.

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


def describe_units(subject: Subject, loads: tuple[UnitLoad, ...], elapsed_cycles: float | None) -> Iterator[Finding]:
    """Describe the cost of uneven SMs, schedulers, slices and channels.

    ``elapsed_cycles``: of the launch, in the SMs' clock; None when not collected.
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
        use_percent = subject.metric(busiest)
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
    """Say the cost of equal blocks under both assumptions; once where they agree."""
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


def answer_load_balance(subject: Subject) -> Answer:
    """Waves and balance of the longest launch."""
    launch = subject.longest
    if launch is None:
        return _know_nothing(Missing(what="the load", why=say("nothing was launched")))
    waves = find_waves(subject, launch)
    loads = measure_units(subject)
    elapsed = subject.elapsed_cycles
    mean = subject.metric("sm__cycles_active.avg")
    sms = find_unit(loads, "sm__cycles_active.avg")
    longest = None if sms is None else subject.measure_active("sm__cycles_active.max")
    missing = _list_missing(subject, waves, loads, mean)
    if waves is None and not loads and mean is None:
        return _know_nothing(*missing)
    findings = [*describe_units(subject, loads, elapsed)]
    if waves is not None:
        # of the busiest SM's time, or else at most of that of the launch
        idle = measure_idle(subject) if sms is None else sms.idle_ratio
        findings.insert(0, describe_waves(waves, idle, _measure_empty(subject, idle)))
    ends = describe_idle_ends(elapsed, mean, None if sms is None else sms.most)
    # the mean is that low because of the SMs without a block
    is_told = waves is not None and waves.idle_sms and sms is None
    if ends is not None and not is_told:
        findings.append(ends)
    findings.sort(key=lambda finding: -(finding.share_ratio or 0.0))
    tables = [*tabulate_waves(subject, launch, waves), tabulate_units(loads)]
    return Answer(
        summary=_summarise(subject, waves, longest),
        findings=order_findings(findings),
        bars=_draw_bars(subject, waves, longest),
        tables=tuple(tables),
        charts=() if waves is None else (chart_grids(waves),),
        missing=missing,
    )


def _measure_empty(subject: Subject, idle_ratio: float | None) -> float | None:
    """Part of the places for warps that stood empty over that time; None when not collected."""
    achieved, theoretical = subject.metric(ACHIEVED), subject.metric(THEORETICAL)
    if achieved is None or not theoretical or idle_ratio is None:
        return None
    return max(0.0, 1 - achieved / theoretical * (1 - idle_ratio))


def _summarise(subject: Subject, waves: Waves | None, longest: float | None) -> Sentence:
    parts, active = [], subject.measure_active()
    if waves is not None:
        parts.append(
            say(
                "{blocks} {verb} {waves} of {capacity} ({each} per SM on {sms})",
                blocks=count(waves.blocks, "block"),
                verb="is" if waves.blocks == 1 else "are",
                waves=number(waves.count, "wave"),
                capacity=count(waves.capacity_blocks),
                each=number(waves.capacity_blocks / waves.sm_count),
                sms=count(waves.sm_count, "SM"),
            )
        )
    if active is not None:
        most = NOTHING if longest is None else say(", the busiest for {share}", share=percent(longest))
        text = "the average SM is active for {active} of the launch{most}"
        parts.append(say(text, active=percent(active), most=most))
    return say("{parts}.", parts=capitalize(join(parts or [say("only the load of single units is known")], "; ")))


def _draw_bars(subject: Subject, waves: Waves | None, longest: float | None) -> tuple[Bar, ...]:
    bars, active = [], subject.measure_active()
    if active is not None:
        bars.append(Bar(label="SMs active", ratio=active, ceiling_ratio=1.0 if longest is None else longest))
    if waves is not None:
        held = count(waves.rounds * waves.capacity_blocks, "block")
        words = say("{blocks} of {held}", blocks=count(waves.blocks), held=held)
        bars.append(Bar(label="waves filled", ratio=waves.efficiency_ratio, words=words))
    return tuple(bars)


def _list_missing(
    subject: Subject, waves: Waves | None, loads: tuple[UnitLoad, ...], mean: float | None
) -> tuple[Missing, ...]:
    missing = []
    if waves is None and subject.longest is not None:
        shape = read_launch_shape(subject, subject.longest)
        if shape.grid_blocks == 0:
            missing.append(Missing(what="waves", why=say("the grid has no blocks")))
        elif shape.grid_blocks is None:
            missing.append(Missing(what="waves", why=say("the profile does not say how many blocks the grid has")))
        else:
            missing.append(
                lack("how many blocks fit at once", "launch__waves_per_multiprocessor", section="LaunchStats")
            )
    if find_unit(loads, "sm__cycles_active.avg") is None:
        names = ("sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_active.min")
        what = "how evenly the SMs were busy" if mean is not None else "how long the SMs were busy"
        missing.append(lack(what, *(names[1:] if mean is not None else names), needs_all=True))
    if mean is not None and subject.elapsed_cycles is None:
        missing.append(lack("the cycles of the launch", *ELAPSED_METRICS, section="SpeedOfLight"))
    return tuple(missing)


def _know_nothing(*missing: Missing) -> Answer:
    why = missing[0].why or "the profile does not say how many blocks fit at once, nor how long the SMs were busy"
    return know_nothing(say("The load is unknown: {why}.", why=why), *missing)


ANALYSIS = Analysis(name="load_balance", title="Load balance", order=40, answer=answer_load_balance)
