"""Traces of warps that are executed with a launch's data: :func:`trace_executed`.

Source: the hybrid paper, Section III-B4.
"""

from collections.abc import Iterator
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxFunction, PtxInstruction, PtxModule
from gpa_lsp.code.ptx.static_instructions import list_reachable
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.accesses.lane_addresses import spread_lanes
from gpa_lsp.execution.accesses.references import count_before
from gpa_lsp.execution.accesses.request_kinds import find_equal_rows
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import (
    Accesses,
    Budget,
    Entries,
    FaultKind,
    Sampling,
    SamplingKind,
    Trace,
    TraceSettings,
)
from gpa_lsp.execution.hybrid.lane_values import Integers, Value
from gpa_lsp.execution.hybrid.operations import (
    NeedsDataError,
    Operation,
    Part,
    find_lines,
    find_refusals,
    list_operations,
    list_parts,
)
from gpa_lsp.execution.hybrid.search import TraceTooLongError
from gpa_lsp.execution.hybrid.walk import (
    ACCESSED,
    Access,
    BranchMisses,
    KernelTrace,
    LoopBound,
    Step,
    TracedLaunch,
    find_transactions,
)
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.records import ColumnRecord

_EXECUTION_BITS = 32
_LIMITS = frozenset(
    {FaultKind.TIME_BUDGET, FaultKind.INSTRUCTION_BUDGET, FaultKind.MEMORY_BUDGET, FaultKind.TRACE_BUDGET}
)

Column = npt.NDArray[np.uint32] | Integers


def trace_executed(
    module: PtxModule, function: PtxFunction, description: LaunchDescription, launch: TracedLaunch, budget: Budget
) -> KernelTrace:
    """The traces of the chosen blocks' warps, executed with the launch's data.

    "The dynamic execution flow can also be determined if all the input data are known in advance", at the price of "the step-by-step simulation of
    the program execution" (the hybrid paper, Section III-B4). The emulator does that; what comes out is the trace a search would give if it knew
    every condition (Section III-B1), with the functions that are called in it. A block's own instructions behind a call come before those of the
    function.

    Args:
        budget: of the emulator.

    Raises:
        TraceTooLongError: what is executed is more than may be.
        InputError: it has no operation in the paper, or goes wrong.
    """
    bodies = _list_bodies(module, function)
    emulation = emulate(
        module,
        description,
        budget=budget,
        sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=tuple(launch.chosen)),
        trace=TraceSettings(entries=True),
        check_races=False,
    )
    trace = emulation.trace
    if trace is None or not trace.is_complete or not emulation.is_complete:
        ends = [one for one in emulation.faults if one.is_fatal or one.kind is FaultKind.TRACE_BUDGET]
        message = "; ".join(["its trace does not follow from its data", *(one.message for one in ends[:1])])
        raise (TraceTooLongError if ends and ends[0].kind in _LIMITS else InputError)(message)
    return _Executed(trace, bodies, launch).build()


class _Bodies(ColumnRecord, frozen=True, kw_only=True):
    """The basic blocks of a kernel and what it calls, numbered as in a trace."""

    parts: list[tuple[Part, ...]]
    lines: list[tuple[int, int] | None]
    instructions: list[PtxInstruction]
    loops: list[tuple[int, frozenset[int]]]  # header and members of each
    refusals: dict[int, InputError]  # by block, for those that hold what the paper has no operation for


def _list_bodies(module: PtxModule, function: PtxFunction) -> _Bodies:
    found = _Bodies(parts=[], lines=[], instructions=[], loops=[], refusals={})
    first_register = 0
    for one in list_reachable(module, function.name):
        first, first_node, blocks = len(found.instructions), len(found.parts), find_blocks(one)
        operations = {
            index: replace(operation, instruction=first + index) for index, operation in list_operations(one).items()
        }
        for index, refusal in find_refusals(one).items():
            if not isinstance(refusal, NeedsDataError):
                found.refusals.setdefault(first_node + blocks.block_of[index], refusal)
        forest = RootedGraph(blocks.successors, [0]).find_loops()
        for loop, members in zip(forest.loops, forest.list_members(), strict=True):
            found.loops.append((first_node + loop.header, frozenset(first_node + node for node in members)))
        for start, end in zip(blocks.first, blocks.last, strict=True):
            own = one.instructions[start : end + 1]
            found.parts.append(list_parts(own, operations, first_register))
            found.lines.append(find_lines(own))
        found.instructions.extend(one.instructions)
        first_register += len(one.registers)
    return found


class _Executed:
    """Steps of what warps did at the same time: the n-th basic block of each."""

    def __init__(self, trace: Trace, bodies: _Bodies, launch: TracedLaunch) -> None:
        self._trace, self._bodies, self._launch = trace, bodies, launch
        self._per_block = -(-prod(launch.block) // WARP_LANES)
        self._warps = self._per_block * len(launch.chosen)
        self._chosen = np.array(launch.chosen, dtype=np.int64)
        self._by_number = np.argsort(self._chosen)
        # without regard to who called the function that holds it
        self._same = np.array([one.index if one.same_as is None else one.same_as for one in trace.instructions])
        accesses = trace.accesses
        keys = self._make_keys(self._number(accesses), self._same[accesses.instruction], accesses.execution)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]

    def _number(self, rows: Accesses | Entries) -> Integers:
        """The warp of each row, over all chosen blocks."""
        place = self._by_number[np.searchsorted(self._chosen[self._by_number], rows.block)]
        return np.asarray(place * self._per_block + rows.warp, dtype=np.int64)

    def _make_keys(self, warps: Integers, instruction: Column, execution: Column) -> Integers:
        numbers = instruction.astype(np.int64) * self._warps + warps
        return np.asarray(numbers << _EXECUTION_BITS | execution.astype(np.int64), dtype=np.int64)

    def build(self) -> KernelTrace:
        """Build the trace of all chosen blocks."""
        entries = self._trace.entries
        warps, nodes = self._number(entries), entries.basic_block.astype(np.int64)
        everything = np.ones(len(warps), dtype=np.bool_)
        turns = count_before(find_equal_rows(warps), everything)
        executions = count_before(find_equal_rows(warps, nodes), everything)
        order = np.lexsort((nodes, turns))
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = (np.diff(turns[order]) != 0) | (np.diff(nodes[order]) != 0)
        lengths = np.zeros(self._warps, dtype=np.int64)
        steps = []
        for rows in np.split(order, np.flatnonzero(is_first)[1:]):
            node = int(nodes[rows[0]])
            if node in self._bodies.refusals:
                raise self._bodies.refusals[node]
            operations = [one.operation for one in self._bodies.parts[node] if one.operation is not None]
            active = np.zeros(self._warps, dtype=np.bool_)
            active[warps[rows]] = True
            lengths[warps[rows]] += len(operations)
            if lengths.sum() > self._launch.most_operations:
                raise TraceTooLongError(
                    f"the traces of its warps have more than the {self._launch.most_operations} operations that are simulated"
                )
            found = tuple((one, self._access(one, warps[rows], executions[rows])) for one in operations)
            steps.append(Step(node=node, warps=active, operations=found))
        return KernelTrace(
            steps=tuple(steps),
            bodies=self._bodies.parts,
            lines=self._bodies.lines,
            loops=tuple(self._find_bounds(warps, nodes)),
            branches=tuple(self._find_misses()),
            warps_per_block=self._per_block,
            lengths=lengths,
            unknown_ratio=0.0,
            assumed=(),
        )

    def _find_bounds(self, warps: Integers, nodes: Integers) -> Iterator[LoopBound]:
        order = np.argsort(warps, kind="stable")
        warps, nodes = warps[order], nodes[order]
        for header, members in self._bodies.loops:
            is_inside = np.isin(nodes, list(members))
            comes_in = np.ones(len(nodes), dtype=np.bool_)
            comes_in[1:] = ~is_inside[:-1] | (warps[1:] != warps[:-1])
            is_header = nodes == header
            counts = np.bincount(np.cumsum(comes_in & is_inside)[is_header])
            if counts.any():
                inner = [one for node in members if (one := self._bodies.lines[node]) is not None]
                lines = (min(one[0] for one in inner), max(one[1] for one in inner)) if inner else None
                yield LoopBound(lines=lines, least=int(counts[counts > 0].min()), most=int(counts.max()))

    def _find_misses(self) -> Iterator[BranchMisses]:
        rows = self._trace.branches
        numbers = self._same[rows.instruction]
        for number in np.unique(numbers).tolist():
            own = numbers == number
            active, taken = rows.active_mask[own], rows.taken_mask[own]
            yield BranchMisses(
                lines=find_lines((self._bodies.instructions[number],)),
                visits=len(active),
                jumping=int(np.count_nonzero(taken)),
                passing=int(np.count_nonzero(active & ~taken)),
            )

    def _access(self, operation: Operation, warps: Integers, executions: Integers) -> Access | None:
        if operation.resource not in ACCESSED:
            return None
        numbers = np.zeros((self._warps, WARP_LANES), dtype=np.int64)
        active = np.zeros((self._warps, WARP_LANES), dtype=np.bool_)
        keys = self._make_keys(warps, np.full(len(warps), operation.instruction), executions)
        places = np.minimum(np.searchsorted(self._sorted, keys), max(0, len(self._sorted) - 1))
        if len(self._sorted):
            is_there = self._sorted[places] == keys
            rows, warps = self._order[places[is_there]], warps[is_there]
            own, active[warps] = spread_lanes(self._trace.accesses, rows)
            numbers[warps] = own.view(np.int64)
        value = Value(numbers.ravel(), np.ones(self._warps * WARP_LANES, dtype=np.bool_))
        return find_transactions(value, active.ravel(), operation, self._launch)
