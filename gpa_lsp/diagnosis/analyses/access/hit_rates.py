"""How often accesses of each kind find their sector in the cache, as a table."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Column, Table
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import say

_PERCENT = 100.0


class _Kind(Struct, frozen=True, kw_only=True):
    """One row: a kind of access, the metric that counts its sectors and the one with its hit rate in percent."""

    name: str
    sectors: str
    rate: str


def _l1(name: str, unit: str) -> _Kind:
    return _Kind(name=name, sectors=f"l1tex__t_sectors_{unit}.sum", rate=f"l1tex__t_sector_{unit}_hit_rate.pct")


_KINDS = (
    _l1("L1: global loads", "pipe_lsu_mem_global_op_ld"),
    _l1("L1: global stores", "pipe_lsu_mem_global_op_st"),
    _l1("L1: global atomics", "pipe_lsu_mem_global_op_atom"),
    _l1("L1: global reductions", "pipe_lsu_mem_global_op_red"),
    _l1("L1: local loads", "pipe_lsu_mem_local_op_ld"),
    _l1("L1: local stores", "pipe_lsu_mem_local_op_st"),
    _Kind(
        name="L1: textures",
        sectors="l1tex__t_sectors_pipe_tex_mem_texture.sum",
        rate="l1tex__t_sector_pipe_tex_mem_texture_op_tex_hit_rate.pct",
    ),
    _l1("L1: surface loads", "pipe_tex_mem_surface_op_ld"),
    _l1("L1: surface stores", "pipe_tex_mem_surface_op_st"),
    _Kind(name="L2: all", sectors="lts__t_sectors.sum", rate="lts__t_sector_hit_rate.pct"),
    _Kind(name="L2: reads", sectors="lts__t_sectors_op_read.sum", rate="lts__t_sector_op_read_hit_rate.pct"),
    _Kind(name="L2: writes", sectors="lts__t_sectors_op_write.sum", rate="lts__t_sector_op_write_hit_rate.pct"),
)


def build_hit_rates(facts: KernelFacts) -> Table | None:
    """The table of the longest launch, with the kinds of access it made; None when no hit rate was collected.

    A kind without sectors has no hit rate, whatever the report says; one whose sectors were not counted keeps its rate. Rates are counted in
    two passes and can exceed 1 by a little; they are shown as 1.
    """
    rows: list[tuple[Cell, ...]] = []
    for kind in _KINDS:
        rate, sectors = facts.metric(kind.rate), facts.metric(kind.sectors)
        if rate is not None and sectors != 0:
            rows.append((kind.name, None if sectors is None else round(sectors), min(rate / _PERCENT, 1.0)))
    if not rows:
        return None
    return Table(
        title="Hit rates",
        columns=(
            Column(name="access"),
            Column(name="sectors", quantity=Quantity.COUNT),
            Column(name="found there", quantity=Quantity.RATIO),
        ),
        rows=tuple(rows),
        note=say(
            "Of the longest launch. A profiler that flushes the caches before each pass shows lower rates than the running program."
        ),
    )
