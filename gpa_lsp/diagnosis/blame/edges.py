"""Building edges and unattributed samples: one by one, for instructions that are their own cause, and from several places."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.operands import NO_RESOURCE
from gpa_lsp.diagnosis.blame.view import FunctionView


class EdgeBuilder:
    """Collects edges that are found one by one; arguments are as the columns of :class:`~gpa_lsp.diagnosis.blame.model.BlameEdges`."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add(
        self,
        *,
        use_row: int,
        def_row: int,
        reason: int,
        all_samples: float,
        latency_samples: float,
        category: BlameCategory,
        dependency: Dependency,
        resource: int,
        group: int,
        distance_cycles: int,
        distance_instructions: int,
    ) -> None:
        """One more edge."""
        blamed = (use_row, def_row, reason, all_samples, latency_samples)
        self._rows.append(
            (*blamed, category, dependency, resource, group, distance_cycles, distance_instructions),
        )

    def build(self) -> BlameEdges:
        """All of them, sorted."""
        return BlameEdges.from_rows(self._rows).sort()


def blame_themselves(view: FunctionView, reasons: Sequence[int]) -> BlameEdges:
    """Edges from every instruction to itself, for the samples of some reasons; groups count from 0."""
    chosen = np.array(reasons, dtype=np.int64)
    rows, places = np.nonzero(view.all_samples[:, chosen])
    columns = chosen[places]
    categories = np.zeros((len(view.opcodes), len(view.reasons)), dtype=np.uint8)
    for reason in reasons:
        categories[:, reason] = [
            find_category(opcode, Dependency.ITSELF, view.reasons[reason]) for opcode in view.opcodes
        ]
    nothing = np.zeros(len(rows))
    return BlameEdges.from_columns(
        use_row=rows,
        def_row=rows,
        reason=columns,
        all_samples=view.all_samples[rows, columns],
        latency_samples=view.latency_samples[rows, columns],
        category=categories[view.instructions.mnemonic_index[rows], columns],
        dependency=np.full(len(rows), Dependency.ITSELF),
        resource=np.full(len(rows), NO_RESOURCE),
        group=np.arange(len(rows)),
        distance_cycles=nothing,
        distance_instructions=nothing,
    )


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
