"""``textDocument/hover``: the stall table of a hot line; nothing away from hot lines, where other servers have their say."""

from lsprotocol import types

from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.features import RequestFeature
from gpa_lsp.lsp.positions import read_line
from gpa_lsp.lsp.stall_table import describe_line

_LEAST_RATIO = 0.005
"""A line below this share has nothing to say, whatever the user's threshold for hints is."""


def answer_hover(view: DocumentView, params: types.HoverParams) -> types.Hover | None:
    """The hover of the line under the cursor."""
    line = read_line(params.position)
    least_ratio = min(_LEAST_RATIO, view.settings.min_share_ratio)
    lines = [hot for hot in view.hot_lines.get(line, ()) if hot.share_ratio >= least_ratio]
    if not lines:
        return None
    content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=describe_line(lines))
    return types.Hover(contents=content, range=view.positions.find_text(line))


FEATURE = RequestFeature(method=types.TEXT_DOCUMENT_HOVER, answer=answer_hover)
