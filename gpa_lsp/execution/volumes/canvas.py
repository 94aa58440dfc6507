"""Sizes of unions and intersections of boxes of cache sectors: :class:`Canvas`; of unions of intervals: :func:`measure_union`.

Every axis is cut at the boxes' edges only; what lies between two cuts is one cell, in a box or not as a whole. So the cost depends on how many
different edges there are, and not on how large the boxes are: a whole layer of a grid costs as much as a block.

With one axis, boxes are intervals, of which there may be hundreds of thousands: their ends are sorted, and nothing is painted.

Source: Ernst et al. (2022), section 4.4.1, for what is measured; they use sets of the Integer Set Library.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.volumes.distinct import list_distinct
from gpa_lsp.execution.volumes.groups import Integers

Mask = npt.NDArray[np.bool_]

MOST_CELLS = 1 << 22  # Cells a canvas may have; see :class:`TooManyCellsError`


class TooManyCellsError(Exception):
    """The boxes have too many different edges; the caller takes intervals instead."""


class Canvas:
    """Cells between the edges of the boxes it was made for.

    Args:
        boxes: each int64[n, axes, 2], from (included) and to (excluded) in sectors or elements.

    Raises:
        TooManyCellsError: see :data:`MOST_CELLS`.
    """

    def __init__(self, boxes: Sequence[Integers]) -> None:
        every = np.concatenate(boxes) if boxes else np.zeros((0, 1, 2), dtype=np.int64)
        self._edges = [list_distinct(every[:, axis]) for axis in range(every.shape[1])]
        self.shape = tuple(max(0, len(edges) - 1) for edges in self._edges)
        if np.prod(self.shape, dtype=np.float64) > MOST_CELLS:
            raise TooManyCellsError
        self._sizes = [np.diff(edges) for edges in self._edges]

    def paint(self, boxes: Integers) -> Mask:
        """The cells in at least one of the boxes: bool of the canvas' shape."""
        places = [np.searchsorted(edges, boxes[:, axis]) for axis, edges in enumerate(self._edges)]
        mask = np.zeros(self.shape, dtype=np.bool_)
        corners = np.stack(places, axis=1).tolist() if len(boxes) else []
        for corner in corners:
            mask[tuple(slice(low, high) for low, high in corner)] = True
        return mask

    def measure(self, mask: Mask) -> int:
        """Sectors in the cells of a mask."""
        total: npt.NDArray[np.generic] = mask
        for sizes in reversed(self._sizes):
            total = total @ sizes
        return int(total)


def measure_union(intervals: Integers) -> int:
    """Sectors in at least one of the intervals int64[n, 2], from (included) and to (excluded).

    Where the i-th smallest end lies before the next larger start, i intervals have ended, no other one has begun, and there is a gap.

    >>> measure_union(np.array([[4, 6], [0, 2], [5, 9], [1, 2]]))
    7
    """
    if not len(intervals):
        return 0
    starts, ends = np.sort(intervals[:, 0]), np.sort(intervals[:, 1])
    return int(ends[-1] - starts[0] - np.maximum(starts[1:] - ends[:-1], 0).sum())
