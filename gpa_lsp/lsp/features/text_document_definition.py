"""``textDocument/definition``: in SASS documents, who wrote an operand, where a branch goes, what a stall waits for. In sources, where the user wants
it, the lines that a line waits for.
"""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.lsp.abilities import Abilities
from gpa_lsp.lsp.counterparts import gather_counterparts
from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.features import Method, RequestFeature
from gpa_lsp.lsp.lines.positions import read_line
from gpa_lsp.lsp.sass.model import SassView
from gpa_lsp.lsp.settings import Settings

_LEAST_PART = 0.2
"""Of the samples of the line's main cause; lesser ones would only make editors ask which of them was meant."""


def answer_definition(view: DocumentView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The lines that the line under the cursor waits for, most samples first; those of little weight are left out."""
    found: list[types.Location] = []
    for cause in view.cause_lines.get(read_line(params.position), ())[:1]:
        counterparts = gather_counterparts(cause.causes.waits)
        for counterpart in counterparts:
            is_light = counterpart.samples < _LEAST_PART * counterparts[0].samples
            if counterpart.place is None or counterpart.place == cause.place or is_light:
                continue
            location = view.places.locate(cause.shown, counterpart.place)
            if location is not None:
                found.append(location)
    return found or None


def answer_sass(view: SassView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The definitions of what is under the cursor."""
    from gpa_lsp.lsp.sass.definition import answer  # needs numpy, which the answer to initialize must not wait for

    return answer(view, params)


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
