"""The traces of warps by the data beside a launch: :func:`trace_executed`.

"The dynamic execution flow can also be determined if all the input data are known in advance", at the price of "the step-by-step simulation of the
program execution" (the hybrid paper, Section III-B4). The emulator does that; what comes out is the trace a search would give if it knew every
condition (Section III-B1), with the functions that are called in it. A block's own instructions behind a call come before those of the function.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxFunction, PtxInstruction, PtxModule
from gpa_lsp.code.ptx.static_instructions import list_reachable
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, FaultKind, Sampling, SamplingKind, TraceSettings
from gpa_lsp.execution.emulator.trace import Accesses, Entries, Trace
from gpa_lsp.execution.hybrid.lane_values import Integers, Value
from gpa_lsp.execution.hybrid.operations import Operation, Part, find_lines, list_operations, list_parts
from gpa_lsp.execution.hybrid.walk import (
    ACCESSED,
    WARP_THREADS,
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

_LANES = np.arange(WARP_THREADS, dtype=np.uint32)
_EXECUTION_BITS = 32

Column = npt.NDArray[np.uint32] | Integers


def trace_executed(
    module: PtxModule, function: PtxFunction, description: LaunchDescription, launch: TracedLaunch, budget: Budget
) -> KernelTrace:
    """The traces of the chosen blocks' warps, executed.

    Args:
        budget: of the emulator.

    Raises:
        InputError: what is executed has no operation in the paper, goes wrong, or is more than may be.
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
        ends = [one.message for one in emulation.faults if one.is_fatal or one.kind is FaultKind.TRACE_BUDGET]
        raise InputError("; ".join(["its trace does not follow from its data", *ends[:1]]))
    return _Executed(trace, bodies, launch).build()


class _Bodies(ColumnRecord, frozen=True, kw_only=True):
    """The basic blocks of a kernel and what it calls, numbered as in a trace."""

    parts: list[tuple[Part, ...]]
    lines: list[tuple[int, int] | None]
    instructions: list[PtxInstruction]
    loops: list[tuple[int, frozenset[int]]]  # header and members of each


def _list_bodies(module: PtxModule, function: PtxFunction) -> _Bodies:
    found = _Bodies(parts=[], lines=[], instructions=[], loops=[])
    first_register = 0
    for one in list_reachable(module, function.name):
        first, first_node, blocks = len(found.instructions), len(found.parts), find_blocks(one)
        operations = {
            index: replace(operation, instruction=first + index)
            for index, operation in list_operations(one, is_executed=True).items()
        }
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
        self._per_block = -(-launch.block[0] * launch.block[1] * launch.block[2] // WARP_THREADS)
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
        """All of it."""
        entries = self._trace.entries
        warps, nodes = self._number(entries), entries.basic_block.astype(np.int64)
        turns = _count_before(warps)
        executions = _count_before(warps * len(self._bodies.parts) + nodes)
        order = np.lexsort((nodes, turns))
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = (np.diff(turns[order]) != 0) | (np.diff(nodes[order]) != 0)
        lengths = np.zeros(self._warps, dtype=np.int64)
        steps = []
        for rows in np.split(order, np.flatnonzero(is_first)[1:]):
            node = int(nodes[rows[0]])
            operations = [one.operation for one in self._bodies.parts[node] if one.operation is not None]
            active = np.zeros(self._warps, dtype=np.bool_)
            active[warps[rows]] = True
            lengths[warps[rows]] += len(operations)
            if lengths.sum() > self._launch.most_operations:
                raise InputError(
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
        numbers = np.zeros((self._warps, WARP_THREADS), dtype=np.int64)
        active = np.zeros((self._warps, WARP_THREADS), dtype=np.bool_)
        keys = self._make_keys(warps, np.full(len(warps), operation.instruction), executions)
        places = np.minimum(np.searchsorted(self._sorted, keys), max(0, len(self._sorted) - 1))
        if len(self._sorted):
            is_there = self._sorted[places] == keys
            rows, warps = self._order[places[is_there]], warps[is_there]
            accesses = self._trace.accesses
            lanes = (accesses.lane_mask[rows, None] >> _LANES & 1).astype(np.bool_)
            counts = lanes.sum(axis=1)
            starts = accesses.first_address[rows].astype(np.int64)
            among = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            own = np.zeros(lanes.shape, dtype=np.int64)
            own[lanes] = accesses.addresses[np.repeat(starts, counts) + among].astype(np.int64)
            numbers[warps], active[warps] = own, lanes
        value = Value(numbers.ravel(), np.ones(self._warps * WARP_THREADS, dtype=np.bool_))
        return find_transactions(value, active.ravel(), operation, self._launch)


def _count_before(keys: Integers) -> Integers:
    """How many of the elements before it each is equal to.

    >>> _count_before(np.array([7, 5, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(keys) else np.zeros(0, int)
    counts = np.diff(np.append(starts, len(keys)))
    found = np.empty(len(keys), dtype=np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(starts, counts)
    return found
