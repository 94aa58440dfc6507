"""How far apart two instructions of a function are: encoded cycles and instructions on the shortest path."""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from gpa_lsp.blame.call_flow import CallFlow
from gpa_lsp.blame.view import FunctionView
from gpa_lsp.blame.work import WorkBudget

MOST_BLOCKS = 512
"""Blocks a search visits before it gives up; causes lie close to their effects."""


class Distance(NamedTuple):
    """The length of the path with the fewest encoded cycles.

    Attributes:
        cycles: sum of the encoded stall counts from the def's issue to the use's; -1 when unknown.
        instructions: from after the def up to and including the use; -1 when unknown.
    """

    cycles: int
    instructions: int


ITSELF = Distance(0, 0)
UNKNOWN = Distance(-1, -1)


class Distances:
    """Distances between the instructions of one function.

    Approximation: a path through a routine called inside the section may return to another caller of it; calls that leave the section count
    as one instruction.
    """

    __slots__ = ("_block_of", "_cycles_before", "_first", "_flow", "_graph", "_last")

    def __init__(self, view: FunctionView, flow: CallFlow | None = None) -> None:
        self._graph = view.graph
        self._flow = flow or CallFlow(view.graph, view.instructions)
        self._cycles_before: list[int] = np.concatenate([[0], np.cumsum(view.stall_cycles)]).tolist()
        self._block_of: list[int] = view.graph.block_of_instruction.tolist()
        self._first: list[int] = view.graph.first_instruction.tolist()
        self._last: list[int] = view.graph.last_instruction.tolist()

    def straight(self, first_row: int, last_row: int) -> Distance:
        """From one instruction to a later one in address order, all between them executed; ``last_row`` may be one past the last."""
        return Distance(self._cycles_before[last_row] - self._cycles_before[first_row], last_row - first_row)

    def across(self, block: int) -> Distance:
        """From the first instruction of a block to the first one after it."""
        return self.straight(self._first[block], self._last[block] + 1)

    def to_end(self, row: int) -> Distance:
        """From an instruction to the first one after its block."""
        return self.straight(row, self._last[self._block_of[row]] + 1)

    def from_start(self, row: int) -> Distance:
        """From the first instruction of its block to an instruction."""
        return self.straight(self._first[self._block_of[row]], row)

    def between(self, def_row: int, use_row: int, budget: WorkBudget) -> Distance:
        """From the issue of ``def_row`` to that of ``use_row``, for two rows that are one a whole turn round the loop.

        Returns:
            :data:`UNKNOWN` where no path was found within :data:`MOST_BLOCKS` blocks or the budget.
        """
        goal = self._block_of[use_row]
        if def_row < use_row and self._block_of[def_row] == goal:
            return self.straight(def_row, use_row)
        inside = self.from_start(use_row)
        seen: set[int] = set()
        heap: list[tuple[int, int, int]] = []
        self._push_steps(heap, self.to_end(def_row), self._block_of[def_row])
        while heap and len(seen) < MOST_BLOCKS and budget.spend(1):
            cycles, instructions, block = heappop(heap)
            if block == goal:
                return Distance(cycles + inside.cycles, instructions + inside.instructions)
            if block not in seen:
                seen.add(block)
                across = self.across(block)
                self._push_steps(heap, Distance(cycles + across.cycles, instructions + across.instructions), block)
        return UNKNOWN

    def _push_steps(self, heap: list[tuple[int, int, int]], so_far: Distance, block: int) -> None:
        for step in self._flow.steps_from(self._graph, block):
            heappush(heap, (*so_far, step))
