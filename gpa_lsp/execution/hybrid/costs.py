"""What each operation costs on a GPU: :class:`Costs`, the paper's LAT (Section IV-A2, Table I), by :func:`find_costs`.

The paper takes them from micro-benchmarks with every number of active warps; here they come from the tables of the architecture. With w warps an
operation holds the arithmetic units for its latency divided by w, and no shorter than they need for it: that is what such a benchmark measures.

The paper scales the latency of memory by the ratio of the most warps to those there are, "since all the active warps share the memory bandwidth
equally" (Section IV-A2). Taken by the letter a lone warp would wait 64 times as long as it does. What is shared is the bandwidth, and the lock on the
memory shares it: so the delay is the time that the bytes of a transaction take at the SM's share of it, and latencies are not scaled.
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from gpa_lsp.execution.hybrid.operations import MATRIX_PRODUCTS, Arithmetic
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, Unknown
from gpa_lsp.gpu.device.model import Machine, MemoryFacts, MemoryLevel
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES


class Term(Enum):
    """What the paper's four GPUs, of one to three SMs, had no need of; without any, the model is the printed one."""

    # loads of global memory hit L1 first, which none of the four GPUs lets them do
    L1 = "L1"
    # behind L1 sectors are moved, no lines; L1 and shared memory take a cycle for each wavefront
    SECTORS = "sectors"
    # SMs without blocks leave their bandwidth to the others; what another SM has brought into L2 hits, and L2 keeps of what is stored what it can
    SHARED_L2 = "L2 of all SMs"
    # a warp waits for the operands of an operation, not for the end of the one before it
    OPERANDS = "operands"
    # a block begins where one has ended, not when all of its round have
    WAVES = "waves"
    # DRAM moves less than its peak, blocks are launched at a rate, and the launch takes time
    OVERHEAD = "overhead"


PRINTED: frozenset[Term] = frozenset()
EVERY_TERM = frozenset(Term)
PAPER_ERROR = 0.13  # Mean absolute error with every term, of the cycles of 28 launches of public reports


class ArithmeticCost(Struct, frozen=True, kw_only=True):
    """Cost of one class of arithmetic."""

    latency_cycles: float  # from one to the next that needs its result
    interval_cycles: float  # for which one holds the units of an SM


class MemoryCost(Struct, frozen=True, kw_only=True):
    """Cost of one memory."""

    hit_cycles: float  # the whole latency of an access that hits its cache
    miss_cycles: float  # of one that does not
    hit_delay_cycles: float  # for which one transaction holds the memory (the paper's delay)
    miss_delay_cycles: float  # the same, of one that misses


class Costs(Struct, frozen=True, kw_only=True):
    """LAT, in cycles of the SM's clock."""

    terms: frozenset[Term]  # beside the printed model
    arithmetic: Mapping[Arithmetic, ArithmeticCost]  # of each class
    shared: MemoryCost  # of shared memory, which has no cache
    constant: MemoryCost  # of constant memory
    global_memory: MemoryCost  # of global memory behind L2
    l1_cycles: float  # the whole latency of a load that hits L1
    l1_bytes: int  # 0 where loads do not go through it (Section III-B3)
    tags_per_cycle: int | None  # lines L1 looks up while it hands over no data; None where it does both at once
    transaction_bytes: int  # a line, or a sector
    l2_bytes: int  # of L2
    constant_bytes: int  # of the bank of constants, which is taken to be cached whole


_SUB_PARTITIONS = 4
_L1_CYCLES, _L2_CYCLES, _DRAM_CYCLES, _SHARED_CYCLES = 33.0, 220.0, 530.0, 24.0  # Where a table has none
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
_MATRIX_CYCLES = 18.0
_SLOWEST = 1 / 64  # Instructions per cycle and sub-partition of a unit that hardly exists


def find_costs(
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    *,
    terms: frozenset[Term] = EVERY_TERM,
    active_sms: float | None = None,
    shared_bytes_per_sm: int = 0,
) -> Costs:
    """LAT of a GPU.

    Args:
        active_sms: SMs that have blocks; None for all.
        shared_bytes_per_sm: of all resident blocks.

    Raises:
        InputError: its clocks, bandwidth, SMs or the size of its L2 are not known.
    """
    dram, l2 = machine.find_bandwidth(MemoryLevel.DRAM), machine.find_bandwidth(MemoryLevel.L2)
    sm_hz, sm_count = machine.clocks.sm_hz, machine.sm_count
    if dram is None or dram.bytes_per_s is None or not sm_hz or not sm_count or not memory.l2_bytes:
        message = f"the clocks, the bandwidth or the L2 of the {machine.name} are not known"
        raise InputError(message, remedy="name a GPU with --machine")
    hierarchy, line = architecture.hierarchy, architecture.caches.line_bytes.value
    unit = SECTOR_BYTES if Term.SECTORS in terms else line
    sharing = (active_sms or sm_count) if Term.SHARED_L2 in terms else sm_count
    l2_rate = l2.bytes_per_s if l2 is not None and l2.bytes_per_s else 4 * dram.bytes_per_s
    dram_rate = dram.bytes_per_s * (memory.achieved_ratio if Term.OVERHEAD in terms else 1.0)
    l2_delay, dram_delay = (unit / min(_SM_L2_BYTES_PER_CYCLE, rate / sm_hz / sharing) for rate in (l2_rate, dram_rate))
    near, far = hierarchy.l2_near_cycles.value or _L2_CYCLES, hierarchy.dram_tlb_warm_cycles.value or _DRAM_CYCLES
    shared_cycles = hierarchy.shared_cycles.value or _SHARED_CYCLES
    accept = float(architecture.sm.memory_accept_interval_cycles.value)
    constant_hit = float(hierarchy.constant_l1_hit_cycles.value or shared_cycles)
    l1_bytes = memory.find_l1_bytes(architecture, shared_bytes_per_sm) if Term.L1 in terms else 0
    return Costs(
        terms=terms,
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
        l1_cycles=hierarchy.l1_hit_cycles.value or _L1_CYCLES,
        l1_bytes=l1_bytes,
        tags_per_cycle=architecture.caches.l1_tags_per_cycle.value,
        transaction_bytes=unit,
        l2_bytes=int(memory.l2_bytes),
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
        Arithmetic.LOGIC: rates.int32_logic_instructions_per_cycle,
        Arithmetic.HALF: rates.fp16_instructions_per_cycle,
        Arithmetic.DOUBLE: rates.fp64_instructions_per_cycle,
        Arithmetic.DOUBLE_DIVIDE: rates.fp64_instructions_per_cycle,
        Arithmetic.SPECIAL: special,
    }
    products: Mapping[Arithmetic, Figure[float] | Unknown] = {
        Arithmetic.MATRIX_F16: rates.tensor_fp16_flops_per_cycle,
        Arithmetic.MATRIX_F32: rates.tensor_fp16_fp32_flops_per_cycle,
        Arithmetic.MATRIX_TF32: rates.tensor_tf32_flops_per_cycle,
        Arithmetic.MATRIX_INT8: rates.tensor_int8_ops_per_cycle,
    }
    if kind in products:
        interval = 2 * MATRIX_PRODUCTS / (products[kind].value or _SUB_PARTITIONS)
        return ArithmeticCost(latency_cycles=max(_MATRIX_CYCLES, _SUB_PARTITIONS * interval), interval_cycles=interval)
    rate = own.get(kind, single).value or _SLOWEST
    count, slow = _INSTRUCTIONS.get(kind, (1, 0))
    interval = (count - slow) / rate + slow / special.value
    latency = (count - slow) * _DEPENDENT_CYCLES.get(kind, _SIMPLE_CYCLES) + slow * _SPECIAL_CYCLES
    return ArithmeticCost(latency_cycles=latency, interval_cycles=interval / _SUB_PARTITIONS)
