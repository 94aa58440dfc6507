"""WRITER: a document as a page that opens from disk: its parts with links to them, and the parts of those."""

from collections.abc import Sequence

from gpa_lsp.document.blocks import Block, Part
from gpa_lsp.document.page import read_asset, render_page
from gpa_lsp.document.page.writer import PageWriter

_PACKAGE = "gpa_lsp.document.document_page"
_REPORT = "gpa_lsp.document.html_report"


def render_document_page(title: str, lead: str, blocks: Sequence[Block]) -> str:
    """The page.

    Args:
        title: of the page.
        lead: a sentence below it.
        blocks: what to show; parts become sections.

    Returns:
        HTML that loads nothing.
    """
    parts = [block for block in blocks if isinstance(block, Part)]
    values = {
        "lead": lead,
        "others": [block for block in blocks if not isinstance(block, Part)],
        "sections": [(f"k{number}", part, *_split(part)) for number, part in enumerate(parts)],
        "page": PageWriter(opens_tables=len(parts) == 1),
    }
    return render_page(
        f"{_PACKAGE}/page.html.jinja",
        title=title,
        values=values,
        styles=[read_asset(_REPORT, "report.css"), read_asset(_PACKAGE, "page.css")],
        scripts=[read_asset(_PACKAGE, "page.js")],
        draws_charts=True,
    )


def _split(part: Part) -> tuple[list[Block], list[Part]]:
    """Blocks a part holds directly, and its sub-parts."""
    parts = [block for block in part.blocks if isinstance(block, Part)]
    own: list[Block] = [block for block in part.blocks if not isinstance(block, Part)]
    return own, parts
