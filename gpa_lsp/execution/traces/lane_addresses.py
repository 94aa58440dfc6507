"""Rows of a trace as matrices of lane addresses, a chunk at a time so that memory stays bounded."""

from collections.abc import Iterator
from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.trace import Accesses, Trace
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.native.shared_library import Core, find_core
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord

WARP_LANES = 32  # Threads of a warp, on every architecture
FULL_MASK = 0xFFFFFFFF
CHUNK_ROWS = 1 << 13  # Rows whose addresses are looked at together: 2 MiB of them, what a core's cache holds

MOST_INSTRUCTIONS = 1 << 20
MOST_ARRAYS = (1 << 12) - 2  # A trace with more is refused: keys of sums hold both

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

_LANES = np.arange(WARP_LANES, dtype=np.int64)


class LaneMatrix(ColumnRecord, frozen=True, kw_only=True):
    """The addresses of n rows, one column per active lane, by ascending lane."""

    # uint64[n, 32]; columns from the row's count on repeat its last address, which changes no set of addresses
    addresses: npt.NDArray[np.uint64]
    lanes: Integers  # int64[n, 32], which lane a column is of; repeated as well
    counts: Integers  # int64[n], active lanes, 1..32


class LaneList(ColumnRecord, frozen=True, kw_only=True):
    """The m lane-level accesses of some rows, row by row, by ascending lane."""

    row: Integers  # int64[m], the trace's row
    lane: Integers  # int64[m], 0..31
    address: npt.NDArray[np.uint64]  # uint64[m]


def count_lanes(masks: npt.NDArray[np.uint32]) -> Integers:
    """int64[n], how many bits are set.

    >>> count_lanes(np.array([0, 1, 0xFFFFFFFF], dtype=np.uint32)).tolist()
    [0, 1, 32]
    """
    counts: Integers = np.bitwise_count(masks).astype(np.int64)
    return counts


def unpack_masks(masks: npt.NDArray[np.uint32]) -> Marks:
    """bool[n, 32], bit i of each mask in column i."""
    as_bytes = np.ascontiguousarray(masks, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").view(np.bool_)


def check_trace(trace: Trace) -> None:
    """See that a trace's indexes lead somewhere, before anything is looked up by them.

    Raises:
        InputError: a row names an instruction, a warp or an address the trace does not have, or has no lanes.
    """
    if len(trace.instructions) > MOST_INSTRUCTIONS or len(trace.buffers) > MOST_ARRAYS:
        raise InputError(
            f"a trace of {format_count(len(trace.instructions))} instructions and {format_count(len(trace.buffers))} arrays is too large",
            place=f"kernel {trace.kernel}",
            remedy=f"at most {format_count(MOST_INSTRUCTIONS)} instructions and {format_count(MOST_ARRAYS)} arrays can be analysed",
        )
    accesses, branches = trace.accesses, trace.branches
    for rows, name in ((accesses, "an access"), (branches, "a branch")):
        if len(rows) and int(rows.instruction.max()) >= len(trace.instructions):
            raise InputError(
                f"{name} names an instruction the trace does not have",
                place=f"kernel {trace.kernel}",
                remedy="record the trace again",
            )
    warps = -(-prod(trace.block_threads) // WARP_LANES)
    for column, name in ((accesses.warp, "an access"), (branches.warp, "a branch"), (trace.entries.warp, "an entry")):
        if len(column) and int(column.max()) >= warps:
            raise InputError(
                f"{name} names warp {int(column.max())} of {warps} in a block, counted from 0",
                place=f"kernel {trace.kernel}",
                remedy="record the trace again",
            )
    if not len(accesses):
        return
    lanes = count_lanes(accesses.lane_mask)
    if int(lanes.min()) == 0 or int(accesses.bytes.min()) == 0:
        raise InputError("an access has no lanes or no bytes", place=f"kernel {trace.kernel}", remedy="record it again")
    if int((accesses.first_address + lanes.astype(np.uint64)).max()) > len(accesses.addresses):
        raise InputError(
            "an access has fewer addresses than lanes", place=f"kernel {trace.kernel}", remedy="record the trace again"
        )


def split_rows(rows: Integers, most_rows: int = CHUNK_ROWS) -> Iterator[Integers]:
    """The rows in chunks of at most ``most_rows``."""
    for start in range(0, len(rows), most_rows):
        yield rows[start : start + most_rows]


def gather_lanes(accesses: Accesses, rows: Integers) -> LaneMatrix:
    """The addresses of some rows, packed to the left.

    Args:
        rows: int64[n], which; a chunk of :func:`split_rows`.
    """
    core = find_core()
    if core is not None:
        matrix = _gather_by_core(core, accesses, np.ascontiguousarray(rows, np.int64))
        if matrix is not None:
            return matrix
    masks = accesses.lane_mask[rows]
    first = accesses.first_address[rows].astype(np.int64)
    counts = count_lanes(masks)
    if (masks == FULL_MASK).all():
        columns = np.broadcast_to(_LANES, (len(rows), WARP_LANES))
        return LaneMatrix(addresses=accesses.addresses[first[:, None] + columns], lanes=columns, counts=counts)
    columns = np.minimum(_LANES, counts[:, None] - 1)
    lane = np.nonzero(unpack_masks(masks))[1]
    starts = np.cumsum(counts) - counts
    return LaneMatrix(
        addresses=accesses.addresses[first[:, None] + columns], lanes=lane[starts[:, None] + columns], counts=counts
    )


def _gather_by_core(core: Core, accesses: Accesses, rows: Integers) -> LaneMatrix | None:
    count = len(rows)
    addresses, lanes = np.empty((count, WARP_LANES), np.uint64), np.empty((count, WARP_LANES), np.int64)
    counts = np.empty(count, np.int64)
    masks, first, every = (
        np.ascontiguousarray(one) for one in (accesses.lane_mask, accesses.first_address, accesses.addresses)
    )
    if not core.has_done("gather_lanes", masks, first, every, len(every), rows, count, addresses, lanes, counts):
        return None
    return LaneMatrix(addresses=addresses, lanes=lanes, counts=counts)


def spread_lanes(matrix: LaneMatrix) -> tuple[npt.NDArray[np.uint64], Marks]:
    """The same addresses with a column per lane of the warp.

    Returns:
        uint64[n, 32] and bool[n, 32]: the address of each lane, and whether it is active; what is not active holds zero.
    """
    if int(matrix.counts.min(initial=WARP_LANES)) == WARP_LANES:
        return matrix.addresses, np.ones(matrix.addresses.shape, dtype=np.bool_)
    addresses = np.zeros_like(matrix.addresses)
    active = np.zeros(matrix.addresses.shape, dtype=np.bool_)
    core = find_core()
    if core is not None:
        columns = (np.ascontiguousarray(one) for one in (matrix.addresses, matrix.lanes, matrix.counts))
        if core.has_done("spread_lanes", *columns, len(matrix.counts), addresses, active):
            return addresses, active
    rows = np.arange(len(matrix.counts))[:, None]
    addresses[rows, matrix.lanes] = matrix.addresses
    active[rows, matrix.lanes] = True
    return addresses, active


def list_lanes(accesses: Accesses, rows: Integers) -> LaneList:
    """The lane-level accesses of some rows."""
    matrix = gather_lanes(accesses, rows)
    is_there = matrix.counts[:, None] > _LANES
    return LaneList(row=np.repeat(rows, matrix.counts), lane=matrix.lanes[is_there], address=matrix.addresses[is_there])


def pack_parts(values: npt.NDArray[np.generic], starts: Integers, counts: Integers) -> npt.NDArray[np.generic]:
    """Runs of a column as rows of 32, each filled up with its last value.

    >>> pack_parts(np.array([5, 6, 7]), np.array([0, 2]), np.array([2, 1]))[:, :3].tolist()
    [[5, 6, 6], [7, 7, 7]]
    """
    packed: npt.NDArray[np.generic] = values[starts[:, None] + np.minimum(_LANES, counts[:, None] - 1)]
    return packed
