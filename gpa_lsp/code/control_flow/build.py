"""From a decoded function to its :class:`~gpa_lsp.code.control_flow.model.FlowGraph`."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow, Function, Instructions, LineTable, ResourceKind
from gpa_lsp.code.control_flow.cfg import (
    InstructionFlow,
    ProcedureStart,
    find_blocks,
    find_flow,
    find_procedure_starts,
)
from gpa_lsp.code.control_flow.graph import LoopForest, RootedGraph, reverse_edges
from gpa_lsp.code.control_flow.model import Blocks, CallSite, DivergenceRegion, FlowGraph, Loop, LoopLines, Procedure
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.locations import Frame, InlineChain
from gpa_lsp.foundation.ownership import choose_frame, find_library_frame

# Loops nested deeper get no :class:`~gpa_lsp.code.control_flow.model.LoopLines`: each level looks at all instructions inside it once more, which on
# code made to hurt would take the square of its size. Compilers nest less than a dozen.
DEEPEST_NEST = 16

_PREDICATE_KINDS = (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE)

# Instructions between a condition and its branch; keeps the search linear in the number of loops
_FARTHEST_CONDITION = 256

Chain = InlineChain | None
_Path = tuple[Frame, ...]  # The calls through which a body was inlined, outermost first


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


class _CountedChain(Struct, frozen=True):
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

    def locate(self, shape: Loop) -> Loop:
        header_chain = self._find_first_chain(shape.header)
        closing = shape.back_edge_sources[-1]
        branch_chain = self._find_chain(int(self.blocks.last_instruction[closing]))
        condition = find_condition(self.instructions, self.blocks, self.dominators, closing)
        condition_chain = self._find_chain(condition) if condition is not None else None
        return structs.replace(
            shape,
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

    def _find_lines(self, shape: Loop, header: Chain, branch: Chain, condition: Chain) -> LoopLines | None:
        members = self._count_chains(shape)
        if not members:
            return None
        most_frequent = max(members, key=lambda chain: chain.count).frames
        closing = [chain[::-1] for chain in (condition, branch) if chain is not None]
        opening = [header[::-1]] if header is not None else []
        deciding = (*closing, *opening, most_frequent)[0]
        path = find_own_path((*opening, deciding)[0], deciding, members)
        return summarise_lines(path, closing, opening, members)

    def _count_chains(self, shape: Loop) -> list[_CountedChain]:
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
        dominators: int32[b], immediate dominators.

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
    """The calls around a loop's own frame, outermost first; see :class:`~gpa_lsp.code.control_flow.model.LoopLines`."""
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
    """The lines of the body inlined through ``path``. None when none of its instructions has a line number."""
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


_UNNAMED = -1


def find_divergence_regions(
    instructions: Instructions, flow: InstructionFlow, blocks: Blocks
) -> tuple[DivergenceRegion, ...]:
    """One region per BSSY that names a target in the section, by address.

    The BSYNC that belongs to it is the instruction right before the target, if it waits at the same convergence barrier.
    """
    barrier_of = _list_barriers(instructions)
    found = []
    for index in np.flatnonzero(flow.flow == Flow.BARRIER_SET).tolist():
        target, rest = divmod(int(instructions.target[index]), INSTRUCTION_BYTES)
        if rest or not 0 <= target < len(instructions):
            continue
        barrier = int(barrier_of[index])
        wait = target - 1 if target > 0 and flow.flow[target - 1] == Flow.BARRIER_WAIT else None
        if wait is not None and barrier not in (_UNNAMED, barrier_of[wait]):
            wait = None
        found.append(
            DivergenceRegion(
                barrier=barrier if barrier != _UNNAMED else None,
                set_instruction=index,
                set_block=int(blocks.block_of_instruction[index]),
                target_block=int(blocks.block_of_instruction[target]),
                wait_instruction=wait,
                wait_block=None if wait is None else int(blocks.block_of_instruction[wait]),
            )
        )
    return tuple(found)


def _list_barriers(instructions: Instructions) -> npt.NDArray[np.int16]:
    """Number of the convergence barrier each instruction names, written before read; int16[n]."""
    barriers = np.full(len(instructions), _UNNAMED, dtype=np.int16)
    for resources in (instructions.reads, instructions.writes):
        places = np.flatnonzero(resources.numbers >> 8 == ResourceKind.CONVERGENCE_BARRIER)
        rows = np.searchsorted(resources.starts, places, side="right") - 1
        barriers[rows] = resources.numbers[places] & 0xFF
    return barriers


def find_call_sites(
    function: Function, instructions: Instructions, flow: InstructionFlow, starts: tuple[ProcedureStart, ...]
) -> tuple[CallSite, ...]:
    """The instructions that call, by address. A CALL that is a long jump is none; a branch to another section's symbol is one."""
    procedure_at = {start.instruction: number for number, start in enumerate(starts)}
    procedure_named = {start.name: number for number, start in enumerate(starts)}
    is_site = np.isin(flow.flow, (Flow.CALL, Flow.INDIRECT_CALL))
    is_site |= (flow.flow == Flow.BRANCH) & np.isin(instructions.pc_offsets, list(function.call_symbols))
    is_site[flow.jump_source] = False
    found = []
    for index in np.flatnonzero(is_site).tolist():
        kind = Flow(flow.flow[index])
        symbol = function.call_symbols.get(index * INSTRUCTION_BYTES)
        if symbol is not None:
            callee = procedure_named.get(symbol)
        elif kind == Flow.CALL:
            callee = procedure_at.get(int(instructions.target[index]) // INSTRUCTION_BYTES)
        else:
            callee = None
        found.append(
            CallSite(
                instruction=index,
                callee_procedure=callee,
                symbol=symbol,
                is_indirect=kind == Flow.INDIRECT_CALL,
                is_tail=kind == Flow.BRANCH,
            )
        )
    return tuple(found)


def build_flow_graph(function: Function, instructions: Instructions, lines: LineTable | None = None) -> FlowGraph:
    """Structure one function section.

    Takes nearly linear time in the number of instructions and listed branch targets, whatever the code looks like: damaged, unreachable,
    irreducible or without any way out. Targets that lie outside the section become problems, never edges.

    Args:
        function: the section's symbols, relocations and branch target lists.
        instructions: its instructions.
        lines: its line table; without one loops have no source lines.
    """
    starts = find_procedure_starts(function, len(instructions))
    flow = find_flow(function, instructions, starts)
    blocks = find_blocks(flow, starts)
    procedures = _list_procedures(starts, blocks, len(instructions))
    entries = [procedure.entry_block for procedure in procedures]
    may_end = flow.may_end[blocks.last_instruction]
    successors = blocks.list_successors()
    forward = RootedGraph(successors, entries)
    backward = RootedGraph(reverse_edges(successors), np.flatnonzero(may_end).tolist())
    dominators = np.array(forward.find_dominators(), dtype=np.int32)
    forest = forward.find_loops()
    return FlowGraph(
        **structs.asdict(blocks),
        function=function.name,
        terminator=flow.flow[blocks.last_instruction],
        procedures=procedures,
        procedure_of_block=np.searchsorted(entries, np.arange(len(may_end)), side="right").astype(np.int32)
        - np.int32(1),
        is_reachable=np.array(forward.is_reached, dtype=np.bool_),
        may_end=may_end,
        reaches_end=np.array(backward.is_reached, dtype=np.bool_),
        immediate_dominator=dominators,
        immediate_post_dominator=np.array(backward.find_dominators(), dtype=np.int32),
        loops=locate_loops(forest, blocks, dominators, instructions, lines),
        innermost_loop=np.array(forest.innermost, dtype=np.int32),
        loop_order=np.array(forest.order, dtype=np.int32),
        divergence_regions=find_divergence_regions(instructions, flow, blocks),
        calls=find_call_sites(function, instructions, flow, starts),
        unknown_targets=flow.unknown_targets,
        problems=_list_problems(function, flow),
    )


def _list_procedures(
    starts: tuple[ProcedureStart, ...], blocks: Blocks, instruction_count: int
) -> tuple[Procedure, ...]:
    ends = [*(start.instruction for start in starts[1:]), instruction_count]
    return tuple(
        Procedure(
            name=start.name,
            entry_block=int(blocks.block_of_instruction[start.instruction]),
            start_offset=start.instruction * INSTRUCTION_BYTES,
            end_offset=end * INSTRUCTION_BYTES,
        )
        for start, end in zip(starts, ends[: len(starts)], strict=True)
    )


def _list_problems(function: Function, flow: InstructionFlow) -> tuple[Problem, ...]:
    found = []
    for message, where in (
        (
            "{count} instructions jump to a place that is not known; paths through them are missing",
            flow.unknown_targets,
        ),
        ("{count} instructions name a target that is no instruction of their section", flow.bad_targets),
    ):
        if len(where):
            found.append(
                Problem(
                    severity=ProblemSeverity.WARNING,
                    message=message.format(count=len(where)),
                    place=f"first at pc offset 0x{int(where[0]) * INSTRUCTION_BYTES:x}",
                    kernel=function.name,
                )
            )
    return tuple(found)
