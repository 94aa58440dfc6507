"""What the code of a line says, for a hover."""

from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.static_results import StaticMark

_MOST_MARKS = 6


def describe_statics(view: DocumentView, line: int) -> str | None:
    """The findings on a line (1-based) as Markdown; None for a line without any."""
    marks = () if view.statics is None else view.statics.marks.get(line, ())
    if not marks:
        return None
    parts = [f"* {write_mark(mark)} *({mark.check}, {mark.certainty})*" for mark in marks[:_MOST_MARKS]]
    if len(marks) > _MOST_MARKS:
        parts.append(f"* and {len(marks) - _MOST_MARKS} more")
    return "\n".join(("**Static** · from the code alone, not measured", "", *parts))


def write_mark(mark: StaticMark) -> str:
    """A finding and its remedy."""
    return f"{mark.message} {mark.remedy}".rstrip()
