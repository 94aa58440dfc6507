"""Rows in the order of several columns: :func:`order_rows`."""

import numpy as np

from gpa_lsp.native.shared_library import find_core
from gpa_lsp.traces.lane_addresses import Integers


def order_rows(*columns: Integers) -> Integers:
    """The rows by the first column, those equal in it by the second …; those equal in all of them stay in their order.

    Args:
        columns: int64[n] each, at least one.

    Returns:
        int64[n], places.

    >>> order_rows(np.array([1, 0, 1, 0]), np.array([5, 2, 3, 2])).tolist()
    [1, 3, 2, 0]
    """
    count = len(columns[0])
    core = find_core()
    if core is not None:
        order, room = np.arange(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        for column in reversed(columns):
            core.call("refine_order", np.ascontiguousarray(column, np.int64), count, order, room)
        return order
    found: Integers = np.lexsort(columns[::-1])
    return found
