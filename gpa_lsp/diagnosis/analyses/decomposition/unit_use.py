"""How busy the units of the memory system and the pipes were: shares of their peaks, from the profiler's own percentages."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind
from gpa_lsp.kernel.dataflow.queues import QUEUES

# Accesses to shared memory whose passes are counted
SHARED_KINDS = frozenset({InstructionKind.SHARED_LOAD, InstructionKind.SHARED_STORE, InstructionKind.MATRIX_LOAD})

_SECTORS_PER_LINE = 4


class QueueUse(Struct, frozen=True, kw_only=True):
    """One kind of instruction in a queue."""

    kind: InstructionKind  # of instruction
    executions: int  # by warps
    share_ratio: float  # of the executions in this queue
    per_cycle: float | None  # executions per SM and cycle; None without the cycles, or with several launches
    # wavefronts of shared memory, or 128-byte lines of global memory, per execution; None where not counted
    passes: float | None
    least_passes: float | None  # the fewest that would suffice; None where not counted
    thread_bytes: float | None  # that one thread moves with one execution, on average; None for what accesses no memory


def list_queue_use(facts: KernelFacts, kinds: npt.NDArray[np.int16], reason: str) -> tuple[QueueUse, ...]:
    """Which instructions go through the queue of a throttle, the most frequent first; empty without executions."""
    executions = facts.rows.executions
    if reason not in QUEUES or not (executions > 0).any():
        return ()
    counted = np.bincount(kinds, weights=np.maximum(0, executions), minlength=len(KINDS))
    chosen = [number for number, kind in enumerate(KINDS) if kind in QUEUES[reason] and counted[number] > 0]
    total = float(sum(counted[number] for number in chosen))
    cycles = _count_sm_cycles(facts)
    widths = facts.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    found = []
    for number in chosen:
        passes, least = _measure_passes(facts, kinds == number, KINDS[number])
        found.append(
            QueueUse(
                kind=KINDS[number],
                executions=int(counted[number]),
                share_ratio=float(counted[number]) / total,
                per_cycle=None if cycles is None else float(counted[number]) / cycles,
                passes=passes,
                least_passes=least,
                thread_bytes=_measure_width(widths, executions, kinds == number),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.executions, one.kind)))


def _measure_passes(
    facts: KernelFacts, chosen: npt.NDArray[np.bool_], kind: InstructionKind
) -> tuple[float | None, float | None]:
    """Passes per execution, and the fewest; None where not counted."""
    if kind in SHARED_KINDS:
        return _divide(facts, "shared_wavefronts", chosen), _divide(facts, "shared_wavefronts_ideal", chosen)
    if kind is InstructionKind.GLOBAL_LOAD or kind is InstructionKind.GLOBAL_STORE:
        least = _divide(facts, "global_sectors_ideal", chosen)
        return _divide(facts, "global_tag_requests", chosen), None if least is None else max(
            1.0, least / _SECTORS_PER_LINE
        )
    return None, None


def _measure_width(
    widths: npt.NDArray[np.int64], executions: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> float | None:
    counted = chosen & (widths > 0) & (executions > 0)
    executed = int(executions[counted].sum())
    return float((widths[counted] * executions[counted]).sum()) / executed if executed else None


def _divide(facts: KernelFacts, counter: str, chosen: npt.NDArray[np.bool_]) -> float | None:
    values = facts.rows.counter(counter)
    if values is None:
        return None
    executions = facts.rows.executions
    counted = chosen & (values >= 0) & (executions > 0)
    executed = int(executions[counted].sum())
    return int(values[counted].sum()) / executed if executed else None


def _count_sm_cycles(facts: KernelFacts) -> float | None:
    """Active cycles of all SMs; None when not collected or of one launch among several."""
    cycles = facts.metric("sm__cycles_active.avg")
    measured = sum(1 for launch in facts.kernel.launches if launch.failure is None)
    sms = facts.kernel.device.sm_count
    if cycles is None or sms is None or measured != 1:
        return None
    return cycles * sms or None


# What a percentage is of: the peak over the whole launch, or over the cycles in which an SM held warps
_ELAPSED, _ACTIVE = "_elapsed", "_active"


class Unit(Struct, frozen=True, kw_only=True):
    """A unit that can be the one everybody queues for."""

    level: str  # where it is, for people; several units have one
    name: str  # what it does
    metric: str  # its use in percent of its peak over the elapsed cycles


class UnitUse(Struct, frozen=True, kw_only=True):
    """A unit and how busy it was, 0..1."""

    unit: Unit
    ratio: float


# Units on the way of a load. Source: breakdowns of the memory throughput in real reports; meanings after the Profiling Guide, Metrics Decoder.
MEMORY_UNITS = (
    Unit(
        level="L1",
        name="requests of the load/store unit",
        metric="l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="L1",
        name="data stage, wavefronts",
        metric="l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="L1", name="data banks, reads", metric="l1tex__data_bank_reads.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="L1", name="data banks, writes", metric="l1tex__data_bank_writes.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="L1",
        name="write-back to registers",
        metric="l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="L1", name="texture filter, wavefronts", metric="l1tex__f_wavefronts.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="crossbar",
        name="requests from L1 to L2",
        metric="l1tex__m_l1tex2xbar_req_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="crossbar",
        name="data from L2 to L1",
        metric="l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="crossbar",
        name="into the L2 slices",
        metric="lts__xbar2lts_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="crossbar",
        name="out of the L2 slices",
        metric="lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="L2", name="tag lookups", metric="lts__t_tag_requests.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="L2", name="sectors", metric="lts__t_sectors.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="L2", name="data banks", metric="lts__d_sectors.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="L2", name="atomics", metric="lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="L2",
        name="fabric between the partitions",
        metric="lts__t_sectors_srcunit_ltcfabric.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="DRAM", name="data bus", metric="dram__cycles_active.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="DRAM", name="sectors", metric="fbpa__dram_sectors.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="system memory",
        name="sectors filled from it",
        metric="lts__d_sectors_fill_sysmem.avg.pct_of_peak_sustained_elapsed",
    ),
)

# Units behind the queues whose being full is a throttle
QUEUE_UNITS = (
    Unit(
        level="MIO",
        name="instructions issued to the queue",
        metric="sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="MIO", name="queue, reads", metric="sm__mio_pq_read_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="MIO", name="queue, writes", metric="sm__mio_pq_write_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="MIO",
        name="write-back to registers",
        metric="sm__mio2rf_writeback_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="LSU", name="instructions", metric="sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"),
    Unit(level="LSU", name="wavefronts", metric="l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="XU",
        name="special functions and conversions",
        metric="sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="ADU",
        name="address divergence unit",
        metric="sm__inst_executed_pipe_adu.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="TEX", name="instructions", metric="sm__inst_executed_pipe_tex.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="constant cache", name="requests", metric="idc__request_cycles_active.avg.pct_of_peak_sustained_elapsed"
    ),
)

# Arithmetic pipes
PIPE_UNITS = (
    Unit(
        level="ALU",
        name="integer, logic and compares",
        metric="sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="FMA",
        name="FP32 and multiply-adds",
        metric="sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="FMA heavy",
        name="the half of FMA that multiplies integers",
        metric="sm__pipe_fmaheavy_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="FP64", name="double precision", metric="sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="tensor",
        name="matrix instructions",
        metric="sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="tensor",
        name="matrix instructions",
        metric="sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="FP64, FP16 and tensor",
        name="what they share",
        metric="sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(level="FP16", name="half precision", metric="sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_elapsed"),
    Unit(
        level="XU",
        name="special functions and conversions",
        metric="sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
    ),
    Unit(
        level="uniform",
        name="uniform datapath",
        metric="sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_elapsed",
    ),
)


def list_unit_use(facts: KernelFacts, units: tuple[Unit, ...]) -> tuple[UnitUse, ...]:
    """How busy the units of a list were in the longest launch, the busiest first; units that were not measured are left out.

    Where only the percentage over active cycles was collected it stands in, and is too high for SMs that were idle part of the time.
    """
    found = []
    for unit in units:
        percent = facts.metric(unit.metric, unit.metric.removesuffix(_ELAPSED) + _ACTIVE)
        if percent is not None:
            found.append(UnitUse(unit=unit, ratio=max(0.0, percent / 100)))
    return tuple(sorted(found, key=lambda one: -one.ratio))
