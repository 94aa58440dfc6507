"""How often each instruction issued, in samples: from executions where they agree with the samples, else from the samples."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.blame.model import IssueCounts
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import FunctionSamples, Kernel

LARGEST_CHI_SQUARE_PER_ROW = 10.0
"""Up to here executions are taken for exact. Counts that agree give about 1.

Source: 42 launches of real reports: 0.04 to 1.2 where samples and counts cover the same run, 146 where the sampling buffer had been full.
"""

LEAST_ISSUES_SAMPLES = 0.5
"""What an instruction without ``selected`` samples is taken to have issued: little, but not impossible.

Source: GPA's code does the same with a thread warp's worth of executions; half a sample is what "none seen" means at best.
"""

_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]


class _Rows(ColumnRecord, frozen=True, kw_only=True):
    """What is known of each row of the kernel."""

    selected: _Floats  # float64[n], samples that saw the warp issue
    executions: _Floats  # float64[n]; NaN where not counted
    is_typical: _Bools  # bool[n], the row's ``selected`` samples are its own, see :func:`_find_typical`
    # int64[n], basic blocks numbered over the kernel; each row its own where there is no code
    block: npt.NDArray[np.int64]


def count_issues(kernel: Kernel) -> IssueCounts:
    """How often each row of a kernel issued, in units of ``selected`` samples.

    Executions, scaled by Σ selected / Σ executions, are exact where they and the samples come from the same course of the program. A
    chi-square test says whether they do: Σ (selected - scaled)² / max(scaled, 1) per row, over the executed rows whose ``selected`` samples
    are their own. Otherwise the samples have to do: an instruction issues as often as the others of its basic block, so each gets the mean
    of its block, and at least :data:`LEAST_ISSUES_SAMPLES`. Rows without code count for themselves.

    Source: reference measurements ("inst_executed as issue count only where a chi-square test against selected passes").
    """
    rows = _gather(kernel)
    chi_square = _compare(rows)
    refusal = _refuse(kernel, rows, chi_square)
    if refusal is not None:
        counts = np.maximum(_average_blocks(rows), LEAST_ISSUES_SAMPLES)
        return IssueCounts(counts=counts, is_exact=False, why=refusal, chi_square_per_row=chi_square)
    is_counted = ~np.isnan(rows.executions)
    counts = np.where(is_counted, _scale(rows) * np.where(is_counted, rows.executions, 0.0), rows.selected)
    why = f"executions agree with the samples (chi-square {format_number(chi_square)} per instruction)"
    return IssueCounts(counts=counts, is_exact=True, why=why, chi_square_per_row=chi_square)


def _refuse(kernel: Kernel, rows: _Rows, chi_square: float | None) -> str | None:
    """Why executions are not taken for exact; None where they are."""
    if np.isnan(rows.executions).all():
        return "executions were not counted"
    if any(launch.samples_truncated for launch in kernel.launches):
        return "the sampling buffer was full, so samples cover less of the run than executions do"
    if chi_square is None:
        return "no issued samples exist to compare executions with"
    if chi_square > LARGEST_CHI_SQUARE_PER_ROW:
        return (
            f"executions and samples come from different runs (chi-square {format_number(chi_square)} per instruction)"
        )
    return None


def _gather(kernel: Kernel) -> _Rows:
    column = kernel.rows.reason_index("selected")
    executions, is_typical, block = [np.zeros(0)], [np.zeros(0, np.bool_)], [np.zeros(0, np.int64)]
    first_block = 0
    for function in kernel.functions:
        count = len(function.pc_offsets)
        executions.append(_read_executions(function))
        is_typical.append(_find_typical(function))
        own = np.arange(count) if function.graph is None else function.graph.block_of_instruction
        block.append(own.astype(np.int64) + first_block)
        first_block += count
    return _Rows(
        selected=np.zeros(len(kernel.rows))
        if column is None
        else kernel.rows.all_samples[:, column].astype(np.float64),
        executions=np.concatenate(executions),
        is_typical=np.concatenate(is_typical),
        block=np.concatenate(block),
    )


def _read_executions(function: FunctionSamples) -> _Floats:
    """Executions; a row without a value in a function that has some (filler) never executed."""
    executions = function.executions.astype(np.float64)
    if (function.executions < 0).all():
        return np.full(len(executions), np.nan)
    return np.maximum(executions, 0.0)


def _find_typical(function: FunctionSamples) -> _Bools:
    """Rows whose ``selected`` samples are their own: all but the first ones of basic blocks.

    While a taken branch is resolved the sampled pc is the next address: the issue of the first instruction at the target shows there, and not
    at the target. bool[n].

    Source: real reports of compute capability 7.0 to 12.0; loops whose branch falls through to an instruction that executes once per
    thousand iterations show it with as many ``selected`` samples as the loop has iterations, and the loop's header with none.
    """
    is_typical = np.ones(len(function.pc_offsets), dtype=np.bool_)
    if function.graph is not None:
        is_typical[function.graph.first_instruction] = False
    return is_typical


def _scale(rows: _Rows) -> float:
    """Samples per execution; those behind the last EXIT are of executed instructions too."""
    is_counted = ~np.isnan(rows.executions)
    executions = float(rows.executions[is_counted].sum())
    return float(rows.selected[is_counted].sum()) / executions if executions else 0.0


def _compare(rows: _Rows) -> float | None:
    """Chi-square per row of ``selected`` against scaled executions; None with nothing to compare."""
    chosen = rows.is_typical & (rows.executions > 0)
    if not chosen.any():
        chosen = rows.executions > 0
    executions, selected = rows.executions[chosen], rows.selected[chosen]
    if len(selected) == 0 or selected.sum() == 0:
        return None
    expected = executions * (selected.sum() / executions.sum())
    return float(((selected - expected) ** 2 / np.maximum(expected, 1.0)).mean())


def _average_blocks(rows: _Rows) -> _Floats:
    """The mean ``selected`` samples of each row's basic block, over its typical rows where it has some."""
    if len(rows.block) == 0:
        return np.zeros(0)
    size = int(rows.block.max()) + 1
    counts = []
    for weight in (rows.is_typical.astype(np.float64), np.ones(len(rows.block))):
        total = np.bincount(rows.block, weights=rows.selected * weight, minlength=size)
        number = np.bincount(rows.block, weights=weight, minlength=size)
        counts.append((total, number))
    (typical, typical_number), (every, every_number) = counts
    mean = np.where(typical_number > 0, typical / np.maximum(typical_number, 1), every / np.maximum(every_number, 1))
    averaged: _Floats = mean[rows.block]
    return averaged
