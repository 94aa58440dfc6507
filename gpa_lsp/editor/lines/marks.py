"""Marks of lines: what a line suffers or causes, whichever is more, or what it is in the metric that somebody chose; one share, in a few words."""

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.line_words import find_caused_reason, label_called, label_line
from gpa_lsp.editor.lines.index import CauseLine, HotLine, KernelLine, ValueLine
from gpa_lsp.editor.lines.metric_values import label_value
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.model import Freshness, Mark, MarkKind, Origin
from gpa_lsp.editor.predicted.metric_values import measure_emulation
from gpa_lsp.foundation.numbers import format_percent


def list_marks(view: DocumentView, least_ratio: float) -> tuple[Mark, ...]:
    """The lines of a document with at least some share, ascending, each by the kernel in which it is hottest."""
    metric = view.settings.metric
    if metric.is_from_emulation:
        marks = (mark for _, mark in sorted(measure_emulation(view, metric).items()))
        return tuple(mark for mark in marks if mark.share_ratio >= least_ratio)
    tables = {
        MetricKind.USUAL: (view.hot_lines, view.cause_lines),
        MetricKind.TIME: (view.hot_lines,),
        MetricKind.CAUSE: (view.cause_lines,),
    }.get(metric.kind, (view.value_lines,))
    found: dict[int, KernelLine] = {}
    for table in tables:  # of the same share, what is suffered comes first
        for line in table.list_above(least_ratio):
            top = table.find_top(line)
            if top is not None and top.share_ratio > (found[line].share_ratio if line in found else 0.0):
                found[line] = top
    return tuple(make_mark(found[line], line, metric) for line in sorted(found))


def make_mark(one: KernelLine, line: int, metric: LineMetric) -> Mark:
    """The mark of what a kernel says of a line.

    Args:
        line: 1-based, as the document is now.
    """
    return Mark(
        line=line,
        kind=MarkKind.CAUSES if isinstance(one, CauseLine) else MarkKind.SUFFERS,
        share_ratio=one.share_ratio,
        text=_label(one, metric),
        kernel=one.shown.name,
        origin=Origin.SIMULATED if one.shown.kernel.report.is_simulated else Origin.MEASURED,
        freshness=Freshness.UNVERIFIED if one.file.describe_doubt() else Freshness.CURRENT,
    )


def _label(one: KernelLine, metric: LineMetric) -> str:
    if isinstance(one, ValueLine):
        return label_value(metric, one.value)
    if isinstance(one, HotLine):
        return label_line(one)
    return label_cause(one) if isinstance(one, CauseLine) else ""


def label_cause(cause: CauseLine) -> str:
    """``causes 80 %, mostly long_scoreboard``; the estimate of what it calls stands beside it."""
    reason = find_caused_reason(cause)
    text = f"causes {format_percent(cause.caused_ratio)}"
    called = label_called(cause.causes.called_samples, cause.shown.kernel.report.total_samples)
    return ", ".join(part for part in (text, "" if reason is None else f"mostly {reason}", called) if part)
