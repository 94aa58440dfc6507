"""One file per LSP method; each defines ``FEATURE``.

A feature is an answer to one question about one document. It reads the :class:`~gpa_lsp.lsp.document_view.DocumentView` and returns; it
never waits, never changes anything, and is not asked about documents no profile mentions. What it raises is logged and told to the user once;
the other features go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpa_lsp.lsp.document_view import DocumentView


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One LSP method.

    Attributes:
        method: its name in the protocol.
    """

    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFeature(Feature):
    """A method the client calls.

    Attributes:
        answer: (view, the request's params) → the result; None means there is nothing to say.
        options: registration options of the protocol; None for the defaults.
        refresh_method: the request that makes the client ask again when profiles came or went; None when there is none.
        refresh_capability: the client's capability that says it understands that request.
    """

    answer: Callable[[DocumentView, Any], Any]
    options: Any = None
    refresh_method: str | None = None
    refresh_capability: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushFeature(Feature):
    """A notification the server sends when a document was opened or changed, or profiles came or went.

    Attributes:
        list_items: view → what is to be shown in the document.
        wrap: (uri, document version or None, items) → the notification's params. Sent with no items when a document is closed.
    """

    list_items: Callable[[DocumentView], tuple[Any, ...]]
    wrap: Callable[[str, int | None, tuple[Any, ...]], Any]
