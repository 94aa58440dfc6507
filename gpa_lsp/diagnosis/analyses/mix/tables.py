"""The mix of instructions as tables and bars: by class, by pipe, by line."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.answers import Bar, Column, Table
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, rank_lines
from gpa_lsp.diagnosis.analyses.mix.classes import ARITHMETIC, CLASSES, MEMORY, WorkClass
from gpa_lsp.diagnosis.analyses.mix.pipes import PipeUse
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import count, say

MOST_ROWS = 10  # Lines a table shows

_LEAST_BAR = 0.005  # Smaller classes are shown together

# Columns of the table by line; every class is in one of them
_GROUPS: tuple[tuple[str, tuple[WorkClass, ...]], ...] = (
    ("floating point, tensor", ARITHMETIC),
    ("integer", (WorkClass.INTEGER,)),
    ("addresses", (WorkClass.ADDRESS,)),
    ("memory", MEMORY),
    ("conversions", (WorkClass.CONVERSION,)),
    ("moves", (WorkClass.MOVE, WorkClass.UNIFORM, WorkClass.EXCHANGE)),
    ("control, barriers", (WorkClass.CONTROL, WorkClass.BARRIER, WorkClass.OTHER)),
)


def build_bars(classes: Mapping[WorkClass, int]) -> tuple[Bar, ...]:
    """Classes as parts of all executed instructions, largest first; the small ones together at the end."""
    total = sum(classes.values())
    if total == 0:
        return ()
    large = sorted(
        ((one.value, executed) for one, executed in classes.items() if executed >= _LEAST_BAR * total),
        key=lambda item: -item[1],
    )
    rest = total - sum(executed for _, executed in large)
    shown = [*large, *([("all others", rest)] if rest else [])]
    return tuple(
        Bar(label=label, ratio=executed / total, words=say("{executed}", executed=count(executed)))
        for label, executed in shown
    )


def build_pipe_table(uses: tuple[PipeUse, ...], total: int | None) -> tuple[Table, ...]:
    """How busy each pipe is; nothing where nothing is known of any."""
    if not uses:
        return ()
    rows: list[tuple[Cell, ...]] = [
        (
            use.pipe.title,
            use.pipe.says,
            use.instructions,
            use.instructions / total if use.instructions is not None and total else None,
            use.counted_ratio,
            use.computed_ratio,
        )
        for use in uses
    ]
    return (
        Table(
            title="Pipes",
            columns=(
                Column(name="pipe"),
                Column(name="executes"),
                Column(name="instructions", quantity=Quantity.COUNT),
                Column(name="share", quantity=Quantity.RATIO),
                Column(name="use, counted", quantity=Quantity.RATIO),
                Column(name="use, computed", quantity=Quantity.RATIO),
            ),
            rows=tuple(rows),
            note=say(
                "Use is of the pipe's rate while the SMs are active (over the whole kernel where only that was counted). Computed use takes one "
                "issue slot per instruction; some take more."
            ),
        ),
    )


def build_line_table(
    classes: npt.NDArray[np.int64],
    executions: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
    index: LineIndex,
) -> tuple[Table, ...]:
    """What the hottest lines execute, in shares of their instructions; nothing where none executed any.

    Args:
        classes: int64[n], numbers in ``CLASSES``; -1 unknown.
        executions: int64[n].
        samples: int64[n], which decide what is hot; executions do where there are none.
    """
    executed = index.sum_by_line(executions)
    heat = index.sum_by_line(samples if samples.any() else executions)
    groups = [(name, [CLASSES.index(one) for one in members]) for name, members in _GROUPS]
    by_group = [index.sum_by_line(np.where(np.isin(classes, members), executions, 0)) for _, members in groups]
    rows: list[tuple[Cell, ...]] = []
    for line in rank_lines(np.where(executed > 0, heat, 0.0), MOST_ROWS):
        shares = [float(sums[line] / executed[line]) for sums in by_group]
        rows.append((str(index.places[line]), round(float(heat[line])), round(float(executed[line])), *shares))
    if not rows:
        return ()
    heat_column = (
        Column(name="samples", quantity=Quantity.SAMPLES)
        if samples.any()
        else Column(name="executions", quantity=Quantity.COUNT)
    )
    return (
        Table(
            title="What the hottest lines execute",
            columns=(
                Column(name="line"),
                heat_column,
                Column(name="warp instructions", quantity=Quantity.COUNT),
                *(Column(name=name, quantity=Quantity.RATIO) for name, _ in groups),
            ),
            rows=tuple(rows),
        ),
    )


def build_opcode_table(counts: Mapping[str, int], total: int) -> tuple[Table, ...]:
    """The opcodes executed most; nothing without executions."""
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_ROWS]
    rows: list[tuple[Cell, ...]] = [(name, executed, executed / total) for name, executed in largest if executed > 0]
    if not rows:
        return ()
    columns = (
        Column(name="opcode"),
        Column(name="warp instructions", quantity=Quantity.COUNT),
        Column(name="share", quantity=Quantity.RATIO),
    )
    return (Table(title="Opcodes", columns=columns, rows=tuple(rows)),)
