"""Footprints of blocks against enumeration of every thread: unions, and what sets of blocks share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.volumes import footprints
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    BlockBox,
    KernelAccesses,
    LaunchShape,
    LoopTerm,
    ThreadRegion,
    cover_updates,
    fold_accesses,
)
from gpa_lsp.execution.volumes.footprints import (
    Canvas,
    Place,
    build_boxes,
    build_intervals,
    find_array_strides,
    measure_overlaps,
    measure_union,
)
from gpa_lsp.execution.volumes.groups import ArrayGroups, group_accesses
from tests.conftest import examples
from tests.volumes.enumeration import enumerate_sectors
from tests.volumes.written_kernels import build_field_access, write_star

_FEW = examples(60)
_PADDED = 64
"""Elements of a row: more than any thread reaches, so that rows are what the model takes them for."""


def wrap(*accesses: AccessExpression, base_bytes: int = 0, strides: tuple[int, ...] | None = None) -> ArrayGroups:
    array = AccessedArray(name="a", base_bytes=base_bytes, strides_bytes=strides)
    return group_accesses(KernelAccesses(name="k", arrays=(array,), accesses=accesses))[0]


def place_of(entry: ArrayGroups, launch: LaunchShape) -> Place:
    strides = find_array_strides(entry, launch, launch.region)
    return Place(launch=launch, region=launch.region, base_bytes=entry.array.base_bytes, strides=strides)


@st.composite
def stencils(draw: st.DrawFn) -> tuple[KernelAccesses, LaunchShape, list[BlockBox]]:
    """Loads of a padded 3D array at random offsets, folded or not, a launch, and three sets of blocks."""
    count = draw(st.integers(1, 6))
    offsets = draw(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=count, max_size=count, unique=True))
    strides = (8, 8 * _PADDED, 8 * _PADDED * _PADDED)
    loads = [build_field_access(0, AccessKind.LOAD, offset, strides, element_bytes=8) for offset in offsets]
    known = strides if draw(st.booleans()) else None
    array = AccessedArray(name="a", base_bytes=8 * draw(st.integers(0, 15)), strides_bytes=known)
    kernel = KernelAccesses(name="k", arrays=(array,), accesses=tuple(loads))
    fold = draw(st.sampled_from([(1, 1, 1), (1, 2, 1), (1, 1, 2), (2, 1, 1)]))
    block = draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)))
    updates = draw(st.tuples(st.integers(4, 16), st.integers(2, 8), st.integers(2, 8)))
    launch = cover_updates(updates, block, fold)
    return fold_accesses(kernel, fold), launch, [draw(boxes_of(launch)) for _ in range(3)]


def boxes_of(launch: LaunchShape) -> st.SearchStrategy[BlockBox]:
    axis = [st.tuples(st.integers(0, count), st.integers(0, count)).map(sorted) for count in launch.grid]
    return st.tuples(*axis).map(
        lambda found: BlockBox(low=tuple(a for a, _ in found), high=tuple(b for _, b in found))  # type: ignore[arg-type]
    )


@_FEW
@given(stencils())
def test_stencils_are_counted_exactly(case: tuple[KernelAccesses, LaunchShape, list[BlockBox]]) -> None:
    kernel, launch, sets = case
    entry = group_accesses(kernel)[0]
    base = entry.array.base_bytes
    found = measure_overlaps(entry.groups, place_of(entry, launch), sets)
    sectors = [enumerate_sectors(kernel.accesses, launch, blocks, launch.region, base) for blocks in sets]
    assert found.current == len(sectors[0])
    assert found.before == tuple(len(others) for others in sectors[1:])
    assert found.shared == (len(sectors[0] & sectors[1]), len((sectors[0] - sectors[1]) & sectors[2]))


@st.composite
def linear_accesses(draw: st.DrawFn) -> tuple[AccessExpression, ...]:
    """Any affine accesses: coefficients of global index, thread and block, and loops; also negative."""
    steps = st.sampled_from([-64, -8, 0, 4, 8, 12, 24, 40, 64, 100, 512, 1000])
    few = st.sampled_from([0, 0, 0, 8, 96, 256])
    one = AccessExpression(
        array=0,
        kind=AccessKind.LOAD,
        element_bytes=draw(st.sampled_from([4, 8, 16])),
        constant_bytes=draw(st.integers(0, 2000)),
        global_bytes=(draw(steps), draw(steps), 0),
        thread_bytes=(draw(few), 0, 0),
        block_bytes=(draw(few), draw(few), 0),
        loops=tuple(
            LoopTerm(step_bytes=draw(steps), trips=draw(st.integers(1, 5))) for _ in range(draw(st.integers(0, 2)))
        ),
    )
    return (one, replace(one, constant_bytes=one.constant_bytes + draw(st.integers(1, 300))))


@_FEW
@given(linear_accesses(), st.integers(0, 40))
def test_intervals_are_exact_for_any_affine_access(accesses: tuple[AccessExpression, ...], base: int) -> None:
    launch = LaunchShape(block=(5, 2, 1), grid=(3, 2, 1), updates=(15, 4, 1))
    blocks = BlockBox(low=(0, 0, 0), high=(3, 2, 1))
    entry = wrap(*accesses, base_bytes=base)
    intervals = build_intervals(entry.groups, place_of(entry, launch), blocks)
    expected = enumerate_sectors(accesses, launch, blocks, launch.region, base)
    assert measure_union(intervals[:, 0]) == len(expected)


@_FEW
@given(st.lists(st.tuples(*[st.tuples(st.integers(0, 9), st.integers(1, 6))] * 3), min_size=1, max_size=8))
def test_canvas_measures_unions(corners: list[tuple[tuple[int, int], ...]]) -> None:
    boxes = np.array([[(low, low + size) for low, size in box] for box in corners], dtype=np.int64)
    canvas = Canvas([boxes])
    grid = np.zeros((16, 16, 16), dtype=np.bool_)
    for box in boxes.tolist():
        grid[tuple(slice(low, high) for low, high in box)] = True
    assert canvas.measure(canvas.paint(boxes)) == int(grid.sum())


_SETS = st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=9), min_size=2, max_size=4)


@_FEW
@given(_SETS)
def test_intervals_share_what_sets_of_sectors_share(sets: list[list[tuple[int, int]]]) -> None:
    boxes = [np.array([[[low, low + size]] for low, size in one], np.int64).reshape(-1, 1, 2) for one in sets]
    first, *others = [{sector for low, size in one for sector in range(low, low + size)} for one in sets]
    found = footprints._measure_intervals(boxes)
    assert (found.current, found.before) == (len(first), tuple(map(len, others)))
    for place, shared in enumerate(found.shared):
        assert shared == len((first & others[place]).difference(*others[:place]))


def test_unknown_strides_are_found() -> None:
    kernel = write_star(4, (640, 512, 1000), strides_known=False)
    launch = cover_updates((632, 504, 992), (32, 4, 8))
    for entry in group_accesses(kernel):
        assert find_array_strides(entry, launch, launch.region) == (5120, 2621440)
    folded = group_accesses(fold_accesses(kernel, (1, 2, 1)))[0]
    by_two = cover_updates((632, 504, 992), (32, 4, 8), (1, 2, 1))
    assert find_array_strides(folded, by_two, by_two.region) == (5120, 2621440)


def test_tile_of_a_matrix_product() -> None:
    """``A[(16·by + ty)·n + 16·k + tx]``: rows by block and thread, columns by thread and loop."""
    n, tile = 256, 16
    access = AccessExpression(
        array=0,
        kind=AccessKind.LOAD,
        element_bytes=4,
        constant_bytes=0,
        global_bytes=(0, 4 * n, 0),
        thread_bytes=(4, 0, 0),
        loops=(LoopTerm(step_bytes=4 * tile, trips=n // tile),),
    )
    launch = LaunchShape(block=(tile, tile, 1), grid=(n // tile, n // tile, 1), updates=(n, n, 1))
    entry = wrap(access)
    whole_row = BlockBox(low=(0, 3, 0), high=(n // tile, 4, 1))
    one = BlockBox(low=(2, 3, 0), high=(3, 4, 1))
    place = place_of(entry, launch)
    assert build_boxes(entry.groups, place, one) is not None
    # A block reads 16 whole rows; its neighbours in x read the same ones.
    found = measure_overlaps(entry.groups, place, [whole_row, one])
    assert (found.current, found.shared) == (16 * n * 4 // 32, (16 * n * 4 // 32,))


def test_diagonals_are_no_boxes_and_counted_all_the_same() -> None:
    """``A[i·(n+1)]`` steps along rows and columns at once."""
    access = AccessExpression(
        array=0, kind=AccessKind.LOAD, element_bytes=8, constant_bytes=0, global_bytes=(8 * (_PADDED + 1), 0, 0)
    )
    launch = cover_updates((40, 1, 1), (8, 1, 1))
    entry = wrap(access, strides=(8, 8 * _PADDED))
    place = place_of(entry, launch)
    blocks = BlockBox(low=(0, 0, 0), high=launch.grid)
    assert build_boxes(entry.groups, place, blocks) is None
    assert measure_overlaps(entry.groups, place, [blocks]).current == 40


def test_region_cuts_threads_off() -> None:
    region = ThreadRegion(low=(4, 0, 0), high=(20, 1, 1))
    access = AccessExpression(
        array=0, kind=AccessKind.STORE, element_bytes=8, constant_bytes=0, global_bytes=(8, 0, 0), region=region
    )
    launch = cover_updates((32, 1, 1), (16, 1, 1))
    entry = wrap(access)
    found = measure_overlaps(entry.groups, place_of(entry, launch), [BlockBox(low=(0, 0, 0), high=(2, 1, 1))])
    assert found.current == 4
