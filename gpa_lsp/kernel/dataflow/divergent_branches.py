"""Divergent branches: the code that runs with fewer threads because of each, and the part of its work that this costs.

A divergent warp executes every side with some of its threads. If threads were regrouped so that whole warps take one side, code executed with
a of r threads on average would be executed a/r as often; the rest of its samples is the cost of divergence. For nested branches the loss is
split: from the threads that reach the outer branch to those that reach the inner one it is the outer branch's, and so on.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import FunctionSamples, KernelRows

_WORK_PER_BLOCK = 16
_LEAST_WORK = 20_000  # Block visits a function may cost: real kernels have a few dozen divergent branches

_LEAST_LOSS = 0.03  # Fewer threads by less than this are no divergence: counts of different passes differ a little


class Parting(Enum):
    """Way in which the threads of a warp diverge."""

    SIDES = "sides"  # They take different sides and meet again
    TURNS = "turns"  # They leave a loop in different iterations
    EXIT = "exit"  # Some exit


class DivergentBranch(ColumnRecord, frozen=True, kw_only=True):
    """A branch and the code it makes warps go through with fewer threads."""

    row: int  # kernel row of the branch
    kind: Parting
    threads: float  # threads of a warp that reach it (for a loop: that enter the loop), on average
    side_threads: tuple[float, ...]  # threads on each side that is executed, on average, largest first
    rows: npt.NDArray[np.int64]  # int64[m], kernel rows it controls, ascending
    # float64[m], the part of each row's work that this branch costs, 0..1; the losses of one row over all branches add up to at most 1
    loss: npt.NDArray[np.float64]


class _Region(Struct, frozen=True):
    """A branch with its blocks, before losses are shared out."""

    block: int
    blocks: frozenset[int]
    kind: Parting
    threads: float
    side_threads: tuple[float, ...]


def find_divergent_branches(kernel: KernelRows) -> tuple[DivergentBranch, ...]:
    """The divergent branches of all functions; none without counters of threads and executions."""
    found: list[DivergentBranch] = []
    for number, function in enumerate(kernel.functions):
        if function.graph is None or function.instructions is None:
            continue
        threads = measure_block_threads(function, function.graph)
        if np.isnan(threads).all():
            continue
        regions = list(_find_regions(function, function.graph, threads))
        found.extend(_share_out(function.graph, int(kernel.first_rows[number]), threads, regions))
    return tuple(found)


def measure_block_threads(function: FunctionSamples, graph: FlowGraph) -> npt.NDArray[np.float64]:
    """float64[b]: threads of a warp that execute each block, on average; NaN where unknown.

    Nsight Compute 2020.3 counts only the threads whose guard held; there, instructions with a guard say nothing.
    """
    counted = function.counters.get("thread_executions")
    usable = function.executions > 0
    if counted is None:
        counted = function.counters.get("thread_executions_true")
        if counted is None or function.instructions is None:
            return np.full(graph.block_count, np.nan)
        usable &= function.instructions.guard < 0
    usable &= counted >= 0
    blocks = graph.block_of_instruction[usable]
    executed = np.bincount(blocks, weights=function.executions[usable], minlength=graph.block_count)
    threads = np.bincount(blocks, weights=counted[usable], minlength=graph.block_count)
    return np.where(executed > 0, threads / np.maximum(executed, 1), np.nan)


def _find_regions(function: FunctionSamples, graph: FlowGraph, threads: npt.NDArray[np.float64]) -> Iterable[_Region]:
    work = max(_LEAST_WORK, _WORK_PER_BLOCK * graph.block_count)
    for block in _order_candidates(function, graph, threads):
        join = int(graph.immediate_post_dominator[block])
        sides = [int(side) for side in graph.successors(block) if side != join]
        blocks = _reach(graph, sides, join, work)
        if blocks is None:
            return
        work -= len(blocks)
        is_exit = graph.terminator[block] == Flow.EXIT
        entry = _find_entry(graph, block, blocks)
        reference = float(threads[block if entry is None else entry])
        measured = sorted((float(threads[side]) for side in sides if threads[side] > 0), reverse=True)
        kind = Parting.EXIT if is_exit else Parting.SIDES if entry is None else Parting.TURNS
        if reference > 0 and measured:
            yield _Region(block, blocks, kind, reference, tuple(measured))


def _order_candidates(function: FunctionSamples, graph: FlowGraph, threads: npt.NDArray[np.float64]) -> list[int]:
    """The candidates, most executed first, so that the limit on work only drops rare ones."""
    executions = function.executions[graph.last_instruction]
    return sorted(_list_candidates(function, graph, threads), key=lambda block: (-int(executions[block]), block))


def _list_candidates(function: FunctionSamples, graph: FlowGraph, threads: npt.NDArray[np.float64]) -> Iterable[int]:
    """Blocks that end in a branch (or an exit of some threads) after which fewer threads continue."""
    divergent = function.counters.get("divergent_branch_targets")
    for block in np.flatnonzero(np.isin(graph.terminator, (Flow.BRANCH, Flow.INDIRECT_BRANCH, Flow.EXIT))).tolist():
        last = int(graph.last_instruction[block])
        is_exit = graph.terminator[block] == Flow.EXIT
        if divergent is not None and not is_exit and divergent[last] == 0:
            continue
        join = int(graph.immediate_post_dominator[block])
        sides = [side for side in graph.successors(block).tolist() if is_exit or side != join]
        fewest = min((float(threads[side]) for side in sides if threads[side] > 0), default=np.nan)
        if fewest < (1.0 - _LEAST_LOSS) * threads[block] or (divergent is not None and divergent[last] > 0 and sides):
            yield block


def _reach(graph: FlowGraph, starts: Sequence[int], stop: int, work: int) -> frozenset[int] | None:
    """The blocks that can follow before ``stop``; None when that takes more than ``work`` visits."""
    reached: set[int] = set()
    frontier = list(starts)
    while frontier:
        block = frontier.pop()
        if block == stop or block in reached:
            continue
        reached.add(block)
        if len(reached) > work:
            return None
        frontier.extend(graph.successors(block).tolist())
    return frozenset(reached)


def _find_entry(graph: FlowGraph, block: int, blocks: frozenset[int]) -> int | None:
    """The block from which a loop is entered whose iterations the branch decides; None for a branch that decides no loop."""
    if block not in blocks:
        return None
    around = [loop for loop in graph.loops_around(block) if graph.loops[loop].header in blocks]
    if not around:
        return None
    entry = int(graph.immediate_dominator[graph.loops[around[-1]].header])
    return entry if entry >= 0 else None


def _share_out(
    graph: FlowGraph, first_row: int, threads: npt.NDArray[np.float64], regions: Sequence[_Region]
) -> Iterable[DivergentBranch]:
    """Split the loss of each block over the regions around it, outermost first."""
    around: dict[int, list[int]] = {}
    for number in sorted(range(len(regions)), key=lambda one: (-len(regions[one].blocks), regions[one].block)):
        for block in regions[number].blocks:
            around.setdefault(block, []).append(number)
    losses: list[dict[int, float]] = [{} for _ in regions]
    for block, chain in around.items():
        if not threads[block] > 0:
            continue
        whole = current = max(regions[chain[0]].threads, float(threads[block]))
        for position, number in enumerate(chain):
            following = regions[chain[position + 1]].threads if position + 1 < len(chain) else float(threads[block])
            left = max(min(current, following), float(threads[block]))
            losses[number][block] = (current - left) / whole
            current = left
    for region, loss in zip(regions, losses, strict=True):
        blocks = sorted(block for block, share in loss.items() if share >= _LEAST_LOSS)
        if not blocks:
            continue
        spans = [
            np.arange(graph.first_instruction[one], graph.last_instruction[one] + 1, dtype=np.int64) for one in blocks
        ]
        yield DivergentBranch(
            row=first_row + int(graph.last_instruction[region.block]),
            kind=region.kind,
            threads=region.threads,
            side_threads=region.side_threads,
            rows=first_row + np.concatenate(spans),
            loss=np.concatenate([np.full(len(span), loss[one]) for one, span in zip(blocks, spans, strict=True)]),
        )
