"""Rows in the order of several columns, and of the turns of warps: :func:`order_rows`, :func:`number_warps`, :func:`order_turns`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.traces.lane_addresses import Integers
from gpa_lsp.foundation.native.shared_library import find_core
from gpa_lsp.foundation.records import ColumnRecord

_WARP_BITS = 16


def order_rows(*columns: "npt.NDArray[Any]") -> Integers:
    """The rows by the first column, those equal in it by the second …; those equal in all of them stay in their order.

    Args:
        columns: integers, n each, at least one.

    Returns:
        int64[n], places.

    >>> order_rows(np.array([1, 0, 1, 0]), np.array([5, 2, 3, 2])).tolist()
    [1, 3, 2, 0]
    """
    core, together = find_core(), np.stack(columns).astype(np.int64, copy=False)
    if core is not None:
        order = np.empty(together.shape[1], dtype=np.int64)
        if core.has_done("order_rows", together, *together.shape, order):
            return order
    found: Integers = np.lexsort(columns[::-1])
    return found


class NumberedWarps(ColumnRecord, frozen=True, kw_only=True):
    """The warps of n rows, by numbers."""

    number: "npt.NDArray[np.int32]"  # int32[n], of the warp of each row
    key: Integers  # int64[k], of each warp: its block, and its number there in the last 16 bits

    @property
    def block(self) -> Integers:
        """int64[k], of each warp."""
        return self.key >> _WARP_BITS

    @property
    def place(self) -> Integers:
        """int64[k], of each warp in its block."""
        return self.key & ((1 << _WARP_BITS) - 1)


def number_warps(blocks: "npt.NDArray[np.uint32]", warps: "npt.NDArray[np.uint16]") -> NumberedWarps:
    """Give each warp a number.

    Args:
        blocks: uint32[n], of the rows.
        warps: uint16[n], within its block.
    """
    core, count = find_core(), len(blocks)
    numbers, keys = np.empty(count, np.int32), np.empty(count, np.int64)
    columns = np.ascontiguousarray(blocks), np.ascontiguousarray(warps), count
    found = -1 if core is None else core.call("number_warps", *columns, numbers, keys)
    if found < 0:
        keys, places = np.unique(blocks.astype(np.int64) << _WARP_BITS | warps, return_inverse=True)
        numbers, found = places.astype(np.int32), len(keys)
    return NumberedWarps(number=numbers, key=keys[:found])


def order_turns(warps: "npt.NDArray[np.int32]", turns: Integers, groups: Integers, ranks: Integers) -> Integers:
    """The rows of one group of warps after the other, and in each round robin: by turn, and by the ranks of the warps.

    Args:
        warps: int32[n], the warp of each row.
        turns: int64[n], of the rows; not negative.
        groups: int64[k], of the warps; not negative.
        ranks: int64[k], of the warps in their groups; not negative.

    Returns:
        int64[n], places. Rows that are equal in all stay in their order.

    >>> warps, turns = np.array([0, 0, 1, 2], np.int32), np.array([0, 1, 0, 0])
    >>> order_turns(warps, turns, np.array([1, 1, 0]), np.array([1, 0, 0])).tolist()
    [3, 2, 0, 1]
    """
    core, order = find_core(), np.empty(len(warps), dtype=np.int64)
    known = (warps, turns, len(warps), groups, ranks, len(groups))
    if core is not None and core.has_done("order_turns", *known, order):
        return order
    return order_rows(groups[warps], turns, ranks[warps])
