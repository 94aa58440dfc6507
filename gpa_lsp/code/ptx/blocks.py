"""Basic blocks of a PTX function: control flow, order of execution, live registers."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np
from msgspec import Struct

from gpa_lsp.code.control_flow.graph import RootedGraph, UnsolvedError, solve_backwards
from gpa_lsp.code.ptx.model import PtxFunction, PtxInstruction, list_reads, list_writes
from gpa_lsp.foundation.records import remembered

# 64-bit words of all sets, before all registers count as alive everywhere; and a hundredth of those that are looked at
_MOST_WORDS = 16_000_000

# Times that a block is looked at, on average, before all registers count as alive everywhere. Code needs about as many as its loops are deep.
_MOST_STEPS = 100

_MOST_SLOTS = 5_000_000  # Slots that are listed, over all blocks, before all registers count as alive everywhere


def find_live_in(
    instructions: Sequence[PtxInstruction],
    first: Sequence[int],
    last: Sequence[int],
    successors: Sequence[Sequence[int]],
) -> tuple[tuple[int, ...], ...]:
    """Slots that may be read before they are written, from each block's start, ascending.

    A guarded instruction reads its guard, and its write does not end the life of what the register held. For functions so large that the
    answer would take seconds or gigabytes, all registers that occur are given for every block: more than needed, never too few.

    Source:
        The usual backward data-flow equations, in = use ∪ (out − def); sets are Python integers.
    """
    uses, kills = _summarise(instructions, first, last)
    everything = 0
    for block in range(len(first)):
        everything |= uses[block] | kills[block]
    words = everything.bit_length() // 64 + 1
    if words * len(first) <= _MOST_WORDS:
        try:
            live = solve_backwards(
                successors,
                lambda block, after: uses[block] | reduce(or_, after, 0) & ~kills[block],
                0,
                most_steps=min(_MOST_STEPS * len(first), 100 * _MOST_WORDS // words),
            )
        except UnsolvedError:
            live = [everything] * len(first)
        if sum(bits.bit_count() for bits in live) <= _MOST_SLOTS:
            return tuple(_list_bits(bits) for bits in live)
    return (_list_bits(everything),) * len(first)


def _summarise(
    instructions: Sequence[PtxInstruction], first: Sequence[int], last: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The registers each block reads before writing them, and those it certainly writes, as sets of bits."""
    uses: list[int] = []
    kills: list[int] = []
    for start, end in zip(first, last, strict=True):
        read: set[int] = set()
        written: set[int] = set()
        for index in range(start, end + 1):
            instruction = instructions[index]
            read.update(slot for slot in list_reads(instruction) if slot not in written)
            if instruction.guard is None:
                written.update(list_writes(instruction))
        uses.append(_pack(read))
        kills.append(_pack(written))
    return uses, kills


def _pack(slots: set[int]) -> int:
    if not slots:
        return 0
    packed = bytearray(max(slots) // 8 + 1)
    for slot in slots:
        packed[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(packed, "little")


def _list_bits(bits: int) -> tuple[int, ...]:
    content = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return tuple(np.flatnonzero(np.unpackbits(content, bitorder="little")).tolist())


_DEEPEST = 64  # Loops nested deeper are ranked as if they were one


def rank_blocks(successors: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The rank of each block, 0 first; block 0 is where the function begins.

    Reverse post order of a depth-first walk alone would let what follows a loop run before the loop's last blocks. So each loop is ordered by
    itself, an inner loop standing for one block in it: a loop's blocks are together, its header first, and every jump but those back to
    headers (and into the middle of irreducible loops) goes to a higher rank.

    >>> rank_blocks([[1], [4, 2], [3, 1], [1], []])
    (0, 1, 2, 3, 4)
    """
    if not successors:
        return ()
    count = len(successors)
    order = _Orderer(successors).order()
    ranks = [-1] * count
    for rank, block in enumerate(order):
        ranks[block] = rank
    place = len(order)
    for block in range(count):
        if ranks[block] < 0:
            ranks[block] = place
            place += 1
    return tuple(ranks)


class _Orderer:
    """Orders the nodes of each loop by themselves.

    A node of a *level* is a block directly in a loop (or in none), or an inner loop as a whole: number of blocks + its number.
    """

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self._count = len(successors)
        graph = RootedGraph(successors, [0])
        forest = graph.find_loops()
        self._loops = forest.loops
        self._chains: dict[int, tuple[int, ...]] = {-1: ()}
        for number, loop in enumerate(forest.loops):
            above = self._chains[-1 if loop.parent is None else loop.parent]
            self._chains[number] = (*above, number) if len(above) < _DEEPEST else above
        self._innermost = forest.innermost
        # Level (loop's number, -1 for none) → node → following nodes of that level
        self._edges: dict[int, dict[int, list[int]]] = {}
        for block, is_reached in enumerate(graph.is_reached):
            for other in successors[block] if is_reached else ():
                self._add_edge(block, other)

    def _add_edge(self, block: int, other: int) -> None:
        """Put an edge into the innermost loop that holds both ends, each represented by what it is there."""
        left, right = (self._chains[self._innermost[end]] for end in (block, other))
        shared = 0
        while shared < min(len(left), len(right)) and left[shared] == right[shared]:
            shared += 1
        level = left[shared - 1] if shared else -1
        ends = [
            self._count + chain[shared] if len(chain) > shared else end
            for chain, end in ((left, block), (right, other))
        ]
        if ends[0] == ends[1] or (level >= 0 and other == self._loops[level].header):
            return
        self._edges.setdefault(level, {}).setdefault(ends[0], []).append(ends[1])

    def order(self) -> list[int]:
        """All reached blocks, in the order to run them."""
        found: list[int] = []
        waiting = [iter(self._order_level(-1, 0))]
        while waiting:
            for node in waiting[-1]:
                if node < self._count:
                    found.append(node)
                    continue
                loop = node - self._count
                waiting.append(iter(self._order_level(loop, self._loops[loop].header)))
                break
            else:
                waiting.pop()
        return found

    def _order_level(self, level: int, start: int) -> list[int]:
        """Reverse post order of one level, from the node that holds ``start``."""
        chain = self._chains[self._innermost[start]]
        depth = 0 if level < 0 else len(self._chains[level])
        root = self._count + chain[depth] if len(chain) > depth else start
        edges = self._edges.get(level, {})
        # Headers of inner loops and blocks of irreducible ones may be entered from several sides, but all are reached from the root.
        met = {root}
        done: list[int] = []
        stack = [(root, iter(edges.get(root, ())))]
        while stack:
            node, rest = stack[-1]
            for other in rest:
                if other not in met:
                    met.add(other)
                    stack.append((other, iter(edges.get(other, ()))))
                    break
            else:
                done.append(node)
                stack.pop()
        return done[::-1]


_ENDING = frozenset({"ret", "exit"})
_STOPPING = frozenset({"trap"})
_JUMPING = frozenset({"bra", "brx"})


class PtxBlocks(Struct, frozen=True, kw_only=True):
    """Basic blocks of a function, in order of the text; b blocks.

    A call, a barrier or an instruction with a guard does not end a block; branches, returns, exits and traps do, with a guard too.
    """

    first: tuple[int, ...]  # index of each block's first instruction
    last: tuple[int, ...]  # its last one, included
    # blocks that can follow, those jumped to first, each once; what ends the function is none
    successors: tuple[tuple[int, ...], ...]
    # an order to run blocks in, lower first: a loop's blocks follow its header without a gap, and what comes after it has a higher rank; so do the
    # two sides of a branch before the block where they meet. Blocks that are never reached come last.
    ranks: tuple[int, ...]
    # register slots that may be read before they are written, from the block's start, ascending
    live_in: tuple[tuple[int, ...], ...]
    block_of: tuple[int, ...]  # instruction → block


@remembered
def find_blocks(function: PtxFunction) -> PtxBlocks:
    """The basic blocks of a function; none for one without instructions.

    >>> from gpa_lsp.code.ptx.parse import parse_ptx
    >>> text = '''.version 8.0 .target sm_80 .address_size 64
    ... .entry k() { .reg .pred %p<2>; .reg .b32 %r<3>; @%p1 bra DONE; mov.u32 %r1, %r2; DONE: ret; }'''
    >>> blocks = find_blocks(parse_ptx(text, name="k").functions["k"])
    >>> blocks.first, blocks.successors, blocks.live_in
    ((0, 1, 2), ((2, 1), (2,), ()), ((0, 2), (2,), ()))
    """
    instructions = function.instructions
    first = _find_starts(instructions)
    last = [start - 1 for start in first[1:]] + ([len(instructions) - 1] if first else [])
    block_of = [0] * len(instructions)
    for block, start in enumerate(first):
        block_of[start : last[block] + 1] = [block] * (last[block] + 1 - start)
    successors = tuple(_find_successors(instructions[index], block_of) for index in last)
    return PtxBlocks(
        first=tuple(first),
        last=tuple(last),
        successors=successors,
        ranks=rank_blocks(successors),
        live_in=find_live_in(instructions, first, last, successors),
        block_of=tuple(block_of),
    )


def _find_starts(instructions: tuple[PtxInstruction, ...]) -> list[int]:
    starts = {0} if instructions else set()
    for instruction in instructions:
        if instruction.opcode in _JUMPING or instruction.opcode in _ENDING or instruction.opcode in _STOPPING:
            starts.add(instruction.index + 1)
            starts.update(instruction.targets)
            if instruction.target is not None:
                starts.add(instruction.target)
    starts.discard(len(instructions))
    return sorted(starts)


def _find_successors(instruction: PtxInstruction, block_of: list[int]) -> tuple[int, ...]:
    opcode = instruction.opcode
    jumped = instruction.targets if instruction.target is None else (instruction.target,)
    found = dict.fromkeys(block_of[target] for target in jumped)
    falls_through = instruction.guard is not None or opcode not in _JUMPING | _ENDING | _STOPPING
    if falls_through and instruction.index + 1 < len(block_of):
        found[block_of[instruction.index + 1]] = None
    return tuple(found)
