"""Kinds of warp-level accesses of a piece: facts of a kind are found for one access and counted for all.

Warps of a loop repeat accesses at other addresses: 98,000 accesses of a matrix-vector product are of a hundred kinds.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.accesses.lane_addresses import OUTSIDE, ArrayIndex, Integers, Marks, view_column, view_lanes
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.foundation.records import ColumnRecord


class RequestKinds(ColumnRecord, frozen=True, kw_only=True):
    """n rows of s shapes and k kinds.

    Rows of one shape have the same lanes, width and space, and the same distances between their addresses. Rows of one kind are of one shape and
    of one instruction, and their addresses lie at the same places in their lines: they touch as many lines, sectors and banks.
    """

    shape: Integers  # int64[n]
    base: Integers  # int64[n], address of the first lane
    kind: Integers  # int64[n]
    below: Integers  # int64[s], from the base to the lowest address; never positive
    above: Integers  # int64[s], to the highest
    rows: Integers  # int64[k], the first row of each kind
    counts: Integers  # int64[k], rows of each
    lowest: Integers  # int64[k], of the addresses of all rows of a kind
    highest: Integers  # int64[k]

    def find_arrays(self, index: ArrayIndex, chosen: Marks) -> tuple[Integers, Marks]:
        """The array that all rows of each kind lie in, int64[k], and whether there is one, bool[k].

        Args:
            chosen: bool[k], kinds that have arrays; the others have none.
        """
        array = index.find(self.lowest.view(np.uint64))
        return array, chosen & (array == index.find(self.highest.view(np.uint64))) & (array != OUTSIDE)

    def find_arrays_of_rows(self, index: ArrayIndex, chosen: Marks) -> Integers:
        """The array of each row, int64[n]; OUTSIDE where it is none, or several, and where its kind is not chosen."""
        array, is_one = self.find_arrays(index, chosen)
        found: Integers = np.where(is_one, array, OUTSIDE)[self.kind]
        is_left = chosen & ~is_one
        if is_left.any():
            rest = np.flatnonzero(is_left[self.kind])
            base, shape = self.base[rest], self.shape[rest]
            lowest, highest = ((base + reach[shape]).view(np.uint64) for reach in (self.below, self.above))
            array = index.find(lowest)
            found[rest] = np.where(array == index.find(highest), array, OUTSIDE)
        return found


class EqualRows(ColumnRecord, frozen=True, kw_only=True):
    """Rows of columns that are equal have one number."""

    number: Integers  # int64[n]
    first: Integers  # int64[k], the first row of each number
    before: Integers  # int64[n], the last row before each with the same number; -1 for none


def find_equal_rows(*columns: "npt.NDArray[Any]") -> EqualRows:
    """Number rows that are equal in all of some columns of integers.

    >>> equal = find_equal_rows(np.array([5, 6, 5]), np.array([1, 2, 1]))
    >>> equal.number.tolist(), equal.first.tolist(), equal.before.tolist()
    ([0, 1, 0], [0, 1], [-1, -1, 0])
    """
    together = np.empty((len(columns), len(columns[0])), np.int64)
    for place, column in enumerate(columns):
        together[place] = column.view(np.int64) if column.dtype == np.uint64 else column
    from gpa_lsp.execution.accesses.request_loops import number_rows, open_slots  # llvmlite takes .1 s to import

    count = together.shape[1]
    numbers, first, before = np.empty((3, count), np.int64)
    found = number_rows(together, open_slots(count), numbers, first, before)
    return EqualRows(number=numbers, first=first[:found].copy(), before=before)


def find_kinds(piece: Trace) -> RequestKinds:
    """The kinds of all rows of a piece whose indexes were checked, or that was just emulated."""
    from gpa_lsp.execution.accesses.request_loops import (  # llvmlite takes .1 s to import
        Shapes,
        find_ends,
        number_shapes,
        open_slots,
    )

    lanes, instructions = view_lanes(piece.accesses), view_column(piece.accesses.instruction)
    count = len(instructions)
    shape, keys = np.empty(count, np.int64), np.empty(count, np.int64)
    first, hashes, *_ = room = np.empty((4, count), np.int64)  # the system gives memory for what is written alone
    reaches, lasts = room[2:], np.full(len(piece.instructions), -1, np.int32)
    shapes = number_shapes(lanes, instructions, Shapes(open_slots(count), lasts, first, hashes, reaches), shape, keys)
    base, equal = lanes.address[lanes.first], find_equal_rows(keys)
    counts, ends = np.zeros(len(equal.first), np.int64), np.empty((2, len(equal.first)), np.int64)
    find_ends(equal.number, base + reaches[0][shape], base + reaches[1][shape], counts, ends)
    return RequestKinds(
        shape=shape,
        base=base,
        kind=equal.number,
        below=reaches[0, :shapes].copy(),
        above=reaches[1, :shapes].copy(),
        rows=equal.first,
        counts=counts,
        lowest=ends[0],
        highest=ends[1],
    )
