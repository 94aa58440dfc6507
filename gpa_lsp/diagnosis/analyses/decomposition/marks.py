"""Numbers of instructions as marks on source lines."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, LineMark
from gpa_lsp.diagnosis.analyses.decomposition.instruction_rows import InstructionRows, sum_by_place
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import Sentence


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
    return tuple(
        _make_mark(facts, row, weight, whole, measure=measure, quantity=quantity, value_of=value_of, text_of=text_of)
        for row, weight in zip(sums.rows[:MOST_MARKS].tolist(), sums.weights[:MOST_MARKS].tolist(), strict=True)
        if weight / whole >= least_ratio
    )


def _make_mark(
    facts: KernelFacts,
    row: int,
    weight: float,
    whole: float,
    *,
    measure: str,
    quantity: Quantity,
    value_of: Callable[[int, float], float],
    text_of: Callable[[int, float], Sentence],
) -> LineMark:
    place = facts.rows.place(row)
    function = facts.rows.function_of(row)
    return LineMark(
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
