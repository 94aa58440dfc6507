"""How far apart uses of the same word, sector or line are: histograms over blocks, warps, or the blocks one SM holds together.

*Reuse distance*: the distinct units referenced between a reference and the last one to the same unit, in the order of
:mod:`gpa_lsp.execution.traces.references`. A first reference has the distance ∞. The cache of a fully associative LRU of c units hits exactly the
references with a distance below c.

Source: C. Ding, Y. Zhong, "Reuse Distance Analysis" (2001); CUDAAdvisor (CGO 2018), section 4.2 (A), Figure 4, whose restart at writes is
:attr:`~gpa_lsp.execution.traces.model.StoreEffect.RESTART`.
"""

from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.trace import Accesses, Buffer
from gpa_lsp.execution.traces.keyed_sums import KeyedSums, compress_keys, count_values, sum_columns
from gpa_lsp.execution.traces.lane_addresses import CHUNK_ROWS, MOST_ARRAYS, Integers, Marks
from gpa_lsp.execution.traces.model import ArrayIndex, Granularity, StoreEffect, is_kept_by_l1
from gpa_lsp.execution.traces.piece_rows import LineSets, PieceRows
from gpa_lsp.execution.traces.references import list_references, name_warps
from gpa_lsp.execution.traces.request_kinds import EqualRows, RequestKinds, list_columns
from gpa_lsp.execution.traces.segments import LINE_SHIFT, SECTOR_SHIFT, WORD_SHIFT
from gpa_lsp.foundation.native.shared_library import Core, find_core
from gpa_lsp.foundation.records import ColumnRecord

FINITE_BINS = 33  # Bin 0 is distance 0; bin k holds the distances from 2**(k-1) to 2**k - 1
INFINITE_BIN = FINITE_BINS
BINS = FINITE_BINS + 1

# Units of ``2**shift`` bytes
SHIFTS = {Granularity.ELEMENT: WORD_SHIFT, Granularity.SECTOR: SECTOR_SHIFT, Granularity.LINE: LINE_SHIFT}

_FIRST_ARRAY = 2
_ARRAYS = MOST_ARRAYS + _FIRST_ARRAY
_MOST_GROUPS = 1 << 14  # The core's room for instructions and arrays; where there are more, numpy sums them


class Scope(StrEnum):
    """Whose references are one sequence."""

    WARP = "warp"
    BLOCK = "block"
    SM = "SM"  # The blocks one SM holds together, loads through L1 only


class ReuseHistogram(ColumnRecord, frozen=True, kw_only=True):
    """Reuse distances of a set of references."""

    bins: Integers  # int64[34], references by distance; see :data:`FINITE_BINS`, the last one is ∞
    streaming: int  # references whose unit is used once only: not before, and not again in its sequence, or not before it is stored to
    distance_sum: int  # of all finite distances

    @property
    def references(self) -> int:
        """All of them."""
        return int(self.bins.sum())

    @property
    def infinite(self) -> int:
        """First references."""
        return int(self.bins[INFINITE_BIN])

    @property
    def streaming_ratio(self) -> float:
        """Of all references, 0..1; 0 without any."""
        return self.streaming / self.references if self.references else 0.0

    @property
    def mean_distance(self) -> float | None:
        """Of the finite ones; None when nothing is used again."""
        finite = self.references - self.infinite
        return self.distance_sum / finite if finite else None


class ReuseGroup(Struct, frozen=True, kw_only=True):
    """The references of one instruction to one array."""

    instruction: int  # index of the static instruction
    array: int  # index of the buffer, or outside of all
    histogram: ReuseHistogram  # of its references: each distance belongs to the later of two uses


class ReuseDistances(Struct, frozen=True, kw_only=True):
    """The reuse in one kind of sequence."""

    scope: Scope  # whose sequences
    granularity: Granularity  # of what
    stores: StoreEffect  # what stores did to it
    total: ReuseHistogram  # all references
    groups: tuple[ReuseGroup, ...]  # by instruction and array; they add up to the total
    sequences: int  # how many were looked at
    is_whole: bool  # False where the trace had more than the settings allowed to look at


def bin_distances(distance: Integers) -> Integers:
    """int64[n], the bin of each distance.

    >>> bin_distances(np.array([-1, 0, 1, 2, 3, 4])).tolist()
    [33, 0, 1, 2, 2, 3]
    """
    core = find_core()
    if core is not None:
        found = np.empty(len(distance), np.int64)
        if core.has_done("bin_distances", np.ascontiguousarray(distance, np.int64), len(distance), FINITE_BINS, found):
            return found
    bins: Integers = np.minimum(np.frexp(distance.astype(np.float64))[1], FINITE_BINS - 1).astype(np.int64)
    return np.where(distance < 0, INFINITE_BIN, bins)


def add_histograms(histograms: list[ReuseHistogram]) -> ReuseHistogram:
    """All references of several histograms."""
    bins = np.sum([np.zeros(BINS, dtype=np.int64), *(one.bins for one in histograms)], axis=0)
    return ReuseHistogram(
        bins=bins,
        streaming=sum(one.streaming for one in histograms),
        distance_sum=sum(one.distance_sum for one in histograms),
    )


class _Sequences(ColumnRecord, frozen=True, kw_only=True):
    """What is to be measured of a piece."""

    accesses: Accesses  # of it
    sets: LineSets  # of lines, by row
    rows: Integers  # int64[n], in the order of their references
    requests: EqualRows  # which of them are equal
    kinds: RequestKinds  # of all rows of the piece
    sectors: Integers  # of its lists, one behind the other
    instructions: int  # of the piece, how many
    scope: Scope  # WARP or BLOCK
    shift: int  # units are of ``2**shift`` bytes
    erasing: Marks | None  # bool by instruction; None where nothing erases
    most: int  # references after which no further chunk of rows is looked at
    has_others: bool  # there were sequences before this piece


class Distances(ColumnRecord, frozen=True, kw_only=True):
    """What n references find."""

    # int64[n], distinct units referenced since the last reference to the same unit; :data:`INFINITE` for a first one, :data:`NOT_COUNTED` for one
    # that erases
    distance: Integers
    is_streaming: Marks  # bool[n], a first reference whose unit is not referenced again, or is erased before it is


class ReuseSums:
    """Histograms by instruction and array.

    Args:
        buffers: of the trace.
    """

    def __init__(self, buffers: tuple[Buffer, ...]) -> None:
        self._index = ArrayIndex(buffers)
        self._sums = KeyedSums(BINS + 2)

    def add(self, instruction: Integers, address: Integers, found: Distances) -> None:
        """Add references.

        Args:
            instruction: int64[n].
            address: int64[n], first byte of the unit.
        """
        counted = found.distance != NOT_COUNTED
        array = self._index.find(address[counted].astype(np.uint64)) + _FIRST_ARRAY
        keys = instruction[counted] * _ARRAYS + array
        if len(keys) == 0:
            return
        groups, place = compress_keys(keys)
        distance = found.distance[counted]
        bins = count_values(place, bin_distances(distance), len(groups), BINS)
        columns = np.stack([found.is_streaming[counted], np.where(distance == INFINITE, 0, distance)], axis=1)
        sums = sum_columns(place, columns.astype(np.int64), len(groups))
        self._sums.merge(groups, np.concatenate([bins, sums], axis=1))

    def add_by_core(self, core: Core, sequences: "_Sequences") -> tuple[int, int, bool] | None:
        """List, measure and add references.

        Returns:
            The references, the sequences, and whether some were left out; None where the core could not do it.
        """
        accesses, found = sequences.accesses, np.zeros(3, np.int64)
        columns = (accesses.block, accesses.warp, accesses.instruction)
        addresses: tuple[np.ndarray[Any, Any] | int, ...] = ()
        if sequences.shift != LINE_SHIFT:
            equal, kinds, sector = sequences.requests, sequences.kinds, sequences.sectors
            addresses = (
                *list_columns(accesses, sequences.rows)[:-2], sequences.shift, equal.number, len(equal.first),
                kinds.kind, len(kinds.rows), np.ascontiguousarray(sector, np.int64), len(sector),
            )  # fmt: skip
        is_done = self.fill_by_core(
            core, "add_part_reuse" if addresses else "add_line_reuse", *addresses,
            *(np.ascontiguousarray(one) for one in columns), np.ascontiguousarray(sequences.rows, np.int64),
            len(sequences.rows), CHUNK_ROWS, int(sequences.scope is Scope.WARP), sequences.erasing, sequences.most,
            int(sequences.has_others), *sequences.sets.list_arguments(), instructions=sequences.instructions, found=found,
        )  # fmt: skip
        if not is_done:
            return None
        references, count, is_cut = found.tolist()
        return references, count, bool(is_cut)

    def fill_by_core(
        self, core: Core, name: str, *arguments: "np.ndarray[Any, Any] | int | None", instructions: int, found: Integers
    ) -> bool:
        """Have a function of the core measure references, and add them."""
        index, room = self._index, max(1, min(_MOST_GROUPS, instructions * (len(self._index.bases) + 1)))
        keys, bins, sums = np.empty(room, np.int64), np.empty((room, BINS), np.int64), np.empty((room, 2), np.int64)
        arrays = (index.bases, index.ends, index.order, len(index.bases), _ARRAYS)
        groups = core.call(name, *arguments, *arrays, keys, bins, sums, room, found)
        if groups < 0:
            return False
        self._sums.add(keys[:groups], np.concatenate([bins[:groups], sums[:groups]], axis=1))
        return True

    def finish(self) -> tuple[ReuseGroup, ...]:
        """All groups, by instruction and array."""
        groups = []
        for key, columns in zip(self._sums.keys.tolist(), self._sums.sums, strict=True):
            instruction, array = divmod(key, _ARRAYS)
            streaming, distance_sum = columns[BINS:].tolist()
            histogram = ReuseHistogram(bins=columns[:BINS], streaming=streaming, distance_sum=distance_sum)
            groups.append(ReuseGroup(instruction=instruction, array=array - _FIRST_ARRAY, histogram=histogram))
        return tuple(groups)


class ReuseAccumulator:
    """Reuse within blocks or warps, over pieces of a trace: global memory and textures.

    Args:
        buffers: of the trace.
        scope: WARP or BLOCK.
        granularity: of what.
        stores: what stores and atomics do.
        most_references: after which further blocks are left out.
        is_l1_only: only loads whose lines L1 keeps are references.
    """

    def __init__(
        self,
        buffers: tuple[Buffer, ...],
        *,
        scope: Scope,
        granularity: Granularity,
        stores: StoreEffect,
        most_references: int,
        is_l1_only: bool = False,
    ) -> None:
        self._is_l1_only = is_l1_only
        self._scope, self._granularity, self._stores = scope, granularity, stores
        self._room = most_references
        self._sums = ReuseSums(buffers)
        self._sequences = 0
        self._is_whole = True

    def add(self, found: PieceRows) -> None:
        """Take the blocks of a piece, while there is room."""
        is_used = self._find_used(found)
        if self._room <= 0 or not is_used.any():
            self._is_whole &= not is_used.any()
            return
        rows = found.orders.by_warp if self._scope is Scope.WARP else found.orders.by_block
        rows = rows if is_used is found.is_global else rows[is_used[rows]]
        if not self._has_added(found, rows):
            self._add_columns(found, rows)

    def _find_used(self, found: PieceRows) -> Marks:
        """bool[n], rows that are references."""
        piece, is_used = found.piece, found.is_global
        instruction = piece.accesses.instruction
        if self._stores is StoreEffect.IGNORED:
            is_used = is_used & (found.access_kinds == AccessKind.LOAD)[instruction]
        if self._is_l1_only:
            kept = np.array([is_kept_by_l1(one) for one in piece.instructions], dtype=np.bool_)
            is_used = is_used & kept[instruction]
        return is_used

    def _has_added(self, piece_rows: PieceRows, rows: Integers) -> bool:
        """Have the core do all that :meth:`_add_columns` does; whether it could."""
        core, piece, kinds = find_core(), piece_rows.piece, piece_rows.kinds
        sets, requests = piece_rows.sets, piece_rows.requests
        if core is None or sets is None or requests is None or kinds is None:
            return False
        sequences = _Sequences(
            accesses=piece.accesses,
            sets=sets,
            rows=rows,
            requests=requests,
            kinds=kinds,
            sectors=piece_rows.sectors.sector,
            instructions=len(piece.instructions),
            scope=self._scope,
            shift=SHIFTS[self._granularity],
            erasing=piece_rows.access_kinds != AccessKind.LOAD if self._stores is StoreEffect.RESTART else None,
            most=self._room,
            has_others=bool(self._sequences),
        )
        found = self._sums.add_by_core(core, sequences)
        if found is None:
            return False
        references, count, is_cut = found
        if is_cut:
            self._is_whole = False
            self._room = 0
        self._room -= references
        self._sequences += count
        return True

    def _add_columns(self, piece_rows: PieceRows, rows: Integers) -> None:
        accesses, shift = piece_rows.piece.accesses, SHIFTS[self._granularity]
        found = list_references(accesses, rows, shift, self._room)
        position, unit = found.position, found.unit
        if found.row_count < len(rows):
            position, unit = self._cut(accesses, rows, found.row_count, position, unit)
        self._room -= len(unit)
        if len(unit) == 0:
            return
        of_row = rows[position]
        groups = name_warps(accesses)[of_row] if self._scope is Scope.WARP else accesses.block[of_row].astype(np.int64)
        erases = None
        if self._stores is StoreEffect.RESTART:
            erases = (piece_rows.access_kinds != AccessKind.LOAD)[accesses.instruction[of_row]]
        distances = measure_distances(unit, groups, erases)
        self._sums.add(accesses.instruction[of_row].astype(np.int64), unit << shift, distances)
        self._sequences += int(np.count_nonzero(np.diff(groups, prepend=-1)))

    def finish(self) -> ReuseDistances:
        """The histograms of all blocks that were looked at."""
        groups = self._sums.finish()
        return ReuseDistances(
            scope=self._scope,
            granularity=self._granularity,
            stores=self._stores,
            total=add_histograms([group.histogram for group in groups]),
            groups=groups,
            sequences=self._sequences,
            is_whole=self._is_whole,
        )

    def _cut(
        self, accesses: Accesses, rows: Integers, row_count: int, position: Integers, unit: Integers
    ) -> tuple[Integers, Integers]:
        """Leave out the block that is not whole, unless it is the only one."""
        self._is_whole = False
        self._room = 0
        last = accesses.block[rows[row_count - 1]]
        begin = int(np.flatnonzero(accesses.block[rows[:row_count]] == last)[0])
        is_kept = position < (begin if begin or self._sequences else row_count)
        return position[is_kept], unit[is_kept]


# Exact reuse distances of a sequence of references, in O(n log n) column operations: :func:`measure_distances`.
#
# With ``prev`` the place of the load a reference finds its unit at, the number of distinct units between the two is
# the number of loads between them, less those whose unit is met again, or erased, before the reference: those are the
# earlier references with a larger ``prev``. Counting them is counting inversions of a permutation, done bit by bit
# from the highest (a wavelet tree that is never kept).

INFINITE = -1  # In place of a distance: the unit was not there before
NOT_COUNTED = -2  # In place of a distance: the reference is none that has one (a store that erases)

_PART_BITS = 16  # Groups of up to 65,536 are counted one after the other, so that they stay in a core's cache
_SMALL_BITS = 4
_SMALL = 1 << _SMALL_BITS  # Groups of so many are counted by comparing all with all


def measure_distances(units: Integers, groups: Integers, erases: Marks | None = None) -> Distances:
    """The reuse distance of every reference.

    Args:
        units: int64[n], what is referenced, not negative; in the order of the references.
        groups: int64[n], never falling: sequences of their own, one after the other. Nothing is reused across them.
        erases: bool[n], references that only erase their unit (a store under write-evict): the next reference to it is a first one, and until
            then it counts in no other distance. None for none.

    >>> text = np.frombuffer(b"ABCCDEFAAAB", dtype=np.uint8).astype(np.int64)
    >>> measure_distances(text, np.zeros(11, dtype=np.int64)).distance.tolist()
    [-1, -1, -1, 0, -1, -1, -1, 5, 0, 0, 5]
    """
    count = len(units)
    core = find_core()
    if core is not None:
        distance, is_streaming = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
        sequence, group = np.ascontiguousarray(units, np.int64), np.ascontiguousarray(groups, np.int64)
        erasing = None if erases is None else np.ascontiguousarray(erases, np.bool_)
        if core.has_done("measure_distances", sequence, group, erasing, count, distance, is_streaming):
            return Distances(distance=distance, is_streaming=is_streaming)
    counted = np.ones(count, dtype=np.bool_) if erases is None else ~erases
    distance = np.where(counted, INFINITE, NOT_COUNTED).astype(np.int64)
    if count == 0:
        return Distances(distance=distance, is_streaming=np.zeros(0, dtype=np.bool_))
    previous = find_previous(units, groups)
    previous[(previous >= 0) & ~counted[previous]] = -1
    ends = np.flatnonzero(previous >= 0)
    starts = previous[ends]
    has_end = np.zeros(count, dtype=np.bool_)
    has_end[starts] = True
    inner = count_larger_before((np.cumsum(has_end) - 1)[starts])
    loads_before = np.cumsum(counted) - counted
    between = loads_before[ends] - loads_before[starts] - 1
    is_load = counted[ends]
    distance[ends[is_load]] = (between - inner)[is_load]
    reused = np.zeros(count, dtype=np.bool_)
    reused[starts[is_load]] = True
    return Distances(distance=distance, is_streaming=(distance == INFINITE) & ~reused)


def count_larger_before(permutation: Integers) -> Integers:
    """How many larger elements stand before each element of a permutation of 0..m-1.

    >>> count_larger_before(np.array([2, 0, 3, 1])).tolist()
    [0, 1, 0, 2]
    """
    count = len(permutation)
    if count < 2:
        return np.zeros(count, dtype=np.int64)
    padded = -(-count // _SMALL) * _SMALL
    values = np.arange(padded, dtype=np.int32)
    values[:count] = permutation
    counts = np.zeros(padded, dtype=np.int32)
    top = (padded - 1).bit_length()
    for bit in range(top - 1, _PART_BITS - 1, -1):
        values, counts = _divide(values, counts, bit)
    for start in range(0, padded, 1 << _PART_BITS):
        part = slice(start, start + (1 << _PART_BITS))
        inner, found = values[part], counts[part]
        for bit in range(min(_PART_BITS, top) - 1, _SMALL_BITS - 1, -1):
            inner, found = _divide(inner, found, bit)
        values[part], counts[part] = inner, found + _compare_all(inner)
    by_value = np.empty(padded, dtype=np.int64)
    by_value[values] = counts
    return by_value[permutation]


def _divide(
    values: npt.NDArray[np.int32], counts: npt.NDArray[np.int32], bit: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Sort groups of equal higher bits by one more bit, keeping the order, and count for the zeros the ones before them.

    Groups are as large as they can be, because the values are a permutation: every group but the last has 2**bit ones, so that places follow
    from places.
    """
    half = np.int32(1 << bit)
    place = np.arange(len(values), dtype=np.int32)
    ones = (values >> np.int32(bit)) & np.int32(1)
    before = np.cumsum(ones, dtype=np.int32)
    before -= ones
    before -= (place >> np.int32(bit + 1)) << np.int32(bit)
    zeros = np.int32(1) - ones
    # zeros move down by the ones before them; ones move to the upper half, behind the ones before them
    target = np.where(ones, (place & ~(2 * half - 1)) + half + before, place - before)
    before *= zeros
    before += counts
    new_values, new_counts = np.empty_like(values), np.empty_like(counts)
    new_values[target] = values
    new_counts[target] = before
    return new_values, new_counts


def _compare_all(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """How many larger values stand before each value in its group of 16."""
    groups = np.ascontiguousarray(values.reshape(-1, _SMALL).T)
    counts = np.zeros(groups.shape, dtype=np.int8)
    for distance in range(1, _SMALL):
        counts[distance:] += groups[:-distance] > groups[distance:]
    return counts.T.reshape(-1).astype(np.int32)


def find_previous(units: Integers, groups: Integers) -> Integers:
    """int64[n], the place of the reference before to the same unit of the same group; -1 for none."""
    count = len(units)
    core = find_core()
    if core is not None:
        previous = np.empty(count, dtype=np.int64)
        sequence, group = np.ascontiguousarray(units, np.int64), np.ascontiguousarray(groups, np.int64)
        if core.has_done("find_previous", sequence, group, count, previous):
            return previous
    place_bits = max(1, (count - 1).bit_length())
    lowest = int(units.min())
    if (int(units.max()) - lowest).bit_length() + place_bits > 63:
        units = np.unique(units, return_inverse=True)[1].astype(np.int64)
        lowest = 0
    keys = ((units - lowest) << place_bits) | np.arange(count, dtype=np.int64)
    keys.sort()
    places = keys & ((1 << place_bits) - 1)
    same = (keys[1:] >> place_bits) == (keys[:-1] >> place_bits)
    same &= groups[places[1:]] == groups[places[:-1]]
    previous = np.full(count, -1, dtype=np.int64)
    previous[places[1:][same]] = places[:-1][same]
    return previous
