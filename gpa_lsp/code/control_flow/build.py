"""Decoded function → :class:`~gpa_lsp.code.control_flow.model.FlowGraph`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec import structs

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, PREDICATE_KINDS, Flow, Function, Instructions, LineTable
from gpa_lsp.code.control_flow.graph import LoopForest, RootedGraph, reverse_edges
from gpa_lsp.code.control_flow.model import Blocks, CallSite, EdgeKind, FlowGraph, Loop, LoopLines, Procedure
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.locations import Frame, InlineChain
from gpa_lsp.foundation.ownership import choose_frame, find_library_frame
from gpa_lsp.foundation.records import ColumnRecord

# BRA.CONV and BRA.DIV jump or not depending on which threads are together; they need no guard to fall through
_DIVERGENCE_MODIFIERS = ("CONV", "DIV")


class InstructionFlow(ColumnRecord, frozen=True, kw_only=True):
    """Control flow between n instructions, before they are grouped into blocks."""

    # uint8[n] of :class:`~gpa_lsp.code.binary.model.Flow`; NONE for instructions whose guard never holds
    flow: npt.NDArray[np.uint8]
    falls_through: npt.NDArray[np.bool_]  # bool[n], the next address can follow
    may_end: npt.NDArray[np.bool_]  # bool[n], the instruction can leave the section other than by a call
    jump_source: npt.NDArray[np.int32]  # int32[j], instructions that jump, one entry per target
    jump_target: npt.NDArray[np.int32]  # int32[j], index of the instruction jumped to
    jump_kind: npt.NDArray[np.uint8]  # uint8[j] of :class:`~gpa_lsp.code.control_flow.model.EdgeKind`
    reconvergence_targets: npt.NDArray[np.int32]  # int32[r], indexes of the instructions BSSYs name
    unknown_targets: npt.NDArray[np.int32]  # int32[u], instructions that jump to an unknown place
    bad_targets: npt.NDArray[
        np.int32
    ]  # int32[x], indirect branches with a listed target that is no instruction of the section


def find_procedure_starts(function: Function, instruction_count: int) -> dict[int, str]:
    """Index of the first instruction → mangled name, of the routines of a section by address: the function at 0, then its sub-functions.

    Of several names for one address the first stays; starts that are no instruction of the section are left out.
    """
    names = {0: function.name} if instruction_count > 0 else {}
    for sub in function.sub_functions:
        index, rest = divmod(sub.start_offset, INSTRUCTION_BYTES)
        if rest == 0 and 0 <= index < instruction_count:
            names.setdefault(index, sub.name)
    return dict(sorted(names.items()))


def find_flow(function: Function, instructions: Instructions, starts: Iterable[int]) -> InstructionFlow:
    """Find the possible successors of each instruction.

    * A guarded instruction can also do nothing and fall through; so can a branch with a predicate operand, BRA.CONV and BRA.DIV.
    * Calls fall through; their callees are no jump targets. One exception: ptxas writes a conditional branch that is too far as a CALL to a
      label inside the routine, for which no return address is set. A call to an address where no routine starts is therefore a jump that
      can fall through.
    * BSSY, BSYNC, BREAK, WARPSYNC and YIELD fall through: the instruction after a BSYNC is the one its BSSY names.
    * BPT.TRAP falls through.

    Source: nvdisasm's basic-block graphs of code for sm_75 to sm_120 agree step by step.
    """
    count = len(instructions)
    never = (instructions.guard < 0) & instructions.guard_negated
    flow = np.where(never, np.uint8(Flow.NONE), instructions.flow)
    index, is_target = _index_targets(instructions.target, count)
    is_start = np.zeros(count + 1, dtype=np.bool_)
    is_start[list(starts)] = True
    branches = flow == Flow.BRANCH
    long_jumps = (flow == Flow.CALL) & ~is_start[index]
    direct = np.flatnonzero((branches | long_jumps) & is_target)
    indirect, landing, unknown, unlisted = _find_indirect_jumps(
        function, instructions, np.flatnonzero(flow == Flow.INDIRECT_BRANCH)
    )
    leaving = branches & ~is_target
    lost = np.flatnonzero(leaving & ~np.isin(instructions.pc_offsets, list(function.call_symbols)))
    falls_through = _find_falling(instructions, flow)
    may_end = leaving | np.isin(flow, (Flow.RETURN, Flow.EXIT))
    may_end[unknown] = True
    may_end[-1:] |= falls_through[-1:]
    return InstructionFlow(
        flow=flow,
        falls_through=falls_through,
        may_end=may_end,
        jump_source=np.concatenate([direct, indirect]).astype(np.int32),
        jump_target=np.concatenate([index[direct], landing]).astype(np.int32),
        jump_kind=np.repeat(np.array([EdgeKind.BRANCH, EdgeKind.INDIRECT], np.uint8), (len(direct), len(indirect))),
        reconvergence_targets=index[(flow == Flow.BARRIER_SET) & is_target].astype(np.int32),
        unknown_targets=np.sort(np.concatenate([lost, unknown])).astype(np.int32),
        bad_targets=unlisted.astype(np.int32),
    )


def find_blocks(flow: InstructionFlow, starts: Iterable[int]) -> Blocks:
    """Cut the instructions into blocks and connect them.

    A block starts where a routine starts, at every jump target, at every reconvergence point, and after every instruction that can go
    elsewhere than to the next address or calls.
    """
    count = len(flow.flow)
    is_first = np.zeros(count + 1, dtype=np.bool_)
    is_first[list(starts)] = True
    is_first[flow.jump_target] = True
    is_first[flow.reconvergence_targets] = True
    is_first[1:] |= ~np.isin(flow.flow, (Flow.NONE, Flow.BARRIER_SET, Flow.BARRIER_WAIT))
    first = np.flatnonzero(is_first[:count]).astype(np.int32)
    last = np.append(first[1:], count).astype(np.int32)[: len(first)] - np.int32(1)
    block_of = (np.cumsum(is_first[:count]) - 1).astype(np.int32)

    falling = last[flow.falls_through[last] & (last + 1 < count)]
    kinds = np.zeros(len(Flow), dtype=np.uint8)
    kinds[[Flow.CALL, Flow.INDIRECT_CALL]] = EdgeKind.CALL_RETURN
    kinds[Flow.TRAP] = EdgeKind.TRAP_RETURN
    source, target, kind = _sort_edges(
        block_of[np.concatenate([falling, flow.jump_source])],
        block_of[np.concatenate([falling + 1, flow.jump_target])],
        np.concatenate([kinds[flow.flow[falling]], flow.jump_kind]),
    )
    bounds = np.arange(len(first) + 1)
    into = np.lexsort((source, target))
    return Blocks(
        first_instruction=first,
        last_instruction=last,
        block_of_instruction=block_of,
        edge_source=source,
        edge_target=target,
        edge_kind=kind,
        successor_starts=np.searchsorted(source, bounds).astype(np.int32),
        predecessor_starts=np.searchsorted(target[into], bounds).astype(np.int32),
        predecessor_edges=into.astype(np.int32),
    )


def _sort_edges(
    source: npt.NDArray[np.int32], target: npt.NDArray[np.int32], kind: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The edges by source, then target; of several between two blocks the one with the smallest kind."""
    order = np.lexsort((kind, target, source))
    source, target, kind = source[order], target[order], kind[order]
    is_new = np.ones(len(source), dtype=np.bool_)
    is_new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[is_new], target[is_new], kind[is_new]


def _index_targets(targets: npt.NDArray[np.int64], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Instruction index of each pc offset (``count`` where it is none), and whether it is an instruction of the section."""
    inside = (targets >= 0) & (targets < count * INSTRUCTION_BYTES) & (targets % INSTRUCTION_BYTES == 0)
    return np.where(inside, targets // INSTRUCTION_BYTES, count), inside


def _find_falling(instructions: Instructions, flow: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether control can fall through each instruction to the next address. bool[n]."""
    stays = ~np.isin(flow, (Flow.BRANCH, Flow.INDIRECT_BRANCH, Flow.RETURN, Flow.EXIT))
    kind = instructions.reads.numbers >> 8
    is_predicate = np.isin(kind, PREDICATE_KINDS)
    before = np.concatenate([[0], np.cumsum(is_predicate)])
    reads_predicate = np.diff(before[instructions.reads.starts]) > 0
    depends_on_divergence = np.array(
        [any(part in _DIVERGENCE_MODIFIERS for part in name.split(".")) for name in instructions.mnemonics],
        dtype=np.bool_,
    )[instructions.mnemonic_index]
    depends_on_divergence &= flow == Flow.BRANCH
    is_guarded = instructions.guard >= 0
    falls_through: npt.NDArray[np.bool_] = stays | is_guarded | reads_predicate | depends_on_divergence
    return falls_through


def _find_indirect_jumps(
    function: Function, instructions: Instructions, branches: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Jumps through registers: branch and target of each, branches without any target in the section, and with one that is no instruction of it."""
    sources = [np.empty(0, np.int64)]
    targets = [np.empty(0, np.int64)]
    unknown, bad = [], []
    for branch in branches.tolist():
        listed = function.indirect_branch_targets.get(int(instructions.pc_offsets[branch]), ())
        index, inside = _index_targets(find_distinct(np.array(listed, dtype=np.int64)), len(instructions))
        if not inside.all():
            bad.append(branch)
        if not inside.any():
            unknown.append(branch)
        targets.append(index[inside])
        sources.append(np.full(len(targets[-1]), branch, dtype=np.int64))
    return np.concatenate(sources), np.concatenate(targets), np.array(unknown, np.int64), np.array(bad, np.int64)


# Loops nested deeper get no :class:`~gpa_lsp.code.control_flow.model.LoopLines`: each level looks at all instructions inside it once more, which on
# code made to hurt would take the square of its size. Compilers nest less than a dozen.
DEEPEST_NEST = 16

# Instructions between a condition and its branch; keeps the search linear in the number of loops
_FARTHEST_CONDITION = 256

Chain = InlineChain | None
_Path = tuple[Frame, ...]  # The calls through which a body was inlined, outermost first
# A chain turned outermost frame first, and the number of instructions of a loop that have it
_CountedChain = tuple[tuple[Frame, ...], int]


class _LoopLocator:
    """Locates the loops of one function.

    ``order`` holds the chain numbers of all instructions in loops, in the order of :attr:`LoopForest.order`, so that a loop's are one slice.
    """

    def __init__(
        self,
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
        """The loop with its source lines."""
        if shape.depth > DEEPEST_NEST:
            return shape
        # of the header's first instruction that has one, the branch that closes the loop, and the comparison that decides that branch
        header = self._find_first_chain(shape.header)
        closing = shape.back_edge_sources[-1]
        branch = self._find_chain(int(self.blocks.last_instruction[closing]))
        decisive = find_condition(self.instructions, self.blocks, self.dominators, closing)
        condition = self._find_chain(decisive) if decisive is not None else None
        return structs.replace(shape, lines=self._find_lines(shape, header, branch, condition))

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
        most_frequent = max(members, key=lambda member: member[1])[0]
        closing = [chain[::-1] for chain in (condition, branch) if chain is not None]
        opening = [header[::-1]] if header is not None else []
        deciding = (*closing, *opening, most_frequent)[0]
        path = find_own_path((*opening, deciding)[0], deciding, members)
        return summarise_lines(path, closing, opening, members)

    def _count_chains(self, shape: Loop) -> list[_CountedChain]:
        start, end = self.starts[shape.order_start], self.starts[shape.order_start + shape.block_count]
        numbers, counts = np.unique(self.order[start:end], return_counts=True)
        return [
            (self.chains[number][::-1], count)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if number >= 0
        ]


def find_condition(
    instructions: Instructions, blocks: Blocks, dominators: npt.NDArray[np.int32], block: int
) -> int | None:
    """The instruction that decides where a block's last one goes: the last one before it to write a predicate which it reads; None when there is none
    near.

    Looks back through the immediate dominators of the block, over :data:`_FARTHEST_CONDITION` instructions at most; a write beside them, on one of
    several ways to the block, is not seen. The branch itself is not enough to tell a loop's line: in code for sm_120 it has the line of
    whatever precedes it.

    Source: 205 loops of kernels compiled for sm_75 to sm_120, whose ``for`` and ``while`` lines are known.
    """
    last = int(blocks.last_instruction[block])
    predicates = {number for number in instructions.reads.of(last) if number >> 8 in PREDICATE_KINDS}
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
    total = sum(count for _, count in members)
    while depth and 2 * sum(count for chain, count in members if _came_through(chain, closing[:depth])) < total:
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
    for chain, count in members:
        if _came_through(chain, path) and chain[depth].line > 0:
            counts[chain[depth].file] += count
            frames[chain[depth].file].add(chain[depth])
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
    return {chain[len(path)] for chain in chains if _came_through(chain, path)} & inside


def _came_through(chain: tuple[Frame, ...], path: _Path) -> bool:
    return len(chain) > len(path) and chain[: len(path)] == path


def find_call_sites(
    function: Function, instructions: Instructions, flow: InstructionFlow, starts: Mapping[int, str]
) -> tuple[CallSite, ...]:
    """The instructions that call, by address. A CALL that is a long jump is none; a branch to another section's symbol is one."""
    procedure_at = {start: number for number, start in enumerate(starts)}
    procedure_named = {name: number for number, name in enumerate(starts.values())}
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
    locator = _LoopLocator(forest, blocks, dominators, instructions, lines)
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
        loops=tuple(map(locator.locate, forest.loops)),
        innermost_loop=np.array(forest.innermost, dtype=np.int32),
        loop_order=np.array(forest.order, dtype=np.int32),
        calls=find_call_sites(function, instructions, flow, starts),
        unknown_targets=flow.unknown_targets,
        problems=_list_problems(function, flow),
    )


def _list_procedures(starts: Mapping[int, str], blocks: Blocks, instruction_count: int) -> tuple[Procedure, ...]:
    return tuple(
        Procedure(
            name=starts[start],
            entry_block=int(blocks.block_of_instruction[start]),
            start_offset=start * INSTRUCTION_BYTES,
            end_offset=end * INSTRUCTION_BYTES,
        )
        for start, end in pairwise((*starts, instruction_count))
    )


def _list_problems(function: Function, flow: InstructionFlow) -> tuple[Problem, ...]:
    unknown = "jump to a place that is not known; paths through them are missing"
    bad = "list a target that is no instruction of their section"
    return tuple(
        Problem.warning(
            f"{len(where)} instructions {message}",
            place=f"first at pc offset 0x{int(where[0]) * INSTRUCTION_BYTES:x}",
            kernel=function.name,
        )
        for message, where in ((unknown, flow.unknown_targets), (bad, flow.bad_targets))
        if len(where)
    )
