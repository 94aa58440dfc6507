"""Tables about the memory behind a kernel's loads."""

from gpa_lsp.analyses.answers import Column, Table
from gpa_lsp.analyses.decomposition.memory_view import MemoryView
from gpa_lsp.basis.numbers import Cell, Quantity
from gpa_lsp.basis.prose import count, say

_MOST_ROWS = 8


def list_memory_tables(view: MemoryView) -> tuple[Table, ...]:
    """Kinds of load, the legs of their way, and the units on it; tables without rows are left out."""
    return tuple(
        table for table in (_tabulate_loads(view), _tabulate_latency(view), _tabulate_units(view)) if table.rows
    )


def _tabulate_loads(view: MemoryView) -> Table:
    waits = {} if view.waits is None else {wait.kind: wait for wait in view.waits.kinds}
    traffic = {load.kind: load for load in view.loads}
    rows: list[tuple[Cell, ...]] = []
    for kind in (*traffic, *(kind for kind in waits if kind not in traffic)):
        load, wait = traffic.get(kind), waits.get(kind)
        rows.append(
            (
                kind.value,
                None if load is None else load.requests,
                None if load is None else load.sectors_per_request,
                None if load is None else load.l1_hit_ratio,
                0.0 if wait is None or view.waits is None else wait.samples / view.waits.samples,
                None if wait is None else wait.wait_cycles,
            )
        )
    return Table(
        title="Kinds of load",
        columns=(
            Column(name="kind"),
            Column(name="requests", quantity=Quantity.COUNT),
            Column(name="sectors per request", quantity=Quantity.NUMBER),
            Column(name="answered by L1", quantity=Quantity.RATIO),
            Column(name="share of the stalls", quantity=Quantity.RATIO),
            Column(name="stall per execution", quantity=Quantity.CYCLES),
        ),
        rows=tuple(rows),
        note=say("Asynchronous copies count as loads from global memory, and their stalls on their own."),
    )


def _tabulate_latency(view: MemoryView) -> Table:
    legs = () if view.unloaded is None else view.unloaded.parts
    split = view.split
    note = say("Cycles of an average load: loads that do not take a leg count as 0.")
    if split is not None:
        note = say(
            "{note} On average a stall takes {stall} and begins {passed} after the load.",
            note=note,
            stall=count(split.wait_cycles, "cycle"),
            passed=count(split.passed_cycles, "cycle"),
        )
    return Table(
        title="Latency of a load without queues",
        columns=(
            Column(name="leg"),
            Column(name="loads that take it", quantity=Quantity.RATIO),
            Column(name="cycles", quantity=Quantity.CYCLES),
        ),
        rows=tuple((leg.name, leg.share_ratio, leg.cycles) for leg in legs),
        note=note,
    )


def _tabulate_units(view: MemoryView) -> Table:
    return Table(
        title="How busy the units on the way are",
        columns=(Column(name="level"), Column(name="unit"), Column(name="of its peak", quantity=Quantity.RATIO)),
        rows=tuple((use.unit.level, use.unit.name, use.ratio) for use in view.units[:_MOST_ROWS]),
    )
