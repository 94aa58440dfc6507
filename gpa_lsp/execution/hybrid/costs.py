"""What each operation costs on a GPU: :class:`Costs`, the paper's LAT (Section IV-A2, Table I).

The paper takes them from micro-benchmarks with every number of active warps. Here they come from the tables of the architecture: with w warps an
operation holds the arithmetic units for its latency divided by w, and no shorter than they need for it; that is what such a benchmark measures.

The paper scales the latency of memory by the ratio of the most warps to those there are, "since all the active warps share the memory bandwidth
equally" (Section IV-A2). Taken by the letter a lone warp would wait 64 times as long as it does. What is shared is the bandwidth, and the lock on
the memory shares it: so the delay is the time that the bytes of a transaction take at the SM's share of it, and latencies are not scaled.
"""

from collections.abc import Mapping

from msgspec import Struct

from gpa_lsp.execution.hybrid.operations import Arithmetic
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, Unknown
from gpa_lsp.gpu.device.model import Machine, MemoryLevel

_SUB_PARTITIONS = 4
_L2_CYCLES, _DRAM_CYCLES, _SHARED_CYCLES = 220.0, 530.0, 24.0  # Where a table has none
_SM_L2_BYTES_PER_CYCLE = 64.0
# Instructions of the usual path, and how many of them are special functions: counted in what ptxas 13.0 makes of one for sm_80
_INSTRUCTIONS: Mapping[Arithmetic, tuple[int, int]] = {
    Arithmetic.INT_DIVIDE: (18, 2), Arithmetic.LONG_DIVIDE: (70, 3), Arithmetic.SINGLE_DIVIDE: (9, 1),
    Arithmetic.DOUBLE_DIVIDE: (10, 1),
}  # fmt: skip
_DEPENDENT_CYCLES: Mapping[Arithmetic, float] = {
    Arithmetic.DOUBLE: 8.0,
    Arithmetic.DOUBLE_DIVIDE: 8.0,
    Arithmetic.SPECIAL: 18.0,
}
_SIMPLE_CYCLES = 4.0
_SPECIAL_CYCLES = 18.0
_SLOWEST = 1 / 64  # Instructions per cycle and sub-partition of a unit that hardly exists


class ArithmeticCost(Struct, frozen=True, kw_only=True):
    """Of one class."""

    latency_cycles: float  # from one to the next that needs its result
    interval_cycles: float  # for which one holds the units of an SM


class MemoryCost(Struct, frozen=True, kw_only=True):
    """Of a memory."""

    hit_cycles: float  # the whole latency of an access that hits its cache
    miss_cycles: float  # of one that does not
    hit_delay_cycles: float  # for which one transaction holds the memory (the paper's delay)
    miss_delay_cycles: float  # the same, of one that misses


class Costs(Struct, frozen=True, kw_only=True):
    """LAT, in cycles of the SM's clock."""

    arithmetic: Mapping[Arithmetic, ArithmeticCost]  # of each class
    shared: MemoryCost  # of shared memory, which has no cache
    constant: MemoryCost  # of constant memory
    global_memory: MemoryCost  # of global memory behind L2; L1 is not modelled (Section III-B3)
    line_bytes: int  # of both caches
    l2_bytes: int  # of L2
    constant_bytes: int  # of the bank of constants, which is taken to be cached whole


def find_costs(architecture: Architecture, machine: Machine, l2_bytes: float | None) -> Costs:
    """LAT of a GPU.

    Raises:
        InputError: its clocks, bandwidth, SMs or the size of its L2 are not known.
    """
    dram, l2 = machine.find_bandwidth(MemoryLevel.DRAM), machine.find_bandwidth(MemoryLevel.L2)
    sm_hz, sm_count = machine.clocks.sm_hz, machine.sm_count
    if dram is None or dram.bytes_per_s is None or not sm_hz or not sm_count or not l2_bytes:
        message = f"the clocks, the bandwidth or the L2 of the {machine.name} are not known"
        raise InputError(message, remedy="name a GPU with --machine")
    hierarchy, line = architecture.hierarchy, architecture.caches.line_bytes.value
    l2_rate = l2.bytes_per_s if l2 is not None and l2.bytes_per_s else 4 * dram.bytes_per_s
    l2_delay = line / min(_SM_L2_BYTES_PER_CYCLE, l2_rate / sm_hz / sm_count)
    dram_delay = line / min(_SM_L2_BYTES_PER_CYCLE, dram.bytes_per_s / sm_hz / sm_count)
    near, far = hierarchy.l2_near_cycles.value or _L2_CYCLES, hierarchy.dram_tlb_warm_cycles.value or _DRAM_CYCLES
    shared_cycles = hierarchy.shared_cycles.value or _SHARED_CYCLES
    accept = float(architecture.sm.memory_accept_interval_cycles.value)
    constant_hit = float(hierarchy.constant_l1_hit_cycles.value or shared_cycles)
    return Costs(
        arithmetic={one: _find_arithmetic(architecture, one) for one in Arithmetic},
        shared=MemoryCost(
            hit_cycles=shared_cycles, miss_cycles=shared_cycles, hit_delay_cycles=accept, miss_delay_cycles=accept
        ),
        constant=MemoryCost(
            hit_cycles=constant_hit, miss_cycles=far, hit_delay_cycles=accept, miss_delay_cycles=dram_delay
        ),
        global_memory=MemoryCost(
            hit_cycles=near, miss_cycles=far, hit_delay_cycles=l2_delay, miss_delay_cycles=dram_delay
        ),
        line_bytes=line,
        l2_bytes=int(l2_bytes),
        constant_bytes=architecture.caches.constant_bank_bytes.value,
    )


def _find_arithmetic(architecture: Architecture, kind: Arithmetic) -> ArithmeticCost:
    rates = architecture.throughput
    single, special = rates.fp32_instructions_per_cycle, rates.mufu_instructions_per_cycle
    own: Mapping[Arithmetic, Figure[float] | Unknown] = {
        Arithmetic.INT_ADD: rates.int32_add_instructions_per_cycle,
        Arithmetic.INT_MULTIPLY: rates.imad_instructions_per_cycle,
        Arithmetic.INT_DIVIDE: rates.imad_instructions_per_cycle,
        Arithmetic.LONG_DIVIDE: rates.imad_instructions_per_cycle,
        Arithmetic.SHIFT: rates.int32_logic_instructions_per_cycle,
        Arithmetic.HALF: rates.fp16_instructions_per_cycle,
        Arithmetic.DOUBLE: rates.fp64_instructions_per_cycle,
        Arithmetic.DOUBLE_DIVIDE: rates.fp64_instructions_per_cycle,
        Arithmetic.SPECIAL: special,
    }
    rate = own.get(kind, single).value or _SLOWEST
    count, slow = _INSTRUCTIONS.get(kind, (1, 0))
    interval = (count - slow) / rate + slow / special.value
    latency = (count - slow) * _DEPENDENT_CYCLES.get(kind, _SIMPLE_CYCLES) + slow * _SPECIAL_CYCLES
    return ArithmeticCost(latency_cycles=latency, interval_cycles=interval / _SUB_PARTITIONS)
