"""Lists of the sectors that rows of a trace refer to, equal ones once, and the sets of lines they make up: what analyses of lines share.

Rows of a loop refer to the same lines again and again: the compiled core moves a set of lines as one where nobody else took a line of it.
"""

from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import Accesses
from gpa_lsp.native.shared_library import Core, find_core
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.lane_addresses import CHUNK_ROWS, Integers
from gpa_lsp.traces.references import list_references
from gpa_lsp.traces.request_columns import list_columns
from gpa_lsp.traces.segments import SECTOR_SHIFT

_LISTS, _SETS, _LINES, _SECTORS = range(4)
_UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class SectorLists:
    """Sectors of n rows.

    Attributes:
        start: int64[n], place of the first sector of each row; rows with equal sectors may have the same.
        size: int64[n], sectors of each.
        sector: int64[m], address divided by 32, ascending within a row; local memory lies above all others.
    """

    start: Integers = field(repr=False)
    size: Integers = field(repr=False)
    sector: Integers = field(repr=False)

    def choose(self, rows: Integers) -> "SectorLists":
        """Those of some of the rows."""
        return SectorLists(start=self.start[rows], size=self.size[rows], sector=self.sector)

    def list_used(self) -> Integers:
        """int64[k], all sectors of the rows; lists that several rows have stand once."""
        return self.sector[self._find_used()[1]]

    def compact(self) -> "SectorLists":
        """The same without sectors that no row refers to."""
        sizes, used = self._find_used()
        first = np.cumsum(sizes) - sizes
        return SectorLists(start=first[self.start], size=self.size, sector=self.sector[used])

    def _find_used(self) -> tuple[Integers, Integers]:
        """The size of the list at each place, 0 where none begins; and the places of all lists, in their order."""
        sizes = np.zeros(len(self.sector), dtype=np.int64)
        sizes[self.start] = self.size
        starts = np.flatnonzero(sizes)
        lengths = sizes[starts]
        ends = np.cumsum(lengths)
        places: Integers = np.arange(int(lengths.sum())) + np.repeat(starts - (ends - lengths), lengths)
        return sizes, places


@dataclass(frozen=True, slots=True)
class LineSets:
    """Columns that the core takes, as ``sets.h`` describes them; lists are by row."""

    lists: npt.NDArray[np.int32] = field(repr=False)
    firsts: Integers = field(repr=False)
    sets: npt.NDArray[np.int32] = field(repr=False)
    dense: npt.NDArray[np.int32] = field(repr=False)
    masks: npt.NDArray[np.uint8] = field(repr=False)
    set_firsts: Integers = field(repr=False)
    lines: npt.NDArray[np.int32] = field(repr=False)
    line_numbers: Integers = field(repr=False)
    set_count: int
    line_count: int
    sector_count: int

    def list_arguments(self) -> "tuple[np.ndarray[Any, Any] | int, ...]":
        """For functions of the core."""
        return tuple(getattr(self, name) for name in self.__slots__)


def list_sectors(accesses: Accesses, rows: Integers, most: int = _UNBOUNDED) -> SectorLists:
    """The sectors of some rows of global memory, textures and local memory.

    Args:
        accesses: the trace's.
        rows: int64[n], which.
        most: where they have more sectors, the last rows may be left out.
    """
    core, is_local = find_core(), accesses.space[rows] == Space.LOCAL
    if core is not None and not is_local.any():
        found = _list_equal(core, accesses, rows)
        if found is not None:
            return found
    references = list_references(accesses, rows, SECTOR_SHIFT, most)
    size = np.bincount(references.position, minlength=references.row_count).astype(np.int64)
    return SectorLists(start=np.cumsum(size) - size, size=size, sector=references.unit)


def _list_equal(core: Core, accesses: Accesses, rows: Integers) -> SectorLists | None:
    start, size = np.empty((2, len(rows)), np.int64)
    each = ((accesses.bytes[rows].astype(np.int64) - 1) >> SECTOR_SHIFT) + 2
    room = int((np.bitwise_count(accesses.lane_mask[rows]) * each).sum())
    sector = np.empty(room, np.int64)  # the system gives memory for what is written alone
    used = core.call("list_equal_units", *list_columns(accesses, rows), SECTOR_SHIFT, start, size, sector, room)
    return None if used < 0 else SectorLists(start=start, size=size, sector=sector[:used].copy())


def count_kept_rows(size: Integers, most: int) -> int:
    """Rows until there are more references than wanted: a chunk of them is looked at as a whole."""
    ends = np.cumsum(size)
    places = np.minimum(np.arange(CHUNK_ROWS, len(size) + CHUNK_ROWS, CHUNK_ROWS), len(size))
    is_over = ends[places - 1] > most
    return int(places[np.argmax(is_over)]) if is_over.any() else len(size)


def number_line_sets(
    core: Core, lists: SectorLists, *, rows: Integers | None = None, count: int = 0
) -> LineSets | None:
    """The sets of lines; None where the core could not find them.

    Args:
        core: it.
        lists: of rows.
        rows: int64[n], numbers that these rows have; None for 0, 1, ….
        count: numbers are below.
    """
    size, room = len(lists.start), len(lists.sector)
    of_row = np.empty(size, np.int32)
    firsts, lines_of, set_firsts = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room + 1, np.int64)
    sets, dense, lines = np.empty((3, room), np.int32)
    masks, found = np.empty(room, np.uint8), np.zeros(4, np.int64)
    columns = (np.ascontiguousarray(one, np.int64) for one in (lists.start, lists.size))
    if not core.has_done(
        "number_line_sets", *columns, size, np.ascontiguousarray(lists.sector, np.int64), room, of_row, firsts, sets,
        dense, masks, set_firsts, lines, lines_of, found,
    ):  # fmt: skip
        return None
    if rows is not None:
        numbered = np.full(count, -1, np.int32)
        numbered[rows] = of_row
        of_row = numbered
    return LineSets(
        lists=of_row,
        firsts=firsts,
        sets=sets,
        dense=dense,
        masks=masks,
        set_firsts=set_firsts,
        lines=lines,
        line_numbers=lines_of,
        set_count=int(found[_SETS]),
        line_count=int(found[_LINES]),
        sector_count=int(found[_SECTORS]),
    )
