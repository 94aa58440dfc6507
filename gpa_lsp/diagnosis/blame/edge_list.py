"""Collecting edges one by one, or by columns, and turning them into :class:`~gpa_lsp.diagnosis.blame.model.BlameEdges`."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, Unattributed, UnattributedCause

_INT, _SHORT, _BYTE, _FLOAT = np.int32, np.int16, np.uint8, np.float64
# The columns of :class:`~gpa_lsp.diagnosis.blame.model.BlameEdges`, in their order
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

_LOST_DTYPES: dict[str, type] = {
    "row": _INT,
    "reason": _SHORT,
    "cause": _BYTE,
    "all_samples": _FLOAT,
    "latency_samples": _FLOAT,
}


class Edge(NamedTuple):
    """One blamed pair; the fields of :class:`~gpa_lsp.diagnosis.blame.model.BlameEdges`, in their order.

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


class Lost(NamedTuple):
    """Samples of one row and reason that nobody is blamed for."""

    row: int
    reason: int
    cause: UnattributedCause
    all_samples: float
    latency_samples: float


def build_edges(edges: Iterable[Edge]) -> BlameEdges:
    """The columns of some edges, sorted by use, reason and def."""
    columns = _split(EDGE_DTYPES, edges)
    order = np.lexsort([columns[name] for name in ("group", "def_row", "reason", "use_row")])
    return BlameEdges(**{name: column[order] for name, column in columns.items()})


def join_edges(parts: Iterable[tuple[BlameEdges, int]]) -> BlameEdges:
    """Edges of several functions as edges of a kernel."""
    listed = list(parts)
    shifted: dict[str, list[Any]] = {name: [np.zeros(0, dtype=dtype)] for name, dtype in EDGE_DTYPES.items()}
    first_group = 0
    for edges, first_row in listed:
        shift = {"use_row": first_row, "def_row": first_row, "group": first_group}
        for name in EDGE_DTYPES:
            column = getattr(edges, name)
            shifted[name].append(column + shift[name] if name in shift else column)
        first_group += int(edges.group.max()) + 1 if len(edges) else 0
    return BlameEdges(
        **{name: np.concatenate(parts).astype(EDGE_DTYPES[name], copy=False) for name, parts in shifted.items()}
    )


def drop_empty_edges(edges: BlameEdges) -> BlameEdges:
    """The edges that carry samples: a candidate that never executed has a share of nothing."""
    has_samples = edges.all_samples > 0
    if has_samples.all():
        return edges
    return BlameEdges(**{name: getattr(edges, name)[has_samples] for name in EDGE_DTYPES})


def build_unattributed(lost: Iterable[Lost]) -> Unattributed:
    """The columns of some samples without a cause, sorted by row and reason."""
    columns = _split(_LOST_DTYPES, lost)
    order = np.lexsort([columns[name] for name in ("cause", "reason", "row")])
    return Unattributed(**{name: column[order] for name, column in columns.items()})


def _split(dtypes: Mapping[str, type], rows: Iterable[tuple[Any, ...]]) -> dict[str, npt.NDArray[Any]]:
    """The columns of some tuples."""
    columns = zip(*rows, strict=True)
    return {name: np.array(next(columns, ()), dtype=dtype) for name, dtype in dtypes.items()}
