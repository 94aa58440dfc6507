"""Single-dependency coverage: how far stalls have one cause each, so that nothing had to be divided.

Source: GPA section VI-C and Figure 7. What makes a node single is defined by the published code: at most one incoming edge from a memory
instruction other than of shared memory, and at most one from any other, because those two are different dependencies. An instruction that was
not sampled but defines what a sampled one uses is a node, too, without edges into it.

The share of samples with one *group* of causes is ours. An instruction that can wait for several groups counts for as many of its executions as
have the most frequent one alone, whatever coincides: what was loaded in front of a loop takes part in its first iteration only.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.blame.apportioning import weigh_groups
from gpa_lsp.diagnosis.blame.blamers import DependencyGraph
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD, SHORT_SCOREBOARD
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency, SingleDependencyCoverage, Unattributed
from gpa_lsp.diagnosis.blame.pruning import is_far_memory
from gpa_lsp.foundation.distinct import find_distinct, find_distinct_rows
from gpa_lsp.kernel.model import Kernel

_SCOREBOARD_REASONS = (LONG_SCOREBOARD, SHORT_SCOREBOARD)
_DEPENDENCY_REASONS = (*_SCOREBOARD_REASONS, "wait")

_Pairs = npt.NDArray[np.int64]


def measure_coverage(
    kernel: Kernel,
    edges: BlameEdges,
    unattributed: Unattributed,
    dependencies: Iterable[tuple[DependencyGraph, int]],
    issue_counts: npt.NDArray[np.float64],
) -> SingleDependencyCoverage:
    """Measure a blamer's coverage of one kernel.

    Args:
        unattributed: of the whole kernel; with ``edges`` it holds all samples.
        issue_counts: float64[n], how often each row of the kernel issued.
    """
    graphs = list(dependencies)
    before = _list_pairs((graph.before, first) for graph, first in graphs)
    after = _list_pairs((graph.after, first) for graph, first in graphs)
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


def _list_pairs(parts: Iterable[tuple[tuple[tuple[int, int], ...], int]]) -> _Pairs:
    """int64[m, 2], unique (use, def) rows of the kernel."""
    listed = [np.array(pairs, dtype=np.int64).reshape(-1, 2) + first for pairs, first in parts]
    return find_distinct_rows(np.concatenate([np.zeros((0, 2), np.int64), *listed]))


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
        block = _number_blocks(kernel)
        for use in several.tolist():
            alone_ratio[use] = _find_alone(edges, chosen[use_of == use], block, issue_counts)
    total = float(samples.sum()) + _sum_samples(kernel, unattributed, _DEPENDENCY_REASONS)
    return float((samples * alone_ratio[use_of]).sum()), total


def _number_blocks(kernel: Kernel) -> npt.NDArray[np.int64]:
    """int64[n], the basic block of each row, numbered over the kernel."""
    found, first = [np.zeros(0, np.int64)], 0
    for function in kernel.functions:
        size = len(function.pc_offsets)
        own = np.arange(size) if function.graph is None else function.graph.block_of_instruction
        found.append(own.astype(np.int64) + first)
        first += size
    return np.concatenate(found)


def _find_alone(
    edges: BlameEdges, rows: _Pairs, block: npt.NDArray[np.int64], issue_counts: npt.NDArray[np.float64]
) -> float:
    """Of a wait with several groups of causes (the edges ``rows``), the least share that has its most frequent group alone."""
    weights = weigh_groups(
        edges.group[rows].tolist(),
        block[edges.def_row[rows]].tolist(),
        issue_counts[edges.def_row[rows]].tolist(),
        float(issue_counts[edges.use_row[rows[0]]]),
    )
    return max(0.0, 2 * max(weights.values()) - sum(weights.values()))
