"""How hot each line of a document is, in one number and a few words: what it suffers, or what it makes others suffer, whichever is more."""

from enum import Enum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_percent
from gpa_lsp.editor.cause_table import find_caused_reason
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.causes import CauseLine
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import label_called, label_line


class HeatKind(Enum):
    """What a line's samples mean."""

    SUFFERS = "suffers"
    """They were taken here."""
    CAUSES = "causes"
    """They were taken elsewhere and are blamed on this line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineHeat:
    """One line.

    Attributes:
        line: 1-based, as the document is now.
        shown: the kernel it is hottest in.
        share_ratio: of that kernel's samples.
        kind: what they mean.
        text: a few words.
    """

    line: int
    shown: VisibleKernel
    share_ratio: float
    kind: HeatKind
    text: str


def measure_heat(view: DocumentView, least_ratio: float) -> tuple[LineHeat, ...]:
    """The lines of a document with at least some share, ascending."""
    lines = sorted({*view.hot_lines.list_above(least_ratio), *view.cause_lines.list_above(least_ratio)})
    found = (measure_line(view, line, least_ratio) for line in lines)
    return tuple(heat for heat in found if heat is not None)


def measure_line(view: DocumentView, line: int, least_ratio: float) -> LineHeat | None:
    """One line by the kernel in which it is hottest; None below the least share."""
    hot, cause = view.hot_lines.find_top(line), view.cause_lines.find_top(line)
    suffered = 0.0 if hot is None else hot.share_ratio
    caused = 0.0 if cause is None else cause.share_ratio
    if max(suffered, caused) < least_ratio or max(suffered, caused) <= 0:
        return None
    if cause is not None and caused > suffered:
        return LineHeat(line=line, shown=cause.shown, share_ratio=caused, kind=HeatKind.CAUSES, text=label_cause(cause))
    assert hot is not None  # it has the larger share
    return LineHeat(line=line, shown=hot.shown, share_ratio=suffered, kind=HeatKind.SUFFERS, text=label_line(hot))


def label_cause(cause: CauseLine) -> str:
    """``causes 80 %, mostly long_scoreboard``; the estimate of what it calls stands beside it."""
    reason = find_caused_reason(cause)
    text = f"causes {format_percent(cause.caused_ratio)}"
    called = label_called(cause.causes.called_samples, cause.shown.kernel.report.total_samples)
    return ", ".join(part for part in (text, "" if reason is None else f"mostly {reason}", called) if part)
