"""Index of a :class:`~gpa_lsp.report.model.KernelCode` for questions about values, built once per kernel."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from operator import or_

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Flow, ResourceLists
from gpa_lsp.code.control_flow.graph import DominatorTree, RootedGraph, solve_backwards
from gpa_lsp.foundation.distinct import find_distinct_rows
from gpa_lsp.foundation.records import remembered
from gpa_lsp.report.model import KernelCode

_NOTHING: tuple[int, ...] = ()


class CodeIndex:
    """Rows by resource, calls, and shortcuts past blocks that do not touch a resource.

    Attributes:
        block_of: block of each row; -1 without code.
        first: first row of each block.
        last: last row of each block.
        guard: of each row, a resource number or -1.
        condition: of each row: twice the guard's number, plus one where it is negated; -1 when unguarded.
        entry_of: block → the procedure that begins there.
        procedure_of: block → procedure.
        entries: of each procedure, its first block.
        returning: blocks that end in RET and that something leads to.
        returns_of: procedure → those of its own, in the order of addresses.
        callee_of: block that ends in a call of a procedure that returns → that procedure.
        callers_of: procedure → such blocks.
        lost_calls: blocks that end in a call of code that is elsewhere, or not known.
        is_local: of each procedure, whether it is called from its own section only.

    Approximation: a RET belongs to the procedure it stands in, by address. A call of a procedure that never returns is stepped over.
    """

    def __init__(self, code: KernelCode) -> None:
        self._code = code
        self._writes = _group_rows(code.writes, is_counted=~(code.guard_negated & (code.guard < 0)))
        self._reads = _group_rows(code.reads, is_counted=~(code.guard_negated & (code.guard < 0)))
        self.block_of: list[int] = code.block_of_row.tolist()
        self.first: list[int] = code.first_row.tolist()
        self.last: list[int] = code.last_row.tolist()
        guard = code.guard.astype(np.int32)
        self.guard: list[int] = guard.tolist()
        self.condition: list[int] = np.where(guard < 0, -1, 2 * guard + code.guard_negated).tolist()
        self._reachable: list[bool] = code.is_reachable.tolist()
        self._edges_in = _list_edges(code.predecessor_starts, code.predecessors, code.is_reachable, is_backward=True)
        self._edges_out = _list_edges(code.successor_starts, code.successors, code.is_reachable, is_backward=False)
        self._headers: list[int] = code.header_of_block.tolist()
        self._find_calls(code)
        self._touched: tuple[Sequence[int], Sequence[int]] | None = None
        self._backward: DominatorTree | None = None
        self._forward: tuple[DominatorTree, frozenset[int], list[int]] | None = None
        self._backward_stops: dict[int, Sequence[int]] = {}
        self._forward_stops: dict[int, Sequence[int]] = {}

    def _find_calls(self, code: KernelCode) -> None:
        self.procedure_of: list[int] = code.procedure_of_block.tolist()
        self.entries: list[int] = code.procedure_entry.tolist()
        self.entry_of = {block: number for number, block in enumerate(self.entries)}
        self.is_local: list[bool] = code.procedure_is_local.tolist()
        flow = code.flow[code.last_row]
        self.returns_of: dict[int, list[int]] = defaultdict(list)
        self.returning = frozenset(np.flatnonzero((flow == Flow.RETURN) & code.is_reachable).tolist())
        for block in sorted(self.returning):
            self.returns_of[self.procedure_of[block]].append(block)
        self.callee_of: dict[int, int] = {}
        self.callers_of: dict[int, list[int]] = defaultdict(list)
        self.lost_calls: set[int] = set()
        for block in np.flatnonzero((flow == Flow.CALL) | (flow == Flow.INDIRECT_CALL)).tolist():
            target = int(code.target_row[self.last[block]])
            callee = self.entry_of.get(self.block_of[target], -1) if target >= 0 else -1
            if callee >= 0 and self.first[self.block_of[target]] == target and self.returns_of.get(callee):
                self.callee_of[block] = callee
                self.callers_of[callee].append(block)
            elif target < 0:
                self.lost_calls.add(block)

    def writes(self, resource: int) -> Sequence[int]:
        """Rows that may write a resource, ascending."""
        return self._writes.get(resource, _NOTHING)

    def reads(self, resource: int) -> Sequence[int]:
        """Rows that may read a resource, ascending."""
        return self._reads.get(resource, _NOTHING)

    def predecessors(self, block: int) -> list[int]:
        """Blocks before a block; unreachable blocks count only before unreachable ones."""
        starts, sources = self._edges_in
        return sources[starts[block] : starts[block + 1]]

    def successors(self, block: int) -> list[int]:
        """Blocks after a block; after an unreachable one, only unreachable ones."""
        starts, targets = self._edges_out
        return targets[starts[block] : starts[block + 1]]

    def may_write(self, procedure: int, resource: int) -> bool:
        """Whether a procedure, or what it calls, writes a resource."""
        return bool(self._find_touched()[0][procedure] >> resource & 1)

    def may_touch(self, procedure: int, resource: int) -> bool:
        """Whether a procedure, or what it calls, reads or writes a resource."""
        return bool(self._find_touched()[1][procedure] >> resource & 1)

    def climb_back(self, block: int, resource: int) -> int:
        """The farthest dominator of a block such that no path between the two can write the resource.

        What the resource is on entering the one, it is on entering the other.
        """
        if self._backward is None:
            self._backward = DominatorTree(self._code.immediate_dominator.tolist())
        stops = self._backward_stops.get(resource)
        if stops is None:
            called = [one for one, callee in self.callee_of.items() if self.may_write(callee, resource)]
            stops = self._backward_stops[resource] = self._number(
                self._backward, self.writes(resource), [*called, *self.lost_calls]
            )
        return self._backward.climb(block, stops, self._headers[block])

    def climb_on(self, block: int, resource: int) -> int:
        """The farthest post-dominator of a block such that no path between the two can read or write the resource.

        For a block that nothing leads to, itself: beyond are blocks that something leads to, and those have nothing to do with it.
        """
        if not self._reachable[block]:
            return block
        tree, leaks, headers = self._prepare_forward()
        if block in leaks:
            return block
        stops = self._forward_stops.get(resource)
        if stops is None:
            called = [one for one, callee in self.callee_of.items() if self.may_touch(callee, resource)]
            rows = [*self.writes(resource), *self.reads(resource)]
            stops = self._forward_stops[resource] = self._number(tree, rows, [*called, *self.lost_calls, *leaks])
        return tree.climb(block, stops, headers[block])

    def _prepare_forward(self) -> tuple[DominatorTree, frozenset[int], list[int]]:
        """Post-dominator tree, blocks for which it is unreliable, and loop headers of the reversed graph."""
        if self._forward is None:
            tree = DominatorTree(self._code.immediate_post_dominator.tolist())
            self._forward = (tree, _find_leaks(self._code), _find_turned_headers(self._code))
        return self._forward

    def _number(self, tree: DominatorTree, rows: Sequence[int], blocks: Sequence[int]) -> list[int]:
        """Tree numbers of blocks, and of the blocks of rows, ascending."""
        block_of, number = self.block_of, tree.number
        return sorted({number[block_of[row]] for row in rows if block_of[row] >= 0} | {number[one] for one in blocks})

    def _find_touched(self) -> tuple[Sequence[int], Sequence[int]]:
        """Bit masks of the resources that each procedure and its callees write, and touch."""
        if self._touched is None:
            leads_to = self._find_ways_out()
            ways = [sorted(leads_to[procedure]) for procedure in range(len(self.is_local))]
            own = self._sum_resources(self._writes), self._sum_resources(self._reads)
            written, read = (solve_backwards(ways, partial(_join_bits, bits), 0) for bits in own)
            self._touched = (written, [one | other for one, other in zip(written, read, strict=True)])
        return self._touched

    def _sum_resources(self, rows_of: Mapping[int, Sequence[int]]) -> list[int]:
        sums = [0] * len(self.is_local)
        for resource, rows in rows_of.items():
            for procedure in {self.procedure_of[self.block_of[row]] for row in rows if self.block_of[row] >= 0}:
                sums[procedure] |= 1 << resource
        return sums

    def _find_ways_out(self) -> dict[int, set[int]]:
        """Procedure → procedures that may run before it returns: callees and jump targets."""
        leads_to: dict[int, set[int]] = defaultdict(set)
        for block, callee in self.callee_of.items():
            leads_to[self.procedure_of[block]].add(callee)
        code = self._code
        sources = np.repeat(np.arange(len(code.first_row)), np.diff(code.successor_starts))
        one, other = code.procedure_of_block[sources], code.procedure_of_block[code.successors]
        for source, target in find_distinct_rows(np.stack([one, other], axis=1)[one != other]).tolist():
            leads_to[source].add(target)
        return leads_to


@remembered
def index_code(code: KernelCode) -> CodeIndex:
    """The index of some code, built on first use and kept as long as the code."""
    return CodeIndex(code)


def _find_leaks(code: KernelCode) -> frozenset[int]:
    """Blocks with one path to the end and another into an endless loop, which post-dominators ignore."""
    sources = np.repeat(np.arange(len(code.first_row)), np.diff(code.successor_starts))
    return frozenset(sources[code.reaches_end[sources] & ~code.reaches_end[code.successors]].tolist())


def _find_turned_headers(code: KernelCode) -> list[int]:
    """Header of each block's innermost loop in the reversed graph, entered at its end; -1 outside loops."""
    count = len(code.first_row)
    if not (code.header_of_block >= 0).any():
        return [-1] * count
    starts, predecessors = code.predecessor_starts.tolist(), code.predecessors.tolist()
    turned = [predecessors[low:high] for low, high in pairwise(starts)]
    forest = RootedGraph(turned, np.flatnonzero(code.may_end).tolist()).find_loops()
    headers = [loop.header for loop in forest.loops]
    return [headers[loop] if loop >= 0 else -1 for loop in forest.innermost]


def _join_bits(own: Sequence[int], procedure: int, called: Sequence[int]) -> int:
    return reduce(or_, called, own[procedure])


def _list_edges(
    starts: npt.NDArray[np.int32],
    others: npt.NDArray[np.int32],
    is_reachable: npt.NDArray[np.bool_],
    *,
    is_backward: bool,
) -> tuple[list[int], list[int]]:
    """Starts and ends of the edges at each block, without edges from unreachable blocks into reachable ones."""
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    sources, targets = (others, owners) if is_backward else (owners, others)
    kept = is_reachable[sources] | ~is_reachable[targets]
    counts = np.bincount(owners[kept], minlength=len(starts) - 1)
    return [0, *np.cumsum(counts).tolist()], others[kept].tolist()


def _group_rows(lists: ResourceLists, is_counted: npt.NDArray[np.bool_]) -> dict[int, list[int]]:
    """Resource → rows with it in their list, ascending."""
    rows = np.repeat(np.arange(len(lists.starts) - 1), np.diff(lists.starts))
    counted = is_counted[rows]
    rows, numbers = rows[counted], lists.numbers[counted]
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    groups = np.split(rows[order], starts[1:])
    return {resource: group.tolist() for resource, group in zip(found.tolist(), groups, strict=False)}
