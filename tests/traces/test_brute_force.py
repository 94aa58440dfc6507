"""Traces drawn by lot are analysed as sets of bytes say, lane by lane."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, is_read_anew, is_strong
from gpa_lsp.execution.accesses.lane_addresses import (
    ARRAY_SPACES,
    OUTSIDE,
    ArrayIndex,
    list_lanes,
    pack_lanes,
    spread_lanes,
)
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import list_references, order_rows
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.access_sums import AccessAccumulator
from gpa_lsp.execution.traces.values import RepeatAccumulator
from gpa_lsp.execution.volumes import from_trace
from tests.traces.random_traces import read_lanes, write_loops, write_random
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction


@cache
def _draw(seed: int) -> Trace:
    return (write_loops if seed % 2 else write_random)(np.random.default_rng(seed))


def _list_bytes(trace: Trace, row: int, lanes: dict[int, int]) -> set[int]:
    """Bytes in memory, of local memory in the frame of the warp: words of the 32 lanes lie beside each other."""
    touched = (
        (lane, address + one) for lane, address in lanes.items() for one in range(int(trace.accesses.bytes[row]))
    )
    if trace.accesses.space[row] != Space.LOCAL:
        return {byte for _, byte in touched}
    return {byte // 4 * 128 + lane * 4 + byte % 4 for lane, byte in touched}


def _split(values: Iterable[int], size: int) -> list[int]:
    return sorted({value // size for value in values})


def _list_rows(trace: Trace, *spaces: Space) -> Iterator[int]:
    yield from np.flatnonzero(np.isin(trace.accesses.space, spaces)).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_lanes_are_those_of_the_masks(seed: int) -> None:
    trace = _draw(seed)
    rows = np.arange(len(trace.accesses))[:: 1 + seed % 3]
    listed, packed, (spread, active) = (find(trace.accesses, rows) for find in (list_lanes, pack_lanes, spread_lanes))
    every = [read_lanes(trace, row) for row in rows.tolist()]
    assert [*zip(listed.row.tolist(), listed.lane.tolist(), listed.address.tolist(), strict=True)] == [
        (row, *lane) for row, lanes in zip(rows.tolist(), every, strict=True) for lane in lanes.items()
    ]
    for place, lanes in enumerate(every):
        addresses = list(lanes.values())
        assert packed[place].tolist() == addresses + addresses[:1] * (32 - len(lanes))
        assert {lane: int(spread[place, lane]) for lane in np.flatnonzero(active[place]).tolist()} == lanes
        assert not spread[place, ~active[place]].any()


@pytest.mark.parametrize("seed", range(8))
def test_units_are_those_of_the_bytes(seed: int) -> None:
    trace = _draw(seed)
    piece, rows = PieceRows(trace), np.arange(len(trace.accesses))
    every = [_list_bytes(trace, row, read_lanes(trace, row)) for row in rows.tolist()]
    for shift in (2, 3, 5, 7):
        found = list_references(piece.lanes, rows, shift)
        expected = [_split(touched, 1 << shift) for touched in every]
        assert found.size.tolist() == [len(one) for one in expected]
        assert found.unit.tolist() == [unit for one in expected for unit in one]


@pytest.mark.parametrize("seed", range(8))
def test_sectors_are_those_of_the_bytes_and_every_warp_has_a_frame_of_local_memory(seed: int) -> None:
    trace = _draw(seed)
    rows = np.array([*_list_rows(trace, Space.GLOBAL, Space.TEXTURE, Space.LOCAL)])
    found = PieceRows(trace).list_sectors(rows)
    frames: dict[tuple[int, int], int] = {}
    for row, number in zip(rows.tolist(), found.number.tolist(), strict=True):
        first = int(found.firsts[number])
        sectors = found.sector[first : first + int(found.size[number])].tolist()
        expected = _split(_list_bytes(trace, row, read_lanes(trace, row)), 32)
        if trace.accesses.space[row] == Space.LOCAL:
            warp = int(trace.accesses.block[row]), int(trace.accesses.warp[row])
            frame = frames.setdefault(warp, sectors[0] - expected[0])
            sectors = [one - frame for one in sectors]
        assert sectors == expected
    assert len(set(frames.values())) == len(frames)
    assert all(frame >= 1 << 40 for frame in frames.values())


@pytest.mark.parametrize("seed", range(8))
def test_sums_are_those_of_the_requests(seed: int) -> None:
    trace = _draw(seed)
    accumulator, index = AccessAccumulator(trace.buffers, footprint_sectors=1 << 20), ArrayIndex(trace.buffers)
    accumulator.add(PieceRows(trace))
    found = accumulator.finish()
    sums: dict[tuple[int, int, int | None], Counter[str]] = defaultdict(Counter)
    touched: dict[int, set[int]] = defaultdict(set)
    for row in _list_rows(trace, *ARRAY_SPACES, Space.LOCAL):
        lanes, space = read_lanes(trace, row), Space(int(trace.accesses.space[row]))
        parts: dict[int | None, dict[int, int]] = {None: lanes}
        arrays = index.find(np.array([*lanes.values()], np.uint64)).tolist() if space in ARRAY_SPACES else []
        for (lane, address), array in zip(lanes.items(), arrays, strict=False):
            parts.setdefault(array, {})[lane] = address
        for array, part in parts.items():
            every = _list_bytes(trace, row, part)
            sums[int(trace.accesses.instruction[row]), space, array] += Counter(
                requests=1,
                lanes=len(part),
                requested_bytes=len(part) * int(trace.accesses.bytes[row]),
                used_bytes=len(every),
                lines=len(_split(every, 128)),
                sectors=len(_split(every, 32)),
                ideal_sectors=-(-len(every) // 32),
                uniform=int(len(part) > 1 and len(set(part.values())) == 1 and space != Space.LOCAL),
            )
            if array is not None and array != OUTSIDE:
                first = trace.buffers[array].base // 32
                last = (trace.buffers[array].base + trace.buffers[array].size_bytes - 1) // 32
                touched[array] |= {sector for sector in _split(every, 32) if first <= sector <= last}
    groups = (*found.instructions, *found.arrays)
    assert {(one.instruction, one.space, one.array) for one in groups} == set(sums)
    for one in groups:
        expected = sums[one.instruction, one.space, one.array]
        assert {name: getattr(one.totals, name) for name in expected} == dict(expected)
        assert one.totals.requests == one.totals.line_histogram.sum() == one.totals.sector_histogram.sum()
    assert list(found.footprints) == [len(touched[array]) for array in range(len(trace.buffers))]


@pytest.mark.parametrize("seed", range(8))
def test_sectors_of_some_instructions_are_counted_by_request_and_together(seed: int) -> None:
    trace = _draw(seed)
    piece = PieceRows(trace)
    is_counted = np.array([one.space != Space.LOCAL for one in trace.instructions])
    is_counted[seed % 3 :: 2] = False
    rows = [row for row in range(len(trace.accesses)) if is_counted[trace.accesses.instruction[row]]]
    sectors = {row: _split(_list_bytes(trace, row, read_lanes(trace, row)), 32) for row in rows}
    assert from_trace.count_traced(piece, is_counted) == sum(len(one) for one in sectors.values())
    every = {sector for row in _list_rows(trace, Space.GLOBAL, Space.TEXTURE) for sector in sectors.get(row, ())}
    assert piece.count_sectors(is_counted) == len(every)


@pytest.mark.parametrize("seed", range(8))
def test_repeats_are_those_with_nobody_between(seed: int) -> None:
    trace, rows = _draw(seed), []
    index = ArrayIndex(trace.buffers)
    for row in _list_rows(trace, Space.GLOBAL, Space.SHARED):
        one, lanes = trace.instructions[int(trace.accesses.instruction[row])], read_lanes(trace, row)
        arrays = set(index.find(np.array([*lanes.values()], np.uint64)).tolist())
        array = "shared" if one.space == Space.SHARED else arrays.pop() if len(arrays) == 1 else OUTSIDE
        block, warp = int(trace.accesses.block[row]), int(trace.accesses.warp[row])
        is_fresh = is_strong(one) if one.kind is AccessKind.STORE else is_read_anew(one)
        rows.append((one, block, array, is_fresh, (warp, one.bytes_per_lane, one.space, *lanes.items())))
    expected: dict[AccessKind, Counter[int]] = {AccessKind.LOAD: Counter(), AccessKind.STORE: Counter()}
    for place, (one, block, array, is_fresh, request) in enumerate(rows):
        before = next((n for n in range(place - 1, -1, -1) if (rows[n][1], rows[n][4]) == (block, request)), None)
        if before is None or array == OUTSIDE or is_fresh or rows[before][3] or one.kind != rows[before][0].kind:
            continue
        between = [other for other in rows[before:place] if other[1] == block and other[2] in (array, OUTSIDE)]
        if one.kind in expected and all(other[0].kind == one.kind for other in between):
            expected[one.kind][(one if one.kind is AccessKind.LOAD else rows[before][0]).index] += 1
    accumulator = RepeatAccumulator(most_rows=len(trace.accesses))
    accumulator.add(PieceRows(trace))
    found = accumulator.finish()
    assert {one.instruction: one.repeated for one in found.loads} == expected[AccessKind.LOAD]
    assert {one.instruction: one.repeated for one in found.stores} == expected[AccessKind.STORE]


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_ordered_by_columns_that_64_bits_do_not_hold_together(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups, units = random.integers(-4, 9, 2000), random.integers(0, 1 << int(random.integers(50, 62)), 2000)
    assert order_rows(groups, units).tolist() == np.lexsort((units, groups)).tolist()
    assert order_rows(units // 7, groups, -units).tolist() == np.lexsort((-units, groups, units // 7)).tolist()


def test_rows_of_one_kind_in_several_arrays_have_their_own() -> None:
    writer = TraceWriter((make_instruction(0),), (make_buffer("a", 4096), make_buffer("b", 512, BASE + (1 << 16))))
    for start in (BASE, BASE + (1 << 16), BASE + (1 << 14)):
        writer.access(0, lanes_by(4, base=start))
    trace = writer.finish()
    kinds = PieceRows(trace).kinds
    assert len(kinds.rows) == 1
    found = kinds.find_arrays_of_rows(ArrayIndex(trace.buffers), np.ones(1, dtype=np.bool_))
    assert found.tolist() == [0, 1, OUTSIDE]
