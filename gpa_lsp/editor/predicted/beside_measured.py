"""What was measured of a line beside what was emulated of it, where the launch that was emulated is the one that was measured."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpa_lsp.basis.numbers import format_count
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.metric_values import measure_values
from gpa_lsp.editor.metrics import LineMetric, MetricKind

if TYPE_CHECKING:
    from gpa_lsp.traces.line_facts import AccessLineFact

_COUNTED = frozenset({"GLOBAL", "GENERIC", "LOCAL"})


def compare_with_measured(
    view: DocumentView, line: int, launch: int, accesses: "Sequence[AccessLineFact]"
) -> str | None:
    """The sectors of a line, measured and emulated, in one sentence; None where no such launch was measured, or its sectors were not.

    Args:
        view: of the document.
        line: of the document, 1-based.
        launch: index of the launch that was emulated.
        accesses: what it did on the line, functions that are inlined or called there included.
    """
    own = [one for one in accesses if one.space.name in _COUNTED]
    if view.predicted is None or not own:
        return None
    emulated = view.predicted.find_launch(launch)
    if emulated.grid is None or emulated.emulated_ratio <= 0:
        return None
    for hot in view.hot_lines.get(line, ()):
        report = hot.shown.kernel.report
        shape = (report.configuration.grid, report.configuration.block)
        if report.mangled_name != emulated.mangled_name or shape != (emulated.grid, emulated.block):
            continue
        values = measure_values(hot.shown.kernel, LineMetric(kind=MetricKind.SECTORS))
        if values is None or not report.launches or hot.row.file is None or hot.row.line is None:
            continue
        value = values.by_line.get((hot.row.file, hot.row.line))
        if value is None:
            continue
        measured = value.number / len(report.launches)
        counted = sum(one.sectors for one in own) / emulated.emulated_ratio
        return _say(measured, counted, is_whole=emulated.emulated_ratio >= 1)
    return None


def _say(measured: float, emulated: float, *, is_whole: bool) -> str:
    from gpa_lsp.prediction.measured_model import CountPair  # it needs numpy

    shown = f"{format_count(round(measured))} sectors measured, {format_count(round(emulated))} emulated"
    if CountPair(measured=measured, emulated=emulated).agrees:
        return f"{shown}: they agree"
    if not is_whole:
        return f"{shown}, from a part of the blocks: **they differ**"
    return f"{shown}: **they differ**; are the arguments those of the measured launch?"
