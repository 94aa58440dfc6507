"""The check that blaming neither loses nor invents samples."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.blame.model import BlameEdges, KernelBlame, Unattributed
from gpa_lsp.foundation.errors import ConservationError
from gpa_lsp.foundation.numbers import format_count, format_file_value
from gpa_lsp.kernel.model import Kernel

# Shares are fractions, so sums are compared up to this part of the samples (of one sample, where there are fewer)
TOLERANCE = 1e-6

_Floats = npt.NDArray[np.float64]


_KINDS = {"all_samples": "samples", "latency_samples": "not-issued samples"}  # Words for the columns


def check_conservation(kernel: Kernel, blame: KernelBlame) -> None:
    """Conservation: for every row and reason, samples on edges and unattributed ones are those that were taken there.

    Raises:
        ConservationError: samples were lost or invented at some row, an edge has more latency samples than samples, or names a row or reason
            that is not there.
    """
    reasons = len(kernel.reasons)
    _check_numbers(kernel, blame.edges, blame.unattributed, len(kernel.rows))
    for kind in ("all_samples",) if _is_unsplit(kernel, blame) else tuple(_KINDS):
        sampled = getattr(kernel.rows, kind).ravel()
        found = _sum_by_cell(blame.edges.use_row, blame.edges, kind, reasons, len(sampled))
        found += _sum_by_cell(blame.unattributed.row, blame.unattributed, kind, reasons, len(sampled))
        wrong = np.flatnonzero(~(np.abs(found - sampled) <= TOLERANCE * np.maximum(sampled, 1.0)))
        if len(wrong):
            row, reason = divmod(int(wrong[0]), reasons)
            raise ConservationError(
                f"{kernel.mangled_name}: {format_count(sampled[wrong[0]])} {_KINDS[kind]} of {kernel.reasons[reason]} at"
                f" row {row} became {format_file_value(found[wrong[0]])}, and {len(wrong) - 1} other sums are wrong too"
            )


def _is_unsplit(kernel: Kernel, blame: KernelBlame) -> bool:
    """Whether latency samples are unknown; they are so everywhere, or nowhere.

    Raises:
        ConservationError: they are unknown in one place and counted in another.
    """
    unknown = [function.latency_samples is None for function in kernel.functions]
    unknown += [blame.edges.latency_samples is None, blame.unattributed.latency_samples is None]
    if any(unknown) and not all(unknown):
        raise ConservationError(f"{kernel.mangled_name}: not-issued samples that were never counted were attributed")
    return any(unknown)


def _sum_by_cell(
    rows: npt.NDArray[np.int32], columns: BlameEdges | Unattributed, kind: str, reasons: int, cells: int
) -> _Floats:
    """Samples per row and reason, flat."""
    cell = rows.astype(np.int64) * reasons + columns.reason
    summed: _Floats = np.bincount(cell, weights=getattr(columns, kind), minlength=cells).astype(np.float64)
    return summed


def _check_numbers(kernel: Kernel, edges: BlameEdges, unattributed: Unattributed, rows: int) -> None:
    """Every number names something, and shares are neither negative nor unordered."""
    named: tuple[tuple[str, npt.NDArray[Any], int], ...] = (
        ("use", edges.use_row, rows),
        ("def", edges.def_row, rows),
        ("reason", edges.reason, len(kernel.reasons)),
        ("unattributed row", unattributed.row, rows),
        ("unattributed reason", unattributed.reason, len(kernel.reasons)),
    )
    for name, column, limit in named:
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= limit):
            raise ConservationError(f"{kernel.mangled_name}: a {name} outside 0..{limit - 1}")
    for part in (edges, unattributed):
        latency = part.latency_samples
        if latency is None:
            continue
        is_ordered = (latency >= 0) & (latency <= part.all_samples + TOLERANCE * np.maximum(part.all_samples, 1.0))
        if not is_ordered.all():
            first = int(np.flatnonzero(~is_ordered)[0])
            raise ConservationError(
                f"{kernel.mangled_name}: {format_file_value(latency[first])} not-issued samples of {format_file_value(part.all_samples[first])}"
            )
