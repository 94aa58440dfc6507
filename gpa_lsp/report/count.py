"""Counting samples by reason."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.kernel.model import number_lines
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.changes import ReasonCount, ReasonCounts
from gpa_lsp.report.model import InstructionColumns, KernelReport

_NO_STALLS = (BlameCategory.ISSUED, BlameCategory.NOT_SELECTED)


def count_reasons(
    reasons: Sequence[str], all_samples: npt.NDArray[np.int64], latency_samples: npt.NDArray[np.int64] | None
) -> ReasonCounts:
    """Samples by reason, most first, reasons without any left out.

    Args:
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


def find_top_stall(reasons: Sequence[str], samples: npt.NDArray[np.int64]) -> tuple[str, int] | None:
    """The stall reason of most samples and how many these are; None where nothing stalled.

    >>> find_top_stall(("long_scoreboard", "selected", "wait"), np.array([5, 9, 7]))
    ('wait', 7)
    """
    stalls = [
        (int(count), reason)
        for count, reason in zip(samples.tolist(), reasons, strict=True)
        if count and describe_stall_reason(reason).is_stall
    ]
    count, reason = max(stalls, key=lambda one: one[0], default=(0, ""))
    return (reason, count) if count else None


class MainStall(Struct, frozen=True, kw_only=True):
    """The largest part of the stalls that one line causes, or, without causes, of those that are taken on one."""

    row: int  # the instruction with most of these stalls
    what: BlameCategory | str  # the kind of cause; the stall reason where causes are unknown
    samples: float  # of this kind alone
    line_samples: float  # all stalls that the line causes, of any kind


def find_main_stall(kernel: KernelReport) -> MainStall | None:
    """The main stall of the line that causes most; None without stalls."""
    columns = kernel.instructions
    if not kernel.total_samples or not len(columns):
        return None
    return _find_main_cause(kernel) or _find_main_reason(columns)


def _find_main_cause(kernel: KernelReport) -> MainStall | None:
    if kernel.blame is None or not len(kernel.blame.edges):
        return None
    edges = kernel.blame.edges
    stalls = np.where(np.isin(edges.category, _NO_STALLS), 0.0, edges.all_samples)
    columns = kernel.instructions
    keys = number_lines(columns.chains, columns.chain_index)[edges.def_row]
    sums = np.bincount(keys, weights=stalls)
    line_samples = float(sums.max())
    if line_samples <= 0:
        return None
    inside = keys == int(sums.argmax())
    by_kind = np.bincount(edges.category[inside], weights=stalls[inside])
    rows = np.bincount(edges.def_row[inside], weights=stalls[inside])
    return MainStall(
        row=int(rows.argmax()),
        what=BlameCategory(int(by_kind.argmax())),
        samples=float(by_kind.max()),
        line_samples=line_samples,
    )


def _find_main_reason(columns: InstructionColumns) -> MainStall | None:
    is_stall = [describe_stall_reason(reason).is_stall for reason in columns.reasons]
    sums = np.where(is_stall, columns.all_samples, 0).sum(axis=1)
    lines = number_lines(columns.chains, columns.chain_index)
    inside = lines == int(np.bincount(lines, weights=sums).argmax())
    top = find_top_stall(columns.reasons, columns.all_samples[inside].sum(axis=0))
    if top is None:
        return None
    row = int(np.where(inside, sums, -1).argmax())
    return MainStall(row=row, what=top[0], samples=float(top[1]), line_samples=float(sums[inside].sum()))
