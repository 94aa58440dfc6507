"""The hottest instructions of a SASS document."""

from msgspec import Struct

from gpa_lsp.editor.lines.heat import HeatKind
from gpa_lsp.editor.lines.metric_values import label_value, measure_rows
from gpa_lsp.editor.metrics import USUAL, LineMetric, MetricKind
from gpa_lsp.editor.model import Location
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.jumps import locate_row
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.visible_text import make_one_line

# Place, share of the kernel's samples, whether they were taken there or are blamed on it, a few words
HotRow = tuple[Location, float, HeatKind, str]

_MOST_ROWS = 50

# A kernel has many more instructions than lines, so that the user's threshold for lines would leave nothing
_LEAST_RATIO = 0.01


class RowHeat(Struct, frozen=True, kw_only=True):
    """How hot an instruction is."""

    row: int  # the instruction
    share_ratio: float  # of the kernel's samples: those taken there or those blamed on it, whichever are more; or of what else is shown
    kind: HeatKind  # which
    words: str = ""  # what else is shown; empty where it is samples


def measure_row_heat(document: SassDocument, least_ratio: float, metric: LineMetric = USUAL) -> list[RowHeat]:
    """The instructions with at least some share of the kernel's samples, or of what is shown, hottest first; what is emulated is no SASS."""
    if metric.is_from_emulation:
        return []
    if metric.kind in (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE):
        return _measure_samples(document, least_ratio, metric.kind)
    values = measure_rows(document.shown.kernel.report, metric)
    hot = [(row, value) for row, value in enumerate(values) if value.ratio >= least_ratio and value.ratio > 0]
    return [
        RowHeat(row=row, share_ratio=value.ratio, kind=HeatKind.SUFFERS, words=label_value(metric, value))
        for row, value in sorted(hot, key=lambda one: -one[1].ratio)
    ]


def _measure_samples(document: SassDocument, least_ratio: float, kind: MetricKind) -> list[RowHeat]:
    import numpy as np  # not before the client has its answer to initialize

    report = document.shown.kernel.report
    total = report.total_samples
    if not total or not len(report.instructions):
        return []
    taken = report.instructions.all_samples.sum(axis=1).astype(np.float64)
    caused = np.zeros(len(taken))
    if report.blame is not None and kind is not MetricKind.TIME:
        edges = report.blame.edges
        np.add.at(caused, edges.def_row[edges.is_moved], edges.all_samples[edges.is_moved])
    if kind is MetricKind.CAUSE:
        taken[:] = 0
    hottest = np.maximum(taken, caused)
    order = np.argsort(-hottest, kind="stable")
    return [
        RowHeat(
            row=row,
            share_ratio=min(1.0, float(hottest[row]) / total),
            kind=HeatKind.CAUSES if caused[row] > taken[row] else HeatKind.SUFFERS,
        )
        for row in order[hottest[order] >= max(least_ratio * total, 1)].tolist()
    ]


def list_hot_rows(view: SassView) -> list[HotRow]:
    """The instructions that take or cause most samples, hottest first."""
    hottest = measure_row_heat(view.document, _LEAST_RATIO, view.settings.metric)[:_MOST_ROWS]
    return [(locate_row(view, heat.row), heat.share_ratio, heat.kind, label_row(view, heat)) for heat in hottest]


def label_row(view: SassView, heat: RowHeat) -> str:
    """``84 % long_scoreboard · /*0030*/ FFMA`` or ``causes 67 % · /*0020*/ LDG``."""
    from gpa_lsp.document.sampling_words import label_samples  # it needs numpy

    name = name_instruction(view.document, heat.row)
    if heat.words:
        return f"{heat.words} · {name}"
    if heat.kind is HeatKind.CAUSES:
        return f"causes {format_percent(heat.share_ratio)} · {name}"
    report = view.document.shown.kernel.report
    columns = report.instructions
    return f"{label_samples(columns.reasons, columns.all_samples[heat.row], report.total_samples)} · {name}"


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
