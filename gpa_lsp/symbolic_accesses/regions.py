"""Blocks of a function with their loops, and what decides from where a block is reached: :class:`Regions`."""

from functools import cached_property

from gpa_lsp.control_flow.depth_first import walk_depth_first
from gpa_lsp.control_flow.dominators import find_immediate_dominators
from gpa_lsp.control_flow.loops import LoopForest, find_loops
from gpa_lsp.ptx.blocks import find_blocks
from gpa_lsp.ptx.model import PtxFunction
from gpa_lsp.ptx.registers_used import list_writes

_MOST_REGION_BLOCKS = 64
"""Blocks between the place where ways part and where they meet, beyond which nobody asks what decided."""


class Regions:
    """The blocks of a function, in the order in which :class:`~gpa_lsp.symbolic_accesses.walk.Walk` goes through them.

    Args:
        function: a kernel.
    """

    def __init__(self, function: PtxFunction) -> None:
        blocks = find_blocks(function)
        self._function = function
        self.first = blocks.first
        self.last = blocks.last
        self.successors = blocks.successors
        self.live_in = blocks.live_in
        self.block_of = blocks.block_of
        count = len(blocks.first)
        graph = [*blocks.successors, [0]]
        tree = walk_depth_first(graph, count)
        forest: LoopForest = find_loops(tree, tree.predecessor_ranks(graph))
        self.loops = forest.loops
        self.innermost = forest.innermost
        self.headers = tuple(loop.header for loop in forest.loops)
        self.loop_of_header = {loop.header: number for number, loop in enumerate(forest.loops)}
        self.members = tuple(
            frozenset(forest.order[loop.order_start : loop.order_start + loop.block_count]) for loop in forest.loops
        )
        self.order = sorted(
            (block for block in range(count) if tree.rank_of_node[block] >= 0), key=blocks.ranks.__getitem__
        )
        self.forward: list[list[int]] = [[] for _ in range(count)]
        self.back_edges: list[list[int]] = [[] for _ in range(count)]
        for block in self.order:
            for following in blocks.successors[block]:
                is_back = blocks.ranks[following] <= blocks.ranks[block]
                (self.back_edges if is_back else self.forward)[following].append(block)

    @cached_property
    def _dominators(self) -> list[int]:
        return find_immediate_dominators(self.successors, [0])

    @cached_property
    def _written(self) -> tuple[frozenset[int], ...]:
        """Registers that each block writes."""
        instructions = self._function.instructions
        return tuple(
            frozenset(slot for index in range(first, last + 1) for slot in list_writes(instructions[index]))
            for first, last in zip(self.first, self.last, strict=True)
        )

    def list_written(self, loop: int) -> frozenset[int]:
        """Registers that a loop writes."""
        return frozenset().union(*(self._written[block] for block in self.members[loop]))

    def list_left(self, source: int, block: int) -> list[int]:
        """Loops that a jump leaves."""
        found = []
        number: int | None = self.innermost[source]
        while number is not None and number >= 0 and block not in self.members[number]:
            found.append(number)
            number = self.loops[number].parent
        return found

    def list_deciding(self, block: int) -> list[int] | None:
        """Blocks whose branches decide from where a block is reached: those since all ways to it parted; None where those are too many."""
        dominator = self._dominators[block]
        if dominator < 0:
            return None
        found = {dominator}
        waiting = list(self.forward[block])
        while waiting:
            one = waiting.pop()
            if one in found:
                continue
            found.add(one)
            if len(found) > _MOST_REGION_BLOCKS:
                return None
            waiting.extend(self.forward[one])
        return sorted(found)
