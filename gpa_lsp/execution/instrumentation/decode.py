"""Records of instrumented PTX → a trace: :func:`decode_records`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.model import Accesses, Branches, Buffer, Entries, Trace
from gpa_lsp.execution.emulator.semantics.matrix_layouts import matrix_addresses
from gpa_lsp.execution.instrumentation.code import (
    HEAD_WORDS,
    LANE_WORDS,
    NO_PLACE,
    SPACE_SHIFT,
    InstrumentedKernel,
    Site,
    SiteKind,
)
from gpa_lsp.foundation.records import ColumnRecord

Words = npt.NDArray[np.uint64]
_LANES = np.arange(32, dtype=np.uint32)
_LOW = np.uint64(0xFFFFFFFF)
_NO_INDEX = np.uint64(1 << 32)
_WORDS_AT_ONCE = 8 << 20
_LISTED_AT_ONCE = 1 << 20
# In the order in which the emulator tells where the lanes of one generic access went
_RESOLVED = (Space.SHARED, Space.LOCAL, Space.GLOBAL)


class TracedLaunch(ColumnRecord, frozen=True, kw_only=True):
    """Facts about a launch that its trace states."""

    grid: tuple[int, int, int]  # blocks in x, y, z
    block_threads: tuple[int, int, int]  # threads of a block in x, y, z
    buffers: tuple[Buffer, ...]  # by ascending base
    traced_blocks: npt.NDArray[np.uint32]  # uint32[k], ascending
    origin: str  # what executed it


class Written(ColumnRecord, frozen=True, kw_only=True):
    """Content of the instrumentation's variables after a launch."""

    words: Words  # uint64[n], the records, as far as they were reserved and there was room
    reserved_words: int  # also those there was no room for
    dropped: int  # records there was no room for
    places: Words  # uint64[p], addresses of :attr:`~gpa_lsp.execution.instrumentation.code.InstrumentedKernel.places`


class _Records(ColumnRecord, frozen=True, kw_only=True):
    """r records: the places of their words, and their decoded heads."""

    start: npt.NDArray[np.int64]
    site: npt.NDArray[np.int64]
    block: npt.NDArray[np.uint32]
    warp: npt.NDArray[np.uint16]
    mask: npt.NDArray[np.uint32]
    way: npt.NDArray[np.int64]
    aside: npt.NDArray[np.uint32]

    def take(self, chosen: npt.NDArray[Any]) -> "_Records":
        return _Records(**{name: getattr(self, name)[chosen] for name in self.__struct_fields__})


def decode_records(
    kernel: InstrumentedKernel, written: Written, launch: TracedLaunch, *, words_at_once: int = _WORDS_AT_ONCE
) -> Iterator[Trace]:
    """Trace of a launch, in pieces of whole blocks.

    It is not complete where records were dropped, or words were reserved and never written.
    """
    starts, is_whole = _find_starts(kernel, written.words)
    is_complete = is_whole and not written.dropped and written.reserved_words <= len(written.words)
    records = _read_heads(written.words, starts)
    numbering = _Numbering(kernel)
    places = _PlaceMap(kernel, written.places, launch.buffers)
    for blocks in _part_blocks(launch.traced_blocks, records, words_at_once, len(written.words)):
        chosen = np.flatnonzero((records.block >= blocks[0]) & (records.block <= blocks[-1]))
        own = records.take(chosen)
        rows = _Rows(kernel, written.words, places)
        for site_number in np.unique(own.site).tolist():
            rows.add(kernel.sites[site_number], own, np.flatnonzero(own.site == site_number))
        accesses, branches, entries = rows.build(own, numbering)
        yield Trace(
            kernel=kernel.kernel,
            grid=launch.grid,
            block_threads=launch.block_threads,
            instructions=numbering.list_instructions(),
            buffers=launch.buffers,
            accesses=accesses,
            branches=branches,
            entries=entries,
            traced_blocks=blocks,
            is_complete=is_complete,
            origin=launch.origin,
        )


def _read_heads(words: Words, starts: npt.NDArray[np.int64]) -> _Records:
    first, second, third = (words[starts + place] for place in range(HEAD_WORDS))
    half = np.uint64(32)
    return _Records(
        start=starts + HEAD_WORDS,
        site=(first & _LOW).astype(np.int64),
        block=(first >> half).astype(np.uint32),
        warp=(second >> half).astype(np.uint16),
        mask=(second & _LOW).astype(np.uint32),
        way=(third & _LOW).astype(np.int64),
        aside=(third >> half).astype(np.uint32),
    )


def _part_blocks(
    traced: npt.NDArray[np.uint32], records: _Records, words_at_once: int, words: int
) -> Iterator[npt.NDArray[np.uint32]]:
    """Split the traced blocks, ascending, into runs whose records have about *words_at_once* words."""
    sizes = np.diff(np.append(records.start, words + HEAD_WORDS))
    rank = np.searchsorted(traced, records.block)
    by_block = np.bincount(np.minimum(rank, len(traced) - 1), weights=sizes, minlength=len(traced))
    part = (np.cumsum(by_block) // words_at_once).astype(np.int64)
    yield from np.split(traced, np.flatnonzero(np.diff(part)) + 1)


def _find_starts(kernel: InstrumentedKernel, words: Words) -> tuple[npt.NDArray[np.int64], bool]:
    """Places of the records' first words, and whether the records are whole up to the last word."""
    lane_words = [LANE_WORDS[site.kind] for site in kernel.sites]
    starts: list[int] = []
    place, end, begun = 0, len(words), 0
    listed = words[:_LISTED_AT_ONCE].tolist()
    while place + HEAD_WORDS <= end:
        if place + 1 - begun >= len(listed):
            begun = place
            listed = words[begun : begun + _LISTED_AT_ONCE].tolist()
        site, mask = listed[place - begun] & 0xFFFFFFFF, listed[place + 1 - begun] & 0xFFFFFFFF
        if not mask or site >= len(lane_words):
            return np.array(starts, np.int64), False
        size = HEAD_WORDS + lane_words[site] * mask.bit_count()
        if place + size > end:
            break
        starts.append(place)
        place += size
    return np.array(starts, np.int64), place == end


class _PlaceMap:
    """Translation of the GPU's addresses of variables to a trace's."""

    def __init__(self, kernel: InstrumentedKernel, addresses: Words, buffers: Sequence[Buffer]) -> None:
        bases = {one.name: one.base for one in buffers}
        self._by_space: dict[int, list[tuple[int, int, int]]] = {}
        for place, address in zip(kernel.places, addresses.tolist(), strict=False):
            target = bases.get(place.name, address) if place.space is Space.CONST else place.offset_bytes
            if address not in (target, NO_PLACE):
                self._by_space.setdefault(int(place.space), []).append((address, place.size_bytes, target))

    def move(self, space: int, addresses: Words) -> Words:
        """Translate addresses of one space; those in no known variable stay."""
        moved = addresses
        for start, size, target in self._by_space.get(space, ()):
            inside = (addresses >= np.uint64(start)) & (addresses < np.uint64(start + size))
            moved = np.where(inside, addresses - np.uint64(start) + np.uint64(target), moved)
        return moved


class _Numbering:
    """Numbers of instructions by way of calls, as in :class:`~gpa_lsp.execution.emulator.engine.tracing.CallPaths`."""

    def __init__(self, kernel: InstrumentedKernel) -> None:
        self._kernel = kernel
        self._further: list[StaticInstruction] = []
        self._numbers: dict[tuple[int, int], int] = {}

    def number(self, static: int, way: int) -> int:
        """Number of an instruction that was reached on a way."""
        path = self._kernel.paths[way] if way < len(self._kernel.paths) else None
        if not path:
            return static
        found = self._numbers.get((static, way))
        if found is None:
            known = self._kernel.instructions
            found = self._numbers[static, way] = len(known) + len(self._further)
            self._further.append(replace(known[static], index=found, calls=path, same_as=static))
        return found

    def list_instructions(self) -> tuple[StaticInstruction, ...]:
        """All instructions, by number."""
        return (*self._kernel.instructions, *self._further)


class _Part(ColumnRecord, frozen=True):
    """Rows of one site and space: their records, lanes and addresses."""

    record: npt.NDArray[np.int64]
    order: int
    mask: npt.NDArray[np.uint32]
    addresses: Words
    space: int
    size_bytes: int


class _Rows:
    """Gathers rows, site after site."""

    def __init__(self, kernel: InstrumentedKernel, words: Words, places: _PlaceMap) -> None:
        self._kernel = kernel
        self._words = words
        self._places = places
        self._accesses: list[_Part] = []
        self._branches: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]] = []
        self._entries: list[npt.NDArray[np.int64]] = []

    def add(self, site: Site, records: _Records, chosen: npt.NDArray[np.int64]) -> None:
        """Take all records of a site."""
        if site.kind is SiteKind.ENTRY:
            self._entries.append(chosen)
        elif site.kind is SiteKind.BRANCH:
            self._branches.append((chosen, records.mask[chosen], records.aside[chosen]))
        elif site.kind is SiteKind.TABLE:
            self._add_table(records, chosen)
        elif site.kind is SiteKind.MATRIX:
            self._add_matrix(site, records, chosen)
        else:
            lanes = self._spread(records, chosen, 0, 1)
            mask = records.mask[chosen] & np.uint32((1 << site.lanes) - 1)
            self._add_spaces(site, chosen, 0, mask=mask, addresses=lanes, size_bytes=site.size_bytes)

    def _spread(self, records: _Records, chosen: npt.NDArray[np.int64], word: int, words: int) -> Words:
        """One word of each lane, uint64[r, 32]; 0 where a lane was not recorded."""
        present = _list_lanes(records.mask[chosen])
        rank = np.cumsum(present, axis=1) - 1
        place = records.start[chosen][:, None] + rank * words + word
        out: Words = np.where(present, self._words[np.where(present, place, 0)], np.uint64(0))
        return out

    def _add_spaces(
        self,
        site: Site,
        chosen: npt.NDArray[np.int64],
        order: int,
        *,
        mask: npt.NDArray[np.uint32],
        addresses: Words,
        size_bytes: int,
    ) -> None:
        """Add rows of one access: one for each space its lanes accessed."""
        if site.space is not Space.GENERIC:
            parts = [(int(site.space), mask, addresses)]
        else:
            told = addresses >> np.uint64(SPACE_SHIFT)
            bare = addresses & np.uint64((1 << SPACE_SHIFT) - 1)
            present = _list_lanes(mask)
            parts = []
            for resolved in _RESOLVED:
                here = present & (told == np.uint64(0 if resolved is Space.GLOBAL else int(resolved)))
                parts.append((int(resolved), _pack(here), bare))
        for number, (space, lanes, found) in enumerate(parts):
            rows = np.flatnonzero(lanes)
            if len(rows):
                moved = self._places.move(space, found[rows])
                self._accesses.append(
                    _Part(chosen[rows], order * len(_RESOLVED) + number, lanes[rows], moved, space, size_bytes)
                )

    def _add_matrix(self, site: Site, records: _Records, chosen: npt.NDArray[np.int64]) -> None:
        """Add the requests that ``wmma`` makes with the addresses it is given."""
        assert site.instruction is not None
        layout = matrix_addresses(site.instruction)
        if layout is None:
            return
        base = self._spread(records, chosen, 0, 2)
        stride = self._spread(records, chosen, 1, 2).astype(np.int64)
        if len(site.instruction.sources) == (2 if "store" in site.instruction.suffixes else 1):
            stride = np.full_like(stride, layout.default_stride_elements)
        requests = layout.shared_requests if site.space is Space.SHARED and layout.shared_requests else layout.requests
        for order, request in enumerate(requests):
            moved = base.view(np.int64) + request.offset_bytes + stride * request.stride_bits // 8
            lanes = np.full(len(chosen), (1 << request.lanes) - 1, np.uint32)
            addresses = moved.astype(np.int64).view(np.uint64)
            self._add_spaces(site, chosen, order, mask=lanes, addresses=addresses, size_bytes=request.size_bytes)

    def _add_table(self, records: _Records, chosen: npt.NDArray[np.int64]) -> None:
        """Add branches of ``brx.idx``: lanes with another target than most of their warp count as taken."""
        index = self._spread(records, chosen, 0, 1)
        present = _list_lanes(records.mask[chosen]) & (index != _NO_INDEX)
        masks, taken = records.mask[chosen], np.zeros(len(chosen), np.uint32)
        for row in range(len(chosen)):
            numbers, counts = np.unique(index[row][present[row]], return_counts=True)
            if len(numbers):
                taken[row] = _pack((present[row] & (index[row] != numbers[counts.argmax()]))[None])[0]
        told = present.any(axis=1)
        self._branches.append((chosen[told], masks[told], taken[told]))

    def build(self, records: _Records, numbering: _Numbering) -> tuple[Accesses, Branches, Entries]:
        """All rows in the order in which they were written."""
        accesses = self._sort_accesses()
        branched = _concatenate([one[0] for one in self._branches], np.int64)
        order = np.argsort(branched, kind="stable")
        branched = branched[order]
        active = _concatenate([one[1] for one in self._branches], np.uint32)[order]
        taken = _concatenate([one[2] for one in self._branches], np.uint32)[order]
        accessed = accesses["record"]
        numbers = self._number(records, np.concatenate([accessed, branched]), numbering)
        executions = _count_executions(records, accessed, branched, numbers)
        split = len(accessed)
        first = np.zeros(split, np.uint64)
        if split:
            first[1:] = np.cumsum(np.bitwise_count(accesses["mask"])[:-1], dtype=np.uint64)
        entered = np.sort(_concatenate(self._entries, np.int64))
        statics = np.array([site.static for site in self._kernel.sites], np.uint32)
        return (
            Accesses(
                block=records.block[accessed],
                warp=records.warp[accessed],
                instruction=numbers[:split],
                execution=executions[:split],
                lane_mask=accesses["mask"],
                bytes=accesses["bytes"],
                space=accesses["space"],
                first_address=first,
                addresses=accesses["addresses"],
            ),
            Branches(
                block=records.block[branched],
                warp=records.warp[branched],
                instruction=numbers[split:],
                execution=executions[split:],
                active_mask=active,
                taken_mask=taken,
            ),
            Entries(
                block=records.block[entered],
                warp=records.warp[entered],
                basic_block=statics[records.site[entered]] if len(entered) else np.zeros(0, np.uint32),
                lane_mask=records.mask[entered],
            ),
        )

    def _sort_accesses(self) -> dict[str, Any]:
        parts = self._accesses
        record = _concatenate([one.record for one in parts], np.int64)
        lengths = [len(one.record) for one in parts]
        order = np.lexsort((np.repeat(np.array([one.order for one in parts], np.int64), lengths), record))
        mask = _concatenate([one.mask for one in parts], np.uint32)[order]
        lanes = np.concatenate([one.addresses for one in parts]) if parts else np.zeros((0, 32), np.uint64)
        return {
            "record": record[order],
            "mask": mask,
            "bytes": np.repeat(np.array([one.size_bytes for one in parts], np.uint8), lengths)[order],
            "space": np.repeat(np.array([one.space for one in parts], np.uint8), lengths)[order],
            "addresses": lanes[order][_list_lanes(mask)],
        }

    def _number(self, records: _Records, rows: npt.NDArray[np.int64], numbering: _Numbering) -> npt.NDArray[np.uint32]:
        """Instruction of each row, numbered by first occurrence."""
        keys = records.site[rows] * np.int64(len(self._kernel.paths) + 1) + np.minimum(
            records.way[rows], len(self._kernel.paths)
        )
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.zeros(len(unique), np.uint32)
        for place in np.argsort(rows[first], kind="stable").tolist():
            site, way = divmod(int(unique[place]), len(self._kernel.paths) + 1)
            numbers[place] = numbering.number(self._kernel.sites[site].static, way)
        out: npt.NDArray[np.uint32] = numbers[inverse]
        return out


def _count_executions(
    records: _Records, accessed: npt.NDArray[np.int64], branched: npt.NDArray[np.int64], numbers: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Number of earlier executions of each row's instruction by its warp."""
    rows = np.concatenate([accessed, branched])
    if not len(rows):
        return np.zeros(0, np.uint32)
    order = np.lexsort((np.arange(len(rows)), numbers, records.warp[rows], records.block[rows]))
    block, warp, number = records.block[rows][order], records.warp[rows][order], numbers[order]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (block[1:] != block[:-1]) | (warp[1:] != warp[:-1]) | (number[1:] != number[:-1])
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(rows)), 0))
    out = np.zeros(len(rows), np.uint32)
    out[order] = (np.arange(len(rows)) - starts).astype(np.uint32)
    return out


def _list_lanes(masks: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """bool[r, 32]."""
    out: npt.NDArray[np.bool_] = (masks[:, None] >> _LANES) & np.uint32(1) != 0
    return out


def _pack(lanes: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """uint32[r] of bool[r, 32]."""
    out: npt.NDArray[np.uint32] = (lanes.astype(np.uint32) << _LANES).sum(axis=1, dtype=np.uint32)
    return out


def _concatenate(parts: Sequence[npt.NDArray[Any]], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
