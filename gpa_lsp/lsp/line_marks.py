"""What the analyses say of one line: excess sectors, bank conflicts, divergence, waiting loads. Pure functions."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.lsp.document_view import HotLine
from gpa_lsp.lsp.session import VisibleKernel

if TYPE_CHECKING:
    from gpa_lsp.analyses.answers import LineMark

MOST_MARKS = 5
"""Shown on one line."""


def describe_marks(lines: Sequence[HotLine]) -> str:
    """The marks on a line of the document, as a list in Markdown, largest shares first; empty where there are none.

    Args:
        lines: the rows of kernels that were measured on it.
    """
    marks = [mark for hot in lines for mark in find_marks(hot.shown, hot.row.file, hot.row.line)]
    marks.sort(key=lambda mark: -(mark.share_ratio or 0.0))
    return "\n".join(f"- {_describe(mark)}" for mark in marks[:MOST_MARKS])


def find_marks(shown: VisibleKernel, file: str | None, line: int | None) -> "Iterator[LineMark]":
    """The marks of one kernel on a line as it was compiled."""
    analyses = shown.kernel.report.analyses
    if analyses is None or file is None:
        return
    for answer in analyses.answers:
        yield from (mark for mark in answer.marks if mark.line == line and mark.file == file)


def _describe(mark: "LineMark") -> str:
    from gpa_lsp.render.advice_markdown import escape_prose
    from gpa_lsp.render.numbers import format_percent, format_quantity

    text = f"**{escape_prose(mark.measure)}** {format_quantity(mark.value, mark.quantity)}"
    if mark.share_ratio is not None:
        text += f" ({format_percent(mark.share_ratio)} of the kernel's)"
    return f"{text}: {escape_prose(mark.text)}" if mark.text else text
