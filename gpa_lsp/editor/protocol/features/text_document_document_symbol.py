"""``textDocument/documentSymbol``: the kernels of a source with their times; functions, loops and hot blocks of a SASS document."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass import outline as sass_outline
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.source.symbols import list_symbols


def answer_document_symbol(view: DocumentView, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The symbols of a source."""
    del params
    return list_symbols(view)


def answer_sass(view: SassView, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The outline of a SASS document."""
    del params
    return sass_outline.list_symbols(view)


FEATURE = RequestFeature(
    method=Method[
        types.DocumentSymbolParams, Sequence[types.SymbolInformation] | Sequence[types.DocumentSymbol] | None
    ](types.TEXT_DOCUMENT_DOCUMENT_SYMBOL),
    answer=answer_document_symbol,
    answer_sass=answer_sass,
)
