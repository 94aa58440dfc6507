"""Which warp-level accesses of a piece are alike, from the compiled core: what holds for one of a kind is found once and counted for all.

Warps of a loop do the same at other addresses: 98,000 accesses of a matrix times a vector are of a hundred kinds.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.trace import Accesses
from gpa_lsp.execution.traces.lane_addresses import Integers, Marks
from gpa_lsp.execution.traces.model import OUTSIDE, ArrayIndex
from gpa_lsp.execution.traces.segments import SECTOR_BYTES, Patterns, Touched
from gpa_lsp.foundation.native.shared_library import find_core
from gpa_lsp.foundation.records import ColumnRecord

Addresses = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]


class RequestKinds(ColumnRecord, frozen=True, kw_only=True):
    """n rows of s shapes and k kinds.

    Rows of one shape have the same lanes, width and space, and the same distances between their addresses. Rows of one kind are of one shape and
    of one instruction, and their addresses lie at the same places in their lines: they touch as many lines, sectors and banks.
    """

    shape: Numbers  # int32[n]
    base: Addresses  # uint64[n], address of the first lane
    kind: Numbers  # int32[n]
    shape_rows: Integers  # int64[s], the first row of each shape
    below: Integers  # int64[s], from the base to the lowest address; never positive
    above: Integers  # int64[s], to the highest
    rows: Integers  # int64[k], the first row of each kind
    counts: Integers  # int64[k], rows of each
    lowest: Addresses  # uint64[k], of the addresses of all rows of a kind
    highest: Addresses  # uint64[k]

    def find_arrays(self, index: ArrayIndex, chosen: Marks) -> tuple[Integers, Marks]:
        """The array that all rows of each kind lie in, int64[k], and whether there is one, bool[k].

        Args:
            chosen: bool[k], kinds that have arrays; the others have none.
        """
        array = index.find(self.lowest)
        return array, chosen & (array == index.find(self.highest)) & (array != OUTSIDE)

    def find_arrays_of_rows(self, index: ArrayIndex, chosen: Marks) -> Integers:
        """The array of each row, int64[n]; OUTSIDE where it is none, or several, and where its kind is not chosen."""
        array, is_one = self.find_arrays(index, chosen)
        found: Integers = np.where(is_one, array, OUTSIDE)[self.kind]
        is_left = chosen & ~is_one
        if is_left.any():
            rest = np.flatnonzero(is_left[self.kind])
            base, shape = self.base[rest].view(np.int64), self.shape[rest]
            lowest, highest = ((base + reach[shape]).view(np.uint64) for reach in (self.below, self.above))
            array = index.find(lowest)
            found[rest] = np.where(array == index.find(highest), array, OUTSIDE)
        return found


def find_kinds(accesses: Accesses, instructions: int) -> RequestKinds | None:
    """The kinds of all rows; None where there is no core."""
    core, count = find_core(), len(accesses)
    if core is None:
        return None
    shape, kind = np.empty((2, count), np.int32)
    base, lowest, highest = np.empty((3, count), np.uint64)  # the system gives memory for what is written alone
    shape_rows, below, above, rows, counts = np.empty((5, count), np.int64)
    found = np.zeros(2, np.int64)
    masks, first, addresses, widths, spaces, numbers = (
        np.ascontiguousarray(getattr(accesses, name))
        for name in ("lane_mask", "first_address", "addresses", "bytes", "space", "instruction")
    )
    if not core.has_done(
        "number_requests", masks, first, addresses, len(addresses), widths, spaces, numbers, count, instructions,
        shape, base, kind, shape_rows, below, above, rows, counts, lowest, highest, found,
    ):  # fmt: skip
        return None
    shapes, kinds = found.tolist()
    return RequestKinds(
        shape=shape,
        base=base,
        kind=kind,
        shape_rows=shape_rows[:shapes].copy(),
        below=below[:shapes].copy(),
        above=above[:shapes].copy(),
        rows=rows[:kinds].copy(),
        counts=counts[:kinds].copy(),
        lowest=lowest[:kinds].copy(),
        highest=highest[:kinds].copy(),
    )


class EqualRows(ColumnRecord, frozen=True, kw_only=True):
    """Rows of columns that are equal have one number."""

    number: Integers  # int64[n]
    first: Integers  # int64[k], the first row of each number
    before: Integers  # int64[n], the last row before each with the same number; -1 for none


def find_equal_rows(*columns: "npt.NDArray[Any]") -> EqualRows:
    """Which rows are equal in all of some columns of integers.

    >>> equal = find_equal_rows(np.array([5, 6, 5]), np.array([1, 2, 1]))
    >>> equal.number.tolist(), equal.first.tolist(), equal.before.tolist()
    ([0, 1, 0], [0, 1], [-1, -1, 0])
    """
    together = np.empty((len(columns), len(columns[0])), np.int64)
    for place, column in enumerate(columns):
        together[place] = column.view(np.int64) if column.dtype == np.uint64 else column
    from gpa_lsp.execution.traces.row_loops import number_rows  # numba takes .3 s to import

    count = together.shape[1]
    numbers, first, before = np.empty((3, count), np.int64)
    found = number_rows(together, np.full(1 << (2 * count).bit_length(), -1, np.int32), numbers, first, before)
    return EqualRows(number=numbers, first=first[:found].copy(), before=before)


class RequestColumns(ColumnRecord, frozen=True, kw_only=True):
    """Columns of n warp-level accesses, of any space but local memory."""

    counts: Integers  # int64[n], active lanes
    touched: Touched  # by all lanes of each
    patterns: Patterns  # of their lanes

    def choose(self, rows: Integers) -> "RequestColumns":
        """Some of the rows."""
        touched, patterns = self.touched, self.patterns
        return RequestColumns(
            counts=self.counts[rows],
            touched=Touched(**{name: getattr(touched, name)[rows] for name in Touched.__struct_fields__}),
            patterns=Patterns(pattern=patterns.pattern[rows], stride_bytes=patterns.stride_bytes[rows]),
        )


def measure_requests(accesses: Accesses, rows: Integers) -> RequestColumns | None:
    """The columns of some rows; None where there is no core."""
    core, count = find_core(), len(rows)
    if core is None:
        return None
    counts, lines, sectors, used, distinct, pattern, strides = np.empty((7, count), np.int64)
    found = (counts, lines, sectors, used, distinct, pattern, strides)
    if not core.has_done("measure_requests", *list_columns(accesses, rows), *found):
        return None
    return RequestColumns(
        counts=counts,
        touched=Touched(
            lines=lines, sectors=sectors, used_bytes=used, ideal_sectors=-(-used // SECTOR_BYTES), distinct=distinct
        ),
        patterns=Patterns(pattern=pattern, stride_bytes=strides),
    )


def mark_sectors(accesses: Accesses, rows: Integers, first_sector: int, marks: npt.NDArray[np.bool_]) -> bool:
    """Mark what some rows touch of an array; whether the core could.

    Args:
        rows: int64[n], which.
    """
    core = find_core()
    return core is not None and core.has_done(
        "mark_sectors", *list_columns(accesses, rows), first_sector, len(marks), marks
    )


def list_columns(accesses: Accesses, rows: Integers) -> "tuple[np.ndarray[Any, Any] | int, ...]":
    """What functions of the core take of a trace and some of its rows."""
    masks, first, addresses, widths = (
        np.ascontiguousarray(one)
        for one in (accesses.lane_mask, accesses.first_address, accesses.addresses, accesses.bytes)
    )
    return masks, first, addresses, len(addresses), widths, np.ascontiguousarray(rows, np.int64), len(rows)
