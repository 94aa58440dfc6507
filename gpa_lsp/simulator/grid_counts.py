"""Executions over a grid of one axis, by blocks that stand for others: :func:`count_grid`.

Loops that stride over the grid and guards at the end of data make blocks differ by their index alone: up to some block all do the same, and behind it
all do less. So blocks between two that execute the same are taken to do so as well, and between two that do not, some are looked at, until it is
known where they change. What warps execute decides; lanes, which differ more often, are taken to change evenly.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]
"""float64[2, r]: executions of each row by the warps of a block, and by their lanes."""

MOST_BLOCKS = 96
"""Looked at: enough for a few changes in a large grid."""
_PARTS = 4
"""Into which the blocks between two are divided: blocks that are looked at together take little more time than one."""


def count_grid(
    blocks: int, known: Mapping[int, Counts], look: Callable[[Sequence[int]], Mapping[int, Counts]]
) -> Counts | None:
    """Executions of all blocks; where they change too often, as if they changed evenly between those that were looked at.

    Args:
        blocks: in the grid.
        known: counts of some of them, by index.
        look: gives the counts of further blocks, without those for which it has none.

    Returns:
        None where the first or the last block is not known.
    """
    found = dict(known)
    wanted = [one for one in (0, blocks - 1) if one not in found]
    while wanted and len(found) + len(wanted) <= MOST_BLOCKS:
        seen = look(wanted)
        found.update(seen)
        if len(seen) < len(wanted):
            break
        wanted = [
            one
            for first, last in pairwise(sorted(found))
            if not np.array_equal(found[first][0], found[last][0])
            for one in _divide(first, last)
        ]
    if not {0, blocks - 1} <= found.keys():
        return None
    total: Counts = np.sum([*found.values()], axis=0)
    for first, last in pairwise(sorted(found)):
        total += (last - first - 1) * (found[first] + found[last]) / 2
    return total


def _divide(first: int, last: int) -> Sequence[int]:
    """Blocks between two that part those between them evenly; none where there are none.

    >>> _divide(0, 100), _divide(4, 6), _divide(4, 5)
    ([25, 50, 75], [5], [])
    """
    return sorted({first + (last - first) * part // _PARTS for part in range(1, _PARTS)} - {first, last})
