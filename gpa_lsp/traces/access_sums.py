"""One pass over the requests of a trace: :class:`AccessAccumulator` sums what they touch, by instruction and by array."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import Accesses, Buffer
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.arrays import ArrayIndex, ArrayParts, split_by_array
from gpa_lsp.traces.group_sums import AccessGroup, GroupSums, build_keys
from gpa_lsp.traces.lane_addresses import Integers, gather_lanes, split_rows
from gpa_lsp.traces.model import OUTSIDE
from gpa_lsp.traces.patterns import Patterns, find_patterns
from gpa_lsp.traces.piece_rows import PieceRows
from gpa_lsp.traces.request_columns import RequestColumns, mark_sectors, measure_requests
from gpa_lsp.traces.segments import (
    SECTOR_SHIFT,
    Touched,
    build_intervals,
    build_local_intervals,
    list_segments,
    measure_intervals,
)

_FOLDED = (Space.GLOBAL, Space.TEXTURE, Space.CONST)
"""Spaces whose addresses are of arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSums:
    """What the requests of a trace touch.

    Attributes:
        instructions: by instruction and space; a request to several arrays is one request.
        arrays: of global memory, textures and constant memory, by instruction, space and array. A request to several arrays is one of each.
        footprints: distinct sectors of each buffer that were touched; None where it was too large to count, 0 for local memory and others.
    """

    instructions: tuple[AccessGroup, ...]
    arrays: tuple[AccessGroup, ...]
    footprints: tuple[int | None, ...]


class AccessAccumulator:
    """Sums over pieces of a trace.

    Args:
        buffers: of the trace.
        footprint_sectors: buffers of more sectors get no footprint.
    """

    def __init__(self, buffers: tuple[Buffer, ...], *, footprint_sectors: int) -> None:
        self._index = ArrayIndex(buffers)
        self._buffers = buffers
        self._by_instruction = GroupSums()
        self._by_array = GroupSums()
        room = footprint_sectors
        self._touched: list[npt.NDArray[np.bool_] | None] = []
        for buffer in buffers:
            sectors = (buffer.size_bytes + (1 << SECTOR_SHIFT) - 1) >> SECTOR_SHIFT
            fits = sectors <= room
            room -= sectors if fits else 0
            self._touched.append(np.zeros(sectors, dtype=np.bool_) if fits else None)

    def add(self, found: PieceRows) -> None:
        """Take the requests of a piece; shared memory and parameters are passed over."""
        accesses = found.piece.accesses
        folded = np.flatnonzero(np.isin(accesses.space, _FOLDED))
        columns = measure_requests(accesses, folded)
        if columns is not None:
            self._add_columns(found, folded, columns)
        else:
            for rows in split_rows(folded):
                self._add_folded(accesses, rows)
        local = np.flatnonzero(accesses.space == Space.LOCAL)
        for width in np.unique(accesses.bytes[local]).tolist():
            for rows in split_rows(local[accesses.bytes[local] == width]):
                matrix = gather_lanes(accesses, rows)
                touched = measure_intervals(build_local_intervals(matrix, width))
                patterns = find_patterns(matrix, accesses.bytes[rows])
                keys = build_keys(accesses, rows, None)
                self._by_instruction.add(keys, accesses.bytes[rows], matrix.counts, touched, patterns=patterns)

    def finish(self) -> AccessSums:
        """The sums of all pieces."""
        footprints = tuple(None if marks is None else int(np.count_nonzero(marks)) for marks in self._touched)
        return AccessSums(
            instructions=self._by_instruction.finish(), arrays=self._by_array.finish(), footprints=footprints
        )

    def _add_columns(self, found: PieceRows, rows: Integers, columns: RequestColumns) -> None:
        """Of requests to one array each, all that is summed is in their columns; the others are taken apart."""
        accesses = found.piece.accesses
        width, touched, patterns = accesses.bytes[rows], columns.touched, columns.patterns
        self._by_instruction.add(build_keys(accesses, rows, None), width, columns.counts, touched, patterns=patterns)
        array = self._index.find(columns.lowest)
        is_whole = (array == self._index.find(columns.highest)) & (array != OUTSIDE)
        if not is_whole.all():
            for mixed in split_rows(rows[~is_whole]):
                matrix = gather_lanes(accesses, mixed)
                self._add_parts(accesses, mixed, split_by_array(self._index, matrix))
            rows, width, array = rows[is_whole], width[is_whole], array[is_whole]
            touched = Touched(**{name: getattr(touched, name)[is_whole] for name in Touched.__slots__})
            patterns = Patterns(pattern=patterns.pattern[is_whole], stride_bytes=patterns.stride_bytes[is_whole])
        keys = build_keys(accesses, rows, array)
        counts = columns.counts if len(rows) == len(is_whole) else columns.counts[is_whole]
        self._by_array.add(keys, width, counts, touched, patterns=patterns)
        for number in np.unique(array).tolist():
            self._mark_rows(found, rows[array == number], number)

    def _mark_rows(self, found: PieceRows, rows: Integers, number: int) -> None:
        """Mark what rows touch of an array."""
        marks, first = self._touched[number], self._buffers[number].base >> SECTOR_SHIFT
        if marks is None or not len(marks):
            return
        is_listed = found.is_global[rows] & found.has_sectors
        if is_listed.any():
            places = found.find_sectors(rows[is_listed]).list_used() - first
            marks[places[(places >= 0) & (places < len(marks))]] = True
        mark_sectors(found.piece.accesses, rows[~is_listed], first, marks)

    def _add_folded(self, accesses: Accesses, rows: Integers) -> None:
        matrix = gather_lanes(accesses, rows)
        width = accesses.bytes[rows]
        intervals = build_intervals(matrix, width)
        touched = measure_intervals(intervals)
        patterns = find_patterns(matrix, width)
        keys = build_keys(accesses, rows, None)
        self._by_instruction.add(keys, width, matrix.counts, touched, patterns=patterns)
        parts = split_by_array(self._index, matrix)
        if parts.matrix is not matrix:
            self._add_parts(accesses, rows, parts)
            return
        keys = build_keys(accesses, rows, parts.array)
        self._by_array.add(keys, width, matrix.counts, touched, patterns=patterns)
        self._mark_footprints(parts.array, *list_segments(intervals, SECTOR_SHIFT))

    def _add_parts(self, accesses: Accesses, rows: Integers, parts: ArrayParts) -> None:
        """Parts of some rows, by array."""
        part_rows = rows[parts.request]
        width = accesses.bytes[part_rows]
        intervals = build_intervals(parts.matrix, width)
        touched, patterns = measure_intervals(intervals), find_patterns(parts.matrix, width)
        keys = build_keys(accesses, part_rows, parts.array)
        self._by_array.add(keys, width, parts.matrix.counts, touched, patterns=patterns)
        self._mark_footprints(parts.array, *list_segments(intervals, SECTOR_SHIFT))

    def _mark_footprints(self, array: Integers, part: Integers, sector: Integers) -> None:
        of_sector = array[part]
        for number in np.unique(array).tolist():
            marks = None if number == OUTSIDE else self._touched[number]
            if marks is None or not len(marks):
                continue
            places = sector[of_sector == number] - (self._buffers[number].base >> SECTOR_SHIFT)
            marks[places[(places >= 0) & (places < len(marks))]] = True
