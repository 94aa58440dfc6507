"""``textDocument/foldingRange``: functions, loops and blocks of SASS documents."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.sass.outline import list_folds


def answer_folding_range(view: SassView, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    """The folds of the document."""
    del params
    return list_folds(view.document)


FEATURE = RequestFeature(
    method=Method[types.FoldingRangeParams, Sequence[types.FoldingRange] | None](types.TEXT_DOCUMENT_FOLDING_RANGE),
    answer_sass=answer_folding_range,
)
