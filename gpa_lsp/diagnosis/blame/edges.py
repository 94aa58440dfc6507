"""Edges from causes: what connects a use with its def, and the columns of edges and of unattributed samples."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    BlameEdges,
    ColumnTable,
    Dependency,
    Unattributed,
    UnattributedCause,
)
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.foundation.distinct import find_distinct, mark_firsts

NO_RESOURCE = -1  # No register connects the two

_Rows = npt.NDArray[np.int64]
_DEPENDENCIES = tuple(Dependency)


class Connection(NamedTuple):
    """Dependency between a def and its use."""

    dependency: Dependency  # the kind
    # the lowest resource number they share, so that the halves of a 64-bit pair or the parts of a vector are one dependency; :data:`NO_RESOURCE`
    # where they share none
    resource: int = NO_RESOURCE


def connect(
    view: FunctionView, def_row: int, use_row: int, *, by_result: bool = True, by_operands: bool = False
) -> Connection:
    """Find why a use waits for a def; a value that is read counts before a guard, and a guard before a register reused."""
    if by_result and (results := view.flow.writes_of[def_row]):
        guard = view.flow.guard_of[use_row]
        for dependency, others in (
            (Dependency.READ_AFTER_WRITE, [number for number in view.flow.reads_of[use_row] if number != guard]),
            (Dependency.GUARD, (guard,)),
            (Dependency.WRITE_AFTER_WRITE, view.flow.writes_of[use_row]),
        ):
            shared = find_lowest_shared(results, others)
            if shared != NO_RESOURCE:
                return Connection(dependency, shared)
    if by_operands:
        shared = find_lowest_shared(view.flow.reads_of[def_row], view.flow.writes_of[use_row])
        if shared != NO_RESOURCE:
            return Connection(Dependency.WRITE_AFTER_READ, shared)
    return Connection(Dependency.SCOREBOARD)


def find_lowest_shared(numbers: Iterable[int], others: Sequence[int]) -> int:
    """The first of ``numbers``, ascending, that is among ``others``."""
    return next((number for number in numbers if number in others), NO_RESOURCE)


class Causes(ColumnTable, frozen=True, kw_only=True):
    """Causes of the samples of some rows, m pairs."""

    use_row: _Rows  # int64[m], sampled rows; one occurs as often as it has causes
    def_row: _Rows  # int64[m]
    share_ratio: npt.NDArray[np.float64]  # float64[m], the part of the use's samples; the parts of one use add up to 1
    cycles: _Rows  # int64[m], as ``distance_cycles`` of an edge
    instructions: _Rows  # int64[m], as ``distance_instructions``


def cause_themselves(rows: _Rows, share_ratio: npt.NDArray[np.float64] | None = None) -> Causes:
    """Rows that are their own cause, of all their samples or of a part."""
    none = np.zeros(len(rows), dtype=np.int64)
    shares = np.ones(len(rows)) if share_ratio is None else share_ratio
    return Causes(use_row=rows, def_row=rows, share_ratio=shares, cycles=none, instructions=none)


def build_edges(
    view: FunctionView,
    reason: int | _Rows,
    causes: Causes,
    dependency: Dependency | npt.NDArray[np.uint8],
    *,
    category: BlameCategory | None = None,
    resource: _Rows | None = None,
    is_together: bool = False,
) -> BlameEdges:
    """The edges of some causes, sorted by use and def; groups count from 0.

    Args:
        reason: of all pairs, or int64[m].
        dependency: of all pairs, or uint8[m].
        category: of all pairs; None for what :func:`~gpa_lsp.diagnosis.blame.categories.find_category` says of each def.
        resource: int64[m]; None where no resource connects them.
        is_together: the causes of one use are one group.
    """
    count = len(causes)
    order = np.lexsort((causes.def_row, causes.use_row))
    causes = causes.select(order)
    reasons = np.broadcast_to(reason, count)[order]
    dependencies = np.broadcast_to(dependency, count)[order].astype(np.int64)
    known = _categorise(view, reasons, causes.def_row, dependencies) if category is None else np.full(count, category)
    return BlameEdges.from_columns(
        use_row=causes.use_row,
        def_row=causes.def_row,
        reason=reasons,
        category=known,
        dependency=dependencies,
        resource=np.full(count, NO_RESOURCE) if resource is None else resource[order],
        all_samples=view.all_samples[causes.use_row, reasons] * causes.share_ratio,
        latency_samples=view.latency_samples[causes.use_row, reasons] * causes.share_ratio,
        distance_cycles=causes.cycles,
        distance_instructions=causes.instructions,
        group=np.cumsum(mark_firsts(causes.use_row)) - 1 if is_together else np.arange(count),
    )


def _categorise(view: FunctionView, reasons: _Rows, def_row: _Rows, dependencies: _Rows) -> _Rows:
    """int64[m]: one look-up per distinct mnemonic, dependency and reason."""
    shape = (len(view.flow.opcodes), len(_DEPENDENCIES), len(view.reasons))
    keys = np.ravel_multi_index((view.instructions.mnemonic_index[def_row], dependencies, reasons), shape)
    known = np.zeros(shape, dtype=np.int64).ravel()
    distinct = find_distinct(keys)
    opcodes, kinds, columns = np.unravel_index(distinct, shape)
    known[distinct] = [
        find_category(view.flow.opcodes[opcode], _DEPENDENCIES[kind], view.reasons[column])
        for opcode, kind, column in zip(opcodes.tolist(), kinds.tolist(), columns.tolist(), strict=True)
    ]
    found: _Rows = known[keys]
    return found


def blame_themselves(view: FunctionView, reasons: Sequence[int]) -> BlameEdges:
    """Edges from every instruction to itself, for the samples of some reasons."""
    chosen = np.array(reasons, dtype=np.int64)
    rows, places = np.nonzero(view.all_samples[:, chosen])
    return build_edges(view, chosen[places], cause_themselves(rows), Dependency.ITSELF)


def join_edges(parts: Iterable[tuple[BlameEdges, int]]) -> BlameEdges:
    """Edges of several places, each with the row its own rows count from; groups are numbered one after the other."""
    shifted = []
    first_group = 0
    for edges, first_row in parts:
        rows = {"use_row": edges.use_row + first_row, "def_row": edges.def_row + first_row}
        shifted.append(replace(edges, **rows, group=edges.group + first_group))
        first_group += int(edges.group.max()) + 1 if len(edges) else 0
    return BlameEdges.join(shifted)


def lose_samples(view: FunctionView, found: Iterable[tuple[int, int, UnattributedCause]]) -> Unattributed:
    """The samples of some rows and reasons of a function, with why they have no cause."""
    row, reason, cause = np.array(list(found), dtype=np.int64).reshape(-1, 3).T
    return Unattributed.from_columns(
        row=row,
        reason=reason,
        cause=cause,
        all_samples=view.all_samples[row, reason],
        latency_samples=view.latency_samples[row, reason],
    )
