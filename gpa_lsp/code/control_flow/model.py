"""Control flow of a function section: :class:`FlowGraph`.

Blocks, edges and everything that has one value per block are numpy columns; a function can have a hundred thousand instructions. Blocks are
numbered in address order, so that block numbers compare like addresses.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.records import ColumnRecord


class EdgeKind(IntEnum):
    """Reason that one block can follow another. Where there are two, the edge has the smaller one."""

    FALL_THROUGH = 0  # The next address: nothing jumps, or the jump's guard or condition does not hold for every thread
    # The target of a branch; also of a CALL that ptxas uses as a long jump, see :func:`~gpa_lsp.code.control_flow.build.find_flow`
    BRANCH = 1
    INDIRECT = 2  # One of the listed targets of a branch through a register
    CALL_RETURN = 3  # The next address after a call, reached when the callee returns
    # The next address after a trap, which the hardware can reach before the trap takes effect, and a debugger afterwards
    TRAP_RETURN = 4


class Procedure(Struct, frozen=True, kw_only=True):
    """A routine inside a function section: the function itself, or one of its local sub-functions."""

    name: str  # mangled symbol name
    entry_block: int  # its first block
    start_offset: int  # first byte in the section
    end_offset: int  # first byte of the next procedure, or the section's size; the filler at the section's end is in the last one


class CallSite(Struct, frozen=True, kw_only=True):
    """An instruction that calls."""

    instruction: int  # index of the calling instruction
    # index into :attr:`FlowGraph.procedures`; None when the callee is elsewhere or unknown
    callee_procedure: int | None
    symbol: str | None  # name of the callee as the relocation gives it; None when there is none
    is_indirect: bool  # through a register
    is_tail: bool  # a branch out of the section, which does not come back here


class LoopLines(Struct, frozen=True, kw_only=True):
    """Source lines of a loop.

    The loop's *own frame* is the innermost inlined body that holds the whole loop: the deepest level on which the loop's first instruction
    and its condition came through the same inlined calls, moved outwards until at least half of the loop's instructions (those with a
    line) came through those calls too. A loop of a library's function is the user's line that calls it, where one does.
    """

    # file, line and function of the loop in its own frame. The line is the smaller one of the condition and the closing branch: one of them has the
    # line of the ``for`` or ``while``, the other may have that of a statement in the body. Where neither has a line in this file, the header's.
    frame: Frame
    # the calls through which the own frame was inlined, innermost first; empty when it was not inlined
    callers: tuple[Frame, ...]
    first_line: int  # smallest line of the loop's instructions in the own frame, in the file of most of them
    last_line: int  # largest such line. Instructions a compiler moved into the loop count too.


class Loop(Struct, frozen=True, kw_only=True):
    """A strongly connected part of the flow graph with one header; its number is its place in :attr:`FlowGraph.loops`.

    Numbers are in nesting order: a loop comes before the loops inside it, and siblings follow by the address of their headers.
    """

    header: int  # block where the loop is entered. In a reducible loop it dominates every block of the loop.
    back_edge_sources: tuple[int, ...]  # blocks of the loop that jump back to the header, ascending
    parent: int | None  # number of the loop directly around; None for an outermost one
    depth: int  # 1 for an outermost loop
    # number of the last loop nested in this one, its own number when there is none; loops ``i..last_inner`` are loop i and everything inside
    last_inner: int
    order_start: int  # place of the loop's first block in :attr:`FlowGraph.loop_order`
    block_count: int  # blocks in the loop, inner loops included
    # the loop can be entered past its header; then the header is only the first entry in depth-first order
    is_irreducible: bool
    # where the loop is written; None without line information, and in nests deeper than :data:`~gpa_lsp.code.control_flow.build.DEEPEST_NEST`
    lines: LoopLines | None = None


def list_loops_outward(loops: Sequence[Loop], innermost: int) -> tuple[int, ...]:
    """Numbers of a loop and those around it, innermost first; none for -1."""
    found = []
    number: int | None = innermost if innermost >= 0 else None
    while number is not None:
        found.append(number)
        number = loops[number].parent
    return tuple(found)


class Blocks(ColumnRecord, frozen=True, kw_only=True):
    """The basic blocks of one function section and the edges between them.

    With n instructions, b blocks and e edges.
    """

    first_instruction: npt.NDArray[np.int32]  # int32[b], index of each block's first instruction; ascending
    last_instruction: npt.NDArray[np.int32]  # int32[b], index of its last one (inclusive)
    block_of_instruction: npt.NDArray[np.int32]  # int32[n]
    edge_source: npt.NDArray[np.int32]  # int32[e], ascending
    edge_target: npt.NDArray[np.int32]  # int32[e], ascending within one source; a pair of blocks occurs once
    edge_kind: npt.NDArray[np.uint8]  # uint8[e] of :class:`EdgeKind`
    # int32[b + 1]; the edges out of block i are ``successor_starts[i]:successor_starts[i + 1]``
    successor_starts: npt.NDArray[np.int32]
    # int32[b + 1]; the edges into block i are ``predecessor_edges[predecessor_starts[i]:predecessor_starts[i + 1]]``
    predecessor_starts: npt.NDArray[np.int32]
    predecessor_edges: npt.NDArray[np.int32]  # int32[e], edge numbers by target, then source

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return len(self.first_instruction)

    def successors(self, block: int) -> npt.NDArray[np.int32]:
        """The blocks that can follow ``block``, ascending."""
        return self.edge_target[self.successor_starts[block] : self.successor_starts[block + 1]]

    def list_successors(self) -> list[list[int]]:
        """The blocks that can follow each block, ascending; Python loops over lists several times faster."""
        targets = self.edge_target.tolist()
        return [targets[low:high] for low, high in pairwise(self.successor_starts.tolist())]

    def predecessors(self, block: int) -> npt.NDArray[np.int32]:
        """The blocks that ``block`` can follow, ascending."""
        edges = self.predecessor_edges[self.predecessor_starts[block] : self.predecessor_starts[block + 1]]
        return self.edge_source[edges]


class FlowGraph(Blocks, frozen=True, kw_only=True):
    """The basic blocks of one function section and how control can pass between them.

    Calls are no edges: see ``calls``. "The end" is wherever control leaves the section other
    than by a call: EXIT, RET, a branch out of it or to an unknown place, and its last address.
    """

    function: str  # mangled name of the function
    # uint8[b] of :class:`~gpa_lsp.code.binary.model.Flow`, what the last instruction does; NONE where the next block merely is a target
    terminator: npt.NDArray[np.uint8]
    # the section's own routine first, then its sub-functions, by address. Empty only when there are no instructions.
    procedures: tuple[Procedure, ...]
    procedure_of_block: npt.NDArray[np.int32]  # int32[b] into ``procedures``, by address
    # bool[b], some entry block leads here. The filler behind the last EXIT is not reachable, and is sampled all the same.
    is_reachable: npt.NDArray[np.bool_]
    # bool[b], the block's last instruction can leave for the end (a guarded EXIT does and falls through as well)
    may_end: npt.NDArray[np.bool_]
    reaches_end: npt.NDArray[np.bool_]  # bool[b], some path leads from here to the end; false in endless loops
    # int32[b]; -1 for entry blocks, for blocks that paths from different entries reach, and for unreachable ones
    immediate_dominator: npt.NDArray[np.int32]
    # int32[b]; -1 where only the end itself is common to all paths, and where ``reaches_end`` is false
    immediate_post_dominator: npt.NDArray[np.int32]
    loops: tuple[Loop, ...]  # see :class:`Loop`
    innermost_loop: npt.NDArray[np.int32]  # int32[b], number of the innermost loop around each block; -1 outside loops
    # int32[m], the blocks in loops, ordered by innermost loop, then address; see :meth:`blocks_of_loop`
    loop_order: npt.NDArray[np.int32]
    calls: tuple[CallSite, ...]  # by address
    # int32[u], instructions that jump to where nobody knows: indirect branches without listed targets, and branches out of the section without a
    # symbol. They have no edge for that jump.
    unknown_targets: npt.NDArray[np.int32]
    problems: tuple[Problem, ...]  # what was wrong in the input

    def next_instructions(self, index: int) -> tuple[int, ...]:
        """The instructions of this section that a thread can execute after instruction ``index``, calls stepped over; ascending."""
        block = int(self.block_of_instruction[index])
        if index < self.last_instruction[block]:
            return (index + 1,)
        return tuple(self.first_instruction[self.successors(block)].tolist())

    def previous_instructions(self, index: int) -> tuple[int, ...]:
        """The instructions of this section that a thread can have executed before ``index``, calls stepped over; ascending."""
        block = int(self.block_of_instruction[index])
        if index > self.first_instruction[block]:
            return (index - 1,)
        return tuple(self.last_instruction[self.predecessors(block)].tolist())

    def dominators_of(self, block: int) -> Iterator[int]:
        """The blocks on every path from an entry to ``block``: itself first, then outwards; of an unreachable block itself alone."""
        return _climb(self.immediate_dominator, block)

    def post_dominators_of(self, block: int) -> Iterator[int]:
        """The blocks on every path from ``block`` to the end: itself first, then onwards. Nothing where no path reaches the end."""
        return _climb(self.immediate_post_dominator, block) if self.reaches_end[block] else iter(())

    def blocks_of_loop(self, loop: int) -> npt.NDArray[np.int32]:
        """The blocks of loop number ``loop``, inner loops included, ascending.

        Made on demand: storing them per loop would take the square of the number of blocks in a deep nest.
        """
        found = self.loops[loop]
        return np.sort(self.loop_order[found.order_start : found.order_start + found.block_count])

    def loops_around(self, block: int) -> tuple[int, ...]:
        """Numbers of the loops that hold ``block``, innermost first."""
        return list_loops_outward(self.loops, int(self.innermost_loop[block]))


def _climb(parents: npt.NDArray[np.int32], block: int) -> Iterator[int]:
    while block >= 0:
        yield block
        block = int(parents[block])
