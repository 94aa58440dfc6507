"""Counts of a launch: its time and cycles, totals over the GPU, executions of each instruction, utilization of units."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.model import BusyUnit
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.gpu.device.model import L1_CEILING, L2_CEILING, find_dram_ceiling
from gpa_lsp.gpu.device.rates import read_attribute
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.place import AddressMap, build_address_map
from gpa_lsp.profile.model import Device, Launch
from gpa_lsp.profile.ncu.samples import InstructionCounts, read_instruction_counts

# Totals of a launch from any form that a report states them in: a sum, a rate per second, a rate per cycle.
#
# The profiler stores the same counter as ``….sum``, ``….sum.per_second`` or ``….sum.per_cycle_elapsed``, by version and section: operations of
# the roofline sections are stored per cycle only.

NS_PER_S = 1e9

# No counter or rate reaches the one, or is below the other and not zero; products and quotients of numbers between them are finite
_BEYOND_COUNTING, _AS_GOOD_AS_NONE = 1e30, 1e-30

_SHORTEST_NS = 1.0  # Nothing is measured in less than the timer's resolution

_DURATION = "gpu__time_duration.sum"

# SM clock during the launch: cycles per second of ``gpu__time_duration``
_FREQUENCIES = (
    "smsp__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.avg.per_second",
)

_CYCLES = ("smsp__cycles_elapsed.avg", "sm__cycles_elapsed.avg", "sm__cycles_elapsed.max")


class Span(Struct, frozen=True, kw_only=True):
    """Time of a launch."""

    duration_s: float  # positive
    # SM cycles in that time, the mean over the SMs; None when neither they nor the clock were collected
    elapsed_cycles: float | None


class Total(Struct, frozen=True, kw_only=True):
    """A number with the counters it comes from."""

    value: float  # finite, not negative
    source: str  # one clause
    is_exact: bool = True  # False where a factor was assumed on the way


def read_span(launch: Launch) -> Span | None:
    """The time a launch took; None when it failed, or its time was not collected or is no time.

    The cycles are the clock times the time, so that a rate per cycle times the clock is the rate per second.
    """
    duration_ns = read_count(launch, _DURATION)
    if launch.failure is not None or duration_ns is None or duration_ns < _SHORTEST_NS:
        return None
    duration_s = duration_ns / NS_PER_S
    frequency_hz = next((value for name in _FREQUENCIES if (value := read_count(launch, name))), None)
    if frequency_hz is not None:
        return Span(duration_s=duration_s, elapsed_cycles=frequency_hz * duration_s)
    return Span(
        duration_s=duration_s,
        elapsed_cycles=next((value for name in _CYCLES if (value := read_count(launch, name))), None),
    )


def read_count(launch: Launch, name: str) -> float | None:
    """A metric that cannot be negative; None when it was not collected, or is no number, a negative one or beyond all counting."""
    value = launch.read_number(name)
    if value is None or not 0 <= value < _BEYOND_COUNTING:
        return None
    return value if value > _AS_GOOD_AS_NONE else 0.0


def read_total(launch: Launch, span: Span, counters: Iterable[str]) -> Total | None:
    """Read a counter's total over the launch.

    Returns None when it has none of them. ``span``: its time and cycles.
    """
    return next((total for counter in counters for total in _read_forms(launch, span, counter)), None)


def sum_totals(
    launch: Launch, span: Span, terms: Iterable[tuple[tuple[str, ...], float]], words: str = ""
) -> Total | None:
    """The sum of several counters, each times a factor.

    Returns None when one of the terms was not collected. ``span``: its time and cycles.
    """
    value, sources = 0.0, []
    for counters, factor in terms:
        total = read_total(launch, span, counters)
        if total is None:
            return None
        value += factor * total.value
        sources.append(total.source)
    return Total(value=value, source=words or " + ".join(sources))


def _read_forms(launch: Launch, span: Span, counter: str) -> Iterator[Total]:
    forms = (("sum", 1.0), ("sum.per_second", span.duration_s), ("sum.per_cycle_elapsed", span.elapsed_cycles))
    for suffix, factor in forms:
        value = None if factor is None else read_count(launch, f"{counter}.{suffix}")
        if value is not None and factor is not None:
            yield Total(value=value * factor, source=f"{counter}.{suffix}")


WARP_TABLES = (
    "sass__inst_executed_per_opcode_with_modifier_all",
    "sass__inst_executed_per_opcode_with_modifier_selective",
)
# Tables of opcodes with modifiers; ``true`` counts threads whose guard held. They come with section SourceCounters.
THREAD_TABLES = (
    "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
    "sass__thread_inst_executed_true_per_opcode_with_modifier_selective",
)

# The same by instruction; section SourceCounters has them
WARP_COLUMN, THREAD_COLUMN = "inst_executed", "thread_inst_executed_true"

_THREAD_COUNTER = "thread_executions_true"


class Executions(Struct, frozen=True, kw_only=True):
    """Executions by mnemonic."""

    warps: Mapping[str, float]  # mnemonic → executions by warps; empty when only threads were counted
    threads: Mapping[str, float]  # mnemonic → executions by threads whose guard held
    source: str  # the counters, one clause
    are_threads_exact: bool  # False where all 32 threads of a warp had to be assumed


def count_launch(kernel: Kernel, launch: Launch, launches: int) -> Executions | None:
    """Executions in one launch.

    Returns:
        None when the launch has neither tables nor counters per instruction, or its code could not be disassembled.
    """
    found = _read_tables(launch)
    if found is not None:
        return found
    return _count_columns(kernel.functions) if launches == 1 else _count_addresses(kernel, launch)


def _read_tables(launch: Launch) -> Executions | None:
    threads, name = _read_first(launch, THREAD_TABLES)
    warps, warp_name = _read_first(launch, WARP_TABLES)
    if threads:
        return Executions(warps=warps, threads=threads, source=name, are_threads_exact=True)
    return _assume_full_warps(warps, warp_name) if warps else None


def _read_first(launch: Launch, names: Iterable[str]) -> tuple[dict[str, float], str]:
    for name in names:
        metric = launch.metrics.get(name)
        pairs = () if metric is None else zip(metric.instance_ids, metric.instance_values, strict=False)
        found = {
            mnemonic: float(count)
            for mnemonic, count in pairs
            if isinstance(mnemonic, str) and not isinstance(count, str) and 0 <= count < float("inf")
        }
        if found:
            return found, name
    return {}, ""


def _count_columns(functions: Iterable[FunctionSamples]) -> Executions | None:
    """Count by the columns of a kernel, which are sums over all its launches."""
    return _gather(
        [
            (function, function.executions, function.counters.get(_THREAD_COUNTER))
            for function in functions
            if function.instructions is not None
        ]
    )


def _count_addresses(kernel: Kernel, launch: Launch) -> Executions | None:
    """Count by the counters of one launch, laid over the kernel's instructions."""
    warps = read_instruction_counts(launch.metrics, WARP_COLUMN)
    threads = read_instruction_counts(launch.metrics, THREAD_COLUMN)
    if warps is None and threads is None:
        return None
    try:
        addresses = build_address_map(launch, kernel.module, kernel.cubin)
    except GpaError:
        return None  # the code beside the samples is of another build, which joining the kernel reports
    rows = []
    for function in kernel.functions:
        if function.instructions is not None and function.name in addresses.names:
            executions = _scatter(function, addresses, warps)
            rows.append(
                (
                    function,
                    np.full(len(function.pc_offsets), -1, np.int64) if executions is None else executions,
                    _scatter(function, addresses, threads),
                )
            )
    return _gather(rows)


def _scatter(
    function: FunctionSamples, addresses: AddressMap, counts: InstructionCounts | None
) -> npt.NDArray[np.int64] | None:
    """int64[n] of one function in the order of its instructions; None when not collected."""
    if counts is None:
        return None
    place = addresses.names.index(function.name)
    inside = (counts[0] >= addresses.starts[place]) & (counts[0] < addresses.ends[place])
    offsets = (counts[0][inside] - addresses.starts[place]).astype(np.int64)
    rows = np.minimum(np.searchsorted(function.pc_offsets, offsets), max(0, len(function.pc_offsets) - 1))
    column = np.zeros(len(function.pc_offsets), np.int64)
    if len(column):
        known = function.pc_offsets[rows] == offsets
        np.add.at(column, rows[known], counts[1][inside][known])
    return column


def _gather(
    rows: list[tuple[FunctionSamples, npt.NDArray[np.int64], npt.NDArray[np.int64] | None]],
) -> Executions | None:
    warps: dict[str, float] = {}
    threads: dict[str, float] = {}
    for function, executions, thread_executions in rows:
        _add(warps, function, executions)
        if thread_executions is not None:
            _add(threads, function, thread_executions)
    if threads:
        return Executions(
            warps=warps, threads=threads, source=f"{THREAD_COLUMN} of each instruction", are_threads_exact=True
        )
    return _assume_full_warps(warps, f"{WARP_COLUMN} of each instruction") if warps else None


def _add(sums: dict[str, float], function: FunctionSamples, column: npt.NDArray[np.int64]) -> None:
    """Add a column to the sums by mnemonic; rows below zero were not counted."""
    instructions = function.instructions
    if instructions is None or not len(column) or int(column.max()) < 0:
        return
    size = len(instructions.mnemonics)
    counted = np.bincount(instructions.mnemonic_index, weights=np.maximum(column, 0), minlength=size)
    for mnemonic, count in zip(instructions.mnemonics, counted.tolist(), strict=True):
        if count:
            sums[mnemonic] = sums.get(mnemonic, 0.0) + count


def _assume_full_warps(warps: dict[str, float], source: str) -> Executions:
    return Executions(
        warps=warps,
        threads={mnemonic: count * WARP_THREADS for mnemonic, count in warps.items()},
        source=f"{source}, with all {WARP_THREADS} threads assumed",
        are_threads_exact=False,
    )


SM_THROUGHPUT, MEMORY_THROUGHPUT = "sm__throughput", "gpu__compute_memory_throughput"

# Which unit of the GPU is busiest, by the profiler's own percentages. Roofs are about bytes and operations. A unit can be full at few of either: each
# access of one sector takes the data stage of L1 as long as one of four does, and a load instruction a turn of its queue however little it loads.
# So a kernel far below all roofs need not wait for latencies.
#
# Source: NVIDIA, Nsight Compute Profiling Guide, Metrics Structure (throughputs and their breakdowns).

# Suffix of a unit's share of its peak, in percent, over all of the launch
ELAPSED_SHARE = ".avg.pct_of_peak_sustained_elapsed"


def list_members(launch: Launch, throughput: str) -> tuple[str, ...]:
    """Names without suffix of the units whose largest share a throughput is; empty when the report does not list them."""
    listed = launch.metrics.get(f"breakdown:{throughput}{ELAPSED_SHARE}")
    if listed is None or not isinstance(listed.value, str):
        return ()
    names = (name.strip() for name in listed.value.split(","))
    return tuple(dict.fromkeys(name.removesuffix(ELAPSED_SHARE) for name in names if name.endswith(ELAPSED_SHARE)))


# Names without suffix. Source: NVIDIA, Nsight Compute Profiling Guide, Metrics Decoder (units, pipelines, quantities).
UNIT_NAMES: dict[str, str] = {
    "sm__inst_executed": "instructions executed",
    "sm__issue_active": "instruction issue",
    "sm__inst_executed_pipe_adu": "address divergence unit",
    "sm__inst_executed_pipe_alu": "ALU pipe (integer adds, logic, comparisons)",
    "sm__inst_executed_pipe_cbu_pred_on_any": "branches and barriers (CBU)",
    "sm__inst_executed_pipe_fp16": "FP16 pipe",
    "sm__inst_executed_pipe_ipa": "attribute interpolation",
    "sm__inst_executed_pipe_lsu": "load and store instructions",
    "sm__inst_executed_pipe_tex": "texture instructions",
    "sm__inst_executed_pipe_uniform": "uniform datapath",
    "sm__inst_executed_pipe_xu": "special functions and conversions (XU)",
    "sm__pipe_alu_cycles_active": "ALU pipe (integer adds, logic, comparisons)",
    "sm__pipe_aluheavy_cycles_active": "ALU pipe, heavy half",
    "sm__pipe_fma_cycles_active": "FMA pipe (FP32, integer multiplications)",
    "sm__pipe_fmaheavy_cycles_active": "FMA pipe, the half that multiplies integers",
    "sm__pipe_fmalite_cycles_active": "FMA pipe, the half without integers",
    "sm__pipe_fp64_cycles_active": "FP64 pipe",
    "sm__pipe_shared_cycles_active": "FP64, FP16 and tensor pipes together",
    "sm__pipe_tensor_cycles_active": "tensor cores",
    "sm__pipe_tensor_op_dmma_cycles_active": "tensor cores in FP64",
    "sm__pipe_tma_cycles_active": "tensor memory accelerator (TMA)",
    "sm__mio_inst_issued": "instructions to memory units (MIO)",
    "sm__mio_pq_read_cycles_active": "MIO queue, reads",
    "sm__mio_pq_write_cycles_active": "MIO queue, writes",
    "sm__mio2rf_writeback_active": "results from memory units to registers",
    "gpu__compute_memory_access_throughput_internal_activity": "memory accesses (a counter NVIDIA does not explain)",
    "idc__request_cycles_active": "indexed constants",
    "dram__cycles_active": "DRAM",
    "fbpa__dram_sectors": "DRAM sectors at the memory controller",
    "l1tex__data_bank_reads": "L1 data banks, reads",
    "l1tex__data_bank_writes": "L1 data banks, writes",
    "l1tex__data_pipe_lsu_wavefronts": "L1 load/store wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": "shared memory wavefronts",
    "l1tex__data_pipe_tex_wavefronts": "L1 wavefronts of textures",
    "l1tex__f_wavefronts": "texture filter",
    "l1tex__lsu_writeback_active": "L1 load results",
    "l1tex__t_output_wavefronts": "L1 tag lookups",
    "l1tex__lsuin_requests": "L1 load/store requests",
    "l1tex__m_l1tex2xbar_req_cycles_active": "L1 to L2, requests and stores",
    "l1tex__m_xbar2l1tex_read_sectors": "L1 fills from L2, sectors",
    "l1tex__tex_writeback_active": "L1 results of textures",
    "l1tex__texin_sm2tex_req_cycles_active": "texture requests",
    "lts__d_atomic_input_cycles_active": "L2 atomics",
    "lts__d_sectors": "L2 data, sectors",
    "lts__d_sectors_fill_device": "L2 fills from DRAM",
    "lts__d_sectors_fill_sysmem": "L2 fills from system memory",
    "lts__lts2xbar_cycles_active": "L2 output to SMs",
    "lts__t_sectors": "L2 sectors",
    "lts__t_tag_requests": "L2 tag lookups",
    "lts__xbar2lts_cycles_active": "L2 input from SMs",
}


def describe_unit(metric: str) -> str:
    """The meaning of a name; the name itself where nothing is known of it.

    >>> describe_unit("sm__issue_active"), describe_unit("lts__unheard_of")
    ('instruction issue', 'lts__unheard_of')
    """
    return UNIT_NAMES.get(metric, metric)


_MOST_RATIO = 2.0  # Counters of several passes exceed 1 by a little; broken files by much


def read_busy_units(launch: Launch) -> dict[str, float]:
    """The profiler's name of a unit, without suffix → share of its peak over the elapsed time; empty when not collected."""
    found = {}
    for throughput in (SM_THROUGHPUT, MEMORY_THROUGHPUT):
        for unit in list_members(launch, throughput):
            percent = read_count(launch, f"{unit}{ELAPSED_SHARE}")
            if percent is not None and percent / 100 <= _MOST_RATIO:
                found[unit] = percent / 100
    return found


def find_busiest(busy_s: Mapping[str, float], duration_s: float, dram_ceiling: float) -> BusyUnit | None:
    """The unit nearest to what it sustains; of equal ones that of the memory. None of nothing.

    >>> find_busiest({"sm__inst_executed_pipe_lsu": 0.7, "l1tex__lsuin_requests": 0.7, "dram__cycles_active": 0.02}, 1.0, 0.95)
    BusyUnit(name='L1 load/store requests', is_memory=True, share_ratio=0.7, ceiling_ratio=0.97)
    """
    ceilings = {"l1tex": L1_CEILING, "lts": L2_CEILING, "dram": dram_ceiling, "fbpa": dram_ceiling, "gpu": 1.0}
    units = [
        BusyUnit(
            name=describe_unit(unit),
            is_memory=unit.partition("__")[0] in ceilings,
            share_ratio=busy / duration_s,
            ceiling_ratio=ceilings.get(unit.partition("__")[0], 1.0),
        )
        for unit, busy in busy_s.items()
    ]
    return max(units, key=lambda unit: (unit.nearness, unit.is_memory), default=None)


def find_device_dram_ceiling(device: Device) -> float:
    """The share of its peak that the DRAM of a device sustains."""
    return find_dram_ceiling(read_attribute(device, "global_memory_bus_width"))
