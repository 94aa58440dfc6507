"""Courses: the code that is gone through in one order, step by step, in which instructions could change places.

The course of a basic block is its instructions. The course of a loop is what every turn goes through: the blocks that lead to the jump back
whatever happens, with *side code* between them (branches, inner loops) as one step each. Code a turn may skip has no place of its own in it.
"""

from collections.abc import Sequence
from itertools import pairwise, takewhile

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.control_flow.model import FlowGraph, Loop
from gpa_lsp.kernel.dataflow.reordering.effects import SIDE_CODE, Step

# Loops with more jumps back have no course of their own: every jump costs a walk through the loop
_MOST_JUMPS_BACK = 16

# Steps up the post-dominator tree in search of the next block; a block not found by then counts as one that may be skipped
_FARTHEST_POST_DOMINATOR = 64


class Course(Struct, frozen=True, kw_only=True):
    """A piece of code in the order in which it is gone through."""

    steps: tuple[Step, ...]  # in that order
    is_loop: bool  # the last step is followed by the first one
    position: dict[int, int]  # instruction number → step
    calls: tuple[int, ...]  # steps that are calls, ascending
    ways_out: tuple[int, ...]  # steps that are calls, or at which control may leave, ascending
    orders: tuple[int, ...]  # steps that order accesses, ascending

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def is_movable(self) -> npt.NDArray[np.bool_]:
        """bool[m], by step."""
        return np.array([step.is_movable for step in self.steps], dtype=np.bool_)

    def sum_over_steps(self, values: npt.NDArray[np.float64], graph: FlowGraph) -> npt.NDArray[np.float64]:
        """float64[m], the values of each step's instructions added up.

        Args:
            values: float64[n], by instruction of the function.
        """
        sums = values[[max(step.instruction, 0) for step in self.steps]]
        for position, step in enumerate(self.steps):
            if step.instruction == SIDE_CODE:
                sums[position] = values[list_instructions(graph, step.blocks)].sum()
        return sums

    def expand(self, positions: npt.NDArray[np.int64], graph: FlowGraph) -> npt.NDArray[np.int64]:
        """int64[k], the instruction numbers of some steps, those of side code included."""
        parts = [np.zeros(0, dtype=np.int64)]
        for position in positions.tolist():
            step = self.steps[position]
            if step.instruction == SIDE_CODE:
                parts.append(list_instructions(graph, step.blocks))
            else:
                parts.append(np.array([step.instruction], dtype=np.int64))
        return np.concatenate(parts)


def list_instructions(graph: FlowGraph, blocks: Sequence[int]) -> npt.NDArray[np.int64]:
    """int64[k], the instruction numbers of some blocks."""
    chosen = np.asarray(blocks, dtype=np.int64)
    first = graph.first_instruction[chosen].astype(np.int64)
    sizes = graph.last_instruction[chosen] - first + 1
    before = np.cumsum(sizes) - sizes
    return np.repeat(first - before, sizes) + np.arange(int(sizes.sum()))


def build_block_course(graph: FlowGraph, steps: Sequence[Step], block: int) -> Course:
    """The course of one basic block."""
    first, last = int(graph.first_instruction[block]), int(graph.last_instruction[block])
    return _make_course(steps[first : last + 1], is_loop=False)


def build_loop_course(graph: FlowGraph, steps: Sequence[Step], number: int) -> Course | None:
    """The course of one turn of a loop; None where no order of its blocks can be told (irreducible loops, many jumps back)."""
    spine = find_spine(graph, number)
    if not spine:
        return None
    sides = _group_sides(graph, number, spine)
    found: list[Step] = []
    for block, following in pairwise([*spine, spine[0]]):
        first, last = int(graph.first_instruction[block]), int(graph.last_instruction[block])
        found += steps[first : last + 1]
        if not _always_follows(graph, block, following):
            found[-1] = found[-1]._replace(may_leave=True)
        if sides[block]:
            found.append(_summarise(graph, steps, sides[block]))
    return _make_course(found, is_loop=True)


def _make_course(steps: Sequence[Step], *, is_loop: bool) -> Course:
    position = {step.instruction: place for place, step in enumerate(steps) if step.instruction != SIDE_CODE}
    return Course(
        steps=tuple(steps),
        is_loop=is_loop,
        position=position,
        calls=tuple(place for place, step in enumerate(steps) if step.is_call),
        ways_out=tuple(place for place, step in enumerate(steps) if step.is_call or step.may_leave),
        orders=tuple(place for place, step in enumerate(steps) if step.is_order),
    )


def find_spine(graph: FlowGraph, number: int) -> tuple[int, ...]:
    """The blocks directly in a loop (in no inner one) that every full turn passes, in order; empty where that cannot be told."""
    loop = graph.loops[number]
    if loop.is_irreducible or len(loop.back_edge_sources) > _MOST_JUMPS_BACK:
        return ()
    walks = [_walk_up(graph, number, loop, source) for source in loop.back_edge_sources]
    common = set(walks[0]).intersection(*walks[1:])
    return tuple(block for block in reversed(walks[0]) if block in common)


def _walk_up(graph: FlowGraph, number: int, loop: Loop, source: int) -> list[int]:
    """The blocks directly in the loop that dominate a block, from there up to the header; inner loops are stepped over at their headers."""
    found = []
    block = source
    while block >= 0:
        inner = _find_outermost_inside(graph, number, block)
        if inner is not None:
            block = int(graph.immediate_dominator[graph.loops[inner].header])
            continue
        found.append(block)
        if block == loop.header:
            return found
        block = int(graph.immediate_dominator[block])
    return []


def _find_outermost_inside(graph: FlowGraph, number: int, block: int) -> int | None:
    """The loop directly inside loop ``number`` that holds the block; None when it is in no inner loop."""
    inner = tuple(takewhile(lambda loop: loop != number, graph.loops_around(block)))
    return inner[-1] if inner else None


def _group_sides(graph: FlowGraph, number: int, spine: Sequence[int]) -> dict[int, list[int]]:
    """Block of the spine → the other blocks of the loop that are entered from it, inner loops included."""
    nearest = {block: block for block in spine}
    members = graph.blocks_of_loop(number).tolist()
    sides: dict[int, list[int]] = {block: [] for block in spine}
    for block in members:
        path = []
        owner = spine[0]
        for at in graph.dominators_of(block):
            if at in nearest:
                owner = nearest[at]
                break
            path.append(at)
        nearest.update((passed, owner) for passed in path)
        if block not in sides:
            sides[owner].append(block)
    return sides


def _always_follows(graph: FlowGraph, block: int, following: int) -> bool:
    """Whether control that passes ``block`` always comes to ``following``."""
    climb = graph.post_dominators_of(block)
    next(climb, None)  # the block itself
    return any(passed == following for passed, _ in zip(climb, range(_FARTHEST_POST_DOMINATOR), strict=False))


def _summarise(graph: FlowGraph, steps: Sequence[Step], blocks: Sequence[int]) -> Step:
    """All of some blocks as one step."""
    reads: set[int] = set()
    writes: set[int] = set()
    loads = stores = 0
    is_order = is_call = may_leave = is_load = False
    for index in list_instructions(graph, blocks).tolist():
        step = steps[index]
        reads.update(step.reads)
        writes.update(step.writes)
        loads |= step.loads
        stores |= step.stores
        is_order = is_order or step.is_order
        is_call = is_call or step.is_call
        may_leave = may_leave or step.may_leave
        is_load = is_load or step.is_load
    return Step(
        instruction=SIDE_CODE,
        flow=Flow.NONE,
        reads=tuple(reads),
        writes=tuple(writes),
        is_partial=True,
        loads=loads,
        stores=stores,
        is_order=is_order,
        is_call=is_call,
        may_leave=may_leave,
        is_load=is_load,
        is_movable=not is_order and not is_call,
        blocks=tuple(blocks),
    )
