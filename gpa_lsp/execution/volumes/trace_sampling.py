"""A trace's warp-level accesses by lane (:class:`RowLanes`, :class:`LaneRows`), and counts over traced blocks, for accesses without an expression
(:func:`sample_instruction`) and for shared memory.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction, bypasses_l1
from gpa_lsp.code.symbolic_accesses.requests import (
    LINE_BYTES,
    SECTOR_BYTES,
    WARP_LANES,
    count_request_cycles,
    count_wavefronts,
)
from gpa_lsp.execution.accesses.l2_traffic import place_block
from gpa_lsp.execution.accesses.lane_addresses import list_lanes, pack_lanes, spread_lanes
from gpa_lsp.execution.accesses.request_kinds import RequestKinds, find_equal_rows
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.volumes.expressions import AccessedArray, FirstTouched, SampledAccess
from gpa_lsp.execution.volumes.groups import Integers, list_distinct
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.records import ColumnRecord

VARIABLE_NAMES = ("thread x", "thread y", "thread z", "block x", "block y", "block z")
_LANE_BITS = WARP_LANES.bit_length() - 1


class RowLanes:
    """The n lanes of some warp-level accesses, row by row by ascending lane: their threads and blocks, not their addresses.

    Args:
        trace: the rows are of.
        rows: of its accesses.

    Attributes:
        masks: uint32[rows], the lanes of each.
        count: n.
        slot: int64[rows], place of the row's block among those the rows are of.
        warp: int64[rows], within its block.
        execution: int64[rows], how often the warp had executed the instruction before.
    """

    def __init__(self, trace: Trace, rows: npt.NDArray[np.intp]) -> None:
        found = trace.accesses
        self._block_threads, self._grid = trace.block_threads, trace.grid
        self.masks = np.ascontiguousarray(found.lane_mask[rows], dtype="<u4")
        self._ends = np.cumsum(np.bitwise_count(self.masks), dtype=np.int64)
        self.count = int(self._ends[-1]) if len(rows) else 0
        self._blocks, self.slot = np.unique(found.block[rows].astype(np.int64), return_inverse=True)
        self.warp = found.warp[rows].astype(np.int64)
        self.execution = found.execution[rows].astype(np.int64)

    @cached_property
    def request(self) -> Integers:
        """int64[n], place of the row of each lane."""
        return self._places >> _LANE_BITS

    @cached_property
    def lane(self) -> Integers:
        """int64[n], 0..31."""
        return self._places & (WARP_LANES - 1)

    @cached_property
    def _places(self) -> Integers:
        return np.flatnonzero(np.unpackbits(self.masks.view(np.uint8), bitorder="little"))

    @cached_property
    def columns(self) -> Integers:
        """int64[n, 7], see :meth:`list_columns`."""
        return self.list_columns(self.request, self.lane)

    @property
    def thread(self) -> Integers:
        """int64[n], see :meth:`number_threads`."""
        return self.number_threads(self.request, self.lane)

    @cached_property
    def executions(self) -> Integers:
        """int64[threads]: number of the lanes that belong to each thread, by the thread's number."""
        warps_per_block = -(-prod(self._block_threads) // WARP_LANES)
        warps = self.slot * warps_per_block + self.warp
        pairs, times = np.unique(warps << WARP_LANES | self.masks, return_counts=True)
        masks = (pairs & 0xFFFF_FFFF).astype("<u4")
        place = np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little"))
        pair, lane = place >> _LANE_BITS, place & (WARP_LANES - 1)
        slot, warp = np.divmod(pairs[pair] >> WARP_LANES, warps_per_block)
        thread = slot * prod(self._block_threads) + (warp << _LANE_BITS) + lane
        found: Integers = np.bincount(thread, weights=times[pair]).astype(np.int64)
        return found

    def number_threads(self, request: Integers, lane: Integers) -> Integers:
        """Numbers of the threads of some lanes: place of the block among those the rows are of · threads of a block + thread."""
        return self.slot[request] * prod(self._block_threads) + (self.warp[request] << _LANE_BITS) + lane

    def place_threads(self, thread: Integers) -> tuple[Integers, ...]:
        """Index in its block and index of its block in x, y and z, of threads by number."""
        slot, own = np.divmod(thread, prod(self._block_threads))
        return *place_block(self._block_threads, own), *place_block(self._grid, self._blocks[slot])

    def list_columns(self, request: Integers, lane: Integers, trips: Sequence[int] = (1,)) -> Integers:
        """Variables that the addresses of some lanes may depend on, int64[k, 6 + loops]: thread, block and loop counters.

        The counters come from how often the warp had executed the instruction before.
        """
        who = np.stack(self.place_threads(self.number_threads(request, lane)), axis=1)
        return np.concatenate([who, split_executions(self.execution[request], trips)], axis=1)

    def pick(self, places: Integers) -> tuple[Integers, Integers]:
        """Row and lane of some of the n lanes."""
        request = np.searchsorted(self._ends, places, side="right")
        rank = places - (self._ends[request] - np.bitwise_count(self.masks[request]))
        is_there = np.unpackbits(self.masks[request].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        return request, np.argmax(np.cumsum(is_there, axis=1) > rank[:, np.newaxis], axis=1)

    def list_thread(self, thread: int) -> tuple[Integers, Integers]:
        """Rows and lanes of one thread, by its number."""
        slot, own = divmod(thread, prod(self._block_threads))
        warp, lane = divmod(own, WARP_LANES)
        request = np.flatnonzero((self.slot == slot) & (self.warp == warp) & (self.masks >> np.uint32(lane) & 1 == 1))
        return request, np.full(len(request), lane, dtype=np.int64)

    @cached_property
    def first_lane(self) -> Integers:
        """int64[rows], the first lane of each row."""
        masks = self.masks.astype(np.int64)
        found: Integers = np.bitwise_count((masks & -masks) - 1).astype(np.int64)
        return found

    @cached_property
    def first_columns(self) -> Integers:
        """int64[rows, 7], :meth:`list_columns` of the first lane of each row."""
        return self.list_columns(np.arange(len(self.masks)), self.first_lane)

    def rank(self, request: Integers, lane: Integers) -> Integers:
        """Place of some lanes among those of their rows."""
        below = self.masks[request].astype(np.int64) & ((1 << lane) - 1)
        found: Integers = np.bitwise_count(below).astype(np.int64)
        return found


class LaneRows(ColumnRecord, frozen=True, kw_only=True):
    """The warp-level accesses of one instruction, with their addresses."""

    trace: Trace  # the rows are of
    rows: npt.NDArray[np.intp]  # intp[requests], its warp-level accesses
    lanes: RowLanes  # who makes them; other instructions may have the same

    def read(self, request: Integers, lane: Integers) -> Integers:
        """Addresses of some lanes, int64: first byte of each."""
        found = self.trace.accesses
        places = found.first_address[self.rows[request]].astype(np.int64) + self.lanes.rank(request, lane)
        addresses: Integers = found.addresses[places].astype(np.int64)
        return addresses

    def read_all(self) -> Integers:
        """Addresses of all lanes, int64[n]."""
        addresses: Integers = list_lanes(self.trace.accesses, self.rows).address.view(np.int64)
        return addresses

    def find_ends(self, kinds: RequestKinds) -> tuple[int, int]:
        """The lowest and the highest of all addresses."""
        chosen = np.zeros(len(kinds.rows), dtype=np.bool_)
        chosen[kinds.kind[self.rows]] = True  # those of one instruction, whose rows these all are
        return int(kinds.lowest[chosen].min()), int(kinds.highest[chosen].max())

    def are_given(
        self, kinds: RequestKinds, base: int, constant: int, steps: Integers, trips: Sequence[int] = (1,)
    ) -> bool:
        """Whether a constant and coefficients give every address: of all lanes, or of the first lane of each row, and of all lanes of one row for
        each shape and warp, as the others differ from these by thread alone.

        Args:
            steps: int64[6 + loops].
        """
        lanes = self.lanes
        every = np.arange(len(self.rows))
        columns = lanes.first_columns if len(trips) == 1 else lanes.list_columns(every, lanes.first_lane, trips)
        if not gives_all(columns, kinds.base[self.rows] - base, constant, steps):
            return False
        chosen = find_equal_rows(kinds.shape[self.rows], lanes.warp).first
        masks = lanes.masks[chosen]
        place = np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little"))
        request, lane = chosen[place >> _LANE_BITS], place & (WARP_LANES - 1)
        return gives_all(lanes.list_columns(request, lane, trips), self.read(request, lane) - base, constant, steps)


MOST_EXAMPLES = 384  # Rows that coefficients are solved from; all are verified
_LARGEST = float(1 << 52)  # Differences of addresses beyond this are not exact in double precision
MOST_LOOPS = 4


def pick_examples(count: int) -> Integers:
    """Rows to solve from: the first, the last, and others drawn at random, always the same ones."""
    if count <= MOST_EXAMPLES:
        return np.arange(count, dtype=np.int64)
    return _draw_examples(count)


@lru_cache(maxsize=64)
def _draw_examples(count: int) -> Integers:
    drawn = np.random.default_rng(0).choice(count, size=MOST_EXAMPLES - 2, replace=False)
    examples = list_distinct(np.concatenate([[0, count - 1], drawn]))
    examples.flags.writeable = False
    return examples


def find_independent(columns: Integers) -> list[int]:
    """Columns that tell something the columns before them do not, by modified Gram-Schmidt; a constant column tells nothing.

    Args:
        columns: int64[n, variables].
    """
    centred = columns.astype(np.float64) - columns.mean(axis=0)
    basis: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    kept = []
    for index in range(columns.shape[1]):
        vector = centred[:, index]
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            continue
        for other in basis:
            vector = vector - other * float(other @ vector)
        left = float(np.linalg.norm(vector))
        if left > 1e-7 * length:
            basis.append(vector / left)
            kept.append(index)
    return kept


def solve_affine(columns: Integers, addresses: Integers, kept: Sequence[int]) -> tuple[int, Integers] | None:
    """The constant and the coefficients that come nearest to some addresses, which may give them or not; None when there are none.

    Args:
        columns: int64[n, variables], the value of each variable in each example.
        addresses: int64[n], n ≥ 1.

    >>> rows = np.array([[0, 0], [1, 0], [2, 1], [0, 3]])
    >>> constant, steps = solve_affine(rows, 100 + 8 * rows[:, 0] - 40 * rows[:, 1], [0, 1])
    >>> constant, steps.tolist()
    (100, [8, -40])
    """
    base = int(addresses[0])
    targets = (addresses - base).astype(np.float64)
    if float(np.abs(targets).max()) > _LARGEST:
        return None
    design = np.concatenate([columns[:, list(kept)], np.ones((len(columns), 1), dtype=np.int64)], axis=1)
    solution = np.linalg.lstsq(design.astype(np.float64), targets, rcond=None)[0]
    if not np.all(np.isfinite(solution)) or float(np.abs(solution).max()) > _LARGEST:
        return None
    rounded = np.rint(solution).astype(np.int64)
    steps = np.zeros(columns.shape[1], dtype=np.int64)
    steps[list(kept)] = rounded[:-1]
    return base + int(rounded[-1]), steps


def gives_all(columns: Integers, addresses: Integers, constant: int, steps: Integers) -> bool:
    """Whether a constant and coefficients give every address."""
    # Column by column: numpy multiplies matrices of integers several times slower.
    given = np.full(len(addresses), constant, dtype=np.int64)
    for index in np.flatnonzero(steps).tolist():
        given += columns[:, index] * steps[index]
    return np.array_equal(given, addresses)


def find_trips(addresses: Integers, *, is_cut: bool = False) -> tuple[int, ...] | None:
    """Trips of the loops, innermost first, that one thread's addresses in the order of execution come from; None when they come from none.

    The innermost loop ends where the step changes for the first time; what is left is looked at in the same way.

    Args:
        addresses: int64[n].

    >>> find_trips(np.array([0, 8, 16, 100, 108, 116])), find_trips(np.array([0, 8, 16])), find_trips(np.array([0, 8, 9, 2]))
    ((3, 2), (3,), None)
    >>> find_trips(np.array([0, 8, 16, 100, 108, 116, 200]), is_cut=True)
    (3, 3)
    """
    trips: list[int] = []
    while len(addresses) > 1:
        steps = np.diff(addresses)
        changes = np.flatnonzero(steps != steps[0])
        inner = int(changes[0]) + 1 if len(changes) else len(addresses)
        whole = len(addresses) // inner * inner
        rest = addresses[whole:]
        if inner < 2 or (len(rest) and not is_cut) or len(trips) == MOST_LOOPS:
            return None
        rows = addresses[:whole].reshape(-1, inner)
        if not np.array_equal(np.diff(rows, axis=1), np.broadcast_to(steps[: inner - 1], (len(rows), inner - 1))):
            return None
        if not np.array_equal(np.diff(rest), steps[: max(0, len(rest) - 1)]):
            return None
        trips.append(inner)
        addresses = np.concatenate([rows[:, 0], rest[:1]])
    return tuple(trips)


def split_executions(executions: Integers, trips: Sequence[int]) -> Integers:
    """Counters of nested loops, int64[n, loops], from how often something was executed before; the innermost first.

    >>> split_executions(np.array([0, 1, 2, 5]), (3, 2)).tolist()
    [[0, 0], [1, 0], [2, 0], [2, 1]]
    """
    columns, left = [], executions
    for count in trips[:-1]:
        columns.append(left % count)
        left = left // count
    columns.append(left)
    return np.stack(columns, axis=1)


SECTOR_BITS = 44  # Bits of a sector's number: addresses have 49
_LINE_SECTOR_BITS = (LINE_BYTES // SECTOR_BYTES).bit_length() - 1
# Warp-level accesses of shared memory that conflicts are counted in; of more, every n-th is taken
_MOST_SHARED_ROWS = 1 << 14


def sample_instruction(
    trace: Trace, instruction: StaticInstruction, lanes: LaneRows, array: int | None, why: Sentence
) -> SampledAccess:
    """Count the accesses of one instruction in the traced blocks."""
    blocks = len(trace.traced_blocks)
    threads = prod(trace.block_threads)
    warps = -(-threads // WARP_LANES) * blocks
    width = max(1, int(trace.accesses.bytes[lanes.rows[0]]))
    requests = len(lanes.rows)
    addresses = lanes.read_all()
    sectors = addresses // SECTOR_BYTES
    of_request = lanes.lanes.request << SECTOR_BITS
    of_block = lanes.lanes.slot[lanes.lanes.request] << SECTOR_BITS
    block_sectors = len(list_distinct(of_block | sectors))
    return SampledAccess(
        array=array,
        kind=instruction.kind or AccessKind.LOAD,
        element_bytes=width,
        executions=len(addresses) / (threads * blocks),
        sectors_per_request=len(list_distinct(of_request | sectors)) / requests,
        cycles_per_request=float(
            count_request_cycles(pack_lanes(trace.accesses, lanes.rows).view(np.int64), width).mean()
        ),
        requests_per_warp=requests / warps,
        block_sectors=block_sectors / blocks,
        block_lines=len(list_distinct(of_block | (addresses // LINE_BYTES))) / blocks,
        distinct_ratio=len(list_distinct(sectors)) / block_sectors,
        instruction=instruction.index,
        why=why,
        bypasses_l1=bypasses_l1(instruction),
    )


def find_touched(trace: Trace, lanes: LaneRows) -> Integers:
    """int64[n]: the sectors that each traced block touches with one instruction, as places of blocks and numbers of sectors together."""
    places = np.searchsorted(trace.traced_blocks, trace.accesses.block[lanes.rows]).astype(np.int64)
    return list_distinct((places[lanes.lanes.request] << SECTOR_BITS) | (lanes.read_all() // SECTOR_BYTES))


def share_sectors(
    sampled: Sequence[SampledAccess], touched: Mapping[int, Integers], blocks: int
) -> tuple[SampledAccess, ...]:
    """Accesses with the sectors that each touches first: unrolled ones touch the same sectors, which are moved once.

    Args:
        touched: of :func:`find_touched`, by instruction.
    """
    reads, writes = _Touched(blocks), _Touched(blocks)
    found = {one.instruction: one for one in sampled}
    # What L1 keeps comes first: it is what a block asks for once.
    for one in sorted(sampled, key=lambda access: (access.kind is not AccessKind.LOAD, access.bypasses_l1)):
        keys = touched[one.instruction]
        found[one.instruction] = replace(
            one,
            read=None if one.kind is AccessKind.STORE else reads.take(keys),
            written=None if one.kind is AccessKind.LOAD else writes.take(keys),
        )
    return tuple(found[one.instruction] for one in sampled)


class _Touched:
    """Sectors, lines and pairs of sectors that the accesses of one direction have touched so far."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._sectors = self._lines = self._of_any = self._pairs = np.zeros(0, dtype=np.int64)

    def take(self, keys: Integers) -> FirstTouched:
        """Add the sectors of an access, and count those that are new."""
        before = self._count()
        of_any = keys & ((1 << SECTOR_BITS) - 1)
        self._sectors = np.union1d(self._sectors, keys)
        self._lines = np.union1d(self._lines, keys >> _LINE_SECTOR_BITS)
        self._of_any = np.union1d(self._of_any, of_any)
        self._pairs = np.union1d(self._pairs, of_any >> 1)
        sectors, lines, own, pairs = (
            (now - then) / self._blocks for now, then in zip(self._count(), before, strict=True)
        )
        return FirstTouched(block_sectors=sectors, block_lines=lines, wave_sectors=own, wave_pairs=pairs)

    def _count(self) -> tuple[int, int, int, int]:
        return len(self._sectors), len(self._lines), len(self._of_any), len(self._pairs)


def count_shared_cycles(trace: Trace, ratios: npt.NDArray[np.float64] | None = None) -> float:
    """Cycles of L1's data pipe for one warp's accesses of shared memory, mean of the traced warps.

    Args:
        ratios: float64[instructions], executions of a block, of those in the trace (:func:`compare_executions`); None where they are as many.
    """
    rows = np.flatnonzero(trace.accesses.space == int(Space.SHARED))
    if not len(rows):
        return 0.0
    taken = rows[:: -(-len(rows) // _MOST_SHARED_ROWS)]
    kinds = np.array([AccessKind.LOAD if one.kind is None else one.kind for one in trace.instructions], dtype=np.int8)
    total = 0.0
    widths = trace.accesses.bytes[taken]
    for width in list_distinct(widths).tolist():
        own = taken[widths == width]
        lanes = spread_lanes(trace.accesses, own)
        total += float(count_wavefronts(*lanes, max(1, width), kinds[trace.accesses.instruction[own]])[0].sum())
    warps = -(-prod(trace.block_threads) // WARP_LANES) * len(trace.traced_blocks)
    executed = len(rows) if ratios is None else float(ratios[trace.accesses.instruction[rows]].sum())
    return total * executed / len(taken) / warps


_FOLLOWED = (Space.GLOBAL, Space.GENERIC, Space.TEXTURE)


class Continuation(ColumnRecord, frozen=True, kw_only=True):
    """Executions of instructions beyond those in a trace."""

    most_executions: int  # of an instruction by a warp that are in the trace
    # float64[instructions], at least 1: executions by threads in all, of those in the trace
    ratios: npt.NDArray[np.float64]

    def lengthen(self, instruction: int, trips: Sequence[int], executions: float) -> tuple[int, ...]:
        """Trips of loops, the innermost first, of which the outermost goes on.

        >>> Continuation(most_executions=8, ratios=np.array([2.5])).lengthen(0, (4, 2), 8)
        (4, 5)
        """
        *inner, outer = trips
        return *inner, max(outer, round(executions * float(self.ratios[instruction]) / prod(inner)))


def has_all_first(trace: Trace) -> bool:
    """Whether of each access of a trace's blocks, as far as they ran, all executions are there, or the first ones."""
    return trace.is_complete or trace.most_executions is not None


def compare_executions(
    trace: Trace, lane_executions: npt.NDArray[np.int64], blocks: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Compare the executions of a block that were counted with those in a trace, instruction by instruction.

    Args:
        lane_executions: int64[instructions], by threads, of whole blocks.
        blocks: at least 1.

    Returns:
        float64[n], the ratio of both for each instruction of the trace, 1 for those that have no access in it; and bool[n], those of them
        that were counted.
    """
    # Ways to called functions have numbers of their own, and are counted together.
    own = np.array([one.index if one.same_as is None else one.same_as for one in trace.instructions], dtype=np.int64)
    lanes = np.bitwise_count(trace.accesses.lane_mask).astype(np.float64)
    traced = np.bincount(own[trace.accesses.instruction], weights=lanes, minlength=len(own)) / len(trace.traced_blocks)
    counted = np.zeros(len(own))
    counted[: len(lane_executions)] = lane_executions / blocks
    ratios = np.divide(counted, traced, out=np.ones(len(own)), where=traced > 0)
    return ratios[own], ((counted > 0) & (traced == 0))[own]


def continue_trace(trace: Trace, lane_executions: npt.NDArray[np.int64], blocks: int) -> Continuation | None:
    """Compare a trace with what was counted (:func:`compare_executions`); None where what was counted cannot be told from it."""
    if not has_all_first(trace) or not blocks or not len(trace.accesses.instruction):
        return None
    ratios, are_missing = compare_executions(trace, lane_executions, blocks)
    if any(are_missing[one.index] and one.kind is not None and one.space in _FOLLOWED for one in trace.instructions):
        return None
    return Continuation(most_executions=int(trace.accesses.execution.max()) + 1, ratios=np.maximum(1.0, ratios))


def count_growth(lanes: LaneRows, continuation: Continuation, instruction: int, whole: int) -> float:
    """Sectors a block touches with an instruction in all, of those it touches in the trace: at least 1.

    Approximation: what is new in each further quarter of as many executions as the trace has goes on as from its third to its fourth: as many where
    they walk on, fewer where they are drawn from what was touched before.
    """
    request, most = lanes.lanes.request, int(lanes.lanes.execution.max()) + 1
    keys = (lanes.lanes.slot[request] << SECTOR_BITS) | (lanes.read_all() // SECTOR_BYTES)
    execution = lanes.lanes.execution[request]
    half, later = (len(list_distinct(keys[execution < most * quarters // 4])) for quarters in (2, 3))
    third, fourth = later - half, whole - later
    kept = min(1.0, fourth / third) if third else 1.0
    ratio = float(continuation.ratios[instruction])
    further = 4 * (ratio - 1)
    times = further if kept == 1.0 else kept * (1 - kept**further) / (1 - kept)
    return min(ratio, 1 + fourth * times / whole)


def continue_sampled(
    sampled: Sequence[SampledAccess],
    continuation: Continuation,
    growths: Mapping[int, float],
    arrays: Sequence[AccessedArray],
) -> tuple[SampledAccess, ...]:
    """Counts over a trace, extended by the executions that follow it.

    Args:
        growths: of :func:`count_growth`, by instruction.
    """
    shares = [_find_room([one for one in sampled if one.array == n], growths, one) for n, one in enumerate(arrays)]
    bounded = {
        one.instruction: 1 + (growths[one.instruction] - 1) * (1.0 if one.array is None else shares[one.array])
        for one in sampled
    }
    return tuple(
        replace(
            one,
            executions=one.executions * float(continuation.ratios[one.instruction]),
            requests_per_warp=one.requests_per_warp * float(continuation.ratios[one.instruction]),
            block_sectors=one.block_sectors * bounded[one.instruction],
            block_lines=one.block_lines * bounded[one.instruction],
            read=_grow(one.read, bounded[one.instruction]),
            written=_grow(one.written, bounded[one.instruction]),
        )
        for one in sampled
    )


def _find_room(sampled: Sequence[SampledAccess], growths: Mapping[int, float], array: AccessedArray) -> float:
    """Part of the growth of one array's accesses that the array has room for, 0..1."""
    if array.size_bytes is None:
        return 1.0
    share, most = 1.0, array.size_bytes / SECTOR_BYTES + 1
    for touched in ([one.read for one in sampled], [one.written for one in sampled]):
        pairs = [
            (one.block_sectors, growths[own.instruction]) for one, own in zip(touched, sampled, strict=True) if one
        ]
        now, grown = sum(sectors for sectors, _ in pairs), sum(sectors * growth for sectors, growth in pairs)
        if grown > most:
            share = min(share, max(0.0, most - now) / (grown - now))
    return share


def _grow(touched: FirstTouched | None, growth: float) -> FirstTouched | None:
    if touched is None:
        return None
    return FirstTouched(
        block_sectors=touched.block_sectors * growth,
        block_lines=touched.block_lines * growth,
        wave_sectors=touched.wave_sectors * growth,
        wave_pairs=touched.wave_pairs * growth,
    )
