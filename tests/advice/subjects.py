"""Blame and subjects for tests, without a blamer."""

from collections.abc import Iterable

import numpy as np

from gpa_lsp.diagnosis.advice.subject import Subject, build_subject
from gpa_lsp.diagnosis.blame.edge_list import Edge, build_edges, build_unattributed
from gpa_lsp.diagnosis.blame.model import IssueCounts, KernelBlame, SingleDependencyCoverage
from gpa_lsp.kernel.model import Kernel


def make_blame(kernel: Kernel, edges: Iterable[Edge] = ()) -> KernelBlame:
    """A blame of the given edges; none are needed where an optimizer looks at the launch alone."""
    rows = len(kernel.rows)
    return KernelBlame(
        blamer="test",
        edges=build_edges(edges),
        unattributed=build_unattributed(()),
        issue_counts=IssueCounts(counts=np.zeros(rows), is_exact=False, why="a test has none", chi_square_per_row=None),
        coverage=SingleDependencyCoverage(
            before_ratio=None, after_ratio=None, nodes=0, group_ratio=None, group_samples=0, explained_ratio=None
        ),
        wait_check=None,
    )


def make_subject(kernel: Kernel, edges: Iterable[Edge] = ()) -> Subject:
    """A subject of a written kernel."""
    return build_subject(kernel, make_blame(kernel, edges))
