"""The producer inside the stall-count window: whose latency forced the stall count of the instruction before a waiting one."""

from dataclasses import field
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.control_code import NO_BARRIER
from gpa_lsp.binary.model import ResourceKind, encode_resource
from gpa_lsp.blame.operands import RegisterUses
from gpa_lsp.blame.required_latency import LONGEST_STALL_CYCLES, RequiredLatencies
from gpa_lsp.blame.view import FunctionView
from gpa_lsp.blame.work import WorkBudget
from gpa_lsp.control_flow.model import EdgeKind

_WITHOUT_LATENCY = encode_resource(ResourceKind.CONVERGENCE_BARRIER, 0)
"""Resources from here on are not waited for by time."""


class Producer(NamedTuple):
    """Who forced a stall count.

    Attributes:
        row: of the def.
        resource: what the use reads of its result; the lowest of a pair or vector.
        cycles: encoded, from the def's issue to the use's.
        instructions: from after the def up to and including the use.
    """

    row: int
    resource: int
    cycles: int
    instructions: int


@dataclass(slots=True)
class _Scan:
    """A search for one use.

    Attributes:
        use_row: the waiting instruction.
        stall_cycles: the stall count to explain.
        limit_cycles: how long before the issue of the instruction with that stall count a producer can have issued.
        rank: how well the best one found explains it.
        best: the best one found.
        guess: the nearest def without a known latency, for want of a better one.
        steps: instructions looked at.
    """

    use_row: int
    stall_cycles: int
    limit_cycles: int
    rank: tuple[int, int, int] = (0, 0, 0)
    best: Producer | None = None
    guess: Producer | None = None
    steps: int = 0


@dataclass(slots=True, order=True)
class _Place:
    """Where a scan goes on: an instruction, the cycles between its issue and that of the one with the stall count, and what is still sought."""

    cycles: int
    instructions: int
    row: int
    sought: set[int] = field(compare=False)


class StallWindow:
    """Finds producers in one function.

    A def at ``cycles`` encoded cycles before the instruction with the stall count forces a count of (required latency - cycles). It is the
    cause when that is at least half of the stall beyond the one cycle that every issue takes, which leaves room for tables that are a cycle
    off; of several the one that asks for the most. A def behind a scoreboard (double precision, matrix units) counts only where the stall
    count really covers its latency. Ways back over block borders are taken in the order of their length, each block once, and end at calls.

    Without an architecture's table, and for pairs it has no number for, the nearest def of something the use reads is taken, provided that it
    accesses no memory, sets no scoreboard and lies no farther back than a stall count can reach.

    Args:
        view: the function.
        budget: pays a step for each instruction looked at; without it nothing is found.

    Source: required latencies are those of the architecture's hazard tables. In real reports the stall count is exactly what its producer asks
    for in .78 of the ``wait`` samples that have one, and within a cycle of it in .99.
    """

    __slots__ = (
        "_block_of",
        "_budget",
        "_continues",
        "_first",
        "_guards",
        "_is_reachable",
        "_last",
        "_latencies",
        "_predecessors",
        "_sets_barrier",
        "_stalls",
        "_uses",
        "_view",
    )

    def __init__(self, view: FunctionView, budget: WorkBudget) -> None:
        graph = view.graph
        self._view, self._budget = view, budget
        self._uses = RegisterUses(view.instructions)
        self._latencies = RequiredLatencies(view, self._uses)
        self._stalls: list[int] = view.stall_cycles.tolist()
        self._guards: list[int] = view.instructions.guard.tolist()
        self._sets_barrier: list[bool] = (view.control.write_barrier != NO_BARRIER).tolist()
        self._block_of: list[int] = graph.block_of_instruction.tolist()
        self._first: list[int] = graph.first_instruction.tolist()
        self._last: list[int] = graph.last_instruction.tolist()
        self._is_reachable: list[bool] = graph.is_reachable.tolist()
        is_step = graph.edge_kind != EdgeKind.CALL_RETURN
        self._continues = _mark_continuing(view, is_step)
        sources = graph.edge_source[graph.predecessor_edges]
        kept = is_step[graph.predecessor_edges]
        bounds = np.concatenate([[0], np.cumsum(kept)])[graph.predecessor_starts].tolist()
        listed = sources[kept].tolist()
        self._predecessors = [listed[low:high] for low, high in pairwise(bounds)]

    def has_issuer(self, row: int) -> bool:
        """Whether an instruction issues at the address before ``row``; not so at the start of a routine behind filler."""
        if row == 0:
            return False
        before, here = self._block_of[row - 1], self._block_of[row]
        return self._is_reachable[before] or not self._is_reachable[here]

    def find_producer(self, use_row: int) -> Producer | None:
        """The producer that forced the stall count of the instruction at the address before; None when none did."""
        issuer = use_row - 1
        stall = self._stalls[issuer]
        if stall <= 1 or self._budget.is_exhausted or not self._continues[issuer]:
            return None
        sought = {number for number in self._uses.reads(use_row) if number < _WITHOUT_LATENCY}
        scan = _Scan(use_row, stall, self._latencies.longest_cycles - 1 - (stall - 1) // 2)
        place = _Place(0, 1, issuer, sought)
        if sought and self._scan_block(scan, place):
            self._scan_earlier_blocks(scan, place)
        self._budget.spend(scan.steps)
        return scan.best or scan.guess

    def _scan_earlier_blocks(self, scan: _Scan, place: _Place) -> None:
        """Go on from the start of a block, shortest ways first."""
        heap: list[_Place] = []
        seen: set[int] = set()
        self._push_predecessors(heap, place, scan.limit_cycles)
        while heap:
            place = heappop(heap)
            block = self._block_of[place.row]
            if block not in seen:
                seen.add(block)
                if self._scan_block(scan, place):
                    self._push_predecessors(heap, place, scan.limit_cycles)

    def _push_predecessors(self, heap: list[_Place], place: _Place, limit: int) -> None:
        for predecessor in self._predecessors[self._block_of[place.row]]:
            row = self._last[predecessor]
            cycles = place.cycles + self._stalls[row]
            if cycles <= limit:
                heappush(heap, _Place(cycles, place.instructions + 1, row, set(place.sought)))

    def _scan_block(self, scan: _Scan, place: _Place) -> bool:
        """Look from a place back to the start of its block; False when there is nothing more to find before it."""
        first = self._first[self._block_of[place.row]]
        sought, writes = place.sought, self._uses.writes
        while True:
            scan.steps += 1
            written = writes(place.row)
            if not sought.isdisjoint(written):
                for resource in written:
                    if resource in sought:
                        self._consider(scan, place, resource)
                if self._guards[place.row] < 0:
                    sought.difference_update(written)
            if place.row == first or not sought:
                return bool(sought)
            place.row -= 1
            place.cycles += self._stalls[place.row]
            place.instructions += 1
            if place.cycles > scan.limit_cycles:
                return False

    def _consider(self, scan: _Scan, place: _Place, resource: int) -> None:
        bounds = self._latencies.find(place.row, scan.use_row, resource)
        if bounds is None:
            if scan.guess is None and self._may_be_guessed(scan, place):
                scan.guess = self._make_producer(scan, place, resource)
            return
        forced, surely_forced = bounds.high_cycles - place.cycles, bounds.low_cycles - place.cycles
        if forced <= 1 or 2 * (forced - 1) < scan.stall_cycles - 1:
            return
        if self._sets_barrier[place.row] and surely_forced > scan.stall_cycles:
            return
        rank = (min(forced, scan.stall_cycles), surely_forced, -place.cycles)
        if scan.best is None or rank > scan.rank:
            scan.rank, scan.best = rank, self._make_producer(scan, place, resource)

    def _may_be_guessed(self, scan: _Scan, place: _Place) -> bool:
        if self._sets_barrier[place.row] or self._view.opcode(place.row).memory is not None:
            return False
        return place.cycles + scan.stall_cycles <= LONGEST_STALL_CYCLES

    def _make_producer(self, scan: _Scan, place: _Place, resource: int) -> Producer:
        written = self._uses.writes(place.row)
        if len(written) > 1 and resource != self._guards[scan.use_row]:
            reads = self._uses.reads(scan.use_row)
            resource = next(one for one in written if one >> 8 == resource >> 8 and one in reads)
        return Producer(place.row, resource, place.cycles + scan.stall_cycles, place.instructions)


def _mark_continuing(view: FunctionView, is_step: npt.NDArray[np.bool_]) -> list[bool]:
    """Which instructions the one at the next address can follow, other than by a return."""
    graph = view.graph
    continues = np.ones(len(view), dtype=np.bool_)
    continues[graph.last_instruction] = False
    falls = is_step & (graph.edge_target == graph.edge_source + 1)
    continues[graph.last_instruction[graph.edge_source[falls]]] = True
    marked: list[bool] = continues.tolist()
    return marked
