"""Blame and subjects for tests, without a blamer, and edges as rows."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    BlameEdges,
    Dependency,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
)
from gpa_lsp.kernel.model import Kernel

_ENUMS = {"category": BlameCategory, "dependency": Dependency, "cause": UnattributedCause}
NO_EDGES, NOTHING_LOST = BlameEdges.from_rows(), Unattributed.from_rows()


def build_edges(rows: Iterable[Mapping[str, Any]]) -> BlameEdges:
    """The sorted edges of some rows, each with the values of all columns."""
    return BlameEdges.from_rows([row[name] for name in BlameEdges.__struct_fields__] for row in rows).sort()


def list_rows(table: BlameEdges | Unattributed) -> list[Any]:
    """Rows with the columns as attributes, in their order."""
    columns = {name: getattr(table, name).tolist() for name in table.__struct_fields__}
    for name in _ENUMS.keys() & columns.keys():
        columns[name] = list(map(_ENUMS[name], columns[name]))
    return [SimpleNamespace(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def make_blame(kernel: Kernel, edges: BlameEdges = NO_EDGES, unattributed: Unattributed = NOTHING_LOST) -> KernelBlame:
    """A blame of the given edges; none are needed where an optimizer looks at the launch alone."""
    counts = np.zeros(len(kernel.rows))
    return KernelBlame(
        blamer="test",
        edges=edges,
        unattributed=unattributed,
        issue_counts=IssueCounts(counts=counts, is_exact=False, why="a test has none", chi_square_per_row=None),
        coverage=SingleDependencyCoverage(
            before_ratio=None, after_ratio=None, nodes=0, group_ratio=None, group_samples=0, explained_ratio=None
        ),
        wait_check=None,
    )


def make_subject(kernel: Kernel) -> Subject:
    """A subject of a written kernel."""
    return Subject(kernel, make_blame(kernel))
