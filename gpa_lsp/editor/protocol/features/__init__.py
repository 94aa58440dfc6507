"""Methods of the protocol, one file per subject; each defines ``FEATURES``.

A feature is an answer to one question about one document: a source, a SASS document, or either. It reads the document's view and returns; it
never keeps the server waiting, never changes what is known, and is not asked about documents no profile mentions. What it raises is logged and
told to the user once; the other features go on. What only a person asks for is imported when they ask: the answer to initialize must not wait
for it.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from lsprotocol import types
from msgspec import Struct

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.settings import Settings
from gpa_lsp.foundation.catalogue import load_catalogue


class AboutDocument(Protocol):
    """Params of a request about a document."""

    @property
    def text_document(self) -> types.TextDocumentIdentifier:
        """Which one."""


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
