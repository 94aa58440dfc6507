"""Traces of the warps of some blocks, from a kernel's PTX and a launch: :func:`walk_kernel`.

Source: the hybrid paper, Section III; bounds and branches that depend on data are given, or executed (Section III-B4). A
branch whose condition follows from the launch, the thread's index and the counters of loops is taken by the threads for
which it holds; on any other both ways are taken ("always hit", Section III-B1), and registers that either way writes are
unknown where the ways meet and on the other way. A loop iterates as often as its longest thread does, by the exits that
are known; where none is, as often as is given, or the kernel is refused.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.control_flow.graph import RootedGraph, reverse_edges
from gpa_lsp.code.ptx.blocks import PtxBlocks, find_blocks
from gpa_lsp.code.ptx.model import PtxFunction, PtxInstruction, list_reads, list_writes
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES, count_request_cycles, count_wavefronts
from gpa_lsp.execution.hybrid.lane_values import Integers, LaneValues, Marks, Value
from gpa_lsp.execution.hybrid.operations import (
    NeedsDataError,
    Operation,
    Part,
    Resource,
    find_lines,
    find_refusals,
    list_operations,
    list_parts,
)
from gpa_lsp.execution.hybrid.search import SearchGraph, TraceTooLongError, build_search_graph, search_trace
from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.foundation.work_time import work_time

ACCESSED = (Resource.GLOBAL, Resource.CONSTANT, Resource.SHARED)
_ENDS = frozenset({"ret", "exit", "trap"})


class Access(ColumnRecord, frozen=True, kw_only=True):
    """The transactions of one execution of one instruction, by all warps; none with shared memory."""

    places: Integers  # int64[transactions], numbers of cache lines or sectors, warp by warp
    starts: Integers  # int64[warps + 1], where those of each warp begin
    unknown: Integers  # int64[warps], further ones, whose address is not known
    passes: Integers  # int64[warps], cycles of L1 or shared memory; 0 of warps without an active thread


class Step(ColumnRecord, frozen=True, kw_only=True):
    """A basic block of the trace with something that takes time."""

    node: int  # its number
    warps: Marks  # bool[warps], those that execute it
    # in order, each with its transactions where it is an access
    operations: tuple[tuple[Operation, Access | None], ...]


class LoopBound(Struct, frozen=True, kw_only=True):
    """Iterations of the loops with one header (Section III-A2)."""

    lines: tuple[int, int] | None  # first and last; None where unknown
    least: int  # iterations, each time that warps come to it
    most: int
    is_given: bool = False  # by the user, because it ends where the data says


class BranchMisses(Struct, frozen=True, kw_only=True):
    """Warps that miss the sides of a branch (``branchMissWarpID`` of Listing 1), summed over its visits."""

    lines: tuple[int, int] | None  # of it; None where unknown
    visits: int  # by warps
    jumping: int  # of them, those in which a thread jumps; the others miss what it jumps to
    passing: int  # of them, those in which a thread goes on; the others miss what follows
    is_assumed: bool = False  # it depends on data: both ways are taken


class KernelTrace(ColumnRecord, frozen=True, kw_only=True):
    """The traces of all warps of some blocks."""

    steps: tuple[Step, ...]  # of the candidate trace
    bodies: Sequence[tuple[Part, ...]]  # of each basic block by number
    lines: Sequence[tuple[int, int] | None]  # the same: its first and last line
    loops: tuple[LoopBound, ...]  # those that were come to
    branches: tuple[BranchMisses, ...]  # in order of the code
    warps_per_block: int  # of each block, which lie behind each other
    lengths: Integers  # int64[warps], operations of each warp
    unknown_ratio: float  # of all transactions, those whose address is not known
    # indexes of the branches that were taken both ways, because their condition depends on data
    assumed: tuple[int, ...]
    # iterations of loops outside others: those in the trace, and all; (0, 0) where none is left out
    turns: tuple[int, int] = (0, 0)


class TracedLaunch(Struct, frozen=True, kw_only=True):
    """Launch that a walk starts from, and limits of the walk."""

    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    parameters: bytes  # bytes, with addresses in them
    addresses: Mapping[str, int]  # name of a variable of the module → its address
    chosen: Sequence[int]  # linear indexes of the blocks to walk
    transaction_bytes: int  # a line of the caches, or a sector
    tags_per_cycle: int | None  # lines that L1 looks up while it hands over no data; None where it does both at once
    most_visits: int  # basic blocks of the trace
    most_transactions: int  # of all accesses
    most_operations: int  # of all warps
    seconds: float  # of processor time
    loop_bound: int | None = None  # iterations of a loop that ends where the data says; None to refuse it
    most_turns: int | None = None  # iterations of each loop outside others, the further ones left out; None for all


def walk_kernel(function: PtxFunction, launch: TracedLaunch) -> KernelTrace:
    """The traces of the chosen blocks' warps.

    Raises:
        NeedsDataError: a loop's bound is in the data, or threads come to the call of a function.
        TraceTooLongError: the trace is longer than may be.
        InputError: the paper has no answer: loops overlap.
    """
    walk = _Walk(function, launch)
    search_trace(walk.graph, walk.find_bound, walk.visit, most_visits=launch.most_visits)
    return walk.finish()


class _Role(Enum):
    """Role of an instruction for the exits of a loop."""

    EXIT = "leaves it"
    STEP = "is computed once in every iteration"
    UNSURE = "is computed in some iterations, or in an inner loop; what it writes is not followed"


_Slice = tuple[
    tuple[PtxInstruction, _Role], ...
]  # Instructions of a loop that its exits depend on, in an order in which they may run


class _Walk:
    def __init__(self, function: PtxFunction, launch: TracedLaunch) -> None:
        self._function = function
        self._launch = launch
        self._blocks: PtxBlocks = find_blocks(function)
        self.graph: SearchGraph = build_search_graph(self._blocks.successors)
        self._operations = list_operations(function)
        self._refusals = find_refusals(function)
        threads = prod(launch.block)
        self._warps_per_block = -(-threads // WARP_LANES)
        special, exists = _list_special(launch, self._warps_per_block * WARP_LANES, threads)
        self._values = LaneValues(function, launch.parameters, special, launch.addresses, len(exists))
        self._nobody = np.zeros(len(exists), dtype=bool)
        self._arriving: dict[int, Marks] = {0: exists}
        self._repeating: dict[int, Marks] = {}
        self._steps: list[Step] = []
        self._lengths = np.zeros(len(exists) // WARP_LANES, dtype=np.int64)
        self._transactions = self._unknown = self._count = 0
        self._deadline_s = work_time() + launch.seconds
        self._visited: dict[int, int] = {}
        """Node → number of its last visit."""
        self._visits = 0
        self._bounds: dict[int, list[int]] = {}
        """Loop → what its bound was, each time."""
        self._given: set[int] = set()
        self._misses: dict[int, Integers] = {}
        """Branch → visits by warps, of them those that jump, and those that pass."""
        self._slices: dict[int, _Slice] = {}
        self._dominators = RootedGraph(self._blocks.successors, [0]).find_dominators()
        self._headers = frozenset(self.graph.headers)
        self._is_repeated: set[int] = set()
        self._assumed: set[int] = set()
        edges = [back + forward for back, forward in zip(self.graph.back, self.graph.forward, strict=True)]
        self._meetings = RootedGraph(reverse_edges(edges), [self.graph.exit]).find_dominators()
        self._unsure: dict[int, dict[frozenset[int], Marks]] = {}
        """Where ways meet that were both taken → registers written on either, and the threads that took both."""
        self._aside: dict[int, tuple[int, int, frozenset[int], Marks]] = {}
        """One side of such a branch → the other, when they parted, what the other writes, and the threads."""
        self._written: dict[tuple[int, int], frozenset[int]] = {}
        self._failing = self._find_failing()
        self._cut: set[int] = set()
        """Loops whose further iterations are left out."""
        self._turns = np.zeros(2, dtype=np.int64)

    def _find_failing(self) -> frozenset[int]:
        """Blocks from which all ways end in the call of a function that does not come back, or in a trap: exceptions."""
        blocks = self._blocks
        found: frozenset[int] = frozenset()
        while True:
            more = frozenset(
                node
                for node, following in enumerate(blocks.successors)
                if (following and found.issuperset(following))
                or (not following and self._fails(blocks.first[node], blocks.last[node]))
            )
            if more == found:
                return found
            found = more

    def _fails(self, first: int, last: int) -> bool:
        own = self._function.instructions[first : last + 1]
        return any(one.opcode == "trap" or (one.opcode == "call" and one.index in self._refusals) for one in own)

    # Loop bounds

    def find_bound(self, loop: int) -> int:
        """Visits of the header of a loop that is entered now: until no thread goes on by an exit that is known."""
        bound = self._count_turns(loop)
        self._bounds.setdefault(loop, []).append(bound)
        most = self._launch.most_turns
        if most is None or len(self.graph.loops[self.graph.headers[loop]]) > 1:
            return bound
        self._turns += (min(bound, most), bound)
        if bound > most:
            self._cut.add(loop)
        return min(bound, most)

    def _count_turns(self, loop: int) -> int:
        header = self.graph.headers[loop]
        self._repeating.pop(header, None)
        self._is_repeated.discard(header)
        active = self._arriving.get(header, self._nobody)
        if not active.any():
            return 1
        self._forget_unsure(header)
        copy = self._values.copy()
        for turn in range(1, self._launch.most_visits + 1):
            stays, has_known_exit = self._turn(copy, loop, active)
            if not has_known_exit:
                if self._launch.loop_bound is None:
                    message = f"{self._name_loop(loop)} ends where the data says, which a search does not look at"
                    raise NeedsDataError(message, remedy="describe what the arrays hold, or give --loop-bound")
                self._given.add(loop)
                return self._launch.loop_bound
            if not stays.any():
                return turn
            active = stays
        raise TraceTooLongError(f"{self._name_loop(loop)} runs more than {self._launch.most_visits} iterations")

    def _turn(self, values: LaneValues, loop: int, active: Marks) -> tuple[Marks, bool]:
        """One turn of the instructions that decide the exits: threads that go on, and whether an exit of any was known."""
        has_known_exit = False
        for instruction, role in self._find_slice(loop):
            if role is _Role.STEP:
                values.execute(instruction, active)
                continue
            if role is _Role.UNSURE:
                values.forget(instruction)
                continue
            guard = values.read_guard(instruction)
            assert guard is not None
            is_known = guard.is_known & active
            has_known_exit |= bool(is_known.any())
            leaves = guard.numbers != 0
            if instruction.opcode not in _ENDS:
                assert instruction.target is not None
                target = self._blocks.block_of[instruction.target]
                leaves = leaves if target not in self.graph.members[loop] else ~leaves
            active = active & ~(is_known & leaves)
        return active, has_known_exit

    def _find_slice(self, loop: int) -> _Slice:
        if loop in self._slices:
            return self._slices[loop]
        members = self.graph.members[loop]
        body = [
            (self._function.instructions[index], self._is_sure(node, loop))
            for node in sorted(members, key=self._blocks.ranks.__getitem__)
            for index in range(self._blocks.first[node], self._blocks.last[node] + 1)
        ]
        exits = {one.index for one, is_sure in body if is_sure and self._is_exit(one, members)}
        needed = {slot for one, _ in body if one.index in exits for slot in list_reads(one)}
        kept: set[int] = set()
        size = -1
        while size != len(needed):
            size = len(needed)
            for one, _ in body:
                if one.index not in kept and needed & set(list_writes(one)):
                    kept.add(one.index)
                    needed |= set(list_reads(one))
        found = []
        for one, is_sure in body:
            if one.index in exits:
                found.append((one, _Role.EXIT))
            elif one.index in kept:
                found.append((one, _Role.STEP if is_sure else _Role.UNSURE))
        self._slices[loop] = tuple(found)
        return self._slices[loop]

    def _is_sure(self, node: int, loop: int) -> bool:
        """Whether every turn of the loop executes the block once."""
        if self.graph.loops[node][0] != loop:
            return False
        header = self.graph.headers[loop]
        latches = [one for one in self.graph.members[loop] if header in self.graph.back[one]]
        return all(self._dominates(node, latch) for latch in latches)

    def _dominates(self, node: int, other: int) -> bool:
        while other > 0 and other != node:
            other = self._dominators[other]
        return other == node

    def _is_exit(self, instruction: PtxInstruction, members: frozenset[int]) -> bool:
        if instruction.guard is None:
            return False
        if instruction.opcode in _ENDS:
            return True
        if instruction.opcode != "bra" or instruction.target is None:
            return False
        node = self._blocks.block_of[instruction.index]
        return any(one not in members for one in self._blocks.successors[node])

    def _name_loop(self, loop: int) -> str:
        """Name of a loop by the first of its lines, where it begins in the source."""
        lines = self._find_lines(*self.graph.members[loop])
        return f"the loop at line {lines[0]}" if lines else "a loop"

    def _find_lines(self, *nodes: int) -> tuple[int, int] | None:
        blocks = self._blocks
        return find_lines(
            one for node in nodes for one in self._function.instructions[blocks.first[node] : blocks.last[node] + 1]
        )

    # The trace

    def visit(self, node: int) -> None:
        """Execute a node of the candidate trace for the threads that reach it (the mask M of Algorithm 2)."""
        if node == self.graph.exit:
            return
        if node in self._headers and node in self._is_repeated:
            active = self._repeating.pop(node, self._nobody)
        else:
            active = self._arriving.pop(node, self._nobody)
            self._is_repeated.add(node)
        if self._cut and node not in self._failing:
            active = active | self._leave_cut(node)
        self._forget_unsure(node)
        self._visits += 1
        self._visited[node] = self._visits
        if work_time() > self._deadline_s:
            limit = format_seconds(self._launch.seconds)
            raise TraceTooLongError(f"its trace is not found within {limit} of processor time")
        operations: list[tuple[Operation, Access | None]] = []
        branch: PtxInstruction | None = None
        for index in range(self._blocks.first[node], self._blocks.last[node] + 1):
            instruction = self._function.instructions[index]
            if index in self._refusals and active.any():
                raise self._refusals[index]
            if instruction.opcode == "bra" or instruction.opcode in _ENDS:
                branch = instruction
                continue
            operation = self._operations.get(index)
            if operation is not None:
                operations.append((operation, self._access(instruction, operation, active)))
            self._values.execute(instruction, active)
        self._send_on(node, branch, active)
        warps: Marks = np.logical_or.reduce(active.reshape(-1, WARP_LANES), axis=1)
        if operations and warps.any():
            self._steps.append(Step(node=node, warps=warps, operations=tuple(operations)))
            self._lengths += warps * len(operations)
            self._count += int(warps.sum()) * len(operations)
            if self._count > self._launch.most_operations:
                message = f"the traces of its warps have more than the {self._launch.most_operations} operations that are simulated"
                raise TraceTooLongError(message)

    def _leave_cut(self, node: int) -> Marks:
        """Threads that would go on with a loop whose further iterations are left out, at the first block behind it."""
        leaving = self._nobody
        for loop in [one for one in self._cut if node not in self.graph.members[one]]:
            self._cut.discard(loop)
            leaving = leaving | self._repeating.pop(self.graph.headers[loop], self._nobody)
        return leaving

    def _forget_unsure(self, node: int) -> None:
        """Mark registers as unknown that either way of an assumed branch wrote, where the ways meet, and on a way those the other wrote."""
        for slots, lanes in self._unsure.pop(node, {}).items():
            self._values.forget_lanes(slots, lanes)
        if node in self._aside:
            other, parted, slots, lanes = self._aside.pop(node)
            if self._visited.get(other, 0) > parted:
                self._values.forget_lanes(slots, lanes)

    def _send_on(self, node: int, branch: PtxInstruction | None, active: Marks) -> None:
        following = self._blocks.successors[node]
        guard = None if branch is None else self._values.read_guard(branch)
        if branch is not None and guard is not None and bool((active & ~guard.is_known).any()):
            self._assumed.add(branch.index)
            self._note_unsure(node, active & ~guard.is_known)
        sides: dict[bool, Marks] = {}
        for one in following:
            goes = active
            if branch is not None and guard is not None:
                is_target = branch.target is not None and self._blocks.block_of[branch.target] == one
                holds = guard.numbers != 0
                is_exception = one in self._failing and not self._failing.issuperset(following)
                unknown = self._nobody if is_exception else ~guard.is_known
                goes = active & (unknown | (guard.is_known & (holds if is_target else ~holds)))
                sides[is_target] = goes
            into = self._repeating if one in self.graph.back[node] else self._arriving
            into[one] = into.get(one, self._nobody) | goes
        if branch is not None and sides:
            counts = [_count_warps(one) for one in (active, *(sides.get(side, self._nobody) for side in (True, False)))]
            self._misses[branch.index] = self._misses.get(branch.index, 0) + np.array(counts, dtype=np.int64)

    def _note_unsure(self, node: int, lanes: Marks) -> None:
        meeting = self._meetings[node]
        sides = [one for one in self._blocks.successors[node] if one != meeting]
        written = [self._list_written(node, one) for one in sides]
        slots = frozenset().union(*written)
        held = self._unsure.setdefault(meeting, {})
        held[slots] = held.get(slots, self._nobody) | lanes
        if len(sides) == 2:
            for side, other, theirs in ((sides[0], sides[1], written[1]), (sides[1], sides[0], written[0])):
                self._aside[side] = (other, self._visits, theirs, lanes)

    def _list_written(self, node: int, side: int) -> frozenset[int]:
        """Registers that are written from one side of a branch on, until its ways meet."""
        if (node, side) not in self._written:
            meeting, seen, waiting = self._meetings[node], {node}, [side]
            slots: set[int] = set()
            while waiting:
                one = waiting.pop()
                if one == meeting or one in seen:
                    continue
                seen.add(one)
                waiting += self._blocks.successors[one]
                for index in range(self._blocks.first[one], self._blocks.last[one] + 1):
                    slots |= set(list_writes(self._function.instructions[index]))
            self._written[node, side] = frozenset(slots)
        return self._written[node, side]

    def _access(self, instruction: PtxInstruction, operation: Operation, active: Marks) -> Access | None:
        if operation.resource not in ACCESSED or operation.address is None:
            return None
        guard = self._values.read_guard(instruction)
        if guard is not None:
            active = active & ((guard.numbers != 0) | ~guard.is_known)
        found = self._values.find_address(operation.address)
        access = find_transactions(found, active, operation, self._launch)
        unknown = int(access.unknown.sum())
        self._transactions += len(access.places) + unknown
        self._unknown += unknown
        if self._transactions > self._launch.most_transactions:
            raise TraceTooLongError(
                f"its warps make more than the {self._launch.most_transactions} transactions that are followed"
            )
        return access

    def finish(self) -> KernelTrace:
        """The trace of all nodes that were visited."""
        return KernelTrace(
            steps=tuple(self._steps),
            bodies=[
                list_parts(self._function.instructions[first : last + 1], self._operations)
                for first, last in zip(self._blocks.first, self._blocks.last, strict=True)
            ],
            lines=[self._find_lines(node) for node in range(len(self._blocks.first))],
            loops=tuple(
                LoopBound(
                    lines=self._find_lines(*self.graph.members[loop]),
                    least=min(bounds),
                    most=max(bounds),
                    is_given=loop in self._given,
                )
                for loop, bounds in sorted(self._bounds.items())
            ),
            branches=tuple(
                BranchMisses(
                    lines=find_lines((self._function.instructions[index],)),
                    visits=visits,
                    jumping=jumping,
                    passing=passing,
                    is_assumed=index in self._assumed,
                )
                for index, (visits, jumping, passing) in sorted(
                    (index, counts.tolist()) for index, counts in self._misses.items()
                )
            ),
            warps_per_block=self._warps_per_block,
            lengths=self._lengths,
            unknown_ratio=self._unknown / max(1, self._transactions),
            assumed=tuple(sorted(self._assumed)),
            turns=(int(self._turns[0]), int(self._turns[1])),
        )


def _count_warps(threads: Marks) -> int:
    return int(threads.reshape(-1, WARP_LANES).any(axis=1).sum())


def find_transactions(address: Value, active: Marks, operation: Operation, launch: TracedLaunch) -> Access:
    """Transactions of distinct lines or sectors of each warp; a thread whose address is unknown has one of its own."""
    is_shared = operation.resource is Resource.SHARED
    nowhere = np.int64(-1 << 62)
    lanes = (active & address.is_known).reshape(-1, WARP_LANES)
    numbers = address.numbers.reshape(-1, WARP_LANES)
    unknown: Integers = (active & ~address.is_known).reshape(-1, WARP_LANES).sum(axis=1)
    passes = np.zeros(len(lanes), dtype=np.int64)
    rows = lanes.any(axis=1)
    if is_shared:
        kinds = np.full(int(rows.sum()), AccessKind.STORE if operation.is_store else AccessKind.LOAD, dtype=np.int8)
        passes[rows] = count_wavefronts(numbers[rows].astype(np.uint64), lanes[rows], operation.bytes, kinds)[0]
        nothing = np.zeros(len(lanes) + 1, dtype=np.int64)
        return Access(places=nothing[:0], starts=nothing, unknown=nothing[1:], passes=np.maximum(passes, unknown > 0))
    # threads that are not active are where the first active one is
    filled = np.where(lanes, numbers, numbers[np.arange(len(lanes)), lanes.argmax(axis=1)][:, None])[rows]
    cycles = count_request_cycles(filled, max(1, operation.bytes), tags_per_cycle=launch.tags_per_cycle)
    passes[rows] = np.ceil(cycles).astype(np.int64)
    places = np.sort(np.where(lanes, numbers // launch.transaction_bytes, nowhere), axis=1)
    is_first = places != nowhere
    is_first[:, 1:] &= places[:, 1:] != places[:, :-1]
    return Access(
        places=places[is_first],
        starts=np.concatenate(([0], np.cumsum(is_first.sum(axis=1)))).astype(np.int64),
        unknown=unknown,
        passes=passes + unknown,
    )


def _list_special(
    launch: TracedLaunch, padded: int, threads: int
) -> tuple[dict[tuple[str, str], Integers], npt.NDArray[np.bool_]]:
    """Special registers of all threads of the chosen blocks, and which of the padded threads there are."""
    own = np.arange(padded, dtype=np.int64)
    x, y, _ = launch.block
    thread = {"x": own % x, "y": own // x % y, "z": own // (x * y)}
    chosen = np.array(launch.chosen, dtype=np.int64)
    wide, high, _ = launch.grid
    block = {"x": chosen % wide, "y": chosen // wide % high, "z": chosen // (wide * high)}
    count = len(chosen) * padded
    found: dict[tuple[str, str], Integers] = {("laneid", ""): np.tile(own % WARP_LANES, len(chosen))}
    found["warpid", ""] = np.tile(own // WARP_LANES, len(chosen))
    for number, axis in enumerate("xyz"):
        found["tid", axis] = np.tile(thread[axis], len(chosen))
        found["ctaid", axis] = np.repeat(block[axis], padded)
        found["ntid", axis] = np.full(count, launch.block[number], dtype=np.int64)
        found["nctaid", axis] = np.full(count, launch.grid[number], dtype=np.int64)
    return found, np.tile(own < threads, len(chosen))
