"""Where loops are written: the chains of their first instructions and conditions, and the lines of the inlined body that holds them."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import Frame, InlineChain
from gpa_lsp.basis.ownership import choose_frame, find_library_frame
from gpa_lsp.binary.model import Instructions, LineTable, ResourceKind
from gpa_lsp.control_flow.cfg import Blocks
from gpa_lsp.control_flow.loops import LoopForest, LoopShape
from gpa_lsp.control_flow.model import Loop, LoopLines

DEEPEST_NEST = 16
"""Loops nested deeper get no :class:`~gpa_lsp.control_flow.model.LoopLines`: each level looks at all instructions inside it once more, which on
code made to hurt would take the square of its size. Compilers nest less than a dozen."""

_PREDICATE_KINDS = (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE)

_FARTHEST_CONDITION = 256
"""Instructions between a condition and its branch; keeps the search linear in the number of loops."""

Chain = InlineChain | None
_Path = tuple[Frame, ...]
"""The calls through which a body was inlined, outermost first."""


def locate_loops(
    forest: LoopForest,
    blocks: Blocks,
    dominators: npt.NDArray[np.int32],
    instructions: Instructions,
    lines: LineTable | None,
) -> tuple[Loop, ...]:
    """The loops of a forest with their source lines, in the same order."""
    locator = _LoopLocator(forest=forest, blocks=blocks, dominators=dominators, instructions=instructions, lines=lines)
    return tuple(locator.locate(shape) for shape in forest.loops)


@dataclass(frozen=True, slots=True)
class _CountedChain:
    """A chain turned outermost frame first, and how many instructions of a loop have it."""

    frames: tuple[Frame, ...]
    count: int

    def came_through(self, path: _Path) -> bool:
        return len(self.frames) > len(path) and self.frames[: len(path)] == path


class _LoopLocator:
    """Locates the loops of one function.

    ``order`` holds the chain numbers of all instructions in loops, in the order of :attr:`LoopForest.order`, so that a loop's are one slice.
    """

    def __init__(
        self,
        *,
        forest: LoopForest,
        blocks: Blocks,
        dominators: npt.NDArray[np.int32],
        instructions: Instructions,
        lines: LineTable | None,
    ) -> None:
        self.blocks = blocks
        self.instructions = instructions
        self.dominators = dominators
        self.chains: tuple[InlineChain, ...] = lines.chains if lines is not None else ()
        self.chain_of = (
            lines.chain_index(instructions.pc_offsets)
            if lines is not None
            else np.full(len(instructions), -1, dtype=np.int32)
        )
        members = np.array(forest.order, dtype=np.int32)
        first = blocks.first_instruction[members]
        sizes = blocks.last_instruction[members] - first + 1
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        inside = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1] - first, sizes)
        self.order = self.chain_of[inside]

    def locate(self, shape: LoopShape) -> Loop:
        header_chain = self._find_first_chain(shape.header)
        closing = shape.back_edge_sources[-1]
        branch_chain = self._find_chain(int(self.blocks.last_instruction[closing]))
        condition = find_condition(self.instructions, self.blocks, self.dominators, closing)
        condition_chain = self._find_chain(condition) if condition is not None else None
        return Loop(
            header=shape.header,
            back_edge_sources=shape.back_edge_sources,
            parent=shape.parent,
            depth=shape.depth,
            last_inner=shape.last_inner,
            order_start=shape.order_start,
            block_count=shape.block_count,
            is_irreducible=shape.is_irreducible,
            header_chain=header_chain,
            branch_chain=branch_chain,
            condition_chain=condition_chain,
            lines=self._find_lines(shape, header_chain, branch_chain, condition_chain)
            if shape.depth <= DEEPEST_NEST
            else None,
        )

    def _find_chain(self, instruction: int) -> InlineChain | None:
        number = int(self.chain_of[instruction])
        return self.chains[number] if number >= 0 else None

    def _find_first_chain(self, block: int) -> InlineChain | None:
        first, last = int(self.blocks.first_instruction[block]), int(self.blocks.last_instruction[block])
        known = np.flatnonzero(self.chain_of[first : last + 1] >= 0)
        return self._find_chain(first + int(known[0])) if len(known) else None

    def _find_lines(self, shape: LoopShape, header: Chain, branch: Chain, condition: Chain) -> LoopLines | None:
        members = self._count_chains(shape)
        if not members:
            return None
        most_frequent = max(members, key=lambda chain: chain.count).frames
        closing = [chain[::-1] for chain in (condition, branch) if chain is not None]
        opening = [header[::-1]] if header is not None else []
        deciding = (*closing, *opening, most_frequent)[0]
        path = find_own_path((*opening, deciding)[0], deciding, members)
        return summarise_lines(path, closing, opening, members)

    def _count_chains(self, shape: LoopShape) -> list[_CountedChain]:
        start, end = self.starts[shape.order_start], self.starts[shape.order_start + shape.block_count]
        numbers, counts = np.unique(self.order[start:end], return_counts=True)
        return [
            _CountedChain(self.chains[number][::-1], count)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if number >= 0
        ]


def find_condition(
    instructions: Instructions, blocks: Blocks, dominators: npt.NDArray[np.int32], block: int
) -> int | None:
    """The instruction that decides where a block's last one goes: the last one before it to write a predicate which it reads.

    Looks back through the dominators of the block, over :data:`_FARTHEST_CONDITION` instructions at most; a write beside them, on one of
    several ways to the block, is not seen. The branch itself is not enough to tell a loop's line: in code for sm_120 it has the line of
    whatever precedes it.

    Args:
        instructions: of the section.
        blocks: its blocks.
        dominators: int32[b], immediate dominators.
        block: number of the block.

    Returns:
        Its index; None when the last instruction reads no predicate, or none that was written near.

    Source: 205 loops of kernels compiled for sm_75 to sm_120, whose ``for`` and ``while`` lines are known.
    """
    last = int(blocks.last_instruction[block])
    predicates = {number for number in instructions.reads.of(last) if number >> 8 in _PREDICATE_KINDS}
    index = last
    for _ in range(_FARTHEST_CONDITION if predicates else 0):
        if index == blocks.first_instruction[block]:
            block = int(dominators[block])
            if block < 0:
                return None
            index = int(blocks.last_instruction[block]) + 1
        index -= 1
        if not predicates.isdisjoint(instructions.writes.of(index)):
            return index
    return None


def find_own_path(opening: tuple[Frame, ...], closing: tuple[Frame, ...], members: list[_CountedChain]) -> _Path:
    """The calls around a loop's own frame, outermost first; see :class:`~gpa_lsp.control_flow.model.LoopLines`.

    Args:
        opening: chain of the loop's first instruction, outermost frame first.
        closing: chain of its condition, outermost frame first.
        members: the chains of all its instructions.
    """
    depth = 0
    while depth < min(len(opening), len(closing)) - 1 and opening[depth] == closing[depth]:
        depth += 1
    total = sum(chain.count for chain in members)
    while depth and 2 * sum(chain.count for chain in members if chain.came_through(closing[:depth])) < total:
        depth -= 1
    inward = closing[depth::-1]
    if find_library_frame(inward) is not None:
        depth -= inward.index(choose_frame(inward))
    return closing[:depth]


def summarise_lines(
    path: _Path, closing: list[tuple[Frame, ...]], opening: list[tuple[Frame, ...]], members: list[_CountedChain]
) -> LoopLines | None:
    """The lines of the body inlined through ``path``. None when none of its instructions has a line number.

    Args:
        path: the calls around it, outermost first.
        closing: the chains of the loop's condition and closing branch, outermost frame first.
        opening: the chain of its first instruction, outermost frame first.
        members: the chains of all its instructions.
    """
    depth = len(path)
    counts: dict[str, int] = defaultdict(int)
    frames: dict[str, set[Frame]] = defaultdict(set)
    for chain in members:
        if chain.came_through(path) and chain.frames[depth].line > 0:
            counts[chain.frames[depth].file] += chain.count
            frames[chain.frames[depth].file].add(chain.frames[depth])
    if not counts:
        return None
    file = min(counts, key=lambda name: (-counts[name], name))
    inside = frames[file]
    stated = _pick_frames(closing, path, inside) or _pick_frames(opening, path, inside) or inside
    return LoopLines(
        frame=min(stated, key=lambda frame: (frame.line, frame.function or "")),
        callers=path[::-1],
        first_line=min(frame.line for frame in inside),
        last_line=max(frame.line for frame in inside),
    )


def _pick_frames(chains: Iterable[tuple[Frame, ...]], path: _Path, inside: set[Frame]) -> set[Frame]:
    """The frames that chains (outermost first) have right below ``path``, as far as they are among ``inside``."""
    depth = len(path)
    return {chain[depth] for chain in chains if len(chain) > depth and chain[:depth] == path} & inside
