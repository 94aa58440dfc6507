"""The time of a launch as the hybrid paper estimates it: :func:`estimate_launch`.

The printed model is 64 % off on 24 launches of public reports, the paper's own 17 % on its four GPUs (Table IV). The formulas are the same; what
they leave out is not there on GPUs of one to three SMs that do not cache global memory in L1, or is in what the authors measured with
micro-benchmarks. Each :class:`~gpa_lsp.execution.hybrid.operations.Term` puts one of these back, and all together the 24 are 12 % off, 79 % of them
within 20 % (16 % with six more that call functions, multiply matrices or are traced in part; one of these is 72 % off). With one term left out they
are: L1 14 %, SECTORS 9 %, SHARED_L2 21 %, OPERANDS 27 %, WAVES 27 %, OVERHEAD 28 %. (Sectors are what GPUs move; that lines come out better here is
by two matrix products, whose loads of shared memory the assembler joins.) So the paper must have measured its latencies under load (OVERHEAD), on
kernels of few independent operations in many warps (OPERANDS), and launches of many rounds (WAVES). No constant was fitted for this: all are of the
tables of architectures, of which the simulator's launch figures were fitted on some of the same launches.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from math import ceil, prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.execution.accesses.l2_traffic import (
    BlockPlace,
    L2Cache,
    Sectors,
    list_companions,
    list_distinct,
    measure_traffic,
    place_block,
)
from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.hybrid.contention import RoundUses, simulate_round
from gpa_lsp.execution.hybrid.executed_trace import trace_executed
from gpa_lsp.execution.hybrid.lane_values import Integers
from gpa_lsp.execution.hybrid.operations import (
    EVERY_TERM,
    Costs,
    NeedsDataError,
    Resource,
    Term,
    find_costs,
    find_refusals,
)
from gpa_lsp.execution.hybrid.pipeline import L2Sharing, count_misses, find_hit_ratio, list_uses
from gpa_lsp.execution.hybrid.search import TraceTooLongError
from gpa_lsp.execution.hybrid.walk import (
    BranchMisses,
    KernelTrace,
    LoopBound,
    TracedLaunch,
    walk_kernel,
)
from gpa_lsp.execution.launches.build import check_arguments
from gpa_lsp.execution.launches.launch import (
    LaunchDescription,
    ScalarArgument,
    TextureArgument,
    find_cluster,
    list_arrays,
    list_members,
)
from gpa_lsp.execution.launches.type_names import pack_scalar
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.device.model import Machine, MemoryFacts

_MOST_TURNS = 16  # traced iterations of each outer loop of a launch whose whole trace is too long

_FIRST_ADDRESS = 1 << 32
_ALIGNMENT = 256


def place_arguments(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription
) -> tuple[bytes, Mapping[str, int]]:
    """Parameters with addresses in them, and those of the module's variables: arrays behind each other, as arguments come (Section III-B3).

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
        for at, one in list_members(argument):
            offset = parameter.offset_bytes + at
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


_MOST_ROUNDS = 3  # That are simulated, where more follow each other
_MOST_VISITS = 500_000
_MOST_TRANSACTIONS = 5_000_000
_MOST_OPERATIONS = 40_000_000


class PaperEstimate(Struct, frozen=True, kw_only=True):
    """Estimate of a launch by the paper's model."""

    kernel: str  # mangled name
    cycles: float  # T_kernel of Equation 8, of the SM's clock
    duration_ns: float  # the same in time
    round_cycles: float  # T_pipeline, of one round of active blocks
    blocks_per_sm: int  # N_awg, Equation 7; no more than an SM gets of the launch
    trace_length: float  # operations of a warp, mean over the warps of the round
    hit_ratio: float | None  # of the transactions to constant and global memory; None where there are none
    unknown_ratio: float  # of all transactions, those whose address depends on data; each thread is taken to miss alone
    assumed_branches: int  # that depend on data, and were taken both ways
    is_executed: bool  # its loops, branches and addresses follow the data beside the launch (Section III-B4)
    # iterations of loops outside others that are in the traces, and all, whose further ones cost as much; (0, 0) where all are
    turns: tuple[int, int]
    busiest: Resource  # that is locked longest in a round
    busiest_ratio: float  # of a round, in which it is; where that is little, warps wait for latencies
    # what was traced: blocks of code, loops and branches
    code: tuple["TracedCode", ...]
    loops: tuple[LoopBound, ...]
    branches: tuple[BranchMisses, ...]


class TracedCode(Struct, frozen=True, kw_only=True):
    """A basic block in the traces of a round."""

    lines: tuple[int, int] | None  # first and last; None where unknown
    visits: int  # by warps
    warps: int  # that come to it at all; for the others it is masked out (M of Algorithm 2)
    operations: Mapping[Resource, int]  # of one visit, by what they take


class CompiledKernel(Struct, frozen=True, kw_only=True):
    """Resources of a kernel as compiled: rows 3 and 4 of Table II."""

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
    memory: MemoryFacts,
    terms: frozenset[Term] = EVERY_TERM,
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    loop_bound: int | None = None,
) -> PaperEstimate:
    """Estimate one launch. Its data is used where it is given and decides a loop, a branch or an address.

    Args:
        terms: that are added to the printed model.
        budget: of the search of the trace, and again of its execution.
        loop_bound: iterations of loops that end where the data says; None to have them executed.

    Raises:
        InputError: the paper has no answer, or too little is known of the GPU.
    """
    if prod(find_cluster(function, launch) or ()) > 1:
        raise InputError("the paper has no clusters of blocks, in which this kernel runs")
    sm_count, sm_hz, blocks = machine.sm_count or 1, machine.clocks.sm_hz, prod(launch.grid)
    resident = _count_resident(architecture, launch, compiled, memory.carveout_bytes)
    per_sm = ceil(blocks / sm_count)  # of a launch below a wave, no SM gets more than its share
    active = min(resident, per_sm)
    if active < 1:
        raise InputError(f"no SM of the {machine.name} holds a block of it")
    costs = find_costs(
        architecture,
        machine,
        memory,
        terms=terms,
        active_sms=blocks / per_sm,  # as full as the busiest one, whose time it is
        shared_bytes_per_sm=active * compiled.shared_bytes,
    )
    assert sm_hz is not None  # or its costs would not be known
    chosen = _choose_blocks(launch.grid, active, has_mates=Term.SHARED_L2 in terms)
    find = partial(_trace, module, function, launch, chosen, costs=costs, budget=budget, loop_bound=loop_bound)

    def count(trace: KernelTrace) -> _Counted:
        warps = active * trace.warps_per_block
        sharing = L2Sharing()
        if Term.SHARED_L2 in terms:
            ways = architecture.caches.l2_ways.value
            sharing = find_sharing(
                trace, chosen, launch.grid, memory, ways, active=active, resident=resident * sm_count
            )
        outcomes = count_misses(trace, costs, sharing, warps)
        uses = list_uses(trace, outcomes, costs, warps)
        simulate = partial(simulate_round, uses, trace.warps_per_block, by_operands=Term.OPERANDS in terms)
        round_cycles = simulate()
        return _Counted(
            round_cycles=round_cycles,
            cycles=_count_all_rounds(simulate, round_cycles, per_sm, active, overlap=Term.WAVES in terms),
            length=float(np.mean(trace.lengths[:warps])),
            busiest=_find_busiest(uses, round_cycles),
            hit_ratio=find_hit_ratio(outcomes),
        )

    try:
        trace, is_executed = find()
        counted = count(trace)
    except TraceTooLongError:
        trace, is_executed = find(most_turns=_MOST_TURNS)
        shorter = find(most_turns=_MOST_TURNS // 2)[0]
        if trace.turns[0] in (trace.turns[1], shorter.turns[0]):
            raise
        counted = _carry_on(count(trace), count(shorter), trace.turns, shorter.turns[0])
    warps, cycles = active * trace.warps_per_block, counted.cycles
    if Term.OVERHEAD in terms:
        figures = architecture.simulation
        cycles = max(cycles, blocks / figures.launched_blocks_per_cycle.value) + figures.launch_cycles.value
    return PaperEstimate(
        kernel=function.name,
        cycles=cycles,
        duration_ns=cycles / sm_hz * 1e9,
        round_cycles=counted.round_cycles,
        blocks_per_sm=active,
        trace_length=counted.length,
        hit_ratio=counted.hit_ratio,
        unknown_ratio=trace.unknown_ratio,
        assumed_branches=len(trace.assumed),
        is_executed=is_executed,
        turns=trace.turns,
        busiest=counted.busiest[0],
        busiest_ratio=counted.busiest[1],
        code=_list_code(trace, warps),
        loops=trace.loops,
        branches=trace.branches,
    )


class _Counted(Struct, frozen=True, kw_only=True):
    """Time of all rounds by one trace."""

    round_cycles: float  # of one round
    cycles: float  # of all
    length: float  # operations of a warp, mean
    busiest: tuple[Resource, float]  # and its share of a round
    hit_ratio: float | None  # see :class:`PaperEstimate`


def _carry_on(longer: _Counted, shorter: _Counted, turns: tuple[int, int], before: int) -> _Counted:
    """Time with all iterations, where those that are left out cost as much as the second half of those that are traced.

    Args:
        turns: iterations in the longer trace, and all.
        before: iterations in the shorter trace.
    """
    left_ratio = (turns[1] - turns[0]) / (turns[0] - before)
    return replace(
        longer,
        round_cycles=longer.round_cycles + (longer.round_cycles - shorter.round_cycles) * left_ratio,
        cycles=longer.cycles + (longer.cycles - shorter.cycles) * left_ratio,
        length=longer.length + (longer.length - shorter.length) * left_ratio,
    )


def _count_all_rounds(
    simulate: Callable[..., float], round_cycles: float, per_sm: int, active: int, *, overlap: bool
) -> float:
    """Cycles of all blocks of an SM, by Equation 8; or with rounds that overlap, of which some are simulated and the others go on like these."""
    if not overlap or per_sm <= active:
        return round_cycles * per_sm / active
    count = min(per_sm, _MOST_ROUNDS * active)
    cycles = simulate(blocks=count)
    return cycles + (cycles - round_cycles) * (per_sm - count) / max(1, count - active)


def _find_busiest(uses: RoundUses, round_cycles: float) -> tuple[Resource, float]:
    """The resource that is held longest, and its share of a round."""
    held = Counter[Resource]()
    for one, count in zip(uses.table, np.bincount(uses.numbers, minlength=len(uses.table)).tolist(), strict=True):
        held[one.resource] += one.locked_cycles * count
    busiest = max(held, key=held.__getitem__, default=Resource.ARITHMETIC)
    return busiest, held[busiest] / max(1.0, round_cycles)


def _list_code(trace: KernelTrace, warps: int) -> tuple[TracedCode, ...]:
    """The basic blocks that are visited, in order of the code."""
    visits: dict[int, Integers] = {}
    for step in trace.steps:
        visits[step.node] = visits.get(step.node, 0) + step.warps[:warps].astype(np.int64)
    return tuple(
        TracedCode(
            lines=trace.lines[node],
            visits=int(counts.sum()),
            warps=int(np.count_nonzero(counts)),
            operations=Counter(one.operation.resource for one in trace.bodies[node] if one.operation is not None),
        )
        for node, counts in sorted(visits.items())
    )


def _choose_blocks(grid: BlockPlace, active: int, *, has_mates: bool) -> list[int]:
    """One round of active blocks in the middle of the grid, then those that show what others read as well."""
    first = (prod(grid) - active) // 2
    own = range(first, first + active)
    return [*own, *sorted(set(list_companions(grid, first)) - set(own) if has_mates else ())]


def find_sharing(
    trace: KernelTrace,
    chosen: Sequence[int],
    grid: BlockPlace,
    memory: MemoryFacts,
    ways: int,
    *,
    active: int,
    resident: int,
) -> L2Sharing:
    """Find what SMs share in L2, by a round of blocks and the mates of its first one behind it.

    Args:
        active: blocks of the round.
        resident: blocks that all SMs hold at once.
    """
    reads: list[list[Sectors]] = [[] for _ in chosen]
    written: list[list[Sectors]] = [[] for _ in chosen]
    for step in trace.steps:
        for operation, access in step.operations:
            if access is None or operation.resource is not Resource.GLOBAL:
                continue
            ends = access.starts[:: trace.warps_per_block]
            listed = written if operation.is_store else reads
            for own, first, last in zip(listed, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
                own.append(access.places[first:last])
    places = [place_block(grid, one) for one in chosen]
    touched = [dict(zip(places, one, strict=True)) for one in (reads, written)]
    l2 = L2Cache(size_bytes=memory.l2_bytes, ways=ways)
    (_, _, fetched), (_, _, stored) = measure_traffic(touched, grid, places[0], l2, resident=resident)
    blocks, written_bytes = prod(grid), SECTOR_BYTES * stored
    written_ratio = memory.find_leaving_bytes(written_bytes) / written_bytes if written_bytes else 0.0
    (of_round,) = list_distinct({places[0]: [*chain.from_iterable(reads[:active])]}).values()
    asked = len(of_round) * blocks / active
    if not asked:
        return L2Sharing(written_ratio=written_ratio)
    kept = min(1.0, fetched / asked)
    return L2Sharing(
        hit_ratio=1.0 - kept, written_ratio=written_ratio, lines_ratio=min(1.0, active / (kept * resident))
    )


def _trace(
    module: PtxModule,
    function: PtxFunction,
    launch: LaunchDescription,
    chosen: Sequence[int],
    *,
    costs: Costs,
    budget: Budget,
    loop_bound: int | None,
    most_turns: int | None = None,
) -> tuple[KernelTrace, bool]:
    """The traces, and whether they were executed: where data decides, but not where it is a guess, a bound is given or iterations are left out.

    What is too long to be executed keeps the trace that was searched, with both ways of its branches on data. Where functions are called,
    executing comes first, which knows whether threads come to them.
    """
    parameters, addresses = place_arguments(module, function, launch)
    traced = TracedLaunch(
        grid=launch.grid,
        block=launch.block,
        parameters=parameters,
        addresses=addresses,
        chosen=chosen,
        transaction_bytes=costs.transaction_bytes,
        tags_per_cycle=costs.tags_per_cycle,
        most_visits=_MOST_VISITS,
        most_transactions=_MOST_TRANSACTIONS,
        most_operations=_MOST_OPERATIONS,
        seconds=budget.seconds,
        loop_bound=loop_bound,
        most_turns=most_turns,
    )
    is_known = (
        loop_bound is None
        and most_turns is None
        and not {one.name for one in list_arrays(launch)} & set(launch.guesses)
    )
    found: KernelTrace | None = None
    calls = any(isinstance(one, NeedsDataError) for one in find_refusals(function).values())
    try:
        found = None if calls and is_known else walk_kernel(function, traced)
    except NeedsDataError:
        if not is_known:
            raise
    if found is not None and (not is_known or not (found.assumed or found.unknown_ratio)):
        return found, False
    try:
        return trace_executed(module, function, launch, traced, budget), True
    except TraceTooLongError:
        if found is None:
            raise
        return found, False


def _count_resident(
    architecture: Architecture, launch: LaunchDescription, compiled: CompiledKernel, carveout_bytes: int | None
) -> int:
    """Equations 1 to 7, as the vendor has them."""
    shape = BlockShape(
        threads=prod(launch.block), registers_per_thread=compiled.registers, shared_bytes=compiled.shared_bytes
    )
    return find_occupancy(architecture, shape, carveout_bytes).blocks_per_sm
