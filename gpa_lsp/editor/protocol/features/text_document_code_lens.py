"""``textDocument/codeLens``: complete lenses, with nothing left to resolve."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.source.lenses import list_lenses


def answer_code_lens(view: DocumentView, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of the document's kernels, and of their loops and calls with advice."""
    del params
    # asked for again with every change of the cursor's line in some editors, and by every window
    return view.once(list_lenses)


FEATURE = RequestFeature(
    method=Method[types.CodeLensParams, Sequence[types.CodeLens] | None](types.TEXT_DOCUMENT_CODE_LENS),
    answer=answer_code_lens,
    options=types.CodeLensOptions(resolve_provider=False),
    refresh_method=types.WORKSPACE_CODE_LENS_REFRESH,
    refresh_capability="workspace.code_lens.refresh_support",
)
