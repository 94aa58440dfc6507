"""Features that are not for all documents at all times: registered when settings are known, for the documents they serve."""

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from lsprotocol import types

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.features import RequestFeature
from gpa_lsp.editor.sass.library import SCHEME
from gpa_lsp.editor.settings import Settings

# Method → where a server says it has it, and where a client says it can be told so later
_PLACES: Mapping[str, tuple[str, str]] = {
    types.TEXT_DOCUMENT_DEFINITION: ("definition_provider", "text_document.definition"),
    types.TEXT_DOCUMENT_REFERENCES: ("references_provider", "text_document.references"),
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: ("document_highlight_provider", "text_document.document_highlight"),
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: ("semantic_tokens_provider", "text_document.semantic_tokens"),
    types.TEXT_DOCUMENT_FOLDING_RANGE: ("folding_range_provider", "text_document.folding_range"),
    types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: ("call_hierarchy_provider", "text_document.call_hierarchy"),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: ("document_symbol_provider", "text_document.document_symbol"),
}

_REGISTERED_AS = {types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: "textDocument/semanticTokens"}

# Of files GPU code is written in: languages have too many names for one thing to go by those
SOURCE_SUFFIXES = (
    *("cu", "cuh", "cpp", "cc", "cxx", "c++", "c", "h", "hpp", "hh", "hxx", "h++", "inl", "ipp", "tpp"),
    *("py", "jl", "f", "for", "f90", "f95", "f03", "F", "F90", "cuf", "CUF", "rs", "mojo"),
)

_SOURCE_FILTERS = ({"scheme": "file", "pattern": f"**/*.{{{','.join(SOURCE_SUFFIXES)}}}"},)
_SASS_FILTERS = ({"scheme": SCHEME},)


class LateRegistrations:
    """What is registered with a client that can be told late.

    Args:
        client: the editor.
        conditional: features that are not for all documents at all times.
    """

    def __init__(self, client: Client, conditional: Iterable[RequestFeature[Any, Any]]) -> None:
        self._client = client
        self._known: dict[str, types.Registration] = {}
        self._turn = asyncio.Lock()
        self.features = tuple(
            feature
            for feature in conditional
            if feature.method in _PLACES and client.can(f"{_PLACES[feature.method][1]}.dynamic_registration")
        )
        """Those this client takes later than at the start."""

    async def update(self, settings: Settings, abilities: Abilities) -> None:
        """Register what depends on settings, and take back what they do not allow any more.

        One update after the other: settings can change while the client is still being asked, and the last ones count.
        """
        async with self._turn:
            for feature in self.features:
                await self._update_one(feature, make_registration(feature, settings, abilities))

    async def _update_one(self, feature: RequestFeature[Any, Any], wanted: types.Registration | None) -> None:
        known = self._known.get(feature.method)
        if known is not None and wanted is not None and wanted.register_options == known.register_options:
            return
        if known is not None:
            del self._known[feature.method]
            gone = types.Unregistration(id=known.id, method=known.method)
            params = types.UnregistrationParams(unregisterations=[gone])
            await self._client.ask(types.CLIENT_UNREGISTER_CAPABILITY, params)
        if wanted is not None:
            self._known[feature.method] = wanted
            await self._client.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations=[wanted]))


def withdraw(capabilities: types.ServerCapabilities, features: Iterable[RequestFeature[Any, Any]]) -> None:
    """Take features out of what the server says at the start."""
    for feature in features:
        setattr(capabilities, _PLACES[feature.method][0], None)


def make_registration(
    feature: RequestFeature[Any, Any], settings: Settings, abilities: Abilities
) -> types.Registration | None:
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
