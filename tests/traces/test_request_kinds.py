"""Kinds of requests against the rows themselves."""

import numpy as np
import pytest

from gpa_lsp.execution.accesses.lane_addresses import OUTSIDE, ArrayIndex
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import number_turns, number_warps, order_rows, order_turns
from gpa_lsp.execution.accesses.request_kinds import find_equal_rows
from tests.traces.random_traces import read_lanes, write_loops, write_random


@pytest.mark.parametrize("seed", range(16))
def test_rows_of_a_kind_are_alike_and_all_that_are_alike_are_of_one(seed: int) -> None:
    trace = (write_random if seed % 2 else write_loops)(np.random.default_rng(seed))
    rows, kinds = trace.accesses, PieceRows(trace).kinds
    index = ArrayIndex(trace.buffers)
    arrays = kinds.find_arrays_of_rows(index, np.ones(len(kinds.rows), dtype=np.bool_))
    shapes: dict[object, int] = {}
    alike: dict[object, list[int]] = {}
    for row in range(len(rows)):
        lanes = [*read_lanes(trace, row).values()]
        shape = (
            int(rows.lane_mask[row]), int(rows.bytes[row]), int(rows.space[row]), tuple(lane - lanes[0] for lane in lanes)
        )  # fmt: skip
        assert shapes.setdefault(shape, int(kinds.shape[row])) == kinds.shape[row]
        assert kinds.base[row] == lanes[0]
        own = kinds.shape[row]
        assert (min(lanes) - lanes[0], max(lanes) - lanes[0]) == (kinds.below[own], kinds.above[own])
        alike.setdefault((int(rows.instruction[row]), shape, lanes[0] % 128), []).append(row)
        places = set(index.find(np.array(lanes, dtype=np.uint64)).tolist())
        assert arrays[row] == (places.pop() if len(places) == 1 else OUTSIDE)
    assert len(shapes) == len(kinds.below)
    assert len(alike) == len(kinds.rows)
    for together in alike.values():
        (kind,) = set(kinds.kind[together].tolist())
        lanes = [lane for row in together for lane in read_lanes(trace, row).values()]
        assert (kinds.rows[kind], kinds.counts[kind]) == (together[0], len(together))
        assert (kinds.lowest[kind], kinds.highest[kind]) == (min(lanes), max(lanes))


@pytest.mark.parametrize("seed", range(6))
def test_equal_rows_are_numbered_by_first_appearance(seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = random.integers(-3, 3, (2, int(random.integers(0, 200))))
    last: dict[tuple[int, int], int] = {}
    numbers: dict[tuple[int, int], int] = {}
    before, expected = [], []
    for row, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        before.append(last.get(pair, -1))
        expected.append(numbers.setdefault(pair, len(numbers)))
        last[pair] = row
    found = find_equal_rows(first, second)
    assert found.before.tolist() == before
    assert found.number.tolist() == expected
    assert found.first.tolist() == [row for row, known in enumerate(before) if known < 0]


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_ordered_by_columns(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(0, 3000))
    groups, units = random.integers(-4, 9, count), random.integers(0, 1 << int(random.integers(1, 62)), count)
    assert order_rows(groups, units).tolist() == np.lexsort((units, groups)).tolist()
    assert order_rows(units, groups, -units).tolist() == np.lexsort((-units, groups, units)).tolist()


@pytest.mark.parametrize("seed", range(12))
def test_warps_are_numbered_and_take_turns(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 2000))
    blocks = random.integers(0, 9, count).astype(np.uint32) << 28
    places = random.integers(0, 3, count).astype(np.uint16)
    warps = number_warps(blocks, places)
    assert (warps.block[warps.number] == blocks).all() and (warps.place[warps.number] == places).all()
    assert len(warps.key) == len(set(zip(blocks.tolist(), places.tolist(), strict=True)))
    turns, made = number_turns(warps), dict.fromkeys(range(len(warps.key)), 0)
    for number, turn in zip(warps.number.tolist(), turns.tolist(), strict=True):
        assert turn == made[number]
        made[number] += 1
    for far in (0, 1 << 40):  # the keys of such turns do not go into 64 bits
        groups, ranks = warps.block, warps.place + warps.block % 7
        order = order_turns(warps.number, turns + far, groups, ranks)
        expected = np.lexsort((ranks[warps.number], turns, groups[warps.number]))
        assert order.tolist() == expected.tolist()
