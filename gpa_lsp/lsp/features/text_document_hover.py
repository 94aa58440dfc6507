"""``textDocument/hover``: the stall table of a hot line, what it waits for and who waits for it; nothing away from such lines, where other servers
have their say.
"""

from lsprotocol import types

from gpa_lsp.lsp.cause_words import describe_causes, summarise_cause
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
    causes = view.cause_lines.get(line, ())
    kernel = lines[0].shown if lines else None
    if kernel is None:
        causes = tuple(cause for cause in causes if cause.share_ratio >= least_ratio)
    cause = next((cause for cause in causes if kernel is None or cause.shown is kernel), None)
    if kernel is None and cause is None:
        return None
    head = describe_line(lines) if lines else summarise_cause(cause) if cause else ""
    value = "\n\n".join(part for part in (head, describe_causes(cause) if cause else "") if part)
    content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=value)
    return types.Hover(contents=content, range=view.positions.find_text(line))


FEATURE = RequestFeature(method=types.TEXT_DOCUMENT_HOVER, answer=answer_hover)
