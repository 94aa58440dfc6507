"""A trace's warp-level accesses taken apart into lanes, with who made each: :class:`LaneRows`."""

from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import Trace
from gpa_lsp.native.shared_library import find_core
from gpa_lsp.volumes.block_volumes import WARP_THREADS
from gpa_lsp.volumes.groups import Integers

VARIABLE_NAMES = ("thread x", "thread y", "thread z", "block x", "block y", "block z")
_LANE_BITS = WARP_THREADS.bit_length() - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRows:
    """n accesses of single lanes by one instruction, in the trace's order.

    Attributes:
        rows: intp[requests], the warp-level accesses they are of, as rows of the trace.
        columns: int64[n, 7], what an address may be a function of: thread in block x, y, z, block x, y, z, and how often the warp had executed
            the instruction before.
        thread: int64[n], number of the thread: place of its block among those the rows are of · threads of a block + thread.
        addresses: int64[n], first byte of each.
        request: int64[n], place of the warp-level access in ``rows``, ascending.
        rank: int64[n], place among the lanes of its warp-level access.
    """

    rows: npt.NDArray[np.intp]
    columns: Integers
    thread: Integers
    addresses: Integers
    request: Integers
    rank: Integers

    @property
    def who(self) -> Integers:
        """Thread and block, int64[n, 6]."""
        return self.columns[:, : len(VARIABLE_NAMES)]

    @property
    def execution(self) -> Integers:
        """How often the warp had executed the instruction before, int64[n]."""
        return self.columns[:, len(VARIABLE_NAMES)]


def expand_lanes(trace: Trace, rows: npt.NDArray[np.intp]) -> LaneRows:
    """Lanes of some rows of a trace's accesses."""
    found = trace.accesses
    masks = np.ascontiguousarray(found.lane_mask[rows], dtype="<u4")
    place = np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little"))
    request, lane = place >> _LANE_BITS, place & (WARP_THREADS - 1)
    counts = np.bitwise_count(masks).astype(np.int64)
    rank = np.arange(len(place)) - (np.cumsum(counts) - counts)[request]
    thread = (found.warp[rows].astype(np.int64) << _LANE_BITS)[request] + lane
    blocks, slots = np.unique(found.block[rows].astype(np.int64), return_inverse=True)
    # Indexes are divided once for every thread of a block and for every block, and not for every lane.
    threads = split_index(np.arange(int(thread.max(initial=0)) + 1), trace.block_threads)
    parts = (
        *(part[thread] for part in threads),
        *(part[slots][request] for part in split_index(blocks, trace.grid)),
        found.execution[rows].astype(np.int64)[request],
    )
    return LaneRows(
        rows=rows,
        columns=np.stack(parts).T,
        thread=(slots * prod(trace.block_threads))[request] + thread,
        addresses=read_addresses(trace, rows, request, rank),
        request=request,
        rank=rank,
    )


def read_addresses(trace: Trace, rows: npt.NDArray[np.intp], request: Integers, rank: Integers) -> Integers:
    """Addresses int64[n] of all lanes of some rows, row by row: by the place of their row among these and theirs among its lanes."""
    found, core = trace.accesses, find_core()
    if core is not None:
        joined = np.empty(len(request), np.int64)
        columns = (np.ascontiguousarray(one) for one in (found.lane_mask, found.first_address, found.addresses))
        chosen = np.ascontiguousarray(rows, np.int64)
        used = core.call("join_addresses", *columns, len(found.addresses), chosen, len(chosen), joined, len(joined))
        if used == len(joined):
            return joined
    places = found.first_address[rows].astype(np.int64)[request] + rank
    addresses: Integers = found.addresses[places].astype(np.int64)
    return addresses


def fill_requests(trace: Trace, rows: npt.NDArray[np.intp]) -> Integers:
    """Addresses int64[requests, 32] of some rows; lanes that were not there repeat the first one's."""
    found = trace.accesses
    rank = np.arange(WARP_THREADS, dtype=np.int64)
    is_there = rank < np.bitwise_count(found.lane_mask[rows])[:, np.newaxis]
    places = found.first_address[rows].astype(np.int64)[:, np.newaxis] + rank * is_there
    addresses: Integers = found.addresses[places].astype(np.int64)
    return addresses


def split_index(index: Integers, size: tuple[int, int, int]) -> tuple[Integers, Integers, Integers]:
    """Linear indexes, x fastest, as x, y, z.

    >>> [column.tolist() for column in split_index(np.array([0, 5, 11]), (4, 2, 2))]
    [[0, 1, 3], [0, 1, 0], [0, 0, 1]]
    """
    return index % size[0], index // size[0] % size[1], index // (size[0] * size[1])
