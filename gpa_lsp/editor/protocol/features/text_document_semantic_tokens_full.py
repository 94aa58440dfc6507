"""``textDocument/semanticTokens/full``: the colours of SASS documents. Sources are coloured by the server of their language."""

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.sass.token_types import MODIFIER_NAMES, TYPE_NAMES


def answer_semantic_tokens(view: SassView, params: types.SemanticTokensParams) -> types.SemanticTokens:
    """All tokens of the document."""
    from gpa_lsp.editor.sass.tokens import (
        encode_tokens,
    )  # needs numpy, which the answer to initialize must not wait for

    del params
    return types.SemanticTokens(data=encode_tokens(view.document, view.positions.units))


FEATURE = RequestFeature(
    method=Method[types.SemanticTokensParams, types.SemanticTokens | None](types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL),
    answer_sass=answer_semantic_tokens,
    options=types.SemanticTokensLegend(token_types=list(TYPE_NAMES), token_modifiers=list(MODIFIER_NAMES)),
)
