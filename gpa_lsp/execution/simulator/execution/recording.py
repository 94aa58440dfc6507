"""Recording of executions, as columns: :class:`Recorder`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.warp_state import Lanes
from gpa_lsp.execution.simulator.warp_walk import WarpWalk

_PENDING = 4096
_NOTED, _NOTED_SECTORS = 1 << 15, 1 << 18
_MOST_SECTORS = 128  # Of an access of a warp: 16 bytes of local memory for each lane

Integers = npt.NDArray[np.int64]


class _Columns:
    """Rows of a few columns that grow."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pending: list[tuple[npt.NDArray[Any], ...]] = []
        self._parts: list[npt.NDArray[np.int64]] = []

    def add(self, *columns: Any) -> None:
        """Some rows; numbers stand for columns of them."""
        self._pending.append(columns)
        if len(self._pending) >= _PENDING:
            self._join()

    def _join(self) -> None:
        if not self._pending:
            return
        lengths = [len(one[0]) for one in self._pending]
        rows = np.empty((self._count, sum(lengths)), np.int64)
        start = 0
        for columns, length in zip(self._pending, lengths, strict=True):
            for place, column in enumerate(columns):
                rows[place, start : start + length] = column
            start += length
        self._parts.append(rows)
        self._pending.clear()

    def take(self) -> npt.NDArray[np.int64]:
        """int64[columns, rows]."""
        self._join()
        joined = np.concatenate([*self._parts, np.empty((self._count, 0), np.int64)], axis=1)
        self._parts = [joined]
        return joined


class NoteRoom:
    """Room for the notes of machine code: columns of guards, of accesses, and their sectors.

    Args:
        warps: how many there are.

    Attributes:
        guards: int64[3, n], warp, place and lanes.
        accesses: int64[4, n], warp, place, passes and sectors.
        sectors: int64[m].
    """

    def __init__(self, warps: int) -> None:
        self.guards = np.empty((3, _NOTED + 4 * warps), np.int64)
        self.accesses = np.empty((4, _NOTED + 4 * warps), np.int64)
        self.sectors = np.empty(_NOTED_SECTORS + 4 * _MOST_SECTORS * warps, np.int64)


class Recorder:
    """Notes what w warps execute.

    Args:
        warps: how many.
        keeps_walks: keep what is needed for walks; else executions are only counted.

    Attributes:
        executions: of all warps, so far.
        lengths: int64[w], of each warp, so far.
        keeps_walks: see there.
        take_noted: has what machine code noted added.
    """

    def __init__(self, warps: int, *, keeps_walks: bool) -> None:
        self.lengths: Integers = np.zeros(warps, np.int64)
        self.keeps_walks = keeps_walks
        self.take_noted: Callable[[], None] = lambda: None
        self._segments = _Columns(5)
        self._guards = _Columns(3)
        self._accesses = _Columns(4)
        self._sectors: list[Integers] = []
        self._numbers: Integers = np.arange(warps, dtype=np.int64)
        self.executions = 0

    def end(self, first: int, count: int, lanes: Lanes) -> None:
        """Note that the first ``count`` rows of a segment were executed."""
        if not count:
            return
        chosen = self._numbers[lanes.warps]
        self._segments.add(chosen, self.lengths[chosen], first, count, lanes.bits)
        self.lengths[chosen] += count
        self.executions += count * len(chosen)

    def add_noted(self, guards: Integers, accesses: Integers, sectors: Integers) -> None:
        """Add copies of notes, as of :class:`NoteRoom`."""
        if guards.shape[1]:
            self._guards.add(*guards.copy())
        if accesses.shape[1]:
            self._accesses.add(*accesses.copy())
            self._sectors.append(sectors.copy())

    def weigh(
        self, rows: int, weights: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """float64[rows] each, executions by warps and by lanes, each warp's times a weight."""
        self.take_noted()
        warp, _, first, count, bits = self._segments.take()
        lanes = np.bitwise_count(bits.astype(np.uint64)).astype(np.float64)
        by_warps = _spread(first, count, weights[warp], rows)
        by_lanes = _spread(first, count, weights[warp] * lanes, rows)
        guard_warp, guard_place, guard_bits = self._keep_executed(self._guards.take())
        row, before = self._find_rows(guard_warp, guard_place)
        now, then = (np.bitwise_count(one.astype(np.uint64)).astype(np.float64) for one in (guard_bits, before))
        by_lanes += np.bincount(row, weights=(now - then) * weights[guard_warp], minlength=rows)[:rows]
        return by_warps, by_lanes

    def _keep_executed(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Notes without those of the instruction at which a walk ended; warps and places are the first two columns."""
        return rows[:, rows[1] < self.lengths[rows[0]]]

    def _find_rows(self, warps: Integers, places: Integers) -> tuple[Integers, Integers]:
        """The row that a warp executed at a place of its walk, and the lanes of its segment."""
        warp, place, first, _, bits = self._segments.take()
        if not len(warp):
            return warps, warps
        order = np.lexsort((place, warp))
        keys = (warp[order] << 40) | place[order]
        found = order[np.maximum(np.searchsorted(keys, (warps << 40) | places, side="right") - 1, 0)]
        return first[found] + places - place[found], bits[found]

    def take_walks(
        self, chosen: Sequence[int], blocks: Sequence[tuple[int, int, int]], warps: Sequence[int]
    ) -> tuple[WarpWalk, ...]:
        """The walks of some warps."""
        if not chosen:
            return ()
        self.take_noted()
        segments = _group(self._segments.take(), len(self.lengths))
        guards = _group(self._keep_executed(self._guards.take()), len(self.lengths))
        columns = self._accesses.take()
        begins = np.cumsum(columns[3]) - columns[3]
        accesses = _group(self._keep_executed(np.concatenate([columns, begins[None]])), len(self.lengths))
        listed = np.concatenate([*self._sectors, np.zeros(0, np.int64)])
        self._sectors = [listed]
        return tuple(
            _build_walk((block, own), segments(number), guards(number), accesses(number), listed)
            for number, block, own in zip(chosen, blocks, warps, strict=True)
        )


def _group(columns: npt.NDArray[np.int64], warps: int) -> Callable[[int], npt.NDArray[np.int64]]:
    """Rows of one warp, in the order in which they were noted; the first column is its number."""
    order = np.argsort(columns[0], kind="stable")
    bounds = np.searchsorted(columns[0][order], np.arange(warps + 1)).tolist()
    return lambda number: columns[:, order[bounds[number] : bounds[number + 1]]]


def _build_walk(
    place: tuple[tuple[int, int, int], int],
    segments: npt.NDArray[np.int64],
    guards: npt.NDArray[np.int64],
    accesses: npt.NDArray[np.int64],
    listed: Integers,
) -> WarpWalk:
    """One warp's executions, of its block and number, what was noted of it, and the sectors of all warps."""
    _, _, first, count, bits = segments
    starts = np.cumsum(count) - count
    length = int(count.sum())
    instruction = (np.repeat(first - starts, count) + np.arange(length, dtype=np.int64)).astype(np.int32)
    active = np.repeat(bits.astype(np.uint32), count)
    active[guards[1]] = guards[2].astype(np.uint32)
    _, places, taken, sectors, begins = accesses
    wavefronts = np.zeros(length, np.uint16)
    wavefronts[places] = np.minimum(taken, 0xFFFF)
    first_sector = np.zeros(length + 1, np.int64)
    first_sector[places + 1] = sectors
    np.cumsum(first_sector, out=first_sector)
    ends = np.cumsum(sectors)
    own = np.repeat(begins - (ends - sectors), sectors) + np.arange(int(sectors.sum()), dtype=np.int64)
    return WarpWalk(
        block=place[0],
        warp=place[1],
        instruction=instruction,
        active=active,
        wavefronts=wavefronts,
        first_sector=first_sector,
        sectors=listed[own],
    )


def _spread(first: Integers, count: Integers, weights: npt.NDArray[np.float64], rows: int) -> npt.NDArray[np.float64]:
    """float64[rows], the sum of the weights of the segments over each row."""
    begins = np.bincount(first, weights=weights, minlength=rows + 1)[: rows + 1]
    ends = np.bincount(np.minimum(first + count, rows), weights=weights, minlength=rows + 1)[: rows + 1]
    total: npt.NDArray[np.float64] = np.cumsum(begins.astype(np.float64) - ends)[:rows]
    return total
