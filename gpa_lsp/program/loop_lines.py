"""Where loops are written: the chains of their first and closing instructions, and the lines of the inlined body that holds them."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpa_lsp.binary.model import Instructions, LineTable
from gpa_lsp.locations import Frame, InlineChain
from gpa_lsp.program.cfg import Blocks
from gpa_lsp.program.loops import LoopForest, LoopShape
from gpa_lsp.program.model import Loop, LoopLines

DEEPEST_NEST = 32
"""Loops nested deeper get no :class:`~gpa_lsp.program.model.LoopLines`: each level looks at all instructions inside it once more, which on
code made to hurt would take the square of its size. Compilers nest less than a dozen."""

_Path = tuple[Frame, ...]
"""The calls through which a body was inlined, outermost first."""


def locate_loops(
    forest: LoopForest, blocks: Blocks, instructions: Instructions, lines: LineTable | None
) -> tuple[Loop, ...]:
    """The loops of a forest with their source lines, in the same order."""
    locator = _LoopLocator(forest, blocks, instructions, lines)
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

    def __init__(self, forest: LoopForest, blocks: Blocks, instructions: Instructions, lines: LineTable | None) -> None:
        self.blocks = blocks
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
        branch_chain = self._find_chain(int(self.blocks.last_instruction[shape.back_edge_sources[-1]]))
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
            lines=self._find_lines(shape, header_chain, branch_chain) if shape.depth <= DEEPEST_NEST else None,
        )

    def _find_chain(self, instruction: int) -> InlineChain | None:
        number = int(self.chain_of[instruction])
        return self.chains[number] if number >= 0 else None

    def _find_first_chain(self, block: int) -> InlineChain | None:
        first, last = int(self.blocks.first_instruction[block]), int(self.blocks.last_instruction[block])
        known = np.flatnonzero(self.chain_of[first : last + 1] >= 0)
        return self._find_chain(first + int(known[0])) if len(known) else None

    def _find_lines(
        self, shape: LoopShape, header_chain: InlineChain | None, branch_chain: InlineChain | None
    ) -> LoopLines | None:
        members = self._count_chains(shape)
        if not members:
            return None
        closing = branch_chain or header_chain or max(members, key=lambda chain: chain.count).frames[::-1]
        opening = header_chain or closing
        path = find_own_path(opening[::-1], closing[::-1], members)
        return summarise_lines(path, opening[::-1], closing[::-1], members)

    def _count_chains(self, shape: LoopShape) -> list[_CountedChain]:
        start, end = self.starts[shape.order_start], self.starts[shape.order_start + shape.block_count]
        numbers, counts = np.unique(self.order[start:end], return_counts=True)
        return [
            _CountedChain(self.chains[number][::-1], count)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if number >= 0
        ]


def find_own_path(opening: tuple[Frame, ...], closing: tuple[Frame, ...], members: list[_CountedChain]) -> _Path:
    """The calls around a loop's own frame, outermost first; see :class:`~gpa_lsp.program.model.LoopLines`.

    Args:
        opening: chain of the loop's first instruction, outermost frame first.
        closing: chain of its closing branch, likewise.
        members: the chains of all its instructions.
    """
    depth = 0
    while depth < min(len(opening), len(closing)) - 1 and opening[depth] == closing[depth]:
        depth += 1
    total = sum(chain.count for chain in members)
    while depth and 2 * sum(chain.count for chain in members if chain.came_through(closing[:depth])) < total:
        depth -= 1
    return closing[:depth]


def summarise_lines(
    path: _Path, opening: tuple[Frame, ...], closing: tuple[Frame, ...], members: list[_CountedChain]
) -> LoopLines | None:
    """The lines of the body inlined through ``path``; arguments as for :func:`find_own_path`. None when none of them has a line number."""
    depth = len(path)
    counts: dict[str, int] = defaultdict(int)
    lines: dict[str, list[int]] = defaultdict(list)
    for chain in members:
        if chain.came_through(path) and chain.frames[depth].line > 0:
            counts[chain.frames[depth].file] += chain.count
            lines[chain.frames[depth].file].append(chain.frames[depth].line)
    if not counts:
        return None
    file = min(counts, key=lambda name: (-counts[name], name))
    candidates = (closing, opening, *(member.frames for member in members))
    frame = next(
        chain[depth]
        for chain in candidates
        if len(chain) > depth and chain[:depth] == path and chain[depth].file == file and chain[depth].line > 0
    )
    return LoopLines(frame=frame, callers=path[::-1], first_line=min(lines[file]), last_line=max(lines[file]))
