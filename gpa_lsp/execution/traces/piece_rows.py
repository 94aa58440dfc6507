"""What several analyses ask of one piece of a trace, found once: :class:`PieceRows`."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.trace import Accesses, Trace
from gpa_lsp.execution.traces.lane_addresses import CHUNK_ROWS, Integers, Marks, split_rows
from gpa_lsp.execution.traces.model import ARRAY_SPACES, ArrayIndex
from gpa_lsp.execution.traces.references import NumberedWarps, WarpOrders, list_references, number_warps, order_warps
from gpa_lsp.execution.traces.request_kinds import (
    EqualRows,
    RequestColumns,
    RequestKinds,
    find_equal_rows,
    find_kinds,
    list_columns,
    measure_requests,
)
from gpa_lsp.execution.traces.segments import LINE_SHIFT, SECTOR_SHIFT
from gpa_lsp.foundation.native.shared_library import Core, find_core
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.reuse_loops import NumberedLists


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
    """Its rows by kind, and those of global memory and textures in the orders of their warps; each part is found when it is asked for.

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
    def kinds(self) -> RequestKinds | None:
        """Which rows are alike; None where the core does not say."""
        return find_kinds(self.piece.accesses, len(self.piece.instructions))

    @cached_property
    def measured(self) -> RequestColumns | None:
        """What a row of each kind touches; it says nothing of local memory."""
        return None if self.kinds is None else measure_requests(self.piece.accesses, self.kinds.rows)

    @cached_property
    def requests(self) -> EqualRows | None:
        """Which rows access the same bytes with the same lanes; None where the core does not say."""
        return None if self.kinds is None else find_equal_rows(self.kinds.shape, self.kinds.base)

    @cached_property
    def arrays(self) -> Integers | None:
        """int64[rows of the piece], the array that each lies in; OUTSIDE where it is none, or several. None where kinds are not known."""
        if self.kinds is None:
            return None
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
        """Of all rows."""
        return number_warps(self.piece.accesses.block, self.piece.accesses.warp)

    @cached_property
    def orders(self) -> WarpOrders:
        """Of these; its turns are those of all rows."""
        return order_warps(self.piece.accesses, self.warps, self.is_global)

    @property
    def turns(self) -> Integers:
        """int64[rows of the piece], see :func:`~gpa_lsp.execution.traces.references.number_turns`."""
        return self.orders.turns

    @cached_property
    def sectors(self) -> SectorLists:
        """Of these, ascending."""
        return list_sectors(self.piece.accesses, np.flatnonzero(self.is_global), self.requests, self.kinds)

    @property
    def has_sectors(self) -> bool:
        """Whether they were listed."""
        return "sectors" in self.__dict__

    def find_sectors(self, rows: Integers) -> SectorLists:
        """Of some of them, by row of the piece."""
        return self.sectors.choose(self._places[rows])

    @cached_property
    def _lines(self) -> tuple[SectorLists, "NumberedLists"]:
        """The lines of these, and the same numbered."""
        from gpa_lsp.execution.traces.reuse_loops import number_lists  # numba takes .3 s to import

        lists = list_lines(self.sectors)[0]
        return lists, number_lists(lists.size, lists.sector)

    def list_units(self, rows: Integers, shift: int, most: int) -> tuple["NumberedLists", Integers]:
        """The units of ``2**shift`` bytes of some rows of global memory and textures in some order, and the lists of those that were looked at.

        Args:
            most: references after which no further chunk of rows is looked at.
        """
        from gpa_lsp.execution.traces.reuse_loops import number_lists  # numba takes .3 s to import

        if shift == LINE_SHIFT:
            lists, known = self._lines
        else:
            lists = self.sectors if shift == SECTOR_SHIFT else self._list_words(rows, shift, most)
            known = number_lists(lists.size, lists.sector)
        number = lists.number[self._places[rows]] if shift >= SECTOR_SHIFT else lists.number
        return known, number[: count_kept_rows(lists.size[number], most)]

    def _list_words(self, rows: Integers, shift: int, most: int) -> SectorLists:
        """Units smaller than a sector, of no more rows than there is room for."""
        accesses, requests = self.piece.accesses, self.requests
        if requests is None:
            found = list_references(accesses, rows, shift, most)
            return SectorLists(number=np.arange(len(found.size)), size=found.size, sector=found.unit)
        known, size = np.full((2, len(requests.first)), -1)
        numbers, units = ([np.empty(0, np.int64)] for _ in range(2))
        count = total = 0
        for chunk in split_rows(requests.number[rows]):
            new = np.unique(chunk[known[chunk] < 0])
            known[new] = np.arange(count, count + len(new))
            found = list_references(accesses, requests.first[new], shift, _UNBOUNDED)
            size[count : count + len(new)] = found.size
            count += len(new)
            numbers.append(known[chunk])
            units.append(found.unit)
            total += int(size[numbers[-1]].sum())
            if total > most:
                break
        return SectorLists(number=np.concatenate(numbers), size=size[:count].copy(), sector=np.concatenate(units))

    def count_sectors(self, is_counted: Marks) -> int:
        """Distinct sectors of those of some instructions, bool by instruction, together."""
        rows = np.flatnonzero(self.is_global & is_counted[self.piece.accesses.instruction])
        return len(np.unique(self.sectors.sector[self.find_sectors(rows).mark_used()]))

    @cached_property
    def _places(self) -> Integers:
        return np.cumsum(self.is_global) - 1


_UNBOUNDED = 1 << 62
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
    """One behind the other."""
    before = np.cumsum([0, *(len(one.size) for one in parts)]).tolist()
    none = np.empty(0, dtype=np.int64)
    return SectorLists(
        number=np.concatenate([none, *(one.number + first for one, first in zip(parts, before, strict=False))]),
        size=np.concatenate([none, *(one.size for one in parts)]),
        sector=np.concatenate([none, *(one.sector for one in parts)]),
    )


def list_sectors(
    accesses: Accesses,
    rows: Integers,
    requests: EqualRows | None,
    kinds: RequestKinds | None,
    *,
    most: int = _UNBOUNDED,
) -> SectorLists:
    """The sectors of some rows of global memory, textures and local memory.

    Args:
        rows: int64[n], which; ascending.
        requests: which of all rows access the same; None where that is not known.
    """
    core, is_local = find_core(), _take(accesses.space, rows) == Space.LOCAL
    if core is not None and requests is not None and kinds is not None and not is_local.any():
        found = _list_equal(core, accesses, requests, kinds, rows)
        if found is not None:
            return found
    references = list_references(accesses, rows, SECTOR_SHIFT, most)
    return SectorLists(number=np.arange(len(references.size)), size=references.size, sector=references.unit)


def _take(column: "npt.NDArray[Any]", rows: Integers) -> "npt.NDArray[Any]":
    """What some rows have of a column; of all of them it is the column."""
    return column if len(rows) == len(column) else column[rows]


def _list_equal(
    core: Core, accesses: Accesses, requests: EqualRows, kinds: RequestKinds, rows: Integers
) -> SectorLists | None:
    """Requests of one shape that touch the same sectors from the same lowest base are listed once."""
    is_wanted = np.zeros(len(requests.first), dtype=np.bool_)
    number = _take(requests.number, rows)
    is_wanted[number] = True
    wanted = requests.first[is_wanted]
    shape, base, lowered = kinds.shape[wanted], kinds.base[wanted], np.empty(len(wanted), np.uint64)
    masks, first, addresses, _, widths, *_ = list_columns(accesses, wanted)
    known = (masks, first, addresses, widths, kinds.shape_rows, len(kinds.shape_rows))
    if not core.has_done("lower_bases", *known, shape, base, len(wanted), lowered):
        return None
    equal = find_equal_rows(shape, lowered)
    wanted = wanted[equal.first]
    list_of, size = np.empty((2, len(wanted)), np.int64)
    each = ((accesses.bytes[wanted].astype(np.int64) - 1) >> SECTOR_SHIFT) + 2
    room = int((np.bitwise_count(accesses.lane_mask[wanted]) * each).sum())
    sector = np.empty(room, np.int64)  # the system gives memory for what is written alone
    used = core.call("list_equal_units", *list_columns(accesses, wanted), SECTOR_SHIFT, list_of, size, sector, room)
    if used < 0:
        return None
    of_request = np.full(len(requests.first), -1, dtype=np.int64)
    of_request[is_wanted] = list_of[equal.number]
    return SectorLists(
        number=of_request[number], size=size[: int(list_of.max(initial=-1)) + 1].copy(), sector=sector[:used].copy()
    )


def count_kept_rows(size: Integers, most: int) -> int:
    """Rows until there are more references than wanted: a chunk of them is looked at as a whole."""
    ends = np.cumsum(size)
    places = np.minimum(np.arange(CHUNK_ROWS, len(size) + CHUNK_ROWS, CHUNK_ROWS), len(size))
    is_over = ends[places - 1] > most
    return int(places[np.argmax(is_over)]) if is_over.any() else len(size)
