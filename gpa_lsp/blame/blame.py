"""From a joined kernel to its blame: every function by the chosen blamer, callers' shares, coverage, and the check that nothing was lost."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

import gpa_lsp.blame.blamers as catalogue
from gpa_lsp.basis.catalogue import list_members, load_member
from gpa_lsp.basis.errors import GpaError, Problem, ProblemSeverity
from gpa_lsp.blame import DEFAULT_BLAMER
from gpa_lsp.blame.blamers import Blamer, DependencyGraph
from gpa_lsp.blame.calls import carry_to_callers
from gpa_lsp.blame.conservation import check_conservation
from gpa_lsp.blame.coverage import measure_coverage
from gpa_lsp.blame.edge_list import drop_empty_edges, join_edges
from gpa_lsp.blame.issue_counts import count_issues
from gpa_lsp.blame.model import KernelBlame, Unattributed, UnattributedCause
from gpa_lsp.blame.view import read_latency, view_function
from gpa_lsp.blame.wait_model import check_wait
from gpa_lsp.blame.work import WorkBudget
from gpa_lsp.rows.model import FunctionSamples, Kernel


@cache
def find_blamer(name: str) -> Blamer:
    """A blamer by its name; looked for once, since looking at a folder takes longer than some kernels.

    Raises:
        GpaError: there is none of that name; the message lists those there are.
    """
    known = list_members(catalogue)
    if name not in known:
        raise GpaError(f"no way of attribution is named {name!r}; known are {', '.join(known)}")
    return load_member(catalogue, name, "BLAMER", Blamer)


def blame_kernel(kernel: Kernel, blamer: str = DEFAULT_BLAMER) -> KernelBlame:
    """Move the samples of a kernel to the instructions that cause them.

    Args:
        kernel: joined.
        blamer: name of the blamer.

    Raises:
        GpaError: no blamer has that name.
        ConservationError: samples were lost or invented, a bug of ours.
    """
    method = find_blamer(blamer)
    counts = count_issues(kernel)
    parts = []
    losses = []
    graphs: list[tuple[DependencyGraph, int]] = []
    problems: list[Problem] = []
    for function, first_row in zip(kernel.functions, kernel.rows.first_rows.tolist(), strict=False):
        size = len(function.pc_offsets)
        view = view_function(kernel, function, counts.counts[first_row : first_row + size])
        if view is None:
            losses.append((_lose_all(function), first_row))
        else:
            budget = WorkBudget.for_function(size)
            found = method.blame(view, budget)
            parts.append((found.edges, first_row))
            losses.append((found.unattributed, first_row))
            graphs.append((found.dependencies, first_row))
            if budget.is_exhausted:
                problems.append(_note_work_bound(kernel, function))
    joined = drop_empty_edges(join_edges(parts))
    edges, unattributed = carry_to_callers(kernel, joined, _join_unattributed(losses), counts)
    if not kernel.is_split:
        edges, unattributed = replace(edges, latency_samples=None), replace(unattributed, latency_samples=None)
    blame = KernelBlame(
        blamer=method.name,
        edges=edges,
        unattributed=unattributed,
        issue_counts=counts,
        coverage=measure_coverage(kernel, edges, unattributed, graphs, counts.counts),
        wait_check=check_wait(kernel, counts),
        problems=tuple(problems),
    )
    check_conservation(kernel, blame)
    return blame


def _lose_all(function: FunctionSamples) -> Unattributed:
    """All samples of a function nobody can look into."""
    rows, reasons = np.nonzero(function.all_samples)
    cause = UnattributedCause.NO_CODE if function.function is None else UnattributedCause.NO_INSTRUCTIONS
    return Unattributed(
        row=rows.astype(np.int32),
        reason=reasons.astype(np.int16),
        cause=np.full(len(rows), cause, dtype=np.uint8),
        all_samples=function.all_samples[rows, reasons].astype(np.float64),
        latency_samples=read_latency(function)[rows, reasons].astype(np.float64),
    )


def _join_unattributed(parts: Iterable[tuple[Unattributed, int]]) -> Unattributed:
    listed = list(parts)
    return Unattributed(
        row=np.concatenate([one.row + first for one, first in listed]).astype(np.int32),
        reason=np.concatenate([one.reason for one, _ in listed]).astype(np.int16),
        cause=np.concatenate([one.cause for one, _ in listed]).astype(np.uint8),
        all_samples=np.concatenate([one.all_samples for one, _ in listed]),
        latency_samples=np.concatenate([one.latency_samples for one, _ in listed]),
    )


def _note_work_bound(kernel: Kernel, function: FunctionSamples) -> Problem:
    return Problem(
        severity=ProblemSeverity.WARNING,
        message=f"the control flow of {function.name} is too tangled to follow everywhere; some of its stalls have no cause",
        path=kernel.profile_path,
        remedy="nothing is lost: they are counted as unattributed",
        kernel=kernel.mangled_name,
    )
