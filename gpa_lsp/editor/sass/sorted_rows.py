"""The instructions of a SASS document in the order of one of its columns, largest first: where to look first."""

from msgspec import Struct

from gpa_lsp.editor.model import Location
from gpa_lsp.editor.sass.jumps import locate_row
from gpa_lsp.editor.sass.model import SassView
from gpa_lsp.foundation.visible_text import make_one_line

_MOST_ROWS = 200


class SortedRow(Struct, frozen=True, kw_only=True):
    """One instruction of such a list."""

    location: Location  # its line
    value: str  # what stands in the column
    text: str  # the instruction
    detail: str  # where it is and what it is stalled by, in a few words


def sort_rows(view: SassView, name: str) -> list[SortedRow]:
    """The instructions that have something in a column."""
    import numpy as np

    from gpa_lsp.editor.sass.columns import fill_column

    shown = view.document.shown
    sorted_by = fill_column(shown, name)
    values = sorted_by.values
    if values is None:
        return []
    lines, reasons = fill_column(shown, "line").cells, fill_column(shown, "reason").cells
    order = np.argsort(-values, kind="stable")
    texts = shown.kernel.report.instructions.texts
    return [
        SortedRow(
            location=locate_row(view, row),
            value=sorted_by.cells[row],
            text=make_one_line(texts[row]) or "an instruction",
            detail=" · ".join(part for part in (_name_place(lines[row]), reasons[row]) if part),
        )
        for row in order[values[order] > 0][:_MOST_ROWS].tolist()
    ]


def _name_place(cell: str) -> str:
    """A cell of the column of lines, in a list.

    >>> _name_place("14"), _name_place("curves.cuh:7"), _name_place("")
    ('line 14', 'curves.cuh:7', '')
    """
    return f"line {cell}" if cell.isdecimal() else cell
