"""What the decomposition knows of every row of a kernel: its kind and its place, as columns."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.decomposition.row_kinds import list_kinds
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import index_lines
from gpa_lsp.foundation.records import ColumnRecord


class InstructionRows(ColumnRecord, frozen=True, kw_only=True):
    """The n rows of a kernel."""

    kinds: npt.NDArray[np.int16]  # int16[n] into :data:`~gpa_lsp.kernel.dataflow.instruction_kinds.KINDS`
    # int64[n], the same number for rows of one source line; a row without a line has a number of its own
    places: npt.NDArray[np.int64]


def view_rows(facts: KernelFacts) -> InstructionRows:
    """Kind and place of every row."""
    return facts.once(_view_rows)


def _view_rows(facts: KernelFacts) -> InstructionRows:
    index = index_lines(facts)
    has_line = np.array([place.line is not None for place in index.places], dtype=bool)
    own = len(index.places) + np.arange(len(index.line_of), dtype=np.int64)
    places = np.where(has_line[index.line_of], index.line_of, own)
    return InstructionRows(kinds=list_kinds(facts), places=places.astype(np.int64))


class PlaceSums(ColumnRecord, frozen=True, kw_only=True):
    """A column summed by place, p places, most first."""

    weights: npt.NDArray[np.float64]  # float64[p], descending
    rows: npt.NDArray[np.int64]  # int64[p], the row with most of each


def sum_by_place(rows: InstructionRows, column: npt.NDArray[np.float64]) -> PlaceSums:
    """Sum a column (float64[n], none negative) by place; places without any are left out."""
    chosen = np.flatnonzero(column > 0)
    if not len(chosen):
        return PlaceSums(weights=np.empty(0), rows=np.empty(0, dtype=np.int64))
    order = chosen[np.lexsort((chosen, -column[chosen], rows.places[chosen]))]
    _, firsts = np.unique(rows.places[order], return_index=True)
    sums = np.add.reduceat(column[order], firsts)
    leading = order[firsts]
    ranks = np.lexsort((leading, -sums))
    return PlaceSums(weights=sums[ranks], rows=leading[ranks].astype(np.int64))
