"""Which array an address belongs to, and the parts of a request that go to different arrays."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.trace import Buffer
from gpa_lsp.execution.traces.lane_addresses import WARP_LANES, Integers, LaneMatrix, pack_parts
from gpa_lsp.execution.traces.model import OUTSIDE
from gpa_lsp.foundation.records import ColumnRecord


class ArrayIndex:
    """Finds arrays by address.

    Args:
        buffers: of the trace, in any order.

    Attributes:
        order: int64[n], the buffers by address.
        bases: uint64[n], their first addresses, ascending.
        ends: uint64[n], the addresses behind them.
    """

    def __init__(self, buffers: tuple[Buffer, ...]) -> None:
        self.order = np.array(sorted(range(len(buffers)), key=lambda one: buffers[one].base), dtype=np.int64)
        self.bases = np.array([buffers[one].base for one in self.order], dtype=np.uint64)
        self.ends = np.array([buffers[one].base + buffers[one].size_bytes for one in self.order], dtype=np.uint64)

    def find(self, addresses: npt.NDArray[np.uint64]) -> Integers:
        """int64 of the same shape: index into the buffers, or :data:`OUTSIDE`. The address of an access is its first byte's."""
        if len(self.order) == 0:
            return np.full(addresses.shape, OUTSIDE, dtype=np.int64)
        place = np.searchsorted(self.bases, addresses, side="right") - 1
        inside = (place >= 0) & (addresses < self.ends[place])
        return np.where(inside, self.order[place], OUTSIDE)


class ArrayParts(ColumnRecord, frozen=True, kw_only=True):
    """n parts of requests, each in one array.

    A request whose lanes go to one array is one part. Arrays begin at multiples of 512 bytes, so the lines and sectors of the parts add up to
    those of the request.
    """

    request: Integers  # int64[n], row of the matrix a part is of
    array: Integers  # int64[n]
    matrix: LaneMatrix  # its lanes


def split_by_array(index: ArrayIndex, matrix: LaneMatrix) -> ArrayParts:
    """The parts of some requests."""
    rows = np.arange(len(matrix.counts), dtype=np.int64)
    lowest, highest = index.find(matrix.addresses.min(axis=1)), index.find(matrix.addresses.max(axis=1))
    is_mixed = (lowest != highest) | (lowest == OUTSIDE)
    if not is_mixed.any():
        return ArrayParts(request=rows, array=lowest, matrix=matrix)
    whole, mixed = rows[~is_mixed], rows[is_mixed]
    is_there = np.arange(WARP_LANES) < matrix.counts[mixed, None]
    addresses, lanes = matrix.addresses[mixed][is_there], matrix.lanes[mixed][is_there]
    request = np.repeat(mixed, matrix.counts[mixed])
    array = index.find(addresses)
    order = np.lexsort((array, request))
    request, array = request[order], array[order]
    is_first = np.ones(len(request), dtype=np.bool_)
    is_first[1:] = (np.diff(request) != 0) | (np.diff(array) != 0)
    starts = np.flatnonzero(is_first)
    counts = np.diff(starts, append=len(request))
    return ArrayParts(
        request=np.concatenate([whole, request[starts]]),
        array=np.concatenate([lowest[whole], array[starts]]),
        matrix=LaneMatrix(
            addresses=np.concatenate(
                [matrix.addresses[whole], pack_parts(addresses[order], starts, counts).astype(np.uint64)]
            ),
            lanes=np.concatenate([matrix.lanes[whole], pack_parts(lanes[order], starts, counts).astype(np.int64)]),
            counts=np.concatenate([matrix.counts[whole], counts]),
        ),
    )
