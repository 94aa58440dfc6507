"""Blocks of a function with their loops, and the branches that decide by which edge a block is reached: :class:`Regions`."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from gpa_lsp.code.control_flow.graph import RootedGraph, reverse_edges, solve_backwards
from gpa_lsp.code.ptx.blocks import PtxBlocks, find_blocks
from gpa_lsp.code.ptx.model import Address, PtxFunction, PtxInstruction, Register, list_reads, list_writes

JUMPS = frozenset({"bra", "brx", "ret", "exit"})
# Limit on blocks between the branch where paths part and the block where they meet; beyond it the deciding branches stay unknown
_MOST_REGION_BLOCKS = 256


class Regions:
    """The blocks of a function, in the order in which :class:`~gpa_lsp.code.symbolic_accesses.walk.Walk` goes through them.

    Attributes: ``followed`` are the indexes of instructions on whose results an address or jump depends, ``followed_in`` for each block the
    registers on whose values at its beginning one depends; the values of others are not needed.

    Args:
        function: a kernel.
        sizes: instructions of each block that a reader is told of; None counts those of the function.
    """

    def __init__(self, function: PtxFunction, sizes: Sequence[int] | None = None) -> None:
        blocks = find_blocks(function)
        self._function = function
        self.first = blocks.first
        self.last = blocks.last
        self.sizes = sizes or [last - first + 1 for first, last in zip(blocks.first, blocks.last, strict=True)]
        self.successors = blocks.successors
        self.live_in = blocks.live_in
        self.followed_in, self.followed = _follow(function, blocks)
        self.block_of = blocks.block_of
        count = len(blocks.first)
        self._graph = RootedGraph(blocks.successors, [0] if blocks.successors else [])
        self.forest = self._graph.find_loops()
        self.headers = tuple(loop.header for loop in self.forest.loops)
        self.loop_of_header = {header: number for number, header in enumerate(self.headers)}
        self.members = self.forest.list_members()
        self.order = [
            block for block in sorted(range(count), key=blocks.ranks.__getitem__) if self._graph.is_reached[block]
        ]
        self.forward: list[list[int]] = [[] for _ in range(count)]
        self.back_edges: list[list[int]] = [[] for _ in range(count)]
        for block in self.order:
            for following in blocks.successors[block]:
                is_back = blocks.ranks[following] <= blocks.ranks[block]
                (self.back_edges if is_back else self.forward)[following].append(block)
        self._deciding: dict[tuple[int, bool], list[int] | None] = {}

    @cached_property
    def _dominators(self) -> list[int]:
        return self._graph.find_dominators()

    @cached_property
    def post_dominators(self) -> list[int]:
        """The immediate post-dominator of each block; -1 where only the end itself is common to all paths."""
        ends = [block for block, following in enumerate(self.successors) if not following]
        return RootedGraph(reverse_edges(self.successors), ends).find_dominators()

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
        return [number for number in self.forest.list_around(source) if block not in self.members[number]]

    def list_deciding(self, block: int, *, is_back: bool = False) -> list[int] | None:
        """Blocks whose branches decide by which edge a block is reached: two paths without a common block lead from them to it.

        Returns:
            None where too many blocks lie between the branch where paths part and the block.
        """
        start = block if is_back else self._dominators[block]
        if start < 0:
            return None
        key = (block, is_back)
        if key not in self._deciding:
            ends = [(self.back_edges if is_back else self.forward)[block]]
            self._deciding[key] = self._find_deciding(ends, start, frozenset(self.forest.list_around(block)))
        return self._deciding[key]

    def list_leaving(self, loop: int) -> list[int] | None:
        """Blocks whose branches decide whether an iteration is a loop's last; None where it has too many blocks."""
        members, header = self.members[loop], self.headers[loop]
        leaving = [one for one in members if not members.issuperset(self.successors[one])]
        return self._find_deciding(
            [leaving, self.back_edges[header]], header, frozenset(self.forest.list_around(header))
        )

    def _find_deciding(self, ends: Sequence[Sequence[int]], start: int, around: frozenset[int]) -> list[int] | None:
        """Blocks whose branches decide which of ``ends`` a path from ``start`` reaches, within one iteration of the loops ``around``."""
        repeated = {self.headers[loop] for loop in around}
        before: list[list[int]] = [[]] if len(ends) == 1 else [[*range(1, len(ends) + 1)], *([] for _ in ends)]
        waiting = list(enumerate(ends, len(before) - len(ends)))
        numbers: dict[int, int] = {}
        for number, sources in waiting:
            for source in sources:
                if source not in numbers:
                    if len(numbers) == _MOST_REGION_BLOCKS:
                        return None
                    numbers[source] = len(before)
                    before.append([])
                    forward = () if source == start else self.forward[source]
                    back = () if source in repeated else self.back_edges[source]
                    waiting.append((numbers[source], (*forward, *back)))
                before[number].append(numbers[source])
        after = reverse_edges(before)
        meetings = RootedGraph(before, [0]).find_dominators()

        def find_last(number: int) -> int:
            while meetings[number] > 0:
                number = meetings[number]
            return number

        return [one for one, number in numbers.items() if len({*map(find_last, after[number])} - {number}) > 1]


def _follow(function: PtxFunction, blocks: PtxBlocks) -> tuple[tuple[frozenset[int], ...], frozenset[int]]:
    """Registers needed at the beginning of each block, and instructions needed: liveness in which only addresses and jumps are uses."""
    instructions = function.instructions
    reads, writes = [list_reads(one) for one in instructions], [list_writes(one) for one in instructions]
    looked_at = [tuple(_list_looked_at(one)) for one in instructions]
    followed: set[int] = set()

    def go_back(block: int, after: Sequence[frozenset[int]]) -> frozenset[int]:
        alive = set().union(*after)
        for index in range(blocks.last[block], blocks.first[block] - 1, -1):
            if not alive.isdisjoint(writes[index]):
                followed.add(index)
                if instructions[index].guard is None:
                    alive.difference_update(writes[index])
                alive.update(reads[index])
            alive.update(looked_at[index])
        return frozenset(alive)

    found = solve_backwards(blocks.successors, go_back, frozenset[int]())
    return tuple(found), frozenset(followed)


def _list_looked_at(instruction: PtxInstruction) -> Iterator[int]:
    """Registers that decide on an access or a jump."""
    if instruction.opcode in JUMPS:
        yield from list_reads(instruction)
        return
    addresses = [one for one in (*instruction.destinations, *instruction.sources) if isinstance(one, Address)]
    if addresses and instruction.guard is not None:
        yield instruction.guard.slot
    yield from (one.base.slot for one in addresses if isinstance(one.base, Register))
