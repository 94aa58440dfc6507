"""Methods of the protocol, one file per subject; each defines ``FEATURES``.

A feature is an answer to one question about one document: a source, a SASS document, or either. It reads the document's view and returns; it
never keeps the server waiting, never changes what is known, and is not asked about documents no profile mentions. What it raises is logged and
told to the user once; the other features go on. What only a person asks for is imported when they ask: the answer to initialize must not wait
for it.
"""

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from lsprotocol import types
from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.sass.library import SCHEME, SassView
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.foundation.catalogue import load_catalogue


class AboutDocument(Protocol):
    """Params of a request about a document."""

    @property
    def text_document(self) -> types.TextDocumentIdentifier:
        """Identifier of the document."""


Params = TypeVar("Params")
DocumentParams = TypeVar("DocumentParams", bound=AboutDocument)
Result = TypeVar("Result")
Item = TypeVar("Item")


class Method(str, Generic[Params, Result]):
    """The name of a method of the protocol, with the types of its params and of its result; a notification's result is None.

    The name is the protocol's, and a test holds the types to it: so what a feature takes and gives is checked where it is written.
    """


class Feature(Struct, frozen=True, kw_only=True):
    """One LSP method; what it is, is said by the classes below."""

    method: Method[Any, Any]


def _always(settings: Settings, abilities: Abilities) -> bool:
    del settings, abilities
    return True


class RequestFeature(Feature, Generic[DocumentParams, Result], frozen=True, kw_only=True):
    """A method the client calls about a document.

    A feature that does not always serve sources is registered when the settings are known, and for SASS documents alone where it does not serve
    sources at all: the servers of the source's own language must not find us in their way. A client that cannot register features late gets
    it from the start, and null for sources.
    """

    method: Method[DocumentParams, Result]  # its name in the protocol
    # (view of a source, the request's params) → the result; None means there is nothing to say. None for features of SASS documents.
    answer: Callable[[DocumentView, DocumentParams], Result] | None = None
    # the same for a SASS document; None for features of sources
    answer_sass: Callable[[SassView, DocumentParams], Result] | None = None
    # whether ``answer`` is offered for sources, by the settings and what the client can do
    serves_source: Callable[[Settings, Abilities], bool] = _always
    options: Any = None  # registration options of the protocol; None for the defaults
    # the request that makes the client ask again when profiles came or went; None when there is none
    refresh_method: str | None = None
    refresh_capability: str = ""  # the client's capability that says it understands that request
    # a client that does not understand it gets its answer when the first profiles were read: it would not ask again
    is_held: bool = False

    @property
    def is_conditional(self) -> bool:
        """Whether it is registered for some documents only, or not always."""
        return self.answer is None or self.serves_source is not _always


class SessionFeature(Feature, Generic[Params, Result], frozen=True, kw_only=True):
    """A method the client calls about no open document: what a call hierarchy item leads to, symbols of the workspace."""

    method: Method[Params, Result]  # its name in the protocol
    # (the session, the request's params) → the result, or a coroutine of it; params come from the client, and so does any ``data`` in them
    answer: Callable[[SessionView, Params], Result | Awaitable[Result]]
    options: Any = None  # registration options of the protocol; None for the defaults


class PushFeature(Feature, Generic[Item, Params], frozen=True, kw_only=True):
    """A notification the server sends when a document was opened or changed, or profiles came or went."""

    method: Method[Params, None]  # its name in the protocol
    list_items: Callable[[DocumentView], tuple[Item, ...]]  # view → what is to be shown in the document
    # (uri, document version or None, items) → the notification's params, a type of the protocol or plain JSON. Sent with no items when a document is
    # closed.
    wrap: Callable[[str, int | None, tuple[Item, ...]], Params]
    # the same for a SASS document; None where nothing is
    list_sass_items: Callable[[SassView], tuple[Item, ...]] | None = None
    is_wanted: Callable[[Abilities], bool] = lambda abilities: True  # whether the client wants it


def load_features() -> dict[str, Feature]:
    """All features by the name of their method."""
    subjects: dict[str, tuple[Feature, ...]] = load_catalogue(sys.modules[__name__], "FEATURES", tuple)
    return {feature.method: feature for features in subjects.values() for feature in features}


# Features that are not for all documents at all times: registered when settings are known, for the documents they serve.

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
    """Features registered with a client after ``initialized``.

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
    """Make the registration of a conditional feature; None when it serves no document now."""
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
