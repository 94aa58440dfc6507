"""How hot each line of a document is, in one number and a few words: what it suffers, or what it makes others suffer, whichever is more; or what it
is in the metric that somebody chose.
"""

from enum import Enum

from msgspec import Struct

from gpa_lsp.editor.cause_table import find_caused_reason
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.index import CauseLine
from gpa_lsp.editor.lines.metric_values import label_value
from gpa_lsp.editor.metrics import MetricKind
from gpa_lsp.editor.predicted.metric_values import measure_emulation
from gpa_lsp.editor.stall_table import label_called, label_line
from gpa_lsp.foundation.numbers import format_percent


class HeatKind(Enum):
    """What a line's samples mean."""

    SUFFERS = "suffers"  # They were taken here; or it is no samples that are shown
    CAUSES = "causes"  # They were taken elsewhere and are blamed on this line


class LineHeat(Struct, frozen=True, kw_only=True):
    """One line."""

    line: int  # 1-based, as the document is now
    kernel: str  # short name of the one it is hottest in
    share_ratio: float  # of that kernel's samples, or of what else is shown
    kind: HeatKind  # what they mean
    text: str  # a few words
    is_unverified: bool = False  # nobody can tell whether its source is what was measured
    is_simulated: bool = False  # a model says so, and nothing was measured


def measure_heat(view: DocumentView, least_ratio: float) -> tuple[LineHeat, ...]:
    """The lines of a document with at least some share, ascending."""
    metric = view.settings.metric
    if metric.is_from_emulation:
        return _measure_emulated(view, least_ratio)
    tables = {
        MetricKind.USUAL: (view.hot_lines, view.cause_lines),
        MetricKind.TIME: (view.hot_lines,),
        MetricKind.CAUSE: (view.cause_lines,),
    }
    chosen = tables.get(metric.kind, (view.value_lines,))
    lines = sorted({line for table in chosen for line in table.list_above(least_ratio)})
    found = (measure_line(view, line, least_ratio) for line in lines)
    return tuple(heat for heat in found if heat is not None)


def _measure_emulated(view: DocumentView, least_ratio: float) -> tuple[LineHeat, ...]:
    return tuple(
        LineHeat(line=line, kernel=one.kernel, share_ratio=one.ratio, kind=HeatKind.SUFFERS, text=one.words)
        for line, one in sorted(measure_emulation(view, view.settings.metric).items())
        if one.ratio >= least_ratio
    )


def measure_line(view: DocumentView, line: int, least_ratio: float) -> LineHeat | None:
    """One line by the kernel in which it is hottest; None below the least share."""
    kind = view.settings.metric.kind
    if kind not in (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE):
        return _measure_value(view, line, least_ratio)
    hot = None if kind is MetricKind.CAUSE else view.hot_lines.find_top(line)
    cause = None if kind is MetricKind.TIME else view.cause_lines.find_top(line)
    suffered = 0.0 if hot is None else hot.share_ratio
    caused = 0.0 if cause is None else cause.share_ratio
    if max(suffered, caused) < least_ratio or max(suffered, caused) <= 0:
        return None
    if cause is not None and caused > suffered:
        return LineHeat(
            line=line,
            kernel=cause.shown.name,
            share_ratio=caused,
            kind=HeatKind.CAUSES,
            text=label_cause(cause),
            is_unverified=bool(cause.file.describe_doubt()),
            is_simulated=cause.shown.kernel.report.is_simulated,
        )
    assert hot is not None  # it has the larger share
    return LineHeat(
        line=line,
        kernel=hot.shown.name,
        share_ratio=suffered,
        kind=HeatKind.SUFFERS,
        text=label_line(hot),
        is_unverified=bool(hot.file.describe_doubt()),
        is_simulated=hot.shown.kernel.report.is_simulated,
    )


def _measure_value(view: DocumentView, line: int, least_ratio: float) -> LineHeat | None:
    top = view.value_lines.find_top(line)
    if top is None or top.value.ratio < least_ratio:
        return None
    return LineHeat(
        line=line,
        kernel=top.shown.name,
        share_ratio=top.value.ratio,
        kind=HeatKind.SUFFERS,
        text=label_value(view.settings.metric, top.value),
        is_unverified=bool(top.file.describe_doubt()),
        is_simulated=top.shown.kernel.report.is_simulated,
    )


def label_cause(cause: CauseLine) -> str:
    """``causes 80 %, mostly long_scoreboard``; the estimate of what it calls stands beside it."""
    reason = find_caused_reason(cause)
    text = f"causes {format_percent(cause.caused_ratio)}"
    called = label_called(cause.causes.called_samples, cause.shown.kernel.report.total_samples)
    return ", ".join(part for part in (text, "" if reason is None else f"mostly {reason}", called) if part)
