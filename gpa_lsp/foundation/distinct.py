"""The distinct values of columns of whole numbers, ascending.

``np.unique`` without further columns finds the same, but imports ``numpy.ma`` first, to see whether the values are masked. That takes a tenth of what
all of numpy takes, in each start that reads a report.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", bound=np.integer[Any])


def find_distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """The values of an array, each once.

    >>> find_distinct(np.array([3, 1, 3])).tolist(), find_distinct(np.array([], dtype=np.int64)).tolist()
    ([1, 3], [])
    """
    ordered = np.sort(values, axis=None)
    return ordered[mark_firsts(ordered)]


def find_distinct_rows(rows: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """The rows of a table, each once, by the first column, then the second, and so on.

    >>> find_distinct_rows(np.array([[2, 1], [1, 5], [2, 1]])).tolist()
    [[1, 5], [2, 1]]
    """
    ordered = rows[np.lexsort(rows.T[::-1])]
    return ordered[_mark_firsts((ordered[1:] != ordered[:-1]).any(axis=1), len(ordered))]


def mark_firsts(ordered: npt.NDArray[_Number]) -> npt.NDArray[np.bool_]:
    """A mark for each value of an ordered column: whether it is the first of its kind.

    >>> mark_firsts(np.array([3, 3, 5])).tolist(), mark_firsts(np.array([], dtype=np.int64)).tolist()
    ([True, False, True], [])
    """
    return _mark_firsts(ordered[1:] != ordered[:-1], len(ordered))


def _mark_firsts(differs: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.bool_]:
    firsts = np.ones(count, dtype=np.bool_)
    firsts[1:] = differs
    return firsts
