"""Distinct integers, fast: :func:`list_distinct`, :func:`find_first`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.volumes.groups import Integers


def list_distinct(values: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """The distinct values of an array of any shape, ascending: ``np.unique`` by sorting.

    From numpy 2.3 on ``np.unique`` hashes integers, which takes up to thirty times as long as sorting them.

    >>> list_distinct(np.array([[3, 1], [1, 2]])).tolist(), list_distinct(np.zeros(0, np.int64)).tolist()
    ([1, 2, 3], [])
    """
    ordered = np.sort(values, axis=None)
    if len(ordered) < 2:
        return ordered
    is_new = np.empty(len(ordered), dtype=np.bool_)
    is_new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    distinct: npt.NDArray[Any] = ordered[is_new]
    return distinct


def find_first(numbers: Integers) -> Integers:
    """Where each number that occurs does so first, int64[distinct], by ascending number: the indexes of ``np.unique``, without sorting.

    Args:
        numbers: int64[n], n ≥ 1, from 0 up; the memory this takes grows with the largest.

    >>> find_first(np.array([4, 1, 4, 1, 0])).tolist()
    [4, 1, 0]
    """
    first = np.full(int(numbers.max()) + 1, -1, dtype=np.int64)
    # Of several values that are assigned to one place, numpy keeps the last.
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1, dtype=np.int64)
    found: Integers = first[first >= 0]
    return found
