"""Asynchronous copies and the instruction that ties them to a scoreboard.

``LDGSTS`` copies from global to shared memory and sets no scoreboard for its arrival. ``LDGDEPBAR`` closes the group of the copies since the
last such instruction, and sets one for all of them; a DEPBAR waits for it. Who waits there waits for the copies.
"""

from bisect import bisect_left
from collections.abc import Mapping
from heapq import heappop, heappush

import numpy as np

from gpa_lsp.arch.lookup import load_opcode_classes
from gpa_lsp.arch.opcodes import ProducerGroup
from gpa_lsp.binary.control_code import NO_BARRIER
from gpa_lsp.blame.distances import NOWHERE, Distance, Distances
from gpa_lsp.blame.view import FunctionView
from gpa_lsp.blame.work import WorkBudget

MOST_COPIES = 64
"""Copies of a group that are named, the nearest ones."""

MOST_BLOCKS = 64
"""Blocks before its end that a group is looked for in."""


class CopyGroups:
    """The groups of asynchronous copies of one function."""

    __slots__ = ("_budget", "_distances", "_found", "_marks", "_name_of", "_view")

    def __init__(self, view: FunctionView, distances: Distances, budget: WorkBudget) -> None:
        classes = load_opcode_classes()
        groups = [classes.find_producer(mnemonic) for mnemonic in view.instructions.mnemonics]
        is_mark = np.isin([str(group) for group in groups], [ProducerGroup.ASYNC_COPY, ProducerGroup.ASYNC_COPY_FENCE])
        self._view = view
        self._distances = distances
        self._budget = budget
        self._marks: list[int] = np.flatnonzero(is_mark[view.instructions.mnemonic_index]).tolist()
        self._name_of = {
            row: None
            if classes.find_producer(view.mnemonic(row)) == ProducerGroup.ASYNC_COPY
            else view.opcode(row).name
            for row in self._marks
        }
        """Copies and what closes their groups; None for a copy."""
        self._found: dict[int, dict[int, Distance]] = {}

    def closes_group(self, row: int) -> bool:
        """Whether an instruction ties a group of copies, perhaps an empty one, to its write barrier."""
        return self._name_of.get(row) is not None and self._view.control.write_barrier[row] != NO_BARRIER

    def find(self, row: int) -> Mapping[int, Distance]:
        """The copies that an instruction ties to its write barrier, with their distances to it, nearest first.

        Nothing for an instruction that ties none, and where no copy is found.
        """
        if not self.closes_group(row):
            return {}
        if row not in self._found:
            self._found[row] = self._walk_back(row)
        return self._found[row]

    def _walk_back(self, fence: int) -> dict[int, Distance]:
        graph = self._view.graph
        block = int(graph.block_of_instruction[fence])
        found: dict[int, Distance] = {}
        heap: list[tuple[int, int, int]] = []
        if self._collect(found, fence, block, fence, NOWHERE):
            self._push_before(heap, block, self._distances.from_start(fence))
        seen: set[int] = set()
        while heap and len(seen) < MOST_BLOCKS and self._budget.spend(1):
            cycles, instructions, block = heappop(heap)
            if block in seen:
                continue
            seen.add(block)
            end = int(graph.last_instruction[block]) + 1
            if self._collect(found, fence, block, end, Distance(cycles, instructions)):
                self._push_before(heap, block, self._distances.across(block).then(Distance(cycles, instructions)))
        return found

    def _collect(self, found: dict[int, Distance], fence: int, block: int, end: int, onward: Distance) -> bool:
        """Take the copies of a block before row ``end``, the last first; False when the group starts there, or is long enough."""
        first = int(self._view.graph.first_instruction[block])
        for row in reversed(self._marks[bisect_left(self._marks, first) : bisect_left(self._marks, end)]):
            if self._name_of[row] == self._name_of[fence] or len(found) >= MOST_COPIES or not self._budget.spend(1):
                return False
            if self._name_of[row] is None and row not in found:
                found[row] = self._distances.straight(row, end).then(onward)
        return True

    def _push_before(self, heap: list[tuple[int, int, int]], block: int, onward: Distance) -> None:
        for before in self._view.graph.predecessors(block).tolist():
            heappush(heap, (*onward, before))
