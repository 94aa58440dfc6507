"""Which instructions of a kind come last before others, on every way that control can have come."""

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.causes import Causes, cause_themselves
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget

MOST_CANDIDATES = 4  # Instructions that are kept for one place: the nearest ones, each on a way of its own

_Rows = npt.NDArray[np.int64]
_NO_CAUSES = cause_themselves(np.zeros(0, dtype=np.int64))


class _Reaching(NamedTuple):
    """An instruction that control can come from to the first instruction of a block, with no other of its kind between."""

    instructions: int
    cycles: int
    row: int


class NearestBefore:
    """For any row of a function, the instructions of a kind that precede it nearest in flow.

    Distances are in instructions, and of equally near ways the one with the fewest encoded cycles counts. A call is stepped over, and a local
    routine is entered from the calls in its section.

    Args:
        view: the function.
        wanted: bool[n], the kind.
        spread: candidates on other ways count as near when they are at most so many instructions farther than the nearest.
        reach: candidates farther than this do not count; None for no limit.
        budget: pays a step per block and candidate.
    """

    __slots__ = (
        "_at_entry",
        "_before",
        "_block_of",
        "_budget",
        "_cycles_before",
        "_first",
        "_reach",
        "_spread",
        "_view",
    )

    def __init__(
        self,
        view: FunctionView,
        wanted: npt.NDArray[np.bool_],
        budget: WorkBudget,
        *,
        spread: int = 0,
        reach: int | None = None,
    ) -> None:
        self._view, self._budget = view, budget
        self._spread, self._reach = spread, len(view) + 1 if reach is None else reach
        latest = np.maximum.accumulate(np.where(wanted, np.arange(len(view)), -1))
        self._before: _Rows = np.concatenate([[-1], latest])
        """int64[n + 1], the last wanted row by address before each row."""
        self._first = view.graph.first_instruction.astype(np.int64)
        self._block_of = view.graph.block_of_instruction.astype(np.int64)
        self._cycles_before: _Rows = np.concatenate([[0], np.cumsum(view.stall_cycles)])
        self._at_entry: tuple[_Rows, _Rows] | None = None

    def find(self, rows: _Rows) -> tuple[Causes, _Rows]:
        """The nearest candidates before some rows, sharing by their issue counts.

        Args:
            rows: int64[r], unique.
        """
        before = self._before[rows]
        is_inside = before >= self._first[self._block_of[rows]]
        is_near = is_inside & (rows - before <= self._reach)
        inside = Causes(
            use_row=rows[is_near],
            def_row=before[is_near],
            share_ratio=np.ones(int(is_near.sum())),
            cycles=self._cycles_before[rows[is_near]] - self._cycles_before[before[is_near]],
            instructions=rows[is_near] - before[is_near],
        )
        found, missing = self._find_across(rows[~is_inside])
        return _join(inside, found), np.concatenate([rows[is_inside & ~is_near], missing])

    def _find_across(self, rows: _Rows) -> tuple[Causes, _Rows]:
        """For rows with no candidate before them in their block."""
        if len(rows) == 0:
            return _NO_CAUSES, rows
        if self._at_entry is None:
            self._at_entry = _flatten(self._spread_from_blocks())
        starts, reaching = self._at_entry
        blocks = self._block_of[rows]
        count = starts[blocks + 1] - starts[blocks]
        place = np.repeat(np.arange(len(rows)), count)
        picked = np.arange(len(place)) - np.repeat(np.cumsum(count) - count - starts[blocks], count)
        into = rows - self._first[blocks]
        cycles_into = self._cycles_before[rows] - self._cycles_before[self._first[blocks]]
        instructions = reaching[picked, 0] + into[place]
        is_near = instructions <= self._reach
        place, picked = place[is_near], picked[is_near]
        def_row = reaching[picked, 2]
        causes = Causes(
            use_row=rows[place],
            def_row=def_row,
            share_ratio=_share(self._view.issue_counts[def_row], place, len(rows)),
            cycles=reaching[picked, 1] + cycles_into[place],
            instructions=instructions[is_near],
        )
        is_found = np.bincount(place, minlength=len(rows)) > 0
        return causes, rows[~is_found]

    def _spread_from_blocks(self) -> list[list[_Reaching]]:
        """Per block, the candidates that reach its first instruction, nearest first: a search from all of them at once."""
        successors = _list_successors(self._view.graph)
        last, first = self._view.graph.last_instruction.tolist(), self._first.tolist()
        before, cycles_before = self._before.tolist(), self._cycles_before.tolist()
        reaching: list[list[_Reaching]] = [[] for _ in first]
        heap: list[tuple[int, int, int, int]] = []
        for block, end in enumerate(last):
            row = before[end + 1]
            if row >= first[block] and end - row < self._reach:
                cycles = cycles_before[end + 1] - cycles_before[row]
                heap += [(end - row + 1, cycles, row, successor) for successor in successors[block]]
        heapify(heap)
        while heap and self._budget.spend(1):
            instructions, cycles, row, block = heappop(heap)
            known = reaching[block]
            if not self._is_news(known, instructions, row):
                continue
            known.append(_Reaching(instructions, cycles, row))
            length = last[block] + 1 - first[block]
            if before[last[block] + 1] >= first[block] or instructions + length > self._reach:
                continue
            cycles += cycles_before[last[block] + 1] - cycles_before[first[block]]
            for successor in successors[block]:
                heappush(heap, (instructions + length, cycles, row, successor))
        return reaching

    def _is_news(self, known: list[_Reaching], instructions: int, row: int) -> bool:
        if not known:
            return True
        if len(known) >= MOST_CANDIDATES or instructions > known[0].instructions + self._spread:
            return False
        return all(row != one.row for one in known)


def _list_successors(graph: FlowGraph) -> list[list[int]]:
    """Per block the blocks that can follow it, and the routine of this section that it calls."""
    targets = graph.edge_target.tolist()
    successors = [targets[low:high] for low, high in pairwise(graph.successor_starts.tolist())]
    for call in graph.calls:
        if call.callee_procedure is not None:
            successors[int(graph.block_of_instruction[call.instruction])].append(
                graph.procedures[call.callee_procedure].entry_block
            )
    return successors


def _flatten(reaching: list[list[_Reaching]]) -> tuple[_Rows, _Rows]:
    """int64[b + 1], where the candidates of each block start, and int64[m, 3], the candidates."""
    starts = np.concatenate([[0], np.cumsum([len(of_block) for of_block in reaching])]).astype(np.int64)
    every = [one for of_block in reaching for one in of_block]
    return starts, np.array(every, dtype=np.int64).reshape(-1, len(_Reaching._fields))


def _share(weights: npt.NDArray[np.float64], place: _Rows, size: int) -> npt.NDArray[np.float64]:
    """Each weight's part of those with the same place; even parts where they have no weight."""
    total = np.bincount(place, weights=weights, minlength=size)[place]
    even = 1.0 / np.maximum(np.bincount(place, minlength=size), 1)[place]
    shares: npt.NDArray[np.float64] = np.where(total > 0, weights / np.where(total > 0, total, 1.0), even)
    return shares


def _join(one: Causes, other: Causes) -> Causes:
    return Causes(
        use_row=np.concatenate([one.use_row, other.use_row]),
        def_row=np.concatenate([one.def_row, other.def_row]),
        share_ratio=np.concatenate([one.share_ratio, other.share_ratio]),
        cycles=np.concatenate([one.cycles, other.cycles]),
        instructions=np.concatenate([one.instructions, other.instructions]),
    )
