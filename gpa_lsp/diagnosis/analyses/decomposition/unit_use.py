"""Utilization of memory units and pipes: shares of their peaks, from the profiler's own percentages."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Table, list_columns
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, QUEUES, InstructionKind, list_kinds

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


def list_queue_use(subject: Subject, reason: str) -> tuple[QueueUse, ...]:
    """List the kinds of instructions in the queue of a throttle, the most frequent first; empty without executions."""
    executions = subject.rows.executions
    if reason not in QUEUES or not (executions > 0).any():
        return ()
    kinds = list_kinds(subject.rows)
    counted = np.bincount(kinds, weights=np.maximum(0, executions), minlength=len(KINDS))
    chosen = [number for number, kind in enumerate(KINDS) if kind in QUEUES[reason] and counted[number] > 0]
    total = float(sum(counted[number] for number in chosen))
    cycles = _count_sm_cycles(subject)
    widths = subject.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    found = []
    for number in chosen:
        passes, least = _measure_passes(subject, kinds == number, KINDS[number])
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
    subject: Subject, chosen: npt.NDArray[np.bool_], kind: InstructionKind
) -> tuple[float | None, float | None]:
    """Passes per execution, and the fewest; None where not counted."""
    if kind in SHARED_KINDS:
        return count_per_execution(subject, "shared_wavefronts", chosen), count_per_execution(
            subject, "shared_wavefronts_ideal", chosen
        )
    if kind is InstructionKind.GLOBAL_LOAD or kind is InstructionKind.GLOBAL_STORE:
        least = count_per_execution(subject, "global_sectors_ideal", chosen)
        return count_per_execution(subject, "global_tag_requests", chosen), None if least is None else max(
            1.0, least / _SECTORS_PER_LINE
        )
    return None, None


def _measure_width(
    widths: npt.NDArray[np.int64], executions: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> float | None:
    counted = chosen & (widths > 0) & (executions > 0)
    executed = int(executions[counted].sum())
    return float((widths[counted] * executions[counted]).sum()) / executed if executed else None


def count_per_execution(subject: Subject, counter: str, chosen: npt.NDArray[np.bool_]) -> float | None:
    """A counter of some instructions over their executions, summed over all launches; None when not collected."""
    values = subject.rows.counter(counter)
    if values is None:
        return None
    executions = subject.rows.executions
    counted = chosen & (values >= 0) & (executions > 0)
    executed = int(executions[counted].sum())
    return int(values[counted].sum()) / executed if executed else None


def _count_sm_cycles(subject: Subject) -> float | None:
    """Active cycles of all SMs; None when not collected or of one launch among several."""
    cycles = subject.metric("sm__cycles_active.avg")
    sms = subject.kernel.device.sm_count
    if cycles is None or sms is None or subject.run_count != 1:
        return None
    return cycles * sms or None


# What a percentage is of: the peak over the whole launch, or over the cycles in which an SM held warps
_ELAPSED, _ACTIVE = (f".avg.pct_of_peak_sustained_{cycles}" for cycles in ("elapsed", "active"))


_Unit = tuple[
    str, str, str
]  # Where it is, for people (several units have one level); what it does; what counts its use, without suffix


class UnitUse(Struct, frozen=True, kw_only=True):
    """Utilization of a unit that warps may queue for."""

    level: str  # where it is, for people
    name: str  # what it does
    ratio: float  # of its peak


# Units on the way of a load. Source: breakdowns of the memory throughput in real reports; meanings after the Profiling Guide, Metrics Decoder.
MEMORY_UNITS = (
    ("L1", "requests of the load/store unit", "l1tex__lsuin_requests"),
    ("L1", "data stage, wavefronts", "l1tex__data_pipe_lsu_wavefronts"),
    ("L1", "data banks, reads", "l1tex__data_bank_reads"),
    ("L1", "data banks, writes", "l1tex__data_bank_writes"),
    ("L1", "write-back to registers", "l1tex__lsu_writeback_active"),
    ("L1", "texture filter, wavefronts", "l1tex__f_wavefronts"),
    ("crossbar", "requests from L1 to L2", "l1tex__m_l1tex2xbar_req_cycles_active"),
    ("crossbar", "data from L2 to L1", "l1tex__m_xbar2l1tex_read_sectors"),
    ("crossbar", "into the L2 slices", "lts__xbar2lts_cycles_active"),
    ("crossbar", "out of the L2 slices", "lts__lts2xbar_cycles_active"),
    ("L2", "tag lookups", "lts__t_tag_requests"),
    ("L2", "sectors", "lts__t_sectors"),
    ("L2", "data banks", "lts__d_sectors"),
    ("L2", "atomics", "lts__d_atomic_input_cycles_active"),
    ("L2", "fabric between the partitions", "lts__t_sectors_srcunit_ltcfabric"),
    ("DRAM", "data bus", "dram__cycles_active"),
    ("DRAM", "sectors", "fbpa__dram_sectors"),
    ("system memory", "sectors filled from it", "lts__d_sectors_fill_sysmem"),
)

# Units behind the queues whose being full is a throttle
QUEUE_UNITS = (
    ("MIO", "instructions issued to the queue", "sm__mio_inst_issued"),
    ("MIO", "queue, reads", "sm__mio_pq_read_cycles_active"),
    ("MIO", "queue, writes", "sm__mio_pq_write_cycles_active"),
    ("MIO", "write-back to registers", "sm__mio2rf_writeback_active"),
    ("LSU", "instructions", "sm__inst_executed_pipe_lsu"),
    ("LSU", "wavefronts", "l1tex__data_pipe_lsu_wavefronts"),
    ("XU", "special functions and conversions", "sm__inst_executed_pipe_xu"),
    ("ADU", "address divergence unit", "sm__inst_executed_pipe_adu"),
    ("TEX", "instructions", "sm__inst_executed_pipe_tex"),
    ("constant cache", "requests", "idc__request_cycles_active"),
)

# Arithmetic pipes
PIPE_UNITS = (
    ("ALU", "integer, logic and compares", "sm__pipe_alu_cycles_active"),
    ("FMA", "FP32 and multiply-adds", "sm__pipe_fma_cycles_active"),
    ("FMA heavy", "the half of FMA that multiplies integers", "sm__pipe_fmaheavy_cycles_active"),
    ("FP64", "double precision", "sm__pipe_fp64_cycles_active"),
    ("tensor", "matrix instructions", "sm__pipe_tensor_cycles_active"),
    ("tensor", "matrix instructions", "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"),
    ("FP64, FP16 and tensor", "what they share", "sm__pipe_shared_cycles_active"),
    ("FP16", "half precision", "sm__inst_executed_pipe_fp16"),
    ("XU", "special functions and conversions", "sm__inst_executed_pipe_xu"),
    ("uniform", "uniform datapath", "sm__inst_executed_pipe_uniform"),
)


def name_use(unit: _Unit) -> str:
    """The metric of a unit's use in percent of its peak over the elapsed cycles."""
    return unit[2] + _ELAPSED


def list_unit_use(subject: Subject, units: tuple[_Unit, ...]) -> tuple[UnitUse, ...]:
    """Utilization of some units in the longest launch, the busiest first; units that were not measured are left out.

    Where only the percentage over active cycles was collected it stands in, and is too high for SMs that were idle part of the time.
    """
    found = [
        UnitUse(level=unit[0], name=unit[1], ratio=percent / 100)
        for unit in units
        if (percent := subject.metric(name_use(unit), unit[2] + _ACTIVE)) is not None
    ]
    return tuple(sorted(found, key=lambda one: -one.ratio))


def tabulate_units(title: str, heading: str, name: str, uses: Sequence[UnitUse]) -> Table:
    """Table of unit utilization."""
    return Table(
        title=title,
        columns=list_columns(heading, name, "of its peak [ratio]"),
        rows=tuple((use.level, use.name, use.ratio) for use in uses),
    )
