"""What structuring produces: the :class:`FlowGraph` of a function section.

Blocks, edges and everything that has one value per block are numpy columns; a function can have a hundred thousand instructions. Blocks are
numbered in address order, so that block numbers compare like addresses.
"""

from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import Frame, InlineChain


class EdgeKind(IntEnum):
    """Why one block can follow another. Where two reasons lead to the same block, the edge has the smaller one."""

    FALL_THROUGH = 0
    """The next address: nothing jumps, or the jump's guard or condition does not hold for every thread."""
    BRANCH = 1
    """The target of a branch; also of a CALL that ptxas uses as a long jump, see :func:`~gpa_lsp.control_flow.cfg.find_edges`."""
    INDIRECT = 2
    """One of the listed targets of a branch through a register."""
    CALL_RETURN = 3
    """The next address after a call, reached when the callee returns."""
    TRAP_RETURN = 4
    """The next address after a trap, which the hardware can reach before the trap takes effect, and a debugger afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A routine inside a function section: the function itself, or one of its local sub-functions.

    Attributes:
        name: mangled symbol name.
        entry_block: its first block.
        start_offset: first byte in the section.
        end_offset: first byte of the next procedure, or the section's size; the filler at the section's end is in the last one.
    """

    name: str
    entry_block: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """An instruction that calls.

    Attributes:
        instruction: index of the calling instruction.
        callee_procedure: index into :attr:`FlowGraph.procedures`; None when the callee is elsewhere or unknown.
        symbol: name of the callee as the relocation gives it; None when there is none.
        is_indirect: through a register.
        is_tail: a branch out of the section, which does not come back here.
    """

    instruction: int
    callee_procedure: int | None
    symbol: str | None
    is_indirect: bool
    is_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLines:
    """Where a loop is written.

    The loop's *own frame* is the innermost inlined body that holds the whole loop: the deepest level on which the loop's first instruction
    and its condition came through the same inlined calls, moved outwards until at least half of the loop's instructions (those with a
    line) came through those calls too. A loop of a library's function is the user's line that calls it, where one does.

    Attributes:
        frame: file, line and function of the loop in its own frame. The line is the smaller one of the condition and the closing branch: one
            of them has the line of the ``for`` or ``while``, the other may have that of a statement in the body. Where neither has a line in
            this file, the header's.
        callers: the calls through which the own frame was inlined, innermost first; empty when it was not inlined.
        first_line: smallest line of the loop's instructions in the own frame, in the file of most of them.
        last_line: largest such line. Instructions a compiler moved into the loop count too.
    """

    frame: Frame
    callers: tuple[Frame, ...]
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A strongly connected part of the flow graph with one header; its number is its place in :attr:`FlowGraph.loops`.

    Numbers are in nesting order: a loop comes before the loops inside it, and siblings follow by the address of their headers.

    Attributes:
        header: block where the loop is entered. In a reducible loop it dominates every block of the loop.
        back_edge_sources: blocks of the loop that jump back to the header, ascending.
        parent: number of the loop directly around; None for an outermost one.
        depth: 1 for an outermost loop.
        last_inner: number of the last loop nested in this one, its own number when there is none; loops ``i..last_inner`` are loop i and
            everything inside.
        order_start: place of the loop's first block in :attr:`FlowGraph.loop_order`.
        block_count: blocks in the loop, inner loops included.
        is_irreducible: the loop can be entered past its header; then the header is only the first entry in depth-first order.
        header_chain: inline chain of the header's first instruction that has one; None without line information.
        branch_chain: inline chain of the branch that closes the loop, the last one of the last back edge source; None when it has none.
        condition_chain: inline chain of the comparison that decides that branch (:func:`~gpa_lsp.control_flow.loop_lines.find_condition`); None
            when it has none.
        lines: where the loop is written; None without line information, and in nests deeper than
            :data:`~gpa_lsp.control_flow.loop_lines.DEEPEST_NEST`.
    """

    header: int
    back_edge_sources: tuple[int, ...]
    parent: int | None
    depth: int
    last_inner: int
    order_start: int
    block_count: int
    is_irreducible: bool
    header_chain: InlineChain | None
    branch_chain: InlineChain | None
    condition_chain: InlineChain | None
    lines: LoopLines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceRegion:
    """A BSSY and the BSYNC at which the threads that parted after it meet again.

    Attributes:
        barrier: number of the convergence barrier, 0..15; None when the listing does not name it.
        set_instruction: index of the BSSY.
        set_block: its block.
        target_block: the block the BSSY names: where execution goes on together.
        wait_instruction: index of the BSYNC of the same barrier right before the target; None when there is none (damaged code).
        wait_block: its block; None when there is none.

    Source: in 4,566 of 4,566 BSSY of sm_70 to sm_120 code the instruction before the target is a BSYNC of the same barrier, and no BSYNC
    belongs to two BSSY; so the threads that leave a BSYNC always go on with the next instruction.
    """

    barrier: int | None
    set_instruction: int
    set_block: int
    target_block: int
    wait_instruction: int | None
    wait_block: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """The basic blocks of one function section and how control can pass between them.

    With n instructions, b blocks and e edges. Calls are no edges: see ``calls``. "The end" is wherever control leaves the section other
    than by a call: EXIT, RET, a branch out of it or to an unknown place, and its last address.

    Attributes:
        function: mangled name of the function.
        first_instruction: int32[b], index of each block's first instruction; ascending.
        last_instruction: int32[b], index of its last one (inclusive).
        block_of_instruction: int32[n].
        terminator: uint8[b] of :class:`~gpa_lsp.binary.model.Flow`, what the last instruction does; NONE where the next block merely is a
            target.
        edge_source: int32[e], ascending.
        edge_target: int32[e], ascending within one source; a pair of blocks occurs once.
        edge_kind: uint8[e] of :class:`EdgeKind`.
        successor_starts: int32[b + 1]; the edges out of block i are ``successor_starts[i]:successor_starts[i + 1]``.
        predecessor_starts: int32[b + 1]; the edges into block i are ``predecessor_edges[predecessor_starts[i]:predecessor_starts[i + 1]]``.
        predecessor_edges: int32[e], edge numbers by target, then source.
        procedures: the section's own routine first, then its sub-functions, by address. Empty only when there are no instructions.
        procedure_of_block: int32[b] into ``procedures``, by address.
        is_reachable: bool[b], some entry block leads here. The filler behind the last EXIT is not reachable, and is sampled all the same.
        may_end: bool[b], the block's last instruction can leave for the end (a guarded EXIT does and falls through as well).
        reaches_end: bool[b], some path leads from here to the end; false in endless loops.
        immediate_dominator: int32[b]; -1 for entry blocks, for blocks that paths from different entries reach, and for unreachable ones.
        immediate_post_dominator: int32[b]; -1 where only the end itself is common to all paths, and where ``reaches_end`` is false.
        loops: see :class:`Loop`.
        innermost_loop: int32[b], number of the innermost loop around each block; -1 outside loops.
        loop_order: int32[m], the blocks in loops, ordered by innermost loop, then address; see :meth:`blocks_of_loop`.
        divergence_regions: by address of their BSSY.
        calls: by address.
        unknown_targets: int32[u], instructions that jump to where nobody knows: indirect branches without listed targets, and branches out of
            the section without a symbol. They have no edge for that jump.
        problems: what was wrong in the input.
    """

    function: str
    first_instruction: npt.NDArray[np.int32]
    last_instruction: npt.NDArray[np.int32]
    block_of_instruction: npt.NDArray[np.int32]
    terminator: npt.NDArray[np.uint8]
    edge_source: npt.NDArray[np.int32]
    edge_target: npt.NDArray[np.int32]
    edge_kind: npt.NDArray[np.uint8]
    successor_starts: npt.NDArray[np.int32]
    predecessor_starts: npt.NDArray[np.int32]
    predecessor_edges: npt.NDArray[np.int32]
    procedures: tuple[Procedure, ...]
    procedure_of_block: npt.NDArray[np.int32]
    is_reachable: npt.NDArray[np.bool_]
    may_end: npt.NDArray[np.bool_]
    reaches_end: npt.NDArray[np.bool_]
    immediate_dominator: npt.NDArray[np.int32]
    immediate_post_dominator: npt.NDArray[np.int32]
    loops: tuple[Loop, ...]
    innermost_loop: npt.NDArray[np.int32]
    loop_order: npt.NDArray[np.int32]
    divergence_regions: tuple[DivergenceRegion, ...]
    calls: tuple[CallSite, ...]
    unknown_targets: npt.NDArray[np.int32]
    problems: tuple[Problem, ...]

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return len(self.first_instruction)

    def successors(self, block: int) -> npt.NDArray[np.int32]:
        """The blocks that can follow ``block``, ascending."""
        return self.edge_target[self.successor_starts[block] : self.successor_starts[block + 1]]

    def predecessors(self, block: int) -> npt.NDArray[np.int32]:
        """The blocks that ``block`` can follow, ascending."""
        edges = self.predecessor_edges[self.predecessor_starts[block] : self.predecessor_starts[block + 1]]
        return self.edge_source[edges]

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
        found = []
        loop: int | None = int(self.innermost_loop[block])
        while loop is not None and loop >= 0:
            found.append(loop)
            loop = self.loops[loop].parent
        return tuple(found)


def _climb(parents: npt.NDArray[np.int32], block: int) -> Iterator[int]:
    while block >= 0:
        yield block
        block = int(parents[block])
