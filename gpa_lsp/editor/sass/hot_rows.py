"""The hottest instructions of a SASS document."""

from gpa_lsp.basis.numbers import format_percent
from gpa_lsp.editor.lines.heat import HeatKind
from gpa_lsp.editor.model import Location
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.jumps import locate_row
from gpa_lsp.editor.sass.model import SassView
from gpa_lsp.profile.stall_reasons import describe_stall_reason

HotRow = tuple[Location, float, HeatKind, str]
"""Place, share of the kernel's samples, whether they were taken there or are blamed on it, a few words."""

_MOST_ROWS = 50

_LEAST_RATIO = 0.01
"""A kernel has many more instructions than lines, so that the user's threshold for lines would leave nothing."""


def list_hot_rows(view: SassView) -> list[HotRow]:
    """The instructions that take or cause most samples, hottest first."""
    import numpy as np  # not before the client has its answer to initialize

    report = view.document.shown.kernel.report
    total = report.total_samples
    if not total or not len(report.instructions):
        return []
    taken = report.instructions.all_samples.sum(axis=1).astype(np.float64)
    caused = np.zeros(len(taken))
    if report.blame is not None:
        edges = report.blame.edges
        np.add.at(caused, edges.def_row[edges.is_moved], edges.all_samples[edges.is_moved])
    hottest = np.maximum(taken, caused)
    order = np.argsort(-hottest, kind="stable")[:_MOST_ROWS]
    return [
        _describe(view, row, min(1.0, float(hottest[row]) / total), is_cause=bool(caused[row] > taken[row]))
        for row in order.tolist()
        if hottest[row] >= _LEAST_RATIO * total
    ]


def _describe(view: SassView, row: int, ratio: float, *, is_cause: bool) -> HotRow:
    share = format_percent(ratio)
    name = name_instruction(view.document, row)
    if is_cause:
        return locate_row(view, row), ratio, HeatKind.CAUSES, f"causes {share} · {name}"
    reason = _find_reason(view, row)
    return (
        locate_row(view, row),
        ratio,
        HeatKind.SUFFERS,
        f"{share} {reason} · {name}" if reason else f"{share} · {name}",
    )


def _find_reason(view: SassView, row: int) -> str | None:
    """The stall reason of most samples; None for one that only issued."""
    columns = view.document.shown.kernel.report.instructions
    samples = columns.all_samples[row].tolist()
    stalls = {
        reason: count
        for reason, count in zip(columns.reasons, samples, strict=True)
        if count and describe_stall_reason(reason).is_stall
    }
    return max(stalls, key=lambda reason: stalls[reason], default=None)
