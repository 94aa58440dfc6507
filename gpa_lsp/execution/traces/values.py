"""Facts of values that a trace shows without recording them: one-way branches, uniform loads, repeated loads, overwritten stores.

All are facts of the traced launch, not of the program.

* *One-way branch*: every lane of every execution went the same way.
* *Uniform load*: all lanes of a request read one address.
* *Repeated load*: a warp loads the very same addresses with the same lanes as it did before, and no thread of its block stored to the array in
  between. What other blocks do is not looked at.
* *Overwritten store*: a warp stores to the very same addresses with the same lanes again, and no thread of its block read the array in between.

Loads that are there to see what others wrote (volatile, relaxed, acquire, ``.cv``, ``.cg``: a thread that waits polls so) repeat nothing, and strong
stores, which others may wait for, are not overwritten.

A store anywhere in the array counts as one to every address of it, so the last two are lower bounds.
"""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, is_read_anew, is_strong
from gpa_lsp.execution.accesses.lane_addresses import OUTSIDE, Integers
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import count_before
from gpa_lsp.execution.accesses.request_kinds import find_equal_rows
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.keyed_sums import KeyedSums

_SHARED_ARRAY = 1 << 20  # In place of an array: the block's shared memory


class RepeatedAccesses(Struct, frozen=True, kw_only=True):
    """Requests of one instruction that repeat."""

    instruction: int  # index of the static instruction
    requests: int  # of it that were looked at
    repeated: int  # loads that repeat a load before, or stores that are overwritten by a later one

    @property
    def ratio(self) -> float:
        """Repeated requests of all, 0..1."""
        return self.repeated / self.requests if self.requests else 0.0


class RepeatedValues(Struct, frozen=True, kw_only=True):
    """Repeated loads and overwritten stores of a trace."""

    loads: tuple[RepeatedAccesses, ...]  # repeated loads, by instruction; those without any are left out
    stores: tuple[RepeatedAccesses, ...]  # overwritten stores, most first
    is_whole: bool  # False where more was traced than was looked at


class RepeatAccumulator:
    """Finds repeated loads and overwritten stores of global and shared memory, over pieces of a trace.

    Args:
        most_rows: requests of one piece that are looked at; the first ones.
    """

    def __init__(self, *, most_rows: int) -> None:
        self._most_rows = most_rows
        self._loads = KeyedSums(2)
        self._stores = KeyedSums(2)
        self._is_whole = True

    def add(self, found: PieceRows) -> None:
        """Take the accesses of a piece, in the order of the trace."""
        accesses = found.piece.accesses
        rows = np.flatnonzero((accesses.space == Space.GLOBAL) | (accesses.space == Space.SHARED))
        self._is_whole &= len(rows) <= self._most_rows
        rows = rows[: self._most_rows]
        if len(rows) == 0:
            return
        counts = _count_repeats(found, rows)
        for sums, found_counts in ((self._loads, counts[:, :2]), (self._stores, counts[:, 2:])):
            there = np.flatnonzero(found_counts[:, 0])
            sums.merge(there, found_counts[there])

    def finish(self) -> RepeatedValues:
        """Repeated values of all pieces."""
        return RepeatedValues(loads=_read(self._loads), stores=_read(self._stores), is_whole=self._is_whole)


def _find_fresh(piece: Trace) -> npt.NDArray[np.bool_]:
    """bool[instructions], whether an instruction must reach memory each time."""
    return np.array(
        [is_strong(one) if one.kind is AccessKind.STORE else is_read_anew(one) for one in piece.instructions],
        dtype=np.bool_,
    )


def _count_repeats(found: PieceRows, rows: Integers) -> Integers:
    """int64[instructions, 4]: loads, those repeated, stores, those overwritten."""
    accesses, kinds = found.piece.accesses, found.access_kinds
    instruction, block = accesses.instruction[rows].astype(np.int64), accesses.block[rows]
    kind, is_fresh = kinds[instruction], _find_fresh(found.piece)[instruction]
    array = np.where(accesses.space[rows] == Space.SHARED, _SHARED_ARRAY, found.arrays[rows])
    before = find_equal_rows(found.warps.number[rows], found.requests.number[rows]).before
    owner, is_outside = find_equal_rows(block, array), array == OUTSIDE
    is_looked_at = ~is_fresh & ~is_outside & (before >= 0)
    counts = []
    for wanted, is_later in ((AccessKind.LOAD, True), (AccessKind.STORE, False)):
        is_wanted, disturbs = kind == wanted, kind != wanted
        later = np.flatnonzero(is_looked_at & is_wanted)
        later = later[is_wanted[before[later]] & ~is_fresh[before[later]]]
        earlier = before[later]
        count = count_before(owner, disturbs)
        is_quiet = count[later] == count[earlier]
        if is_outside.any():
            count = count_before(find_equal_rows(block), disturbs & is_outside)
            is_quiet &= count[later] == count[earlier]
        repeated = instruction[(later if is_later else earlier)[is_quiet]]
        counts += [np.bincount(one, minlength=len(kinds)) for one in (instruction[is_wanted], repeated)]
    return np.stack(counts, axis=1)


def _read(sums: KeyedSums) -> tuple[RepeatedAccesses, ...]:
    return tuple(
        RepeatedAccesses(instruction=instruction, requests=requests, repeated=repeated)
        for instruction, (requests, repeated) in zip(sums.keys.tolist(), sums.sums.tolist(), strict=True)
        if repeated
    )
