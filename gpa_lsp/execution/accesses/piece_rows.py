"""Facts of one piece of a trace that several analyses need, found once: :class:`PieceRows`."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.accesses.lane_addresses import (
    ARRAY_SPACES,
    CHUNK_ROWS,
    LINE_SHIFT,
    SECTOR_SHIFT,
    ArrayIndex,
    Integers,
    LaneColumns,
    Marks,
    RequestColumns,
    split_rows,
    view_lanes,
)
from gpa_lsp.execution.accesses.references import (
    NumberedWarps,
    WarpOrders,
    find_frames,
    list_references,
    measure_requests,
    number_warps,
    order_warps,
)
from gpa_lsp.execution.accesses.request_kinds import EqualRows, RequestKinds, find_equal_rows, find_kinds
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:
    from gpa_lsp.execution.accesses.reuse_loops import NumberedLists


class SectorLists(ColumnRecord, frozen=True, kw_only=True):
    """Sectors of n rows, in k lists."""

    number: Integers  # int64[n], the list of each row; rows with equal sectors may have the same
    size: Integers  # int64[k], sectors of each list
    sector: Integers  # int64[m], address divided by 32, one list behind the other; ascending in each; local memory lies above all others

    @property
    def sizes(self) -> Integers:
        """int64[n], sectors of each row."""
        return self.size[self.number]

    @property
    def firsts(self) -> Integers:
        """int64[k], place of the first sector of each list."""
        return np.cumsum(self.size) - self.size

    def choose(self, rows: Integers) -> "SectorLists":
        """Sectors of some of the rows."""
        return SectorLists(number=self.number[rows], size=self.size, sector=self.sector)

    def mark_used(self) -> Marks:
        """bool[m], the sectors of lists that a row has."""
        return np.repeat(self._find_used(), self.size)

    def compact(self) -> "SectorLists":
        """The same without lists that no row has."""
        is_used = self._find_used()
        return SectorLists(
            number=(np.cumsum(is_used) - 1)[self.number], size=self.size[is_used], sector=self.sector[self.mark_used()]
        )

    def _find_used(self) -> Marks:
        is_used = np.zeros(len(self.size), dtype=np.bool_)
        is_used[self.number] = True
        return is_used


class PieceRows:
    """Rows of a piece by kind, and those of global memory and textures in the orders of their warps; each part is found on first use.

    Args:
        piece: of a trace.
    """

    def __init__(self, piece: Trace) -> None:
        self.piece = piece

    @cached_property
    def access_kinds(self) -> npt.NDArray[np.uint8]:
        """The :class:`~gpa_lsp.code.ptx.static_instructions.AccessKind` of each instruction; what states none is a load."""
        kinds = (AccessKind.LOAD if one.kind is None else one.kind for one in self.piece.instructions)
        return np.fromiter(kinds, np.uint8, len(self.piece.instructions))

    @cached_property
    def lanes(self) -> LaneColumns:
        """Lanes of all rows."""
        return view_lanes(self.piece.accesses)

    @cached_property
    def kinds(self) -> RequestKinds:
        """Kinds of all rows."""
        return find_kinds(self.piece)

    @cached_property
    def measured(self) -> RequestColumns:
        """Memory touched by a row of each kind."""
        return measure_requests(self.lanes, self.kinds.rows)

    @cached_property
    def requests(self) -> EqualRows:
        """Rows that access the same bytes with the same lanes; in local memory, in different frames."""
        return find_equal_rows(self.kinds.shape, self.kinds.base)

    @cached_property
    def arrays(self) -> Integers:
        """int64[rows of the piece], the array that each lies in; OUTSIDE where it is none, or several."""
        has_arrays = np.isin(self.piece.accesses.space[self.kinds.rows], ARRAY_SPACES)
        return self.kinds.find_arrays_of_rows(ArrayIndex(self.piece.buffers), has_arrays)

    @cached_property
    def is_global(self) -> Marks:
        """bool[rows of the piece], those of global memory and textures."""
        space = self.piece.accesses.space
        found: Marks = (space == Space.GLOBAL) | (space == Space.TEXTURE)
        return found

    @cached_property
    def warps(self) -> NumberedWarps:
        """Warps of all rows."""
        return number_warps(self.piece.accesses.block, self.piece.accesses.warp)

    @cached_property
    def orders(self) -> WarpOrders:
        """Orders of the rows of global memory and textures; the turns are of all rows."""
        return order_warps(self.piece.accesses, self.warps, self.is_global)

    @property
    def turns(self) -> Integers:
        """int64[rows of the piece], see :func:`~gpa_lsp.execution.accesses.references.number_turns`."""
        return self.orders.turns

    @cached_property
    def sectors(self) -> SectorLists:
        """Sectors of the rows of global memory and textures, ascending."""
        return self.list_sectors(np.flatnonzero(self.is_global))

    @property
    def has_sectors(self) -> bool:
        """Whether :attr:`sectors` were listed."""
        return "sectors" in self.__dict__

    def find_sectors(self, rows: Integers) -> SectorLists:
        """Sectors of some rows of global memory and textures, by row of the piece."""
        return self.sectors.choose(self._places[rows])

    def list_sectors(self, rows: Integers) -> SectorLists:
        """Sectors of some rows of global memory, textures and local memory; equal lists are listed once."""
        from gpa_lsp.execution.accesses.reuse_loops import find_distinct  # llvmlite takes .1 s to import

        frames, number = find_frames(self.piece.accesses, rows), self.requests.number[rows]
        if frames.any():
            number = find_equal_rows(number, frames).number
        place = np.full(int(number.max(initial=-1)) + 1, -1)
        place[number] = np.arange(len(rows))  # of one of the rows of each number
        used = np.flatnonzero(place >= 0)
        found = list_references(self.lanes, rows[place[used]], SECTOR_SHIFT)
        found.unit[:] += np.repeat(frames[place[used]] >> SECTOR_SHIFT, found.size)
        kept, place[used] = find_distinct(found.size, found.unit)
        is_kept = np.zeros(len(found.size), dtype=np.bool_)
        is_kept[kept] = True
        sector = found.unit[np.repeat(is_kept, found.size)]
        return SectorLists(number=place[number], size=found.size[kept], sector=sector)

    @cached_property
    def _lines(self) -> tuple[SectorLists, "NumberedLists"]:
        """The lines of :attr:`sectors`, and their numbered lists."""
        from gpa_lsp.execution.accesses.reuse_loops import number_lists  # llvmlite takes .1 s to import

        lists = list_lines(self.sectors)[0]
        return lists, number_lists(lists.size, lists.sector)

    def list_units(self, rows: Integers, shift: int, most: int) -> tuple["NumberedLists", Integers]:
        """The units of ``2**shift`` bytes of some rows of global memory and textures in some order, and the lists of those that were looked at.

        Args:
            most: references after which no further chunk of rows is looked at.
        """
        from gpa_lsp.execution.accesses.reuse_loops import number_lists  # llvmlite takes .1 s to import

        if shift == LINE_SHIFT:
            lists, known = self._lines
        else:
            lists = self.sectors if shift == SECTOR_SHIFT else self._list_words(rows, shift, most)
            known = number_lists(lists.size, lists.sector)
        number = lists.number[self._places[rows]] if shift >= SECTOR_SHIFT else lists.number
        return known, number[: count_kept_rows(lists.size[number], most)]

    def _list_words(self, rows: Integers, shift: int, most: int) -> SectorLists:
        """Units smaller than a sector, of no more rows than there is room for."""
        requests = self.requests
        known, size = np.full((2, len(requests.first)), -1)
        numbers, units = ([np.empty(0, np.int64)] for _ in range(2))
        count = total = 0
        for chunk in split_rows(requests.number[rows]):
            new = np.unique(chunk[known[chunk] < 0])
            known[new] = np.arange(count, count + len(new))
            found = list_references(self.lanes, requests.first[new], shift)
            size[count : count + len(new)] = found.size
            count += len(new)
            numbers.append(known[chunk])
            units.append(found.unit)
            total += int(size[numbers[-1]].sum())
            if total > most:
                break
        return SectorLists(number=np.concatenate(numbers), size=size[:count].copy(), sector=np.concatenate(units))

    def count_sectors(self, is_counted: Marks) -> int:
        """Number of distinct sectors that some instructions touch, bool by instruction."""
        rows = np.flatnonzero(self.is_global & is_counted[self.piece.accesses.instruction])
        return len(np.unique(self.sectors.sector[self.find_sectors(rows).mark_used()]))

    @cached_property
    def _places(self) -> Integers:
        return np.cumsum(self.is_global) - 1


_SECTOR_BITS = LINE_SHIFT - SECTOR_SHIFT


def list_lines(lists: SectorLists) -> tuple[SectorLists, npt.NDArray[np.uint8]]:
    """The lines of lists of sectors, and which sectors of each there are, uint8 by line."""
    line, owner = lists.sector >> _SECTOR_BITS, np.repeat(np.arange(len(lists.size)), lists.size)
    first = np.flatnonzero((np.diff(line, prepend=-1) != 0) | (np.diff(owner, prepend=-1) != 0))
    bits = np.left_shift(1, lists.sector & ((1 << _SECTOR_BITS) - 1)).astype(np.uint8)
    size = np.bincount(owner[first], minlength=len(lists.size))
    masks = np.bitwise_or.reduceat(bits, first) if len(first) else bits
    return SectorLists(number=lists.number, size=size, sector=line[first]), masks


def join_lists(parts: Sequence[SectorLists]) -> SectorLists:
    """Concatenate lists."""
    before = np.cumsum([0, *(len(one.size) for one in parts)]).tolist()
    none = np.empty(0, dtype=np.int64)
    return SectorLists(
        number=np.concatenate([none, *(one.number + first for one, first in zip(parts, before, strict=False))]),
        size=np.concatenate([none, *(one.size for one in parts)]),
        sector=np.concatenate([none, *(one.sector for one in parts)]),
    )


def count_kept_rows(size: Integers, most: int) -> int:
    """Number of rows until there are more than ``most`` references, rounded up to a whole chunk."""
    ends = np.cumsum(size)
    places = np.minimum(np.arange(CHUNK_ROWS, len(size) + CHUNK_ROWS, CHUNK_ROWS), len(size))
    is_over = ends[places - 1] > most
    return int(places[np.argmax(is_over)]) if is_over.any() else len(size)
