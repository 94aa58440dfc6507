"""The time of a launch as the hybrid paper estimates it: :func:`estimate_launch`.

Of 30 launches of public reports six call functions or multiply matrices, for which the paper has no operation. The cycles of the other 24 are 64 %
off on average, those of half of them 26 % at most; the paper's own are 17 % off on average, on GPUs without L1 for global memory.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import ceil, prod

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.execution.hybrid.lane_values import Integers
from gpa_lsp.execution.hybrid.operations import Arithmetic, Operation, Resource
from gpa_lsp.execution.hybrid.walk import Access, KernelTrace, TracedLaunch, walk_kernel
from gpa_lsp.execution.launches.build import check_arguments
from gpa_lsp.execution.launches.launch import (
    Argument,
    ArrayArgument,
    LaunchDescription,
    ScalarArgument,
    StructArgument,
    TextureArgument,
)
from gpa_lsp.execution.launches.type_names import pack_scalar
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.arch.sections import Figure, Unknown
from gpa_lsp.gpu.device.model import Machine, MemoryLevel

# Which transactions hit (Section III-B3): :func:`count_misses`.
#
# Both caches replace what was used longest ago. The paper gives no order in which the warps of a round reach memory; here they take turns, block by
# basic block of the trace.


class AccessOutcome(ColumnRecord, frozen=True, kw_only=True):
    """The transactions of one execution of an instruction: int64[warps] each."""

    hits: Integers
    misses: Integers


class _RecentlyUsed:
    """A cache that holds the lines used last. Source: reuse distance, as the paper's reference 23."""

    def __init__(self, lines: int) -> None:
        self._lines = max(1, lines)
        self._held: OrderedDict[int, None] = OrderedDict()

    def touch(self, line: int) -> bool:
        """Whether it was there."""
        if line in self._held:
            self._held.move_to_end(line)
            return True
        self._held[line] = None
        if len(self._held) > self._lines:
            self._held.popitem(last=False)
        return False


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

    arithmetic: Mapping[Arithmetic, ArithmeticCost]  # of each class
    shared: MemoryCost  # of shared memory, which has no cache
    constant: MemoryCost  # of constant memory
    global_memory: MemoryCost  # of global memory behind L2; L1 is not modelled (Section III-B3)
    line_bytes: int  # of both caches
    l2_bytes: int  # of L2
    constant_bytes: int  # of the bank of constants, which is taken to be cached whole


def count_misses(trace: KernelTrace, costs: Costs) -> list[tuple[AccessOutcome | None, ...]]:
    """Hits and misses of every operation of every step; None for those whose memory has no cache."""
    caches = {
        Resource.GLOBAL: _RecentlyUsed(costs.l2_bytes // costs.line_bytes),
        Resource.CONSTANT: _RecentlyUsed(costs.constant_bytes // costs.line_bytes),
    }
    return [
        tuple(None if access is None else _count(access, caches[one.resource]) for one, access in step.operations)
        for step in trace.steps
    ]


def find_hit_ratio(outcomes: Sequence[Sequence[AccessOutcome | None]]) -> float | None:
    """Of all transactions, those that hit; None where there are none."""
    known = [one for own in outcomes for one in own if one is not None]
    hits = sum(int(one.hits.sum()) for one in known)
    misses = sum(int(one.misses.sum()) for one in known)
    return hits / (hits + misses) if hits + misses else None


def _count(access: Access, cache: _RecentlyUsed) -> AccessOutcome:
    is_hit = np.fromiter(map(cache.touch, access.lines.tolist()), dtype=np.int64, count=len(access.lines))
    before = np.concatenate(([0], np.cumsum(is_hit)))
    hits = before[access.starts[1:]] - before[access.starts[:-1]]
    return AccessOutcome(hits=hits, misses=np.diff(access.starts) - hits + access.unknown)


# The simulation of a round of blocks on one SM: :func:`simulate_round` (Section IV-B, Figure 2).
#
# A warp that comes to an operation locks what it needs, or waits until that is free; who came first is first, which the paper leaves open. Time
# goes
# on by the least that any warp has named, which is the next event of a queue: the same order, without asking every warp at every step.


class Use(Struct, frozen=True):
    """What an operation of a warp takes."""

    resource: Resource  # to be locked; a barrier is none
    before_cycles: float  # before it needs the resource (the paper's pre-waiting latency)
    locked_cycles: float  # for which it holds it (the delay)
    after_cycles: float  # until the warp goes on (the post-waiting latency)


_BARRIER = Use(Resource.BARRIER, 0.0, 0.0, 0.0)


def list_uses(
    trace: KernelTrace, outcomes: Sequence[Sequence[AccessOutcome | None]], costs: Costs, warps: int
) -> list[list[Use]]:
    """The operations of each warp, priced."""
    arithmetic = {
        kind: Use(Resource.ARITHMETIC, 0.0, max(cost.interval_cycles, cost.latency_cycles / warps), 0.0)
        for kind, cost in costs.arithmetic.items()
    }
    shared = _price(Resource.SHARED, costs.shared, 1, 0)
    found: list[list[Use]] = [[] for _ in trace.lengths]
    for step, own in zip(trace.steps, outcomes, strict=True):
        active = step.warps.nonzero()[0].tolist()
        for (operation, _), outcome in zip(step.operations, own, strict=True):
            if operation.arithmetic is not None:
                use = arithmetic[operation.arithmetic]
            elif operation.resource is Resource.BARRIER:
                use = _BARRIER
            elif operation.resource is Resource.SHARED:
                use = shared
            elif outcome is None:
                continue  # a thread's own memory: registers, as the paper has it
            else:
                _add_accesses(found, active, operation, outcome, costs)
                continue
            for warp in active:
                found[warp].append(use)
    return found


def _add_accesses(
    found: list[list[Use]], active: Sequence[int], operation: Operation, outcome: AccessOutcome, costs: Costs
) -> None:
    cost = costs.constant if operation.resource is Resource.CONSTANT else costs.global_memory
    hits, misses = outcome.hits.tolist(), outcome.misses.tolist()
    for warp in active:
        if hits[warp] or misses[warp]:
            found[warp].append(_price(operation.resource, cost, hits[warp], misses[warp]))


def _price(resource: Resource, cost: MemoryCost, hits: int, misses: int) -> Use:
    delay = hits * cost.hit_delay_cycles + misses * cost.miss_delay_cycles
    waiting = max(0.0, (cost.miss_cycles if misses else cost.hit_cycles) - delay) / 2
    return Use(resource, waiting, delay, waiting)


def simulate_round(uses: Sequence[Sequence[Use]], warps_per_block: int) -> float:
    """Cycles until the last warp has ended.

    >>> add = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0)
    >>> load = Use(Resource.GLOBAL, 10.0, 4.0, 10.0)
    >>> simulate_round([[add, load], [add, load]], 2)
    30.0
    """
    free: dict[Resource, float] = {}
    place = [0] * len(uses)
    queue = [(0.0, warp, 0) for warp, own in enumerate(uses) if own]
    waiting: dict[int, list[int]] = {}
    left = [
        sum(bool(one) for one in uses[first : first + warps_per_block])
        for first in range(0, len(uses), warps_per_block)
    ]
    now = 0.0
    while queue:
        now, warp, phase = heappop(queue)
        if place[warp] == len(uses[warp]):
            left[warp // warps_per_block] -= 1
            _open_barrier(warp // warps_per_block, now, queue, waiting, left)
            continue
        use = uses[warp][place[warp]]
        if use.resource is Resource.BARRIER:
            place[warp] += 1
            waiting.setdefault(warp // warps_per_block, []).append(warp)
            _open_barrier(warp // warps_per_block, now, queue, waiting, left)
        elif not phase and use.before_cycles:
            heappush(queue, (now + use.before_cycles, warp, 1))
        else:
            free[use.resource] = max(now, free.get(use.resource, 0.0)) + use.locked_cycles
            place[warp] += 1
            heappush(queue, (free[use.resource] + use.after_cycles, warp, 0))
    return now


def _open_barrier(
    block: int, now: float, queue: list[tuple[float, int, int]], waiting: dict[int, list[int]], left: Sequence[int]
) -> None:
    """Warps that have ended are not waited for."""
    own = waiting.get(block, [])
    if own and len(own) == left[block]:
        for warp in own:
            heappush(queue, (now, warp, 0))
        waiting[block] = []


_FIRST_ADDRESS = 1 << 32
_ALIGNMENT = 256


def place_arguments(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription
) -> tuple[bytes, Mapping[str, int]]:
    """Parameters with addresses in them, and the addresses of the module's variables: arrays behind each other, in the order of the arguments.

    Raises:
        InputError: an argument is missing, too many, or of another size than its parameter.
    """
    arguments = check_arguments(module, function, launch)
    end = _FIRST_ADDRESS
    addresses: dict[str, int] = {}
    for variable in module.variables.values():
        if variable.space in (Space.GLOBAL, Space.CONST):
            addresses[variable.name] = end
            end += -(-variable.size_bytes // _ALIGNMENT) * _ALIGNMENT
    for variable in function.shared:
        addresses[variable.name] = variable.offset_bytes
    places: dict[str, int] = {}
    content = bytearray(max((one.offset_bytes + one.size_bytes for one in function.parameters), default=0))
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        for offset, one in _list_members(argument, parameter.offset_bytes):
            if isinstance(one, ScalarArgument):
                packed = pack_scalar(one.value, one.type)
            elif isinstance(one, TextureArgument):
                continue  # a kernel that reads textures is refused
            else:
                name = one.alias_of or one.name
                if name not in places:
                    places[name] = end
                    end += -(-one.count * one.type.bytes // _ALIGNMENT) * _ALIGNMENT
                packed = (places[name] + one.offset_elements * one.type.bytes).to_bytes(8, "little")
            content[offset : offset + len(packed)] = packed
    return bytes(content), addresses


def _list_members(
    argument: Argument, offset: int
) -> list[tuple[int, ScalarArgument | ArrayArgument | TextureArgument]]:
    if isinstance(argument, StructArgument):
        return [(offset + at, member) for at, member in argument.members]
    return [(offset, argument)]


_MOST_VISITS = 200_000
_MOST_TRANSACTIONS = 5_000_000
_MOST_OPERATIONS = 10_000_000


class PaperEstimate(Struct, frozen=True, kw_only=True):
    """What the paper says of a launch."""

    kernel: str  # mangled name
    cycles: float  # T_kernel of Equation 8, of the SM's clock
    duration_ns: float  # the same in time
    round_cycles: float  # T_pipeline, of one round of active blocks
    blocks_per_sm: int  # N_awg, Equation 7; no more than an SM gets of the launch
    trace_length: float  # operations of a warp, mean over the warps of the round
    hit_ratio: float | None  # of the transactions to constant and global memory; None where there are none
    unknown_ratio: float  # of all transactions, those whose address depends on data; each thread is taken to miss alone
    assumed_branches: int  # that depend on data, and were taken both ways


class CompiledKernel(Struct, frozen=True, kw_only=True):
    """What the compiler says of a kernel: rows 3 and 4 of Table II."""

    registers: int  # of a thread
    shared_bytes: int  # of a block, static and dynamic


def estimate_launch(
    module: PtxModule,
    function: PtxFunction,
    launch: LaunchDescription,
    compiled: CompiledKernel,
    *,
    architecture: Architecture,
    machine: Machine,
    l2_bytes: float | None,
    seconds: float = 20.0,
) -> PaperEstimate:
    """Estimate one launch. Nothing is executed and no data is looked at.

    Args:
        l2_bytes: of the GPU; None where that is not known.
        seconds: for the search of the trace.

    Raises:
        InputError: the paper has no answer, or too little is known of the GPU.
    """
    costs = find_costs(architecture, machine, l2_bytes)
    sm_count, sm_hz = machine.sm_count, machine.clocks.sm_hz
    assert sm_count is not None  # or its costs would not be known
    assert sm_hz is not None
    per_sm = ceil(prod(launch.grid) / sm_count)  # of a launch below a wave, no SM gets more than its share
    active = min(_count_resident(architecture, launch, compiled), per_sm)
    if active < 1:
        raise InputError(f"no SM of the {machine.name} holds a block of it")
    trace = _trace_round(module, function, launch, active, line_bytes=costs.line_bytes, seconds=seconds)
    outcomes = count_misses(trace, costs)
    uses = list_uses(trace, outcomes, costs, len(trace.lengths))
    cycles = simulate_round(uses, trace.warps_per_block)
    whole = cycles * per_sm / active  # Equation 8
    return PaperEstimate(
        kernel=function.name,
        cycles=whole,
        duration_ns=whole / sm_hz * 1e9,
        round_cycles=cycles,
        blocks_per_sm=active,
        trace_length=float(np.mean(trace.lengths)),
        hit_ratio=find_hit_ratio(outcomes),
        unknown_ratio=trace.unknown_ratio,
        assumed_branches=len(trace.assumed),
    )


def _trace_round(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription, active: int, *, line_bytes: int, seconds: float
) -> KernelTrace:
    """The traces of one round of active blocks, in the middle of the grid."""
    first = (prod(launch.grid) - active) // 2
    parameters, addresses = place_arguments(module, function, launch)
    return walk_kernel(
        function,
        TracedLaunch(
            grid=launch.grid,
            block=launch.block,
            parameters=parameters,
            addresses=addresses,
            chosen=range(first, first + active),
            line_bytes=line_bytes,
            most_visits=_MOST_VISITS,
            most_transactions=_MOST_TRANSACTIONS,
            most_operations=_MOST_OPERATIONS,
            seconds=seconds,
        ),
    )


def _count_resident(architecture: Architecture, launch: LaunchDescription, compiled: CompiledKernel) -> int:
    """Equations 1 to 7, as the vendor has them."""
    shape = BlockShape(
        threads=prod(launch.block), registers_per_thread=compiled.registers, shared_bytes=compiled.shared_bytes
    )
    return find_occupancy(architecture, shape).blocks_per_sm


# What each operation costs on a GPU: :class:`Costs`, the paper's LAT (Section IV-A2, Table I).
#
# The paper takes them from micro-benchmarks with every number of active warps. Here they come from the tables of the
# architecture: with w warps an operation holds the arithmetic units for its latency divided by w, and no shorter than
# they need for it; that is what such a benchmark measures.
#
# The paper scales the latency of memory by the ratio of the most warps to those there are, "since all the active warps
# share the memory bandwidth equally" (Section IV-A2). Taken by the letter a lone warp would wait 64 times as long as
# it does. What is shared is the bandwidth, and the lock on the memory shares it: so the delay is the time that the
# bytes of a transaction take at the SM's share of it, and latencies are not scaled.

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
