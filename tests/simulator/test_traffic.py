"""Traffic of a launch, by the blocks that were walked."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.execution.accesses.l2_traffic import L2Cache
from gpa_lsp.execution.simulator.machine import find_traffic
from gpa_lsp.execution.simulator.program import Kind
from tests.simulator.sm_notation import EXIT, LOAD, STORE, make_program, make_walk, walk_block

PROGRAM = make_program((LOAD, {}), (STORE, {}), (EXIT, {}))
WIDTHS = np.array([4, 4, 0])


def test_what_no_mate_reads_is_read_by_one_block() -> None:
    walk = make_walk((100, 1, 1), walk_block((5, 0, 0), [0, 1, 2, 3], [8]), walk_block((99, 0, 0), [4, 5, 6, 7], [9]))
    found = find_traffic(walk, PROGRAM, WIDTHS, (5, 0, 0))
    assert found.l2_hit_ratio == 0
    assert (found.stored_bytes, found.written_bytes, found.parted_bytes) == (100 * 32, 100 * 32, 0)


def test_what_is_stored_again_is_written_once_and_parts_of_sectors_are_filled() -> None:
    scattered, dense = list(range(32)), list(range(100, 104))
    walk = make_walk(
        (10, 1, 1),
        walk_block((0, 0, 0), [], scattered),
        walk_block((0, 0, 0), [], scattered),
        walk_block((9, 0, 0), [], dense),
    )
    found = find_traffic(walk, PROGRAM, WIDTHS, (0, 0, 0))
    # a word of each of 32 sectors, twice, and four whole sectors: half the blocks do this, half that
    assert found.stored_bytes == (2 * 32 + 4) * 32 * 5
    assert found.written_bytes == (32 + 4) * 32 * 5
    assert (found.parted_bytes, found.filled_bytes) == (32 * 32 * 5, 32 * 32 * 5)


def test_parts_that_several_stores_complete_are_not_filled() -> None:
    scattered = list(range(32))
    warps = [walk_block((0, 0, 0), [], scattered)] * 8  # a word each
    found = find_traffic(make_walk((1, 1, 1), *warps), PROGRAM, WIDTHS, (0, 0, 0))
    assert (found.parted_bytes, found.filled_bytes) == (32 * 32, 0)
    blocks = [walk_block((number, 0, 0), [], scattered) for number in (0, 7)]  # two of eight that store there
    found = find_traffic(make_walk((8, 1, 1), *blocks), PROGRAM, WIDTHS, (0, 0, 0))
    assert (found.written_bytes, found.parted_bytes, found.filled_bytes) == (32 * 32, 32 * 32, 0)


def test_what_blocks_store_to_the_same_place_is_written_once_and_read_before_where_it_is_changed() -> None:
    """However many blocks count into the same bins, no more than these come from DRAM and go there."""
    program = make_program((LOAD, {}), (replace(STORE, kind=Kind.REDUCTION), {}), (EXIT, {}))
    bins = list(range(32))
    blocks = [walk_block((number, 0, 0), [], bins) for number in (50, 0)]
    found = find_traffic(make_walk((100, 1, 1), *blocks), program, WIDTHS, (50, 0, 0))
    assert found.stored_bytes == 100 * 32 * 32
    assert found.written_bytes == found.filled_bytes == pytest.approx(32 * 32)


def test_the_rim_that_neighbours_read_as_well_is_read_once() -> None:
    """Blocks along a line with a rim of two sectors: each of a hundred has six of its own, and asks for ten."""
    blocks = [walk_block((number, 0, 0), list(range(6 * number, 6 * number + 10)), []) for number in (50, 51, 0)]
    walk = make_walk((100, 1, 1), *blocks)
    assert find_traffic(walk, PROGRAM, WIDTHS, (50, 0, 0)).read_bytes == pytest.approx(100 * 6 * 32)


def test_what_neighbours_read_whole_is_read_by_two() -> None:
    blocks = [walk_block((number, 0, 0), [number // 2 * 4, number // 2 * 4 + 1], []) for number in (50, 51, 0)]
    walk = make_walk((100, 1, 1), *blocks)
    assert find_traffic(walk, PROGRAM, WIDTHS, (50, 0, 0)).read_bytes == pytest.approx(50 * 2 * 32)


def test_what_a_far_mate_reads_is_read_by_all_along_that_axis() -> None:
    row, column = [0, 1], [100, 101]
    walk = make_walk(
        (8, 8, 1),
        walk_block((1, 1, 0), row + column, []),
        walk_block((7, 1, 0), [*row, 500, 501], []),
        walk_block((1, 7, 0), [600, 601, *column], []),
    )
    # a matrix product: each of 64 blocks asks for 4 sectors, 8 rows and 8 columns have 2 each
    assert find_traffic(walk, PROGRAM, WIDTHS, (1, 1, 0)).l2_hit_ratio == pytest.approx(1 - 32 / 256)


def test_dram_gives_pairs_of_sectors_where_single_ones_are_read() -> None:
    walk = make_walk((100, 1, 1), walk_block((5, 0, 0), [0, 1, 4, 6], []))
    assert find_traffic(walk, PROGRAM, WIDTHS, (5, 0, 0)).fetched_ratio == 1
    assert find_traffic(walk, PROGRAM, WIDTHS, (5, 0, 0), fetch_bytes=64).fetched_ratio == 6 / 4


def test_no_more_is_read_than_the_arrays_hold() -> None:
    walk = make_walk((64, 1, 1), walk_block((1, 0, 0), [0, 1, 2, 3], []), array_sectors=64)
    assert find_traffic(walk, PROGRAM, WIDTHS, (1, 0, 0)).l2_hit_ratio == pytest.approx(1 - 64 / 256)


def test_rows_that_far_blocks_of_a_line_read_come_from_dram_once() -> None:
    """Two rows of 8 blocks read the same, as when an image is scaled by two."""
    blocks = [
        walk_block((n, 0, 0), list(range(4 * (n // 16 * 8 + n % 8), 4 * (n // 16 * 8 + n % 8) + 4)), [])
        for n in range(0, 800, 57)
    ]
    walk = make_walk((800, 1, 1), *blocks, array_sectors=1600)
    for rows in (16, 25):
        l2_bytes = rows * 32 * 32
        found = find_traffic(
            walk, PROGRAM, WIDTHS, (399, 0, 0), resident_blocks=400, l2=L2Cache(size_bytes=l2_bytes, ways=16)
        )
        assert found.l2_hit_ratio == pytest.approx(0.5, abs=0.01)


def test_gathers_from_more_than_l2_holds_come_from_dram() -> None:
    random = np.random.default_rng(1)
    blocks = [walk_block((n, 0, 0), sorted(random.integers(0, 1 << 20, 40).tolist()), []) for n in (0, 300, 104_857)]
    walk = make_walk((104_858, 1, 1), *blocks, array_sectors=1 << 20)
    for kept, hits in ((0.1, 0.0), (4.0, 0.75)):
        l2_bytes = kept * 32 * (1 << 20)
        found = find_traffic(
            walk, PROGRAM, WIDTHS, (300, 0, 0), resident_blocks=500, l2=L2Cache(size_bytes=l2_bytes, ways=16)
        )
        assert found.l2_hit_ratio == pytest.approx(hits, abs=0.01)


def test_waves_of_blocks_fetch_again_what_all_waves_read() -> None:
    walk = make_walk(
        (8, 8, 1),
        walk_block((0, 0, 0), [0, 1], []),
        walk_block((7, 0, 0), [0, 2], []),
        walk_block((0, 7, 0), [3, 1], []),
    )
    whole = find_traffic(walk, PROGRAM, WIDTHS, (0, 0, 0))
    assert (whole.read_bytes, whole.l2_hit_ratio) == (16 * 32, pytest.approx(1 - 16 / 128))
    half = find_traffic(walk, PROGRAM, WIDTHS, (0, 0, 0), resident_blocks=32, l2=L2Cache(size_bytes=128, ways=16))
    assert half.l2_hit_ratio == pytest.approx(1 - (8 + 2 * 8) / 128, rel=0.01), (
        "columns are read by each half, rows by one"
    )
    kept = find_traffic(walk, PROGRAM, WIDTHS, (0, 0, 0), resident_blocks=32, l2=L2Cache(size_bytes=4096, ways=16))
    assert kept.l2_hit_ratio == pytest.approx(1 - 16 / 128)
