"""What a trace shows of values without looking at them: branches that never change, loads of one address, loads and stores that repeat.

All are facts of the traced launch, not of the program.

* *One-way branch*: every lane of every execution went the same way.
* *Uniform load*: all lanes of a request read one address.
* *Repeated load*: a warp loads the very same addresses with the same lanes as it did before, and no thread of its block stored to the array in
  between. What other blocks do is not looked at.
* *Overwritten store*: a warp stores to the very same addresses with the same lanes again, and no thread of its block read the array in between.

Loads that are there to see what others wrote (volatile, relaxed, acquire, ``.cv``, ``.cg``: a thread that waits polls so) repeat nothing, and strong
stores, which others may wait for, are not overwritten.

Without the compiled core, requests are compared by a 64-bit hash of their addresses, lanes and width: two different ones look the same with a
chance below one in 10**9 for a billion pairs. A store anywhere in the array counts as one to every address of it, so the last two are lower bounds.
"""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.trace import Accesses, Buffer, Trace
from gpa_lsp.execution.traces.keyed_sums import KeyedSums
from gpa_lsp.execution.traces.lane_addresses import WARP_LANES, Integers, gather_lanes, split_rows
from gpa_lsp.execution.traces.model import OUTSIDE, ArrayIndex, is_read_anew, is_strong
from gpa_lsp.execution.traces.piece_rows import PieceRows
from gpa_lsp.execution.traces.references import name_warps
from gpa_lsp.execution.traces.request_kinds import find_equal_rows
from gpa_lsp.foundation.native.shared_library import find_core

_MULTIPLIERS = np.random.default_rng(0x9E3779B97F4A7C15).integers(
    1, 1 << 63, size=WARP_LANES + 2, dtype=np.uint64
) | np.uint64(1)
_SHARED_ARRAY = 1 << 20  # In place of an array: the block's shared memory
_ARRAYS = 2 * _SHARED_ARRAY


class RepeatedAccesses(Struct, frozen=True, kw_only=True):
    """Requests of one instruction that repeat."""

    instruction: int  # index of the static instruction
    requests: int  # of it that were looked at
    repeated: int  # loads that repeat a load before, or stores that are overwritten by a later one

    @property
    def ratio(self) -> float:
        """Of the requests, 0..1."""
        return self.repeated / self.requests if self.requests else 0.0


class RepeatedValues(Struct, frozen=True, kw_only=True):
    """What repeats in a trace."""

    loads: tuple[RepeatedAccesses, ...]  # repeated loads, by instruction; those without any are left out
    stores: tuple[RepeatedAccesses, ...]  # overwritten stores, most first
    is_whole: bool  # False where more was traced than was looked at


class RepeatAccumulator:
    """Finds repeated loads and overwritten stores of global and shared memory, over pieces of a trace.

    Args:
        buffers: of the trace.
        most_rows: requests of one piece that are looked at; the first ones.
    """

    def __init__(self, buffers: tuple[Buffer, ...], *, most_rows: int) -> None:
        self._index = ArrayIndex(buffers)
        self._most_rows = most_rows
        self._loads = KeyedSums(2)
        self._stores = KeyedSums(2)
        self._is_whole = True

    def add(self, found: PieceRows) -> None:
        """Take the accesses of a piece, in the order of the trace."""
        piece, accesses = found.piece, found.piece.accesses
        rows = np.flatnonzero((accesses.space == Space.GLOBAL) | (accesses.space == Space.SHARED))
        self._is_whole &= len(rows) <= self._most_rows
        rows = rows[: self._most_rows]
        if len(rows) == 0:
            return
        counts = self._count_by_core(found, rows)
        if counts is None:
            counts = self._count(piece, rows, found.access_kinds)
        for sums, found_counts in ((self._loads, counts[:, :2]), (self._stores, counts[:, 2:])):
            there = np.flatnonzero(found_counts[:, 0])
            sums.merge(there, found_counts[there])

    def finish(self) -> RepeatedValues:
        """What repeated in all pieces."""
        return RepeatedValues(loads=_read(self._loads), stores=_read(self._stores), is_whole=self._is_whole)

    def _count_by_core(self, found: PieceRows, rows: Integers) -> Integers | None:
        """What :meth:`_count` gives, from the core; None where it did not do it."""
        core, accesses, arrays, requests = find_core(), found.piece.accesses, found.arrays, found.requests
        if core is None or arrays is None or requests is None:
            return None
        array = np.where(accesses.space[rows] == Space.SHARED, _SHARED_ARRAY, arrays[rows])
        columns = (np.ascontiguousarray(one) for one in (accesses.block, accesses.warp, accesses.instruction))
        counts = np.zeros((len(found.access_kinds), 4), np.int64)
        is_done = core.has_done(
            "count_repeats", *columns, requests.number, array, _ARRAYS, found.access_kinds,
            _find_fresh(found.piece), rows, len(rows), counts,
        )  # fmt: skip
        return counts if is_done else None

    def _count(self, piece: Trace, rows: Integers, kinds: npt.NDArray[np.uint8]) -> Integers:
        """int64[instructions, 4]: loads, those repeated, stores, those overwritten."""
        accesses = piece.accesses
        kind = kinds[accesses.instruction[rows]]
        array, before = self._find_same_before(accesses, rows)
        reads, writes = kind != AccessKind.STORE, kind != AccessKind.LOAD
        owner = accesses.block[rows].astype(np.int64) * _ARRAYS + array
        is_outside = array == OUTSIDE
        instruction = accesses.instruction[rows].astype(np.int64)
        is_fresh = _find_fresh(piece)[instruction]
        is_looked_at = ~is_fresh & ~is_outside & (before >= 0)
        counts = []
        for wanted, disturbs, is_later in ((AccessKind.LOAD, writes, True), (AccessKind.STORE, reads, False)):
            is_wanted = kind == wanted
            later = np.flatnonzero(is_looked_at & is_wanted)
            later = later[is_wanted[before[later]] & ~is_fresh[before[later]]]
            earlier = before[later]
            count = _count_before(owner, disturbs)
            is_quiet = count[later] == count[earlier]
            if is_outside.any():
                unknown = _count_before(accesses.block[rows].astype(np.int64), disturbs & is_outside)
                is_quiet &= unknown[later] == unknown[earlier]
            repeated = instruction[(later if is_later else earlier)[is_quiet]]
            counts += [np.bincount(one, minlength=len(kinds)) for one in (instruction[is_wanted], repeated)]
        return np.stack(counts, axis=1)

    def _find_same_before(self, accesses: Accesses, rows: Integers) -> tuple[Integers, Integers]:
        """The array of each row, OUTSIDE where it is none, or several; and the last same row of its warp before it, -1 for none."""
        warps, is_shared = name_warps(accesses)[rows], accesses.space[rows] == Space.SHARED
        lowest, highest, shape = _hash_requests(accesses, rows)
        array = self._index.find(lowest)
        array = np.where(array == self._index.find(highest), array, OUTSIDE)
        shape += accesses.lane_mask[rows] * _MULTIPLIERS[WARP_LANES]
        shape ^= (accesses.bytes[rows].astype(np.uint64) * 8 + accesses.space[rows]) * _MULTIPLIERS[WARP_LANES + 1]
        return np.where(is_shared, _SHARED_ARRAY, array), find_equal_rows(warps, shape).before


def _hash_requests(
    accesses: Accesses, rows: Integers
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The lowest and the highest address of each row, and a hash of all of them."""
    parts = [_hash_rows(gather_lanes(accesses, chunk).addresses) for chunk in split_rows(rows)]
    lowest, highest, shape = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return lowest, highest, shape


def _hash_rows(
    addresses: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    mixed = (addresses ^ (addresses >> np.uint64(17))) * _MULTIPLIERS[:WARP_LANES]
    shape = (mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
    return addresses.min(axis=1), addresses.max(axis=1), shape


def _find_fresh(piece: Trace) -> npt.NDArray[np.bool_]:
    """bool[instructions], those that must reach memory each time."""
    return np.array(
        [is_strong(one) if one.kind is AccessKind.STORE else is_read_anew(one) for one in piece.instructions],
        dtype=np.bool_,
    )


def _count_before(owner: Integers, marks: npt.NDArray[np.bool_]) -> Integers:
    """int64[n], marked rows of the same owner up to and without each row; rows of an owner keep their order."""
    order = np.argsort(owner, kind="stable")
    running = np.cumsum(marks[order])
    ordered = owner[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    lengths = np.diff(starts, append=len(ordered))
    before_owner: Integers = np.repeat((running - marks[order])[starts], lengths)
    counts = np.empty(len(owner), dtype=np.int64)
    counts[order] = running - marks[order] - before_owner
    return counts


def _read(sums: KeyedSums) -> tuple[RepeatedAccesses, ...]:
    return tuple(
        RepeatedAccesses(instruction=instruction, requests=requests, repeated=repeated)
        for instruction, (requests, repeated) in zip(sums.keys.tolist(), sums.sums.tolist(), strict=True)
        if repeated
    )
