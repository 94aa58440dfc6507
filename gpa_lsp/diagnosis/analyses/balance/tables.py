"""Tables and the chart of the load: other grids, other launches, and how evenly units were busy."""

from gpa_lsp.diagnosis.analyses.answers import Chart, ChartKind, Column, Series, Table
from gpa_lsp.diagnosis.analyses.balance.units import UnitLoad
from gpa_lsp.diagnosis.analyses.balance.waves import Waves, find_waves, list_grid_sizes
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.occupancy.launch import list_compared_launches
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import count, join, say
from gpa_lsp.profile.model import Launch

_MOST_GRIDS = 50


def tabulate_waves(facts: KernelFacts, launch: Launch, waves: Waves | None) -> list[Table]:
    """Grids around the present one, and those of the other launches; nothing without waves."""
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
            note=say(
                "Slots used if all blocks take equally long (waves filled), and mean over largest number of blocks per SM (SMs filled). Between "
                "grids that divide the same work, time goes with the inverse of one of the two, or lies in between."
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
        rows = tuple((*_describe_grid(its), times) for its, times in list(found.items())[:_MOST_GRIDS])
        current = next((i for i, its in enumerate(list(found)[:_MOST_GRIDS]) if its == waves), None)
        tables.append(
            Table(
                title="Grids of all launches",
                columns=(*columns, Column(name="launches", quantity=Quantity.COUNT)),
                rows=rows,
                current_row=current,
                note=join([say("All else is about launch {index}, the longest.", index=count(launch.index)), left_out]),
            )
        )
    return tables


def tabulate_units(loads: tuple[UnitLoad, ...]) -> list[Table]:
    """Least, mean and most of every measure; nothing where none was collected."""
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


def _describe_grid(waves: Waves) -> tuple[Cell, ...]:
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
