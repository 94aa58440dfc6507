"""Causes found for one stall reason of a function, as columns, and the edges they become."""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, ColumnTable, Dependency
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.foundation.distinct import find_distinct, mark_firsts

_Rows = npt.NDArray[np.int64]
_DEPENDENCIES = tuple(Dependency)


class Causes(ColumnTable, frozen=True, kw_only=True):
    """Who caused the samples of some rows, m pairs."""

    use_row: _Rows  # int64[m], sampled rows; one occurs as often as it has causes
    def_row: _Rows  # int64[m]
    share_ratio: npt.NDArray[np.float64]  # float64[m], the part of the use's samples; the parts of one use add up to 1
    cycles: _Rows  # int64[m], as ``distance_cycles`` of an edge
    instructions: _Rows  # int64[m], as ``distance_instructions``

    def share(self, parts: npt.NDArray[np.float64]) -> "Causes":
        """The pairs with other parts, float64[m], of the samples."""
        return replace(self, share_ratio=parts)


def cause_themselves(rows: _Rows) -> Causes:
    """Rows that are their own cause."""
    none = np.zeros(len(rows), dtype=np.int64)
    return Causes(use_row=rows, def_row=rows, share_ratio=np.ones(len(rows)), cycles=none, instructions=none)


def build_cause_edges(
    view: FunctionView,
    reason: int,
    causes: Causes,
    dependency: Dependency | npt.NDArray[np.uint8],
    *,
    category: BlameCategory | None = None,
    resource: npt.NDArray[np.int64] | None = None,
    is_together: bool = False,
) -> BlameEdges:
    """The edges of some causes.

    Args:
        dependency: of all pairs, or uint8[m].
        category: of all pairs; None for what :func:`~gpa_lsp.diagnosis.blame.categories.find_category` says of each def.
        resource: int64[m]; None where no resource connects them.
    """
    count = len(causes)
    dependencies = np.full(count, dependency, dtype=np.uint8)
    order = np.lexsort((causes.def_row, causes.use_row))
    columns: dict[str, Any] = {
        "use_row": causes.use_row,
        "def_row": causes.def_row,
        "reason": np.full(count, reason),
        "category": _categorise(view, reason, causes.def_row, dependencies)
        if category is None
        else np.full(count, category),
        "dependency": dependencies,
        "resource": np.full(count, -1) if resource is None else resource,
        "all_samples": view.all_samples[causes.use_row, reason] * causes.share_ratio,
        "latency_samples": view.latency_samples[causes.use_row, reason] * causes.share_ratio,
        "distance_cycles": causes.cycles,
        "distance_instructions": causes.instructions,
    }
    ordered = {name: column[order] for name, column in columns.items()}
    ordered["group"] = np.cumsum(mark_firsts(ordered["use_row"])) - 1 if is_together else np.arange(count)
    return BlameEdges.from_columns(**ordered)


def _categorise(
    view: FunctionView, reason: int, def_row: _Rows, dependencies: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """int64[m]: one look-up per distinct mnemonic and dependency."""
    key = view.instructions.mnemonic_index[def_row].astype(np.int64) * len(_DEPENDENCIES) + dependencies
    distinct = find_distinct(key)
    known = np.zeros(len(view.opcodes) * len(_DEPENDENCIES), dtype=np.int64)
    known[distinct] = [
        find_category(
            view.opcodes[one // len(_DEPENDENCIES)], _DEPENDENCIES[one % len(_DEPENDENCIES)], view.reasons[reason]
        )
        for one in distinct.tolist()
    ]
    found: npt.NDArray[np.int64] = known[key]
    return found
