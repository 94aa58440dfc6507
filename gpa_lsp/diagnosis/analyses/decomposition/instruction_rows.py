"""What the decomposition knows of every row of a kernel: its kind and its place, as columns."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, LineMark
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import index_lines
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, find_kind

_UNKNOWN = KINDS.index(InstructionKind.UNKNOWN)


def list_kinds(facts: KernelFacts) -> npt.NDArray[np.int16]:
    """The kind of every row.

    Returns:
        int16[n] into :data:`KINDS`; rows without a disassembly are ``UNKNOWN``.
    """
    return facts.rows.spread_by_mnemonic(lambda name: KINDS.index(find_kind(name)), _UNKNOWN).astype(np.int16)


def select_kinds(kinds: npt.NDArray[np.int16], wanted: frozenset[InstructionKind]) -> npt.NDArray[np.bool_]:
    """bool[n]: rows of one of the kinds.

    >>> select_kinds(np.array([0, 1], dtype=np.int16), frozenset({InstructionKind.LOCAL_LOAD})).tolist()
    [False, True]
    """
    is_wanted = np.array([kind in wanted for kind in KINDS], dtype=bool)
    return is_wanted[kinds]


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


def mark_rows(
    facts: KernelFacts,
    rows: InstructionRows,
    weights: npt.NDArray[np.float64],
    *,
    measure: str,
    quantity: Quantity,
    value_of: Callable[[int, float], float],
    text_of: Callable[[int, float], Sentence],
    whole: float | None = None,
    least_ratio: float = 0.001,
) -> tuple[LineMark, ...]:
    """One mark per source line (per instruction where there is no line), the heaviest first.

    Args:
        weights: float64[n], what is shared out, by row.
        whole: what shares are of; None for the sum of the weights.
    """
    whole = float(weights.sum()) if whole is None else whole
    if whole <= 0:
        return ()
    sums = sum_by_place(rows, weights)
    marks = []
    for row, weight in zip(sums.rows[:MOST_MARKS].tolist(), sums.weights[:MOST_MARKS].tolist(), strict=True):
        if weight / whole < least_ratio:
            break
        place, function = facts.rows.place(row), facts.rows.function_of(row)
        marks.append(
            LineMark(
                measure=measure,
                value=value_of(row, weight),
                quantity=quantity,
                share_ratio=min(1.0, weight / whole),
                text=text_of(row, weight),
                file=None if place is None else place.file,
                line=None if place is None else place.line,
                function=function.name,
                pc_offset=int(function.pc_offsets[facts.rows.index_of(row)]),
            )
        )
    return tuple(marks)
