"""``textDocument/hover``: the stall table of a hot line, what it waits for and who waits for it; nothing away from such lines, where other servers
have their say.
"""

from lsprotocol import types

from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.features import Method, RequestFeature
from gpa_lsp.lsp.lines.positions import read_line
from gpa_lsp.lsp.sass import hover as sass_hover
from gpa_lsp.lsp.source_hover import describe_hover


def answer_hover(view: DocumentView, params: types.HoverParams) -> types.Hover | None:
    """The hover of the line under the cursor."""
    line = read_line(params.position)
    value = describe_hover(view, line)
    if value is None:
        return None
    content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=value)
    return types.Hover(contents=content, range=view.positions.find_text(line))


FEATURE = RequestFeature(
    method=Method[types.HoverParams, types.Hover | None](types.TEXT_DOCUMENT_HOVER),
    answer=answer_hover,
    answer_sass=sass_hover.answer_hover,
)
