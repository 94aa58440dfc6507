"""Which threads made an access: all of them, a box of global indexes, or some others: :func:`find_region`."""

from math import prod

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.volumes.expressions import ThreadRegion, Triple
from gpa_lsp.execution.volumes.groups import Integers
from gpa_lsp.execution.volumes.lane_rows import RowLanes, split_index


class Activity(Struct, frozen=True, kw_only=True):
    """Which of the traced threads made an access."""

    region: ThreadRegion | None  # a box of global indexes; None when all did, or they are no box
    ratio: float  # of the threads in that box (of all traced ones without a box) that did: 1 where the box says it all


def list_traced(trace: Trace) -> Integers:
    """Global indexes of every traced thread, int64[threads, 3], by block."""
    size = trace.block_threads
    threads = np.stack(split_index(np.arange(prod(size), dtype=np.int64), size), axis=1)
    blocks = np.stack(split_index(trace.traced_blocks.astype(np.int64), trace.grid), axis=1)
    places: Integers = (blocks[:, np.newaxis, :] * np.array(size) + threads).reshape(-1, 3)
    return places


def find_region(lanes: RowLanes, trace: Trace) -> Activity:
    """Who made an access, from who did among the traced threads.

    A side of the box that coincides with the traced threads' own is taken as open: nothing beyond it was seen to be left out.
    """
    threads = np.flatnonzero(lanes.executions)
    if len(threads) == prod(trace.block_threads) * len(trace.traced_blocks):
        return Activity(region=None, ratio=1.0)
    traced = list_traced(trace)
    size = np.array(trace.block_threads, dtype=np.int64)
    who = np.stack(lanes.place_threads(threads), axis=1)
    active = who[:, 3:] * size + who[:, :3]
    low, high = active.min(axis=0), active.max(axis=0) + 1
    inside = np.all((traced >= low) & (traced < high), axis=1)
    if np.count_nonzero(inside) != len(threads):
        return Activity(region=None, ratio=len(threads) / len(traced))
    extent = np.array(trace.grid, dtype=np.int64) * size
    lows = np.where(low == traced.min(axis=0), 0, low)
    highs = np.where(high == traced.max(axis=0) + 1, extent, high)
    return Activity(region=ThreadRegion(low=_triple(lows), high=_triple(highs)), ratio=1.0)


def _triple(values: Integers) -> Triple:
    x, y, z = values.tolist()
    return (x, y, z)
