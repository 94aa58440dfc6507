"""How far apart two instructions of a function are, in encoded cycles and in instructions: the pieces that paths are put together from.

A distance goes from the issue of one instruction to the issue of another, so that the distances of consecutive pieces add up. Searches over
blocks are :mod:`~gpa_lsp.diagnosis.blame.shortest_paths`; :mod:`~gpa_lsp.diagnosis.blame.pending_flow` finds those on which a scoreboard stays held.
"""

from typing import NamedTuple

import numpy as np

from gpa_lsp.diagnosis.blame.view import FunctionView


class Distance(NamedTuple):
    """The length of a path. Of two distances the one with fewer cycles is the smaller."""

    cycles: int  # sum of the encoded stall counts of the first instruction and of all between
    instructions: int  # from after the first up to and including the last

    def then(self, other: "Distance") -> "Distance":
        """This path, and another one from its end.

        >>> Distance(7, 2).then(Distance(1, 1))
        Distance(cycles=8, instructions=3)
        """
        return Distance(self.cycles + other.cycles, self.instructions + other.instructions)


NOWHERE = Distance(0, 0)  # From an instruction to itself


class Distances:
    """Distances along straight code of one function, each in constant time."""

    __slots__ = ("_block_of", "_cycles_before", "_first", "_last")

    def __init__(self, view: FunctionView) -> None:
        self._cycles_before: list[int] = np.concatenate([[0], np.cumsum(view.stall_cycles)]).tolist()
        self._block_of: list[int] = view.graph.block_of_instruction.tolist()
        self._first: list[int] = view.graph.first_instruction.tolist()
        self._last: list[int] = view.graph.last_instruction.tolist()

    def straight(self, first_row: int, last_row: int) -> Distance:
        """From one instruction to a later one in address order, all between them executed; ``last_row`` may be one past the last."""
        return Distance(self._cycles_before[last_row] - self._cycles_before[first_row], last_row - first_row)

    def across(self, block: int) -> Distance:
        """From the first instruction of a block to whatever follows it."""
        return self.straight(self._first[block], self._last[block] + 1)

    def to_end(self, row: int) -> Distance:
        """From an instruction to whatever follows its block."""
        return self.straight(row, self._last[self._block_of[row]] + 1)

    def from_start(self, row: int) -> Distance:
        """From the first instruction of its block to an instruction."""
        return self.straight(self._first[self._block_of[row]], row)
