"""From a joined kernel to its blame: every function by the chosen blamer, callers' shares, coverage, and the check that nothing was lost."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

import gpa_lsp.diagnosis.blame.blamers as catalogue
from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.diagnosis.blame.blamers import Blamer
from gpa_lsp.diagnosis.blame.calls import carry_to_callers
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD, SHORT_SCOREBOARD, is_far_memory
from gpa_lsp.diagnosis.blame.edges import join_edges
from gpa_lsp.diagnosis.blame.issue_counts import check_wait, count_issues, number_blocks, weigh_groups
from gpa_lsp.diagnosis.blame.model import (
    BlameEdges,
    Dependency,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
)
from gpa_lsp.diagnosis.blame.view import read_latency, view_function
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.foundation.catalogue import list_members, load_member
from gpa_lsp.foundation.distinct import find_distinct, find_distinct_rows
from gpa_lsp.foundation.errors import ConservationError, GpaError, Problem, ProblemSeverity
from gpa_lsp.foundation.numbers import format_count, format_file_value
from gpa_lsp.kernel.model import FunctionSamples, Kernel

# Shares are fractions, so sums are compared up to this part of the samples (of one sample, where there are fewer)
TOLERANCE = 1e-6

_KINDS = {"all_samples": "samples", "latency_samples": "not-issued samples"}  # Words for the columns


@cache
def find_blamer(name: str) -> Blamer:
    """A blamer by its name; cached, since listing a folder takes longer than some kernels.

    Raises:
        GpaError: there is none of that name; the message lists those there are.
    """
    known = list_members(catalogue)
    if name not in known:
        raise GpaError(f"no way of attribution is named {name!r}; known are {', '.join(known)}")
    return load_member(catalogue, name, "BLAMER", Blamer)


def blame_kernel(kernel: Kernel, blamer: str = DEFAULT_BLAMER) -> KernelBlame:
    """Move the samples of a kernel to the instructions that cause them.

    Raises:
        GpaError: no blamer has that name.
        ConservationError: samples were lost or invented, a bug of ours.
    """
    method = find_blamer(blamer)
    counts = method.count_issues(kernel)
    parts = []
    losses = []
    before, after = [], []
    problems: list[Problem] = []
    for index, function in enumerate(kernel.functions):
        size, first_row = len(function.pc_offsets), int(kernel.rows.first_rows[index])
        view = view_function(kernel, index, counts.counts[first_row : first_row + size])
        if view is None:
            lost = _lose_all(function)
        else:
            budget = WorkBudget.for_function(size)
            found = method.blame(view, budget)
            parts.append((found.edges, first_row))
            lost = found.unattributed
            before.append((found.before, first_row))
            after.append((found.after, first_row))
            if budget.is_exhausted:
                problems.append(_note_work_bound(kernel, function))
        losses.append(replace(lost, row=lost.row + first_row))
    joined = join_edges(parts)
    joined = joined.select(joined.all_samples > 0)  # a candidate that never executed has a share of nothing
    edges, unattributed = joined, Unattributed.join(losses)
    if method.follows_calls:
        edges, unattributed = carry_to_callers(kernel, edges, unattributed, counts)
    if not kernel.is_split:
        edges, unattributed = replace(edges, latency_samples=None), replace(unattributed, latency_samples=None)
    blame = KernelBlame(
        blamer=method.name,
        edges=edges,
        unattributed=unattributed,
        issue_counts=counts,
        coverage=measure_coverage(
            kernel,
            edges,
            unattributed,
            before=join_pairs(before),
            after=join_pairs(after),
            issue_counts=counts.counts,
        ),
        wait_check=check_wait(kernel, counts if method.count_issues is count_issues else count_issues(kernel)),
        problems=tuple(problems),
    )
    check_conservation(kernel, blame)
    return blame


def _lose_all(function: FunctionSamples) -> Unattributed:
    """All samples of a function without code."""
    rows, reasons = np.nonzero(function.all_samples)
    cause = UnattributedCause.NO_CODE if function.function is None else UnattributedCause.NO_INSTRUCTIONS
    return Unattributed.from_columns(
        row=rows,
        reason=reasons,
        cause=np.full(len(rows), cause),
        all_samples=function.all_samples[rows, reasons],
        latency_samples=read_latency(function)[rows, reasons],
    )


def _note_work_bound(kernel: Kernel, function: FunctionSamples) -> Problem:
    return Problem(
        severity=ProblemSeverity.WARNING,
        message=f"the control flow of {function.name} is too tangled to follow everywhere; some of its stalls have no cause",
        path=kernel.profile_path,
        remedy="nothing is lost: they are counted as unattributed",
        kernel=kernel.mangled_name,
    )


def check_conservation(kernel: Kernel, blame: KernelBlame) -> None:
    """Conservation: for every row and reason, samples on edges and unattributed ones are those that were taken there.

    Raises:
        ConservationError: samples were lost or invented at some row, an edge has more latency samples than samples, or names a row or reason
            that is not there.
    """
    edges, lost, reasons = blame.edges, blame.unattributed, len(kernel.reasons)
    _check_numbers(kernel, edges, lost)
    rows = np.concatenate([edges.use_row, lost.row]).astype(np.int64)
    cells = rows * reasons + np.concatenate([edges.reason, lost.reason])
    for kind in ("all_samples",) if _is_unsplit(kernel, blame) else tuple(_KINDS):
        sampled = getattr(kernel.rows, kind).ravel()
        given = np.concatenate([getattr(edges, kind), getattr(lost, kind)])
        found = np.bincount(cells, weights=given, minlength=len(sampled))
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


def _check_numbers(kernel: Kernel, edges: BlameEdges, unattributed: Unattributed) -> None:
    """Every number names something, and shares are neither negative nor unordered."""
    named: tuple[tuple[str, npt.NDArray[Any], int], ...] = (
        ("use", edges.use_row, len(kernel.rows)),
        ("def", edges.def_row, len(kernel.rows)),
        ("reason", edges.reason, len(kernel.reasons)),
        ("unattributed row", unattributed.row, len(kernel.rows)),
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


_SCOREBOARD_REASONS = (LONG_SCOREBOARD, SHORT_SCOREBOARD)
_DEPENDENCY_REASONS = (*_SCOREBOARD_REASONS, "wait")

_Pairs = npt.NDArray[np.int64]


def join_pairs(parts: Iterable[tuple[_Pairs, int]]) -> _Pairs:
    """int64[m, 2], unique (use, def) rows of a kernel, from those of its functions, each with the function's first row."""
    return find_distinct_rows(np.concatenate([np.zeros((0, 2), np.int64), *(pairs + first for pairs, first in parts)]))


def measure_coverage(
    kernel: Kernel,
    edges: BlameEdges,
    unattributed: Unattributed,
    *,
    before: _Pairs,
    after: _Pairs,
    issue_counts: npt.NDArray[np.float64],
) -> SingleDependencyCoverage:
    """Measure a blamer's coverage of one kernel: how far stalls have one cause each, so that nothing had to be divided.

    Source: GPA section VI-C and Figure 7. What makes a node single is defined by the published code: at most one incoming edge from a memory
    instruction other than of shared memory, and at most one from any other, because those two are different dependencies. An instruction that was
    not sampled but defines what a sampled one uses is a node, too, without edges into it.

    The share of samples with one *group* of causes is ours. An instruction that can wait for several groups counts for as many of its executions as
    have the most frequent one alone, whatever coincides: what was loaded in front of a loop takes part in its first iteration only.

    Args:
        unattributed: of the whole kernel; with ``edges`` it holds all samples.
        before, after: int64[m, 2], unique (use, def) rows of the dependency graph before and after pruning.
        issue_counts: float64[n], how often each row of the kernel issued.
    """
    is_node = np.asarray(kernel.rows.all_samples.any(axis=1), dtype=np.bool_)
    is_node[before.ravel()] = True
    is_memory = kernel.rows.mark_by_opcode(is_far_memory)
    nodes = int(is_node.sum())
    explained, waiting = _count_explained(kernel, edges, unattributed)
    grouped, divisible = _count_grouped(kernel, edges, unattributed, issue_counts)
    return SingleDependencyCoverage(
        before_ratio=_divide(nodes - _count_multiple(before, is_memory), nodes),
        after_ratio=_divide(nodes - _count_multiple(after, is_memory), nodes),
        nodes=nodes,
        group_ratio=_divide(grouped, divisible),
        group_samples=round(divisible),
        explained_ratio=_divide(explained, waiting),
    )


def _divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _count_multiple(pairs: _Pairs, is_memory: npt.NDArray[np.bool_]) -> int:
    """Nodes with several sources of one class."""
    keys, counts = np.unique(2 * pairs[:, 0] + is_memory[pairs[:, 1]], return_counts=True)
    return len(find_distinct(keys[counts > 1] // 2))


def _sum_samples(kernel: Kernel, columns: BlameEdges | Unattributed, reasons: tuple[str, ...]) -> float:
    return float(columns.all_samples[_select(kernel, columns, reasons)].sum())


def _select(kernel: Kernel, columns: BlameEdges | Unattributed, reasons: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    is_chosen = np.array([reason in reasons for reason in kernel.reasons], dtype=np.bool_)
    return is_chosen[columns.reason]


def _count_explained(kernel: Kernel, edges: BlameEdges, unattributed: Unattributed) -> tuple[float, float]:
    """Scoreboard samples with a cause, and all of them. Staying with the instruction that waited explains nothing."""
    is_waiting = _select(kernel, edges, _SCOREBOARD_REASONS)
    explained = float(edges.all_samples[is_waiting & (edges.dependency != Dependency.ITSELF)].sum())
    total = _sum_samples(kernel, edges, _SCOREBOARD_REASONS) + _sum_samples(kernel, unattributed, _SCOREBOARD_REASONS)
    return explained, total


def _count_grouped(
    kernel: Kernel, edges: BlameEdges, unattributed: Unattributed, issue_counts: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """Samples of a use and reason with one group of causes, and all of them; those without any cause have none."""
    chosen = np.flatnonzero(_select(kernel, edges, _DEPENDENCY_REASONS))
    samples = edges.all_samples[chosen]
    keys = edges.use_row[chosen].astype(np.int64) * max(len(kernel.reasons), 1) + edges.reason[chosen]
    uses, use_of = np.unique(keys, return_inverse=True)
    distinct = find_distinct_rows(np.stack([use_of, edges.group[chosen]], axis=1))
    alone_ratio = np.ones(len(uses))
    several = np.flatnonzero(np.bincount(distinct[:, 0], minlength=len(uses)) > 1)
    if len(several):
        block = number_blocks(kernel)
        for use in several.tolist():
            alone_ratio[use] = _find_alone(edges, chosen[use_of == use], block, issue_counts)
    total = float(samples.sum()) + _sum_samples(kernel, unattributed, _DEPENDENCY_REASONS)
    return float((samples * alone_ratio[use_of]).sum()), total


def _find_alone(
    edges: BlameEdges, rows: _Pairs, block: npt.NDArray[np.int64], issue_counts: npt.NDArray[np.float64]
) -> float:
    """The least share of a wait with several groups of causes (the edges ``rows``) that has its most frequent group alone."""
    weights = weigh_groups(
        edges.group[rows].tolist(),
        block[edges.def_row[rows]].tolist(),
        issue_counts[edges.def_row[rows]].tolist(),
        float(issue_counts[edges.use_row[rows[0]]]),
    )
    return max(0.0, 2 * max(weights.values()) - sum(weights.values()))
