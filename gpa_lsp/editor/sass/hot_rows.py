"""The hottest instructions of a SASS document."""

from lsprotocol.types import Location
from msgspec import Struct

from gpa_lsp.editor.lines.metric_values import label_value, measure_rows
from gpa_lsp.editor.metrics import USUAL, LineMetric, MetricKind
from gpa_lsp.editor.model import Mark, MarkKind, Origin
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.jumps import locate_row
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.visible_text import make_one_line

_MOST_ROWS = 50

# A kernel has many more instructions than lines, so that the user's threshold for lines would leave nothing
_LEAST_RATIO = 0.01


def mark_rows(document: SassDocument, least_ratio: float, metric: LineMetric = USUAL) -> list[tuple[int, Mark]]:
    """The instructions with at least some share of the kernel's samples, or of what is shown, hottest first; what is emulated is no SASS."""
    if metric.is_from_emulation:
        return []
    if metric.kind in (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE):
        return _mark_samples(document, least_ratio, metric.kind)
    values = measure_rows(document.shown.kernel.report, metric)
    hot = [(row, value) for row, value in enumerate(values) if value.ratio >= least_ratio and value.ratio > 0]
    return [
        _mark(document, row, value.ratio, MarkKind.SUFFERS, label_value(metric, value))
        for row, value in sorted(hot, key=lambda one: -one[1].ratio)
    ]


def _mark_samples(document: SassDocument, least_ratio: float, kind: MetricKind) -> list[tuple[int, Mark]]:
    import numpy as np  # not before the client has its answer to initialize

    from gpa_lsp.document.sampling_words import label_samples

    report = document.shown.kernel.report
    total, columns = report.total_samples, report.instructions
    if not total or not len(columns):
        return []
    taken = columns.all_samples.sum(axis=1).astype(np.float64)
    caused = np.zeros(len(taken))
    if report.blame is not None and kind is not MetricKind.TIME:
        edges = report.blame.edges
        np.add.at(caused, edges.def_row[edges.is_moved], edges.all_samples[edges.is_moved])
    if kind is MetricKind.CAUSE:
        taken[:] = 0
    hottest = np.maximum(taken, caused)
    order = np.argsort(-hottest, kind="stable")
    marks = []
    for row in order[hottest[order] >= max(least_ratio * total, 1)].tolist():
        ratio = min(1.0, float(hottest[row]) / total)
        if caused[row] > taken[row]:
            marks.append(_mark(document, row, ratio, MarkKind.CAUSES, f"causes {format_percent(ratio)}"))
        else:
            words = label_samples(columns.reasons, columns.all_samples[row], total)
            marks.append(_mark(document, row, ratio, MarkKind.SUFFERS, words))
    return marks


def _mark(document: SassDocument, row: int, ratio: float, kind: MarkKind, words: str) -> tuple[int, Mark]:
    """``84 % long_scoreboard · /*0030*/ FFMA`` or ``causes 67 % · /*0020*/ LDG``."""
    shown = document.shown
    return row, Mark(
        line=int(document.line_of_row[row]),
        kind=kind,
        share_ratio=ratio,
        text=f"{words} · {name_instruction(document, row)}",
        kernel=shown.name,
        origin=Origin.SIMULATED if shown.kernel.report.is_simulated else Origin.MEASURED,
    )


def list_hot_rows(view: SassView) -> list[tuple[Location, Mark]]:
    """The instructions that take or cause most samples, hottest first."""
    hottest = mark_rows(view.document, _LEAST_RATIO, view.settings.metric)[:_MOST_ROWS]
    return [(locate_row(view, row), mark) for row, mark in hottest]


_MOST_SORTED_ROWS = 200


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
        for row in order[values[order] > 0][:_MOST_SORTED_ROWS].tolist()
    ]


def _name_place(cell: str) -> str:
    """A cell of the column of lines, in a list.

    >>> _name_place("14"), _name_place("curves.cuh:7"), _name_place("")
    ('line 14', 'curves.cuh:7', '')
    """
    return f"line {cell}" if cell.isdecimal() else cell
