"""What each of some warp-level accesses touches, in columns, from the compiled core: :func:`measure_requests`, :func:`mark_sectors`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.trace import Accesses
from gpa_lsp.execution.traces.lane_addresses import Integers
from gpa_lsp.execution.traces.patterns import Patterns
from gpa_lsp.execution.traces.segments import SECTOR_BYTES, Touched
from gpa_lsp.foundation.native.shared_library import find_core
from gpa_lsp.foundation.records import ColumnRecord


class RequestColumns(ColumnRecord, frozen=True, kw_only=True):
    """Columns of n warp-level accesses, of any space but local memory."""

    counts: Integers  # int64[n], active lanes
    touched: Touched  # by all lanes of each
    patterns: Patterns  # of their lanes

    def choose(self, rows: Integers) -> "RequestColumns":
        """Some of the rows."""
        touched, patterns = self.touched, self.patterns
        return RequestColumns(
            counts=self.counts[rows],
            touched=Touched(**{name: getattr(touched, name)[rows] for name in Touched.__struct_fields__}),
            patterns=Patterns(pattern=patterns.pattern[rows], stride_bytes=patterns.stride_bytes[rows]),
        )


def measure_requests(accesses: Accesses, rows: Integers) -> RequestColumns | None:
    """The columns of some rows; None where there is no core."""
    core, count = find_core(), len(rows)
    if core is None:
        return None
    counts, lines, sectors, used, distinct, pattern, strides = np.empty((7, count), np.int64)
    found = (counts, lines, sectors, used, distinct, pattern, strides)
    if not core.has_done("measure_requests", *list_columns(accesses, rows), *found):
        return None
    return RequestColumns(
        counts=counts,
        touched=Touched(
            lines=lines, sectors=sectors, used_bytes=used, ideal_sectors=-(-used // SECTOR_BYTES), distinct=distinct
        ),
        patterns=Patterns(pattern=pattern, stride_bytes=strides),
    )


def mark_sectors(accesses: Accesses, rows: Integers, first_sector: int, marks: npt.NDArray[np.bool_]) -> bool:
    """Mark what some rows touch of an array; whether the core could.

    Args:
        rows: int64[n], which.
    """
    core = find_core()
    return core is not None and core.has_done(
        "mark_sectors", *list_columns(accesses, rows), first_sector, len(marks), marks
    )


def list_columns(accesses: Accesses, rows: Integers) -> "tuple[np.ndarray[Any, Any] | int, ...]":
    """What functions of the core take of a trace and some of its rows."""
    masks, first, addresses, widths = (
        np.ascontiguousarray(one)
        for one in (accesses.lane_mask, accesses.first_address, accesses.addresses, accesses.bytes)
    )
    return masks, first, addresses, len(addresses), widths, np.ascontiguousarray(rows, np.int64), len(rows)
