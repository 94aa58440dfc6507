"""Features that are not for all documents at all times: registered when settings are known, for the documents they serve."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from lsprotocol import types

from gpa_lsp.lsp.abilities import Abilities
from gpa_lsp.lsp.features import RequestFeature
from gpa_lsp.lsp.sass.model import SCHEME
from gpa_lsp.lsp.settings import Settings

_PLACES: Mapping[str, tuple[str, str]] = {
    types.TEXT_DOCUMENT_DEFINITION: ("definition_provider", "text_document.definition"),
    types.TEXT_DOCUMENT_REFERENCES: ("references_provider", "text_document.references"),
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: ("document_highlight_provider", "text_document.document_highlight"),
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: ("semantic_tokens_provider", "text_document.semantic_tokens"),
    types.TEXT_DOCUMENT_FOLDING_RANGE: ("folding_range_provider", "text_document.folding_range"),
    types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: ("call_hierarchy_provider", "text_document.call_hierarchy"),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: ("document_symbol_provider", "text_document.document_symbol"),
}
"""Method → where a server says it has it, and where a client says it can be told so later."""

_REGISTERED_AS = {types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: "textDocument/semanticTokens"}

SOURCE_SUFFIXES = (
    *("cu", "cuh", "cpp", "cc", "cxx", "c", "h", "hpp", "hh", "hxx", "inl", "ipp", "tpp"),
    *("py", "jl", "f", "f90", "F90", "cuf", "CUF", "rs", "mojo"),
)
"""Of files GPU code is written in: languages have too many names for one thing to go by those."""

_SOURCE_FILTERS = ({"scheme": "file", "pattern": f"**/*.{{{','.join(SOURCE_SUFFIXES)}}}"},)
_SASS_FILTERS = ({"scheme": SCHEME},)


def can_register_late(feature: RequestFeature, can: Any) -> bool:
    """Whether the client takes this feature later than at the start.

    Args:
        feature: a conditional one.
        can: capability by its path → whether the client has it.
    """
    return feature.method in _PLACES and bool(can(f"{_PLACES[feature.method][1]}.dynamic_registration"))


def withdraw(capabilities: types.ServerCapabilities, features: Iterable[RequestFeature]) -> None:
    """Take features out of what the server says at the start."""
    for feature in features:
        setattr(capabilities, _PLACES[feature.method][0], None)


def make_registration(feature: RequestFeature, settings: Settings, abilities: Abilities) -> types.Registration | None:
    """What to register for a conditional feature; None when it serves no document at all now."""
    filters: list[dict[str, str]] = []
    if feature.answer_sass is not None:
        filters += _SASS_FILTERS
    if feature.answer is not None and feature.serves_source(settings, abilities):
        filters += _SOURCE_FILTERS
    if not filters:
        return None
    options: dict[str, Any] = {"documentSelector": filters}
    if isinstance(feature.options, types.SemanticTokensLegend):
        legend = feature.options
        options |= {
            "legend": {"tokenTypes": list(legend.token_types), "tokenModifiers": list(legend.token_modifiers)},
            "full": True,
        }
    method = _REGISTERED_AS.get(feature.method, feature.method)
    return types.Registration(id=str(uuid.uuid4()), method=method, register_options=options)
