"""``textDocument/definition``: in SASS documents, who wrote an operand, where a branch goes, what a stall waits for. In sources, where the user wants
it, the lines that a line waits for.
"""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.settings import Settings


def answer_definition(view: DocumentView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The lines that the line under the cursor waits for, most samples first; those of little weight are left out."""
    from gpa_lsp.editor.jumps import find_awaited_lines

    return find_awaited_lines(view, read_line(params.position)) or None


def answer_sass(view: SassView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The definitions of what is under the cursor."""
    from gpa_lsp.editor.sass.jumps import find_definition  # needs numpy, which initialize must not wait for

    return find_definition(view, params.position)


def _is_wanted(settings: Settings, abilities: Abilities) -> bool:
    del abilities
    return settings.serves_definition


FEATURE = RequestFeature(
    method=Method[
        types.DefinitionParams, types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None
    ](types.TEXT_DOCUMENT_DEFINITION),
    answer=answer_definition,
    answer_sass=answer_sass,
    serves_source=_is_wanted,
)
