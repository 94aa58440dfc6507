"""How evenly the work is divided: waves of blocks and their tail, SMs, schedulers, slices of L2 and channels of DRAM."""

from gpa_lsp.analyses.answers import (
    Answer,
    Bar,
    Cell,
    Chart,
    ChartKind,
    Column,
    Missing,
    Quantity,
    Series,
    Table,
    Weight,
)
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.analyses.load_units import UnitLoad, find_unit, measure_units
from gpa_lsp.analyses.load_waves import Waves, list_grid_sizes
from gpa_lsp.analyses.load_words import describe_idle_ends, describe_units, describe_waves, say_count, say_waves
from gpa_lsp.analyses.occupancy_launch import (
    find_launch_occupancy,
    list_compared_launches,
    read_amount,
    read_launch_shape,
)
from gpa_lsp.analyses.occupancy_without_rules import ACHIEVED, THEORETICAL
from gpa_lsp.analyses.questions import Analysis
from gpa_lsp.profile.model import Launch

_NAME = "load_balance"
_TITLE = "Load balance"

_ELAPSED = ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
"""Cycles of the launch in the SMs' clock; newest name first."""

_MOST_BLOCKS_PER_SM = 1024
"""More than any architecture has."""

_MOST_GRIDS = 50
_ORDER = {Weight.HIGH: 0, Weight.PLAIN: 1, Weight.GOOD: 2}


def answer_load_balance(facts: KernelFacts) -> Answer:
    """Waves and balance of the longest launch."""
    launch = facts.longest
    if launch is None:
        return _know_nothing(Missing(what="the load", why="nothing was launched"))
    waves = find_waves(facts, launch)
    loads = measure_units(facts)
    elapsed = read_amount(facts, *_ELAPSED)
    mean = read_amount(facts, "sm__cycles_active.avg")
    sms = find_unit(loads, "sm__cycles_active")
    missing = _list_missing(facts, waves, loads, mean)
    if waves is None and not loads and mean is None:
        return _know_nothing(*missing)
    findings = [*describe_units(facts, loads, elapsed)]
    if waves is not None:
        idle = _measure_idle(mean, sms, elapsed)
        findings.insert(0, describe_waves(waves, idle, _measure_empty(facts, idle)))
    ends = describe_idle_ends(elapsed, mean, None if sms is None else sms.most)
    is_told = (
        waves is not None and waves.idle_sms and sms is None
    )  # the mean is that low because of the SMs without a block
    if ends is not None and not is_told:
        findings.append(ends)
    findings.sort(key=lambda finding: (_ORDER[finding.weight], -(finding.share_ratio or 0.0)))
    tables = [*_tabulate_waves(facts, launch, waves), *_tabulate_units(loads)]
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(waves, mean, sms, elapsed),
        findings=tuple(findings),
        bars=_draw_bars(waves, mean, sms, elapsed),
        tables=tuple(tables),
        charts=() if waves is None else (_chart_grids(waves),),
        missing=missing,
    )


def find_waves(facts: KernelFacts, launch: Launch) -> Waves | None:
    """The waves of a launch: by the rules of occupancy, or else by what the profiler says; None where neither is known."""
    shape = read_launch_shape(facts, launch)
    blocks, sm_count = shape.grid_blocks, shape.sm_count
    if not blocks or sm_count is None:
        return None
    architecture = facts.architecture
    occupancy = None if architecture is None else find_launch_occupancy(architecture, shape, launch)
    capacity = None if occupancy is None else shape.find_capacity(occupancy)
    if capacity is None or shape.dynamic_bytes is None:
        stored = launch.read_number("launch__waves_per_multiprocessor")
        most = sm_count * _MOST_BLOCKS_PER_SM
        if stored is not None and blocks / most <= stored <= blocks:
            capacity = round(blocks / stored)
    return Waves(blocks=blocks, sm_count=sm_count, capacity_blocks=capacity) if capacity else None


def _measure_idle(mean: float | None, sms: UnitLoad | None, elapsed: float | None) -> float | None:
    """Part of the time in which the mean SM had no block: of the busiest SM's, or else at most that of the launch."""
    if sms is not None:
        return sms.idle_ratio
    return None if mean is None or not elapsed else max(0.0, 1 - mean / elapsed)


def _measure_empty(facts: KernelFacts, idle_ratio: float | None) -> float | None:
    """Part of the places for warps that stood empty over that time; None when not collected."""
    achieved, theoretical = read_amount(facts, ACHIEVED), read_amount(facts, THEORETICAL)
    if achieved is None or not theoretical or idle_ratio is None:
        return None
    return max(0.0, 1 - achieved / theoretical * (1 - idle_ratio))


def _summarise(waves: Waves | None, mean: float | None, sms: UnitLoad | None, elapsed: float | None) -> str:
    parts = []
    if waves is not None:
        held = waves.capacity_blocks / waves.sm_count
        parts.append(
            f"{say_count(waves.blocks, 'block')} {'is' if waves.blocks == 1 else 'are'} {say_waves(waves.count)} of {waves.capacity_blocks:,} "
            f"({held:.4g} per SM on {waves.sm_count:,} SMs)"
        )
    if mean is not None and elapsed:
        active = f"an SM is active for {100 * min(1.0, mean / elapsed):.3g} % of the launch on average"
        if sms is not None:
            active += f", the busiest for {100 * min(1.0, sms.most / elapsed):.3g} %"
        parts.append(active)
    summary = "; ".join(parts) or "Of the load only that of single units is known"
    return summary[0].upper() + summary[1:] + "."


def _draw_bars(waves: Waves | None, mean: float | None, sms: UnitLoad | None, elapsed: float | None) -> tuple[Bar, ...]:
    bars = []
    if mean is not None and elapsed:
        ceiling = 1.0 if sms is None else min(1.0, sms.most / elapsed)
        bars.append(Bar(label="SMs active", ratio=min(1.0, mean / elapsed), ceiling_ratio=ceiling))
    if waves is not None:
        words = f"{waves.blocks:,} of {waves.rounds * waves.capacity_blocks:,} blocks"
        bars.append(Bar(label="waves filled", ratio=waves.efficiency_ratio, words=words))
    return tuple(bars)


def _list_missing(
    facts: KernelFacts, waves: Waves | None, loads: tuple[UnitLoad, ...], mean: float | None
) -> tuple[Missing, ...]:
    missing = []
    if waves is None and facts.longest is not None:
        shape = read_launch_shape(facts, facts.longest)
        if shape.grid_blocks == 0:
            missing.append(Missing(what="waves", why="the grid has no blocks"))
        else:
            missing.append(
                lack("how many blocks fit at once", "launch__waves_per_multiprocessor", section="LaunchStats")
            )
    if find_unit(loads, "sm__cycles_active") is None:
        names = ("sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_active.min")
        what = "how evenly the SMs were busy" if mean is not None else "how long the SMs were busy"
        missing.append(
            lack(what, *(names[1:] if mean is not None else names), section="WorkloadDistribution", needs_all=True)
        )
    if mean is not None and read_amount(facts, *_ELAPSED) is None:
        missing.append(lack("the cycles of the launch", *_ELAPSED, section="SpeedOfLight"))
    return tuple(missing)


def _tabulate_waves(facts: KernelFacts, launch: Launch, waves: Waves | None) -> list[Table]:
    if waves is None:
        return []
    sizes = list_grid_sizes(waves)
    columns = (
        Column(name="blocks", quantity=Quantity.COUNT),
        Column(name="waves", quantity=Quantity.NUMBER),
        Column(name="blocks of the last wave", quantity=Quantity.COUNT),
        Column(name="waves filled", quantity=Quantity.RATIO),
        Column(name="SMs filled", quantity=Quantity.RATIO),
    )
    tables = [
        Table(
            title="Other grids",
            columns=columns,
            rows=tuple(_describe_grid(_resize(waves, size)) for size in sizes),
            current_row=sizes.index(waves.blocks),
            note=(
                "Room used if all blocks take equally long (waves filled), and mean over largest number of blocks per SM (SMs filled). "
                "Between grids that share the same work out, time goes with the inverse of one of them or something between."
            ),
        )
    ]
    found: dict[Waves, int] = {}
    launches, left_out = list_compared_launches(facts)
    for other in launches:
        its = find_waves(facts, other)
        if its is not None:
            found[its] = found.get(its, 0) + 1
    if len(found) > 1:
        rows = tuple((*_describe_grid(its), count) for its, count in list(found.items())[:_MOST_GRIDS])
        current = next((i for i, its in enumerate(list(found)[:_MOST_GRIDS]) if its == waves), None)
        tables.append(
            Table(
                title="Grids of all launches",
                columns=(*columns, Column(name="launches", quantity=Quantity.COUNT)),
                rows=rows,
                current_row=current,
                note=f"Everything else is about launch {launch.index}, the longest. {left_out}".rstrip(),
            )
        )
    return tables


def _describe_grid(waves: Waves) -> tuple[Cell, ...]:
    return waves.blocks, waves.count, waves.last_blocks, waves.efficiency_ratio, waves.balance_ratio


def _resize(waves: Waves, blocks: int) -> Waves:
    return Waves(blocks=blocks, sm_count=waves.sm_count, capacity_blocks=waves.capacity_blocks)


def _tabulate_units(loads: tuple[UnitLoad, ...]) -> list[Table]:
    if not loads:
        return []
    return [
        Table(
            title="How evenly units were busy",
            columns=(
                Column(name="units"),
                Column(name="measure"),
                Column(name="least", quantity=Quantity.NUMBER),
                Column(name="mean", quantity=Quantity.NUMBER),
                Column(name="most", quantity=Quantity.NUMBER),
                Column(name="most over mean", quantity=Quantity.NUMBER),
            ),
            rows=tuple((load.unit, load.measure, load.least, load.mean, load.most, load.excess) for load in loads),
        )
    ]


def _chart_grids(waves: Waves) -> Chart:
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


def _list_whole(waves: Waves, low: int, high: int) -> set[int]:
    """The first 100 whole waves and the block behind each: the ends of the saw's teeth."""
    first = -(-low // waves.capacity_blocks)
    tops = [
        count * waves.capacity_blocks for count in range(first, min(first + 100, high // waves.capacity_blocks + 1))
    ]
    return {place for top in tops for place in (top, top + 1) if low <= place <= high}


def _know_nothing(*missing: Missing) -> Answer:
    why = missing[0].why or "the profile does not say how many blocks fit at once, nor how long the SMs were busy"
    return Answer(analysis=_NAME, title=_TITLE, summary=f"The load is unknown: {why}.", missing=missing, is_known=False)


ANALYSIS = Analysis(name=_NAME, order=40, answer=answer_load_balance)
