"""``textDocument/hover``: the stall table of a hot line, what it waits for and who waits for it; nothing away from such lines, where other servers
have their say.
"""

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.source.hover import describe_hover


def answer_hover(view: DocumentView, params: types.HoverParams) -> types.Hover | None:
    """The hover of the line under the cursor."""
    line = read_line(params.position)
    text = describe_hover(view, line)
    content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=text or "")
    return None if text is None else types.Hover(contents=content, range=view.positions.find_text(line))


def answer_sass(view: SassView, params: types.HoverParams) -> types.Hover | None:
    """The hover of the instruction under the cursor."""
    from gpa_lsp.editor.sass import (
        hover as sass_hover,  # it needs numpy, which the answer to initialize must not wait for
    )

    return sass_hover.describe_hover(view, params.position)


FEATURE = RequestFeature(
    method=Method[types.HoverParams, types.Hover | None](types.TEXT_DOCUMENT_HOVER),
    answer=answer_hover,
    answer_sass=answer_sass,
)
