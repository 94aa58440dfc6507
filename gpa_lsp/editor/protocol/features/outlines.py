"""Kernels of sources and of the workspace; structure and colours of SASS documents."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.features import Method, RequestFeature, SessionFeature
from gpa_lsp.editor.sass import outline as sass_outline
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.sass.token_types import MODIFIER_NAMES, TYPE_NAMES
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.source.lenses import list_symbols


def answer_document_symbol(view: DocumentView, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The symbols of a source."""
    del params
    return list_symbols(view)


def answer_sass_document_symbol(view: SassView, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The outline of a SASS document."""
    del params
    return sass_outline.list_symbols(view)


# The kernels of a source with their times; functions, loops and hot blocks of a SASS document
DOCUMENT_SYMBOL = RequestFeature(
    method=Method[
        types.DocumentSymbolParams, Sequence[types.SymbolInformation] | Sequence[types.DocumentSymbol] | None
    ](types.TEXT_DOCUMENT_DOCUMENT_SYMBOL),
    answer=answer_document_symbol,
    answer_sass=answer_sass_document_symbol,
)


def answer_workspace_symbol(session: SessionView, params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
    """The kernels that the query's characters name."""
    from gpa_lsp.editor.kernels import find_kernels

    return find_kernels(session, params.query)


# The measured kernels, by a part of their name
WORKSPACE_SYMBOL = SessionFeature(
    method=Method[
        types.WorkspaceSymbolParams, Sequence[types.SymbolInformation] | Sequence[types.WorkspaceSymbol] | None
    ](types.WORKSPACE_SYMBOL),
    answer=answer_workspace_symbol,
)


def answer_folding_range(view: SassView, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    """The folds of the document."""
    del params
    return sass_outline.list_folds(view.document)


# Functions, loops and blocks of SASS documents
FOLDING_RANGE = RequestFeature(
    method=Method[types.FoldingRangeParams, Sequence[types.FoldingRange] | None](types.TEXT_DOCUMENT_FOLDING_RANGE),
    answer_sass=answer_folding_range,
)


def answer_semantic_tokens(view: SassView, params: types.SemanticTokensParams) -> types.SemanticTokens:
    """All tokens of the document."""
    from gpa_lsp.editor.sass.tokens import encode_tokens  # needs numpy, which initialize must not wait for

    del params
    return types.SemanticTokens(data=encode_tokens(view.document, view.positions.units))


# The colours of SASS documents. Sources are coloured by the server of their language.
SEMANTIC_TOKENS = RequestFeature(
    method=Method[types.SemanticTokensParams, types.SemanticTokens | None](types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL),
    answer_sass=answer_semantic_tokens,
    options=types.SemanticTokensLegend(token_types=list(TYPE_NAMES), token_modifiers=list(MODIFIER_NAMES)),
)


FEATURES = (DOCUMENT_SYMBOL, WORKSPACE_SYMBOL, FOLDING_RANGE, SEMANTIC_TOKENS)
