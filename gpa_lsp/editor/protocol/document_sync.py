"""Text synchronization: the client's documents, handed on to all that answers about them, and the notifications they cause."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.jobs.every_job import Jobs
from gpa_lsp.editor.protocol.features import PushFeature
from gpa_lsp.editor.protocol.safe_markdown import make_shown
from gpa_lsp.editor.protocol.wire import read_path
from gpa_lsp.editor.sass.library import SassDocuments, SassView, is_sass_uri

_CUDA = frozenset({"cuda", "cuda-cpp"})  # What editors call the language
_UNSAVED = re.compile(r"untitled:(?://)?(/?[\w .~/-]+)")
_PUSH_DELAY_S = 0.3  # After the last keystroke; the client moves what it has by itself until then


class Pushes:
    """Notifications about documents, sent only where they differ from the last ones.

    Args:
        features: what is sent, by name.
        send: sends (method, params).
        guard: calls a feature and returns a default should it fail: (name, function, default).
    """

    def __init__(
        self,
        features: Mapping[str, PushFeature[Any, Any]],
        send: Callable[[str, Any], None],
        guard: Callable[[str, Callable[[], Any], Any], Any],
    ) -> None:
        self._features = features
        self._send = send
        self._guard = guard
        self._sent: dict[str, dict[str, tuple[Any, ...]]] = {}
        """Of a document that is opened twice without a close it stays: it still stands there."""

    def changed(self, uri: str, version: int | None, find_view: Callable[[], DocumentView | None]) -> None:
        """Send what there is to say of a document, where it differs from what was sent before."""
        for name, feature in self._features.items():
            self._push(name, uri, version, partial(_list_items, feature, find_view))

    def sass_changed(
        self, uri: str, version: int | None, find_view: Callable[[], SassView | None], *, is_new_text: bool = False
    ) -> None:
        """The same of a SASS document.

        Args:
            find_view: makes its view; None where the text is none of ours.
        """
        for name, feature in self._features.items():
            if feature.list_sass_items is not None:
                list_items = partial(_list_sass_items, feature.list_sass_items, find_view)
                self._push(name, uri, version, list_items, is_new_text=is_new_text)

    def _push(
        self,
        name: str,
        uri: str,
        version: int | None,
        list_items: Callable[[], tuple[Any, ...]],
        *,
        is_new_text: bool = False,
    ) -> None:
        sent = self._sent.setdefault(uri, {})
        items = make_shown(
            self._guard(name, list_items, ())
        )  # before it is compared: what is sent is changed as it stands
        if items != sent.get(name, ()) or (is_new_text and items):
            sent[name] = items
            feature = self._features[name]
            self._send(feature.method, feature.wrap(uri, version, items))

    def closed(self, uri: str) -> None:
        """Take back what was sent."""
        for name, items in self._sent.pop(uri, {}).items():
            if items:
                feature = self._features[name]
                self._send(feature.method, feature.wrap(uri, None, ()))


def _list_items(feature: PushFeature[Any, Any], find_view: Callable[[], DocumentView | None]) -> tuple[Any, ...]:
    view = find_view()
    return feature.list_items(view) if view is not None else ()


def _list_sass_items(
    list_items: Callable[[SassView], tuple[Any, ...]], find_view: Callable[[], SassView | None]
) -> tuple[Any, ...]:
    view = find_view()
    return list_items(view) if view is not None else ()


class DocumentSync:
    """Sources and SASS documents, as they are opened, edited, saved and closed.

    Args:
        documents: the open sources.
        sass: the SASS documents.
        jobs: what is done about sources.
        unasked: what the client is sent without asking.
    """

    def __init__(self, documents: Documents, sass: SassDocuments, jobs: Jobs, unasked: Pushes) -> None:
        self._documents = documents
        self._sass = sass
        self._jobs = jobs
        self._unasked = unasked
        self._pushes: dict[str, asyncio.TimerHandle] = {}
        self.folder: Path | None = None
        """Where a document that was never saved is taken to lie; None where nothing is known of such."""

    def open(self, document: types.TextDocumentItem) -> Path | None:
        """A document was opened; its file, where it is a source."""
        if is_sass_uri(document.uri):
            self._sass.open(document.uri, document.text, document.version)
            self._tell_of_sass(document.uri, document.version, is_new_text=True)
            return None
        path = read_path(document.uri) or self._place_unsaved(document)
        if path is None:
            return None
        self._documents.open(document.uri, path, document.text, document.version)
        self._tell(document.uri, self._jobs.opened)
        return Path(path)

    def _place_unsaved(self, document: types.TextDocumentItem) -> str | None:
        """Path for a CUDA source that was never saved: the one it is named by, else in :attr:`folder`; None for other documents."""
        match = _UNSAVED.fullmatch(document.uri)
        if match is None or document.language_id not in _CUDA or self.folder is None:
            return None
        return str((self.folder / match[1]).with_suffix(".cu"))

    def change(
        self, document: types.VersionedTextDocumentIdentifier, given: Sequence[types.TextDocumentContentChangeEvent]
    ) -> None:
        """A document was edited."""
        uri = document.uri
        if is_sass_uri(uri):
            self._sass.change(uri, given, document.version)
            self._tell_of_sass(uri, document.version, is_new_text=True)
            return
        if not self._documents.change(uri, given, document.version):
            return
        self._tell(uri, self._jobs.changed)
        self._forget_push(uri)
        self._pushes[uri] = asyncio.get_running_loop().call_later(_PUSH_DELAY_S, self._documents.tell, uri)

    def save(self, uri: str) -> None:
        """A document was saved."""
        self._documents.save(uri)
        self._tell(uri, self._jobs.saved)

    def close(self, uri: str) -> None:
        """A document was closed, or is not understood any more."""
        if is_sass_uri(uri):
            self._sass.close(uri)
            self._unasked.closed(uri)
            return
        self._forget_push(uri)
        local_path = self._documents.find_local_path(uri)
        self._documents.close(uri)
        if local_path is not None:
            self._jobs.closed(local_path)

    def tell_of_sass(self) -> None:
        """Send what a new snapshot or new settings change in open SASS documents."""
        for uri, version in self._sass.list_open():
            self._tell_of_sass(uri, version)

    def _tell_of_sass(self, uri: str, version: int | None, *, is_new_text: bool = False) -> None:
        self._unasked.sass_changed(uri, version, partial(self._sass.view, uri), is_new_text=is_new_text)

    def _tell(self, uri: str, tell: Callable[[str], None]) -> None:
        local_path = self._documents.find_local_path(uri)
        if local_path is not None:
            tell(local_path)

    def _forget_push(self, uri: str) -> None:
        if (waiting := self._pushes.pop(uri, None)) is not None:
            waiting.cancel()
