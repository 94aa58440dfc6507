"""``textDocument/definition``: in SASS documents, who wrote an operand, where a branch goes, what a stall waits for."""

from lsprotocol import types

from gpa_lsp.lsp.features import RequestFeature
from gpa_lsp.lsp.sass.model import SassView


def answer_sass(view: SassView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The definitions of what is under the cursor."""
    from gpa_lsp.lsp.sass.definition import answer  # needs numpy, which the answer to initialize must not wait for

    return answer(view, params)


FEATURE = RequestFeature(method=types.TEXT_DOCUMENT_DEFINITION, answer_sass=answer_sass)
