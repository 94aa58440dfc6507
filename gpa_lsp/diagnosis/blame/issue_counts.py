"""Issue counts of instructions, in samples; from them the parts of causes in a wait, and a check of ``wait``."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.blame.model import WAIT, IssueCounts, WaitCheck
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.kernel.model import FunctionSamples, Kernel

# Up to here executions are taken for exact. Counts that agree give about 1.
# Source: 42 launches of real reports: 0.04 to 1.2 where samples and counts cover the same run, 146 where the sampling buffer had been full.
LARGEST_CHI_SQUARE_PER_ROW = 10.0

# What an instruction counts that no sample saw issue: between none, which would acquit it, and one, which would have been seen.
# Source: GPA's own code takes 32 sampled cycles, one issue of a warp's worth, which is as little next to any sample.
LEAST_ISSUES_SAMPLES = 0.5

LEAST_ROWS = 3  # Rows that a correlation needs

_Floats = npt.NDArray[np.float64]


def count_issues(kernel: Kernel) -> IssueCounts:
    """Count issues of each row of a kernel, in units of ``selected`` samples.

    Executions, scaled by Σ selected / Σ executions, are exact where they and the samples come from the same course of the program. A
    chi-square test says whether they do: Σ (selected - scaled)² / max(scaled, 1) per row, over the executed rows whose ``selected`` samples
    are their own. Otherwise the samples have to do: an instruction issues as often as the others of its basic block, so each gets the mean
    of its block, and at least :data:`LEAST_ISSUES_SAMPLES`. Rows without code count for themselves.

    Source: reference measurements ("inst_executed as issue count only where a chi-square test against selected passes").
    """
    selected = _read_selected(kernel)
    executions = np.concatenate([np.zeros(0), *map(_read_executions, kernel.functions)])  # NaN where not counted
    is_typical = _find_typical(kernel)
    chi_square = _compare(selected, executions, is_typical)
    refusal = _refuse(kernel, executions, chi_square)
    if refusal is not None:
        counts = np.maximum(_average_blocks(selected, is_typical, number_blocks(kernel)), LEAST_ISSUES_SAMPLES)
        return IssueCounts(counts=counts, is_exact=False, why=refusal, chi_square_per_row=chi_square)
    is_counted = ~np.isnan(executions)
    total = float(executions[is_counted].sum())  # those behind the last EXIT are of executed instructions too
    scale = float(selected[is_counted].sum()) / total if total else 0.0
    counts = np.where(is_counted, scale * np.where(is_counted, executions, 0.0), selected)
    why = f"executions agree with the samples (chi-square {format_number(chi_square)} per instruction)"
    return IssueCounts(counts=counts, is_exact=True, why=why, chi_square_per_row=chi_square)


def count_issued_samples(kernel: Kernel) -> IssueCounts:
    """Count samples of each row as it issued, at least :data:`LEAST_ISSUES_SAMPLES`: each row for itself, as published.

    Rows of one basic block count as often as they issued under their guards (Figure 4), where :func:`count_issues` averages.

    Source: GPA section IV, "Attribute stalls", heuristic 1 of Equation 1.
    """
    counts = np.maximum(_read_selected(kernel), LEAST_ISSUES_SAMPLES)
    return IssueCounts(counts=counts, is_exact=False, why="issued samples, as published", chi_square_per_row=None)


def _read_selected(kernel: Kernel) -> _Floats:
    column = kernel.rows.reason_index("selected")
    return np.zeros(len(kernel.rows)) if column is None else kernel.rows.all_samples[:, column].astype(np.float64)


def _refuse(kernel: Kernel, executions: _Floats, chi_square: float | None) -> str | None:
    """Reason not to take executions for exact; None where they are."""
    if np.isnan(executions).all():
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


def _read_executions(function: FunctionSamples) -> _Floats:
    """Executions; a row without a value in a function that has some (filler) never executed."""
    executions = function.executions.astype(np.float64)
    if (function.executions < 0).all():
        return np.full(len(executions), np.nan)
    return np.maximum(executions, 0.0)


def number_blocks(kernel: Kernel) -> npt.NDArray[np.int64]:
    """int64[n], the basic block of each row, numbered over the kernel; each row its own where there is no code."""
    found, first = [np.zeros(0, np.int64)], 0
    for function in kernel.functions:
        size = len(function.pc_offsets)
        own = np.arange(size) if function.graph is None else function.graph.block_of_instruction
        found.append(own.astype(np.int64) + first)
        first += size
    return np.concatenate(found)


def _find_typical(kernel: Kernel) -> npt.NDArray[np.bool_]:
    """bool[n], rows whose ``selected`` samples are their own: all but the first ones of basic blocks.

    While a taken branch is resolved the sampled pc is the next address: the issue of the first instruction at the target shows there, and not
    at the target.

    Source: real reports of compute capability 7.0 to 12.0; loops whose branch falls through to an instruction that executes once per
    thousand iterations show it with as many ``selected`` samples as the loop has iterations, and the loop's header with none.
    """
    is_typical = np.ones(len(kernel.rows), dtype=np.bool_)
    for function, first_row in zip(kernel.functions, kernel.rows.first_rows.tolist(), strict=False):
        if function.graph is not None:
            is_typical[first_row + function.graph.first_instruction] = False
    return is_typical


def _compare(selected: _Floats, executions: _Floats, is_typical: npt.NDArray[np.bool_]) -> float | None:
    """Chi-square per row of ``selected`` against scaled executions; None with nothing to compare."""
    chosen = is_typical & (executions > 0)
    if not chosen.any():
        chosen = executions > 0
    executions, selected = executions[chosen], selected[chosen]
    if len(selected) == 0 or selected.sum() == 0:
        return None
    expected = executions * (selected.sum() / executions.sum())
    return float(((selected - expected) ** 2 / np.maximum(expected, 1.0)).mean())


def _average_blocks(selected: _Floats, is_typical: npt.NDArray[np.bool_], block: npt.NDArray[np.int64]) -> _Floats:
    """The mean ``selected`` samples of each row's basic block, over its typical rows where it has some."""
    weights = is_typical.astype(np.float64)
    typical, typical_number = np.bincount(block, weights=selected * weights), np.bincount(block, weights=weights)
    every, every_number = np.bincount(block, weights=selected), np.bincount(block)
    mean = np.where(typical_number > 0, typical / np.maximum(typical_number, 1), every / np.maximum(every_number, 1))
    averaged: _Floats = mean[block]
    return averaged


def count_waits(issues: float, use_issues: float) -> float:
    """Upper bound of how often one instruction waits for another: as often as either issues.

    A use that never issued bounds nothing: its samples are of another run, or show where a branch fell through.
    """
    return issues if issues < use_issues or not use_issues else use_issues


def weigh_groups(
    groups: Sequence[int], blocks: Sequence[int], issue_counts: Sequence[float], use_issues: float
) -> dict[int, float]:
    """The part of each group of causes in one wait, by how often it is waited for there.

    Causes of a group in one basic block issue together; those in different blocks count each for itself. Returns group → ratio; they add up to one.
    Even parts where nothing issued.

    Two loads in front of a loop of 64 iterations behind one counter, and one in the loop behind another:

    >>> parts = weigh_groups([0, 0, 1], [0, 0, 1], [1.0, 1.0, 64.0], 64.0)
    >>> [round(part, 3) for part in parts.values()]
    [0.015, 0.985]
    """
    of_block: dict[tuple[int, int], float] = {}
    for group, block, issues in zip(groups, blocks, issue_counts, strict=True):
        of_block[group, block] = max(of_block.get((group, block), 0.0), count_waits(issues, use_issues))
    weights = dict.fromkeys(groups, 0.0)
    for (group, _), often in of_block.items():
        weights[group] = count_waits(weights[group] + often, use_issues)
    return dict(zip(weights, divide(weights.values()), strict=True))


def divide(weights: Iterable[float]) -> list[float]:
    """Each weight's part of all; even parts where none weighs anything.

    >>> divide([1.0, 3.0]), divide([0.0, 0.0])
    ([0.25, 0.75], [0.5, 0.5])
    """
    listed = list(weights)
    total = sum(listed)
    return [one / total for one in listed] if total > 0 else [1 / len(listed)] * len(listed)


def check_wait(kernel: Kernel, issue_counts: IssueCounts) -> WaitCheck | None:
    """Compare ``wait`` samples with what stall counts predict.

    An instruction that issued as often as c samples of issue and has a stall count of s keeps its warp for c · (s - 1) samples of ``wait``, which
    show at the next address, where the program counter is then. There is no constant to fit. A low correlation means that control codes, instructions
    or issue counts belong to another program than the samples, or that there are too few samples to tell. Returns None without ``wait`` samples, or
    without instructions.

    Source: reference measurements (section "wait"), with the predecessor by address: over the kernels of real reports with 2,000 samples the
    median correlation is .98, against .94 with the predecessor in the flow graph.
    """
    if WAIT not in kernel.reasons:
        return None
    reason = kernel.reasons.index(WAIT)
    measured: list[_Floats] = []
    predicted: list[_Floats] = []
    for function, first_row in zip(kernel.functions, kernel.rows.first_rows.tolist(), strict=False):
        count = len(function.pc_offsets)
        counts = issue_counts.counts[first_row : first_row + count]
        if function.instructions is None or function.control is None or count == 0:
            continue
        samples = function.all_samples[1:, reason].astype(np.float64)
        stalls = np.maximum(function.control.stall_cycles[:-1].astype(np.float64), 1.0)
        ran = (counts[:-1] > 0) | (samples > 0)
        measured.append(samples[ran])
        predicted.append((counts[:-1] * (stalls - 1.0))[ran])
    total = sum(int(samples.sum()) for samples in measured)
    if total == 0:
        return None
    taken, expected = np.concatenate(measured), np.concatenate(predicted)
    return WaitCheck(
        correlation=_correlate(taken, expected),
        measured_samples=total,
        predicted_samples=float(expected.sum()),
        rows=len(taken),
    )


def _correlate(one: _Floats, other: _Floats) -> float | None:
    """Pearson's correlation; None with too few numbers or without spread."""
    if len(one) < LEAST_ROWS or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])
