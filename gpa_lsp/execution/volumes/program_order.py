"""When in its program a block loads what a neighbour loads too: :func:`add_delays`.

A thread of a long program goes through memory in the program's order: rows of a large box, one after the other. Its neighbours along x load what they
share at the same point of theirs, the next row of blocks loads it earlier, and neither comes at any time of a life. Loads that are under way
together have no order.
"""

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import LaunchShape, Triple
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups, Integers
from gpa_lsp.execution.volumes.model import SharedLoads

# Loads of a thread whose order tells nothing, since the compiler moves loads ahead and warps of a block are not in step. Assumed: stars whose threads
# load up to 40 times are known to touch what they share at any time, boxes of 121 loads and more are known not to.
LOADS_UNDER_WAY = 64

_AXES = "xyz"


def count_loads(entries: Iterable[ArrayGroups]) -> int:
    """Loads in the program of a thread; of loops those of one iteration."""
    return sum(len(group.constants_bytes) for entry in entries for group in entry.select(loads=True))


def find_window_ratio(loads_per_thread: int) -> float:
    """The part of a program within which loads have no order, 0..1.

    >>> find_window_ratio(25), find_window_ratio(256)
    (1.0, 0.25)
    """
    return min(1.0, LOADS_UNDER_WAY / max(1, loads_per_thread))


def add_delays(shared: Iterable[SharedLoads], entry: ArrayGroups, launch: LaunchShape) -> tuple[SharedLoads, ...]:
    """The same, with how much later the neighbours load what both load."""
    group = max(entry.select(loads=True), key=lambda one: len(one.constants_bytes), default=None)
    found = tuple(shared)
    if group is None or not found:
        return found
    sectors, first = _find_first_touches(group, launch.block)
    delays = [_find_delay(sectors, first, step) for step in group.find_block_steps(launch.block)]
    return tuple(replace(one, delay_ratio=delays[_AXES.index(one.axis)]) for one in found)


def _find_first_touches(group: AccessGroup, block: Triple) -> tuple[Integers, Integers]:
    """The sectors of a block, ascending, and the first access to each, in the order of the program."""
    x, y, z = (np.arange(size) * step for size, step in zip(block, group.find_thread_steps(), strict=True))
    threads = (x[:, None, None] + y[None, :, None] + z[None, None, :]).reshape(-1)
    sectors = (group.constants_bytes[:, None] + np.unique(threads // SECTOR_BYTES * SECTOR_BYTES)) // SECTOR_BYTES
    found, place = np.unique(sectors.reshape(-1), return_index=True)
    return found, place // sectors.shape[1]


def _find_delay(sectors: Integers, first: Integers, step_bytes: int) -> float:
    """Of a neighbour so far behind, as a part of the program; 0 where nothing is shared."""
    own = sectors - step_bytes // SECTOR_BYTES
    place = np.minimum(np.searchsorted(sectors, own), len(sectors) - 1)
    is_shared = sectors[place] == own
    if not step_bytes or not is_shared.any():
        return 0.0
    program = int(first.max()) + 1
    return float((first[place][is_shared] - first[is_shared]).mean()) / program
