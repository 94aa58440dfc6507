"""One pass over the requests of a trace: :class:`AccessAccumulator` sums what they touch, by instruction and by array, bank conflicts among it."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.code.symbolic_accesses.requests import count_wavefronts
from gpa_lsp.execution.accesses.lane_addresses import (
    ARRAY_SPACES,
    MOST_ARRAYS,
    OUTSIDE,
    SECTOR_SHIFT,
    ArrayIndex,
    Integers,
    count_lanes,
    split_by_array,
    split_rows,
    spread_lanes,
)
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import References, list_references, measure_requests
from gpa_lsp.execution.emulator.model import Buffer, Trace
from gpa_lsp.execution.traces.keyed_sums import AccessGroup, GroupSums, KeyedSums, build_keys
from gpa_lsp.foundation.records import ColumnRecord

MOST_WAVEFRONTS = 64  # Requests with more are counted in the same bin


class BankConflicts(ColumnRecord, frozen=True, kw_only=True):
    """The requests of one instruction to shared memory."""

    instruction: int  # index of the static instruction
    requests: int  # warp-level accesses
    lanes: int  # active lanes over all of them
    requested_bytes: int  # bytes of all lanes
    wavefronts: int  # passes taken
    # passes without any conflict: one for each part of the warp (whole, half, quarter) that went at a time and has an active lane
    ideal_wavefronts: int
    histogram: Integers  # int64[65], requests by wavefronts; the last bin holds those with more as well

    @property
    def excess_wavefronts(self) -> int:
        """Wavefronts due to conflicts; never negative."""
        return self.wavefronts - self.ideal_wavefronts

    @property
    def wavefronts_per_request(self) -> float:
        """Mean wavefronts of a request; 0 without requests."""
        return self.wavefronts / self.requests if self.requests else 0.0


class BankAccumulator:
    """Sums over pieces of a trace."""

    def __init__(self) -> None:
        self._sums = KeyedSums(5)
        self._histogram = KeyedSums(1)

    def add(self, found: PieceRows) -> None:
        """Take the shared memory accesses of a piece; those of a kind meet in the same banks."""
        piece, accesses, every = found.piece, found.piece.accesses, found.kinds
        kinds = np.array([-1 if one.kind is None else one.kind for one in piece.instructions], dtype=np.int8)
        shared = np.flatnonzero(accesses.space[every.rows] == Space.SHARED)
        widths = accesses.bytes[every.rows[shared]]
        for width in np.unique(widths).tolist():
            for chosen in split_rows(shared[widths == width]):
                rows, times = every.rows[chosen], every.counts[chosen]
                instruction, lanes = accesses.instruction[rows].astype(np.int64), count_lanes(accesses.lane_mask[rows])
                taken, ideal = count_wavefronts(*spread_lanes(accesses, rows), width, kinds[instruction])
                columns = (np.ones(len(rows), dtype=np.int64), lanes, lanes * width, taken, ideal)
                self._sums.add(instruction, np.stack(columns, axis=1) * times[:, None])
                bins = instruction * (MOST_WAVEFRONTS + 1) + np.minimum(taken, MOST_WAVEFRONTS)
                self._histogram.add(bins, times[:, None])

    def finish(self) -> tuple[BankConflicts, ...]:
        """Conflicts of each instruction."""
        histograms: dict[int, Integers] = {}
        for key, (count,) in zip(self._histogram.keys.tolist(), self._histogram.sums.tolist(), strict=True):
            instruction, bin_number = divmod(key, MOST_WAVEFRONTS + 1)
            empty = np.zeros(MOST_WAVEFRONTS + 1, dtype=np.int64)
            histograms.setdefault(instruction, empty)[bin_number] = count
        return tuple(
            BankConflicts(
                instruction=instruction, requests=requests, lanes=lanes, requested_bytes=requested, wavefronts=taken,
                ideal_wavefronts=ideal, histogram=histograms[instruction],
            )
            for instruction, (requests, lanes, requested, taken, ideal) in zip(
                self._sums.keys.tolist(), self._sums.sums.tolist(), strict=True
            )
        )  # fmt: skip


class AccessSums(Struct, frozen=True, kw_only=True):
    """Lines, sectors and bytes that the requests of a trace touch."""

    instructions: tuple[AccessGroup, ...]  # by instruction and space; a request to several arrays is one request
    # of global memory, textures and constant memory, by instruction, space and array. A request to several arrays is one of each.
    arrays: tuple[AccessGroup, ...]
    # distinct sectors of each buffer that were touched; None where it was too large to count, 0 for local memory and others
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
        """Take the requests of a piece; shared memory and parameters are passed over.

        Of requests to one array each, all that is summed is known by their kinds; the others are taken apart.
        """
        kinds, space = found.kinds, found.piece.accesses.space[found.kinds.rows]
        has_array = np.isin(space, ARRAY_SPACES)
        counted = np.flatnonzero(has_array | (space == Space.LOCAL))
        self._sum_kinds(self._by_instruction, found, kinds.counts[counted], counted)
        array, is_one = kinds.find_arrays(self._index, has_array)
        whole = np.flatnonzero(is_one)
        self._sum_kinds(self._by_array, found, kinds.counts[whole], whole, array[whole])
        is_left = has_array & ~is_one
        if is_left.any():
            self._add_rest(found, np.flatnonzero(is_left[kinds.kind]))
        self._mark_requests(found)

    def finish(self) -> AccessSums:
        """The sums of all pieces."""
        footprints = tuple(None if marks is None else int(np.count_nonzero(marks)) for marks in self._touched)
        return AccessSums(
            instructions=self._by_instruction.finish(), arrays=self._by_array.finish(), footprints=footprints
        )

    def _add_rest(self, found: PieceRows, rows: Integers) -> None:
        """Rows of kinds that go to several arrays, by array: each row to one, or taken apart."""
        accesses, array = found.piece.accesses, found.arrays[rows]
        is_one = array != OUTSIDE
        for mixed in split_rows(rows[~is_one]):
            parts = split_by_array(self._index, accesses, mixed)
            every, keys = np.arange(len(parts.row)), build_keys(accesses, parts.row, parts.array)
            self._by_array.add(keys, parts.lanes.width, measure_requests(parts.lanes, every))
            self._mark_footprints(parts.array, list_references(parts.lanes, every, SECTOR_SHIFT))
        pairs, times = np.unique(found.kinds.kind[rows[is_one]] * MOST_ARRAYS + array[is_one], return_counts=True)
        self._sum_kinds(self._by_array, found, times, *np.divmod(pairs, MOST_ARRAYS))

    def _sum_kinds(
        self, sums: GroupSums, found: PieceRows, times: Integers, chosen: Integers, array: Integers | None = None
    ) -> None:
        """Add ``times`` requests of each chosen kind, by array if ``array`` is given."""
        accesses, rows = found.piece.accesses, found.kinds.rows[chosen]
        sums.add(build_keys(accesses, rows, array), accesses.bytes[rows], found.measured.choose(chosen), times)

    def _mark_requests(self, found: PieceRows) -> None:
        """Mark the sectors that requests to a single array touch, each of which is of that array."""
        if all(marks is None for marks in self._touched):
            return
        rows = found.requests.first
        rows = rows[found.arrays[rows] != OUTSIDE]
        is_listed = found.is_global[rows] & found.has_sectors
        if is_listed.any():
            lists = found.find_sectors(rows[is_listed])
            array_of_list = np.full(len(lists.size), OUTSIDE, dtype=np.int64)
            array_of_list[lists.number] = found.arrays[rows[is_listed]]
            self._mark_footprints(array_of_list, References(size=lists.size, unit=lists.sector))
        for rest in split_rows(rows[~is_listed]):
            self._mark_footprints(found.arrays[rest], list_references(found.lanes, rest, SECTOR_SHIFT))

    def _mark_footprints(self, array: Integers, sectors: References) -> None:
        """Mark the sectors of lists, each of which lies in one array."""
        numbers = np.unique(array).tolist()
        of_sector = np.repeat(array, sectors.size) if len(numbers) > 1 else None
        for number in numbers:
            marks = None if number == OUTSIDE else self._touched[number]
            if marks is None or not len(marks):
                continue
            own = sectors.unit if of_sector is None else sectors.unit[of_sector == number]
            places = own - (self._buffers[number].base >> SECTOR_SHIFT)
            if len(places) and (int(places.min()) < 0 or int(places.max()) >= len(marks)):
                places = places[(places >= 0) & (places < len(marks))]
            marks[places] = True


class RequestCounts(Struct, frozen=True, kw_only=True):
    """Warp-level accesses of an instruction to one space that have an active lane."""

    requests: int = 0  # how many
    lanes: int = 0  # active lanes over all of them
    sectors: int = 0  # distinct sectors of 32 bytes of each; 0 for shared memory
    wavefronts: int = 0  # passes through shared memory; 0 for other spaces


class RequestCollector:
    """Takes pieces of a trace. It is a :class:`~gpa_lsp.execution.emulator.model.TraceSink`.

    Attributes:
        instructions: of the trace, as far as it was taken.
        is_complete: no piece lacks rows.
    """

    def __init__(self) -> None:
        self._accesses: AccessAccumulator | None = None
        self._banks = BankAccumulator()
        self.instructions: tuple[StaticInstruction, ...] = ()
        self.is_complete = True

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        if self._accesses is None:
            self._accesses = AccessAccumulator(piece.buffers, footprint_sectors=0)
        rows = PieceRows(piece)
        self._accesses.add(rows)
        self._banks.add(rows)
        self.instructions = piece.instructions
        self.is_complete &= piece.is_complete

    def finish(self) -> Mapping[int, Mapping[Space, RequestCounts]]:
        """The requests of each instruction, all ways to it together, by the space they went to."""
        found: dict[int, dict[Space, RequestCounts]] = {}
        for group in () if self._accesses is None else self._accesses.finish().instructions:
            totals = group.totals
            one = RequestCounts(requests=totals.requests, lanes=totals.lanes, sectors=totals.sectors)
            self._put(found, group.instruction, group.space, one)
        for bank in self._banks.finish():
            one = RequestCounts(requests=bank.requests, lanes=bank.lanes, wavefronts=bank.wavefronts)
            self._put(found, bank.instruction, Space.SHARED, one)
        return found

    def _put(
        self, found: dict[int, dict[Space, RequestCounts]], instruction: int, space: Space, added: RequestCounts
    ) -> None:
        own = self.instructions[instruction].same_as
        spaces = found.setdefault(instruction if own is None else own, {})
        known = spaces.get(space, RequestCounts())
        spaces[space] = RequestCounts(
            requests=known.requests + added.requests,
            lanes=known.lanes + added.lanes,
            sectors=known.sectors + added.sectors,
            wavefronts=known.wavefronts + added.wavefronts,
        )
