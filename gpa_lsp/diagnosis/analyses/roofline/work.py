"""Work of a launch, and of several together: :class:`Work`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Pipe, describe_mnemonic
from gpa_lsp.diagnosis.analyses.model import OperationCount, Traffic
from gpa_lsp.diagnosis.analyses.roofline.counts import (
    Executions,
    Span,
    Total,
    read_busy_units,
    read_count,
    read_total,
    sum_totals,
)
from gpa_lsp.diagnosis.analyses.roofline.operations import count_operations
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES
from gpa_lsp.profile.model import Launch

# Bytes that a launch moved through each level of the memory.
#
# * DRAM: read and written, as the memory's own counters have them.
# * L2: 32-byte sectors that the SMs' L1 caches asked of it or wrote to it (``srcunit_tex``), which is what its published bandwidth is about. The
#   count of all sectors, where only that was collected, also holds those for DRAM, for the other half of L2 and for ECC.
# * L1: 32-byte sectors at its tag stage: loads, stores, atomics and reductions of global and local memory, textures and surfaces. Copies from
#   global to shared memory are among the loads. Shared memory is not.
# * Shared memory: wavefronts, passes of 128 bytes through its banks; a bank conflict costs another one.
#
# Where only a share of the peak was collected, as in the profiler's basic set, the bytes are that share of what the machine could have moved in the
# time: the distance to the roof is right, the bytes hold at the machine's clocks.

WAVEFRONT_BYTES = 128


class Recipe(Struct, frozen=True, kw_only=True):
    """Counters that add up to a level's bytes."""

    counters: tuple[str, ...]  # names without suffix; all are needed
    bytes_per_count: float = 1.0  # of each
    is_whole: bool = True  # False where kinds of accesses are not among them

    @property
    def words(self) -> str:
        """The counters in a clause."""
        names = " + ".join(self.counters) if len(self.counters) <= 2 else f"{self.counters[0]} and its like"
        return names if self.bytes_per_count == 1 else f"{names}, × {format_number(self.bytes_per_count)} bytes"


_L1_PARTS = tuple(
    f"l1tex__t_sectors_pipe_{part}"
    for part in (
        "lsu_mem_global_op_ld",
        "lsu_mem_global_op_st",
        "lsu_mem_global_op_atom",
        "lsu_mem_global_op_red",
        "lsu_mem_local_op_ld",
        "lsu_mem_local_op_st",
        "tex_mem_surface_op_ld",
        "tex_mem_surface_op_st",
        "tex_mem_surface_op_atom",
        "tex_mem_surface_op_red",
        "tex_mem_texture",
    )
)

# The first recipe of a level all of whose counters a launch has is read
RECIPES: dict[MemoryLevel, tuple[Recipe, ...]] = {
    MemoryLevel.SHARED: (
        Recipe(counters=("l1tex__data_pipe_lsu_wavefronts_mem_shared",), bytes_per_count=WAVEFRONT_BYTES),
    ),
    MemoryLevel.L1: (
        Recipe(counters=("l1tex__t_bytes",)),
        Recipe(counters=("l1tex__t_sectors",), bytes_per_count=SECTOR_BYTES),
        Recipe(counters=_L1_PARTS, bytes_per_count=SECTOR_BYTES),
        Recipe(counters=_L1_PARTS[:6], bytes_per_count=SECTOR_BYTES, is_whole=False),
        Recipe(counters=_L1_PARTS[:2], bytes_per_count=SECTOR_BYTES, is_whole=False),
    ),
    MemoryLevel.L2: (
        Recipe(counters=("lts__t_sectors_srcunit_tex",), bytes_per_count=SECTOR_BYTES),
        Recipe(counters=("lts__t_bytes",)),
        Recipe(counters=("lts__t_sectors",), bytes_per_count=SECTOR_BYTES),
    ),
    MemoryLevel.DRAM: (
        Recipe(counters=("dram__bytes_read", "dram__bytes_write")),
        Recipe(counters=("dram__bytes_op_read", "dram__bytes_op_write")),
        Recipe(counters=("dram__bytes",)),
        Recipe(counters=("dram__sectors_read", "dram__sectors_write"), bytes_per_count=SECTOR_BYTES),
        Recipe(counters=("dram__sectors_op_read", "dram__sectors_op_write"), bytes_per_count=SECTOR_BYTES),
        Recipe(counters=("dram__sectors",), bytes_per_count=SECTOR_BYTES),
    ),
}

# Percent of the level's peak, for launches without counts
_SHARES: dict[MemoryLevel, tuple[str, ...]] = {
    MemoryLevel.SHARED: ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",),
    MemoryLevel.L1: (),
    MemoryLevel.L2: (
        "lts__t_sectors_srcunit_tex.avg.pct_of_peak_sustained_elapsed",
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    ),
    MemoryLevel.DRAM: (
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
}

# Bytes of one transaction
TRANSACTION_BYTES = {
    MemoryLevel.SHARED: WAVEFRONT_BYTES,
    MemoryLevel.L1: SECTOR_BYTES,
    MemoryLevel.L2: SECTOR_BYTES,
    MemoryLevel.DRAM: SECTOR_BYTES,
}


def measure_traffic(launch: Launch, span: Span, machine: Machine | None) -> dict[MemoryLevel, Traffic]:
    """Bytes by level, of the levels that are known.

    Args:
        span: its time and cycles.
        machine: whose peaks a share of the peak is of; None leaves such levels out.
    """
    found = {}
    for level in MemoryLevel:
        total = next(_read_level(launch, span, level, machine), None)
        if total is not None:
            found[level] = Traffic(
                level=level,
                bytes=total.value,
                source=total.source,
                transactions=total.value / TRANSACTION_BYTES[level],
                is_exact=total.is_exact,
            )
    return found


def _read_level(launch: Launch, span: Span, level: MemoryLevel, machine: Machine | None) -> Iterator[Total]:
    for recipe in RECIPES[level]:
        terms = (((counter,), recipe.bytes_per_count) for counter in recipe.counters)
        total = sum_totals(launch, span, terms, recipe.words)
        if total is not None:
            yield replace(total, is_exact=recipe.is_whole)
    bandwidth = None if machine is None else machine.find_bandwidth(level)
    if bandwidth is None or bandwidth.bytes_per_s is None:
        return
    for name in _SHARES[level]:
        percent = read_count(launch, name)
        if percent is not None:
            moved = percent / 100 * bandwidth.bytes_per_s * span.duration_s
            yield Total(value=moved, source=f"{name} of the peak", is_exact=False)


_WARP_INSTRUCTIONS = ("smsp__inst_executed", "sm__inst_executed")
_ALL_INSTRUCTIONS = "inst_executed"


class Work(Struct, frozen=True, kw_only=True):
    """Operations, bytes and instructions in some time."""

    duration_s: float  # positive
    operations: Mapping[OperationKind, OperationCount]  # by type; types that are not known are missing
    traffic: Mapping[MemoryLevel, Traffic]  # by level; levels that are not known are missing
    warp_instructions: float | None  # None when unknown
    # the profiler's name of a unit → its share of its peak times the time; units that are not known are missing
    busy_s: Mapping[str, float] = field(default_factory=dict)
    # no instruction goes there: what was counted is the hardware's own
    unused_levels: frozenset[MemoryLevel] = frozenset()


def measure_work(launch: Launch, span: Span, executions: Executions | None, machine: Machine | None) -> Work:
    """Measure the work of one launch.

    Args:
        span: its time and cycles.
        executions: of its instructions; None when unknown.
    """
    return Work(
        duration_s=span.duration_s,
        operations=count_operations(launch, span, executions),
        traffic=measure_traffic(launch, span, machine),
        warp_instructions=_count_warp_instructions(launch, span, executions),
        busy_s={unit: share * span.duration_s for unit, share in read_busy_units(launch).items()},
        unused_levels=_find_unused(executions),
    )


def _find_unused(executions: Executions | None) -> frozenset[MemoryLevel]:
    """Shared memory, where the instructions are known and none goes there."""
    if executions is None or any(map(_may_use_shared, executions.warps or executions.threads)):
        return frozenset()
    return frozenset({MemoryLevel.SHARED})


def _may_use_shared(mnemonic: str) -> bool:
    """Whether an instruction accesses shared memory, or may: by a generic address, as a copy, or as operands of tensor cores."""
    opcode = describe_mnemonic(mnemonic)
    is_there = opcode.memory in (MemorySpace.SHARED, MemorySpace.GENERIC)
    return is_there or opcode.access is Access.COPY or opcode.pipe is Pipe.TENSOR


def _count_warp_instructions(launch: Launch, span: Span, executions: Executions | None) -> float | None:
    total = read_total(launch, span, _WARP_INSTRUCTIONS)
    if total is not None:
        return total.value
    stated = read_count(launch, _ALL_INSTRUCTIONS)
    if stated is not None or executions is None or not executions.warps:
        return stated
    return float(sum(executions.warps.values()))


def sum_work(works: Sequence[Work]) -> Work | None:
    """Add up the work of launches over their total time, so that every launch counts by its duration.

    A number that is unknown for one launch is unknown for the sum. None without launches.
    """
    if not works:
        return None
    known = [work.warp_instructions for work in works if work.warp_instructions is not None]
    return Work(
        duration_s=sum(work.duration_s for work in works),
        operations={
            kind: _sum_operations([work.operations[kind] for work in works])
            for kind in OperationKind
            if all(kind in work.operations for work in works)
        },
        traffic={
            level: _sum_traffic([work.traffic[level] for work in works])
            for level in MemoryLevel
            if all(level in work.traffic for work in works)
        },
        warp_instructions=sum(known) if len(known) == len(works) else None,
        busy_s={
            unit: sum(work.busy_s[unit] for work in works)
            for unit in works[0].busy_s
            if all(unit in work.busy_s for work in works)
        },
        unused_levels=frozenset.intersection(*(work.unused_levels for work in works)),
    )


def _sum_operations(counts: Sequence[OperationCount]) -> OperationCount:
    return replace(
        counts[0],
        operations=sum(count.operations for count in counts),
        source=_join_sources(count.source for count in counts),
        is_exact=all(count.is_exact for count in counts),
    )


def _sum_traffic(counts: Sequence[Traffic]) -> Traffic:
    transactions = [count.transactions for count in counts if count.transactions is not None]
    return replace(
        counts[0],
        bytes=sum(count.bytes for count in counts),
        source=_join_sources(count.source for count in counts),
        transactions=sum(transactions) if len(transactions) == len(counts) else None,
        is_exact=all(count.is_exact for count in counts),
    )


def _join_sources(sources: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(sources))
