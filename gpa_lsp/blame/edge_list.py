"""Collecting edges one by one, or by columns, and turning them into :class:`~gpa_lsp.blame.model.BlameEdges`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpa_lsp.blame.model import BlameCategory, BlameEdges, Dependency, Unattributed, UnattributedCause

_INT, _SHORT, _BYTE, _FLOAT = np.int32, np.int16, np.uint8, np.float64
EDGE_DTYPES: dict[str, type] = {
    "use_row": _INT,
    "def_row": _INT,
    "reason": _SHORT,
    "category": _BYTE,
    "dependency": _BYTE,
    "resource": _SHORT,
    "group": _INT,
    "all_samples": _FLOAT,
    "latency_samples": _FLOAT,
    "distance_cycles": _INT,
    "distance_instructions": _INT,
}
"""The columns of :class:`~gpa_lsp.blame.model.BlameEdges`, in their order."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One blamed pair; the fields of :class:`~gpa_lsp.blame.model.BlameEdges`, in their order.

    Within a :class:`FunctionBlame` rows are instruction numbers of the function, and groups count from 0 in the function.
    """

    use_row: int
    def_row: int
    reason: int
    category: BlameCategory
    dependency: Dependency
    resource: int
    group: int
    all_samples: float
    latency_samples: float
    distance_cycles: int
    distance_instructions: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Samples of one row and reason that nobody is blamed for."""

    row: int
    reason: int
    cause: UnattributedCause
    all_samples: float
    latency_samples: float


def build_edges(edges: Iterable[Edge]) -> BlameEdges:
    """The columns of some edges, sorted by use, reason and def."""
    ordered = sorted(edges, key=lambda edge: (edge.use_row, edge.reason, edge.def_row, edge.group))
    columns: dict[str, Any] = {
        name: np.fromiter((getattr(edge, name) for edge in ordered), dtype=dtype, count=len(ordered))
        for name, dtype in EDGE_DTYPES.items()
    }
    return BlameEdges(**columns)


def join_edges(parts: Iterable[tuple[BlameEdges, int]]) -> BlameEdges:
    """Edges of several functions as edges of a kernel.

    Args:
        parts: edges with function-local rows and groups, and the row of the function's first instruction in the kernel.
    """
    listed = list(parts)
    shifted: dict[str, list[Any]] = {name: [np.zeros(0, dtype=dtype)] for name, dtype in EDGE_DTYPES.items()}
    first_group = 0
    for edges, first_row in listed:
        shift = {"use_row": first_row, "def_row": first_row, "group": first_group}
        for name in EDGE_DTYPES:
            shifted[name].append(getattr(edges, name) + shift.get(name, 0))
        first_group += int(edges.group.max()) + 1 if len(edges) else 0
    return BlameEdges(**{name: np.concatenate(parts).astype(EDGE_DTYPES[name]) for name, parts in shifted.items()})


def drop_empty_edges(edges: BlameEdges) -> BlameEdges:
    """The edges that carry samples: a candidate that never executed has a share of nothing."""
    has_samples = edges.all_samples > 0
    if has_samples.all():
        return edges
    return BlameEdges(**{name: getattr(edges, name)[has_samples] for name in EDGE_DTYPES})


def build_unattributed(lost: Iterable[Lost]) -> Unattributed:
    """The columns of some samples without a cause, sorted by row and reason."""
    ordered = sorted(lost, key=lambda one: (one.row, one.reason, one.cause))
    count = len(ordered)
    return Unattributed(
        row=np.fromiter((one.row for one in ordered), dtype=np.int32, count=count),
        reason=np.fromiter((one.reason for one in ordered), dtype=np.int16, count=count),
        cause=np.fromiter((one.cause for one in ordered), dtype=np.uint8, count=count),
        all_samples=np.fromiter((one.all_samples for one in ordered), dtype=np.float64, count=count),
        latency_samples=np.fromiter((one.latency_samples for one in ordered), dtype=np.float64, count=count),
    )
