"""Sections built to hurt: time must grow with their size, not with its square, and depth must not overflow the stack.

The limit is several times what a slow machine needs; whatever takes the square of the size takes minutes.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.model import Flow, Instructions, LineTable
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.locations import Frame
from tests.control_flow.assembly import assemble
from tests.patience import in_bounded_time
from tests.rows.builders import make_function

BLOCKS = 30_000
P0 = 512


def make_section(targets: np.ndarray, *, guarded: bool = True) -> Instructions:
    """One branch per instruction; a negative target makes an EXIT."""
    _, template = assemble("NOP\n" * len(targets))
    return replace(
        template,
        guard=np.where((targets >= 0) & guarded, P0, -1).astype(np.int16),
        flow=np.where(targets >= 0, Flow.BRANCH, Flow.EXIT).astype(np.uint8),
        target=np.where(targets >= 0, 16 * targets, -1).astype(np.int64),
    )


def build_in_time(instructions: Instructions, lines: LineTable | None = None) -> FlowGraph:
    with in_bounded_time():
        return build_flow_graph(make_function("kernel", len(instructions)), instructions, lines)


def shapes() -> Iterator[tuple[str, np.ndarray]]:
    index = np.arange(BLOCKS)
    yield "chain of exits", np.where(index < BLOCKS - 1, BLOCKS - 1, -1)
    yield "nest of loops", np.where(index < BLOCKS // 2, index + 1, BLOCKS - 1 - index)
    yield "ladder", np.where(index % 2 == 0, np.minimum(index + 2, BLOCKS - 1), np.maximum(index - 3, 0))
    yield "all back to the middle", np.where(index == 0, BLOCKS - 1, BLOCKS // 2)
    yield "crossed jumps", BLOCKS - 1 - index
    yield "random jumps", np.random.default_rng(1).integers(0, BLOCKS, BLOCKS)
    yield "random short jumps", np.clip(index + np.random.default_rng(2).integers(-9, 10, BLOCKS), 0, BLOCKS - 1)


@pytest.mark.parametrize("targets", [pytest.param(targets, id=name) for name, targets in shapes()])
def test_hostile_shapes_take_linear_time(targets: np.ndarray):
    targets[-1] = -1
    graph = build_in_time(make_section(targets))
    assert graph.block_count == BLOCKS
    assert graph.is_reachable.all()
    assert graph.reaches_end[0]


def test_a_deep_nest_is_nested_to_its_full_depth_with_lines():
    index = np.arange(BLOCKS)
    targets = np.where(index < BLOCKS // 2, index + 1, BLOCKS - 1 - index)
    targets[-1] = -1
    lines = LineTable(
        row_offsets=np.arange(BLOCKS, dtype=np.int64) * 16,
        row_chain=np.arange(BLOCKS, dtype=np.int32),
        chains=tuple((Frame(file="k.cu", line=line + 1),) for line in range(BLOCKS)),
    )
    graph = build_in_time(make_section(targets), lines)
    depth = BLOCKS // 2 - 1
    assert len(graph.loops) == depth
    assert max(loop.depth for loop in graph.loops) == depth
    assert graph.loops[0].block_count == BLOCKS - 2
    assert len(graph.blocks_of_loop(depth - 1)) == 2
    assert graph.loops[0].lines is not None
    assert graph.loops[-1].lines is None


def test_a_long_straight_chain_of_jumps():
    graph = build_in_time(make_section(np.append(np.arange(1, BLOCKS), -1), guarded=False))
    assert sum(1 for _ in graph.dominators_of(BLOCKS - 1)) == BLOCKS
    assert sum(1 for _ in graph.post_dominators_of(0)) == BLOCKS


def test_long_cycles_of_calls():
    with in_bounded_time():
        forest = RootedGraph([[(node + 1) % BLOCKS] for node in range(BLOCKS)], range(BLOCKS)).find_loops()
        assert [loop.block_count for loop in forest.loops] == [BLOCKS]
