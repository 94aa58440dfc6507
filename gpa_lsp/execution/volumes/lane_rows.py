"""A trace's warp-level accesses by lane, with who made each: :class:`RowLanes`, and what each accessed: :class:`LaneRows`."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.accesses.l2_traffic import place_block
from gpa_lsp.execution.accesses.lane_addresses import list_lanes
from gpa_lsp.execution.accesses.request_kinds import RequestKinds, find_equal_rows
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.volumes.groups import Integers, list_distinct
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
