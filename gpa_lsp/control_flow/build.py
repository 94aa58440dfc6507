"""From a decoded function to its :class:`~gpa_lsp.control_flow.model.FlowGraph`."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import Problem, ProblemSeverity
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.model import INSTRUCTION_BYTES, Flow, Function, Instructions, LineTable, ResourceKind
from gpa_lsp.control_flow.cfg import (
    Blocks,
    InstructionFlow,
    ProcedureStart,
    find_blocks,
    find_flow,
    find_procedure_starts,
)
from gpa_lsp.control_flow.depth_first import walk_depth_first
from gpa_lsp.control_flow.dominators import list_dominators
from gpa_lsp.control_flow.loop_lines import locate_loops
from gpa_lsp.control_flow.loops import LoopForest, find_loops
from gpa_lsp.control_flow.model import CallSite, DivergenceRegion, FlowGraph, Procedure

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
    paths = _find_paths(blocks, entries, may_end)
    return FlowGraph(
        function=function.name,
        first_instruction=blocks.first_instruction,
        last_instruction=blocks.last_instruction,
        block_of_instruction=blocks.block_of_instruction,
        terminator=flow.flow[blocks.last_instruction],
        edge_source=blocks.edge_source,
        edge_target=blocks.edge_target,
        edge_kind=blocks.edge_kind,
        successor_starts=blocks.successor_starts,
        predecessor_starts=blocks.predecessor_starts,
        predecessor_edges=blocks.predecessor_edges,
        procedures=procedures,
        procedure_of_block=np.searchsorted(entries, np.arange(len(may_end)), side="right").astype(np.int32)
        - np.int32(1),
        is_reachable=paths.is_reachable,
        may_end=may_end,
        reaches_end=paths.reaches_end,
        immediate_dominator=paths.immediate_dominator,
        immediate_post_dominator=paths.immediate_post_dominator,
        loops=locate_loops(paths.forest, blocks, paths.immediate_dominator, instructions, lines),
        innermost_loop=np.array(paths.forest.innermost[:-1], dtype=np.int32),
        loop_order=np.array(paths.forest.order, dtype=np.int32),
        divergence_regions=find_divergence_regions(instructions, flow, blocks),
        calls=find_call_sites(function, instructions, flow, starts),
        unknown_targets=flow.unknown_targets,
        problems=_list_problems(function, flow),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paths:
    """What the paths through b blocks tell; the arrays as in :class:`~gpa_lsp.control_flow.model.FlowGraph`."""

    is_reachable: npt.NDArray[np.bool_]
    reaches_end: npt.NDArray[np.bool_]
    immediate_dominator: npt.NDArray[np.int32]
    immediate_post_dominator: npt.NDArray[np.int32]
    forest: LoopForest


def _find_paths(blocks: Blocks, entries: list[int], may_end: npt.NDArray[np.bool_]) -> _Paths:
    """Walk the graph from a virtual root in front of all entries, and backwards from one behind all ends; either is node number b."""
    root = len(may_end)
    successors = _list_neighbours(blocks.edge_target, blocks.successor_starts)
    successors.append(entries)
    tree = walk_depth_first(successors, root)
    before = tree.predecessor_ranks(successors)
    predecessors = _list_neighbours(blocks.edge_source[blocks.predecessor_edges], blocks.predecessor_starts)
    predecessors.append(np.flatnonzero(may_end).tolist())
    backward_tree = walk_depth_first(predecessors, root)
    behind = backward_tree.predecessor_ranks(predecessors)
    return _Paths(
        is_reachable=np.array(tree.rank_of_node[:root], dtype=np.int32) >= 0,
        reaches_end=np.array(backward_tree.rank_of_node[:root], dtype=np.int32) >= 0,
        immediate_dominator=np.array(list_dominators(tree, before), dtype=np.int32),
        immediate_post_dominator=np.array(list_dominators(backward_tree, behind), dtype=np.int32),
        forest=find_loops(tree, before),
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


def _list_neighbours(blocks: npt.NDArray[np.int32], starts: npt.NDArray[np.int32]) -> list[list[int]]:
    """Compressed rows as lists, which Python loops over several times faster."""
    flat, bounds = blocks.tolist(), starts.tolist()
    return [flat[start:end] for start, end in pairwise(bounds)]


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
