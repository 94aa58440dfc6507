"""Bytes that a launch moved through each level of the memory.

* DRAM: read and written, as the memory's own counters have them.
* L2: 32-byte sectors that the SMs' L1 caches asked of it or wrote to it (``srcunit_tex``), which is what its published bandwidth is about. The
  count of all sectors, where only that was collected, also holds those for DRAM, for the other half of L2 and for ECC.
* L1: 32-byte sectors at its tag stage: loads, stores, atomics and reductions of global and local memory, textures and surfaces. Copies from
  global to shared memory are among the loads. Shared memory is not.
* Shared memory: wavefronts, passes of 128 bytes through its banks; a bank conflict costs another one.

Where only a share of the peak was collected, as in the profiler's basic set, the bytes are that share of what the machine could have moved in the
time: the distance to the roof is right, the bytes hold at the machine's clocks.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.roofline.totals import Span, Total, read_count, sum_totals
from gpa_lsp.diagnosis.analyses.roofline_model import Traffic
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.gpu.device.model import Machine, MemoryLevel
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES
from gpa_lsp.profile.model import Launch

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
