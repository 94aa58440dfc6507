"""Counting samples by reason."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.report.model import InstructionColumns, ReasonCount, ReasonCounts


def count_reasons(
    reasons: Sequence[str], all_samples: npt.NDArray[np.int64], latency_samples: npt.NDArray[np.int64] | None
) -> ReasonCounts:
    """Samples by reason, most first, reasons without any left out.

    Args:
        reasons: k names.
        all_samples: int64[k].
        latency_samples: int64[k]; None when unknown.

    >>> count_reasons(("wait", "selected"), np.array([5, 9]), np.array([2, 0]))
    {'selected': ReasonCount(all_samples=9, latency_samples=0), 'wait': ReasonCount(all_samples=5, latency_samples=2)}
    """
    quiet = [None] * len(reasons) if latency_samples is None else latency_samples.tolist()
    rows = [row for row in zip(reasons, all_samples.tolist(), quiet, strict=True) if row[1]]
    rows.sort(key=lambda row: (-row[1], row[0]))
    return {reason: _make_count(every, latency) for reason, every, latency in rows}


@lru_cache(maxsize=1 << 12)
def _make_count(every: int, latency: int | None) -> ReasonCount:
    """Most counts of a report are small numbers that occur again and again."""
    return ReasonCount(all_samples=every, latency_samples=latency)


def count_row(columns: InstructionColumns, row: int) -> ReasonCounts:
    """The samples of one instruction by reason, most first."""
    latency = columns.latency_samples
    return count_reasons(columns.reasons, columns.all_samples[row], None if latency is None else latency[row])


def sum_rows(
    latency_samples: npt.NDArray[np.int64] | None, rows: npt.NDArray[np.bool_] | slice = slice(None)
) -> npt.NDArray[np.int64] | None:
    """int64[k], the latency samples of some rows of int64[n, k], by reason; None when they are unknown."""
    return None if latency_samples is None else latency_samples[rows].sum(axis=0)


def sum_all(latency_samples: npt.NDArray[np.int64] | None) -> int | None:
    """All of some latency samples; None when they are unknown."""
    return None if latency_samples is None else int(latency_samples.sum())
