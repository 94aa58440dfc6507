"""A trace's warp-level accesses taken apart into lanes, with who made each: :class:`LaneRows`."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.volumes.block_volumes import WARP_THREADS
from gpa_lsp.analyses.volumes.groups import Integers
from gpa_lsp.emulator.trace import Trace

VARIABLE_NAMES = ("thread x", "thread y", "thread z", "block x", "block y", "block z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRows:
    """n accesses of single lanes by one instruction, in the trace's order.

    Attributes:
        who: int64[n, 6], thread in block x, y, z and block x, y, z.
        thread: int64[n], number of the thread over all traced ones: block · threads of a block + thread.
        execution: int64[n], how often the warp had executed the instruction before.
        addresses: int64[n], first byte of each.
        request: int64[n], number of the warp-level access, ascending.
    """

    who: Integers
    thread: Integers
    execution: Integers
    addresses: Integers
    request: Integers


def expand_lanes(trace: Trace, rows: npt.NDArray[np.intp]) -> LaneRows:
    """Lanes of some rows of a trace's accesses."""
    found = trace.accesses
    masks = found.lane_mask[rows]
    is_active = (masks[:, np.newaxis] >> np.arange(WARP_THREADS, dtype=np.uint32)) & 1
    request, lane = np.nonzero(is_active)
    rank = np.cumsum(is_active, axis=1, dtype=np.int64)[request, lane] - 1
    places = found.first_address[rows].astype(np.int64)[request] + rank
    thread = found.warp[rows].astype(np.int64)[request] * WARP_THREADS + lane
    block = found.block[rows].astype(np.int64)[request]
    size, grid = trace.block_threads, trace.grid
    who = np.stack([*split_index(thread, size), *split_index(block, grid)], axis=1)
    return LaneRows(
        who=who,
        thread=block * (size[0] * size[1] * size[2]) + thread,
        execution=found.execution[rows].astype(np.int64)[request],
        addresses=found.addresses[places].astype(np.int64),
        request=request.astype(np.int64),
    )


def split_index(index: Integers, size: tuple[int, int, int]) -> tuple[Integers, Integers, Integers]:
    """Linear indexes, x fastest, as x, y, z.

    >>> [column.tolist() for column in split_index(np.array([0, 5, 11]), (4, 2, 2))]
    [[0, 1, 3], [0, 1, 0], [0, 0, 1]]
    """
    return index % size[0], index // size[0] % size[1], index // (size[0] * size[1])
