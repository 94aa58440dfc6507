"""The open documents, and their views, kept until the text or the knowledge changes."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from lsprotocol.types import TextDocumentContentChangeEvent
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from gpa_lsp.editor.document_view import DocumentView, Findings, Knowledge, OpenDocument, build_view
from gpa_lsp.editor.lines.finder import may_show_unverified
from gpa_lsp.editor.lines.index import MeasuredText, index_lines
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import UnitCounter
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.editor.text_changes import EditedText
from gpa_lsp.foundation.files import Stamp, read_stamp
from gpa_lsp.report.measured_files import Doubt, MeasuredFile

_KEPT_TEXTS = 4  # Of a document, as it was saved: a measurement is of one of the last ones

_BYTE_ORDER_MARK_BYTES = 3
_NOTHING = Findings()


class _HeldDocument(Struct):
    local_path: str
    edited: EditedText
    version: int | None
    saved: dict[Stamp | None, str] = field(default_factory=dict)
    view: DocumentView | None = None
    is_view_current: bool = False

    @property
    def text(self) -> str:
        """Current text of the client."""
        return self.edited.read()


class UnmappedSource(Struct, frozen=True, kw_only=True):
    """An open document that may be a measured file under another path."""

    local_path: str  # of the document
    compiled_path: str  # of the file, as compiled
    profile: str  # name of the profile that mentions it


class UnverifiedSource(Struct, frozen=True, kw_only=True):
    """An open document that may not be what was measured."""

    local_path: str  # of the document
    compiled_path: str  # as compiled
    profile: str  # name of the profile
    doubt: str  # why, as the rest of a sentence about it
    is_shown: bool  # numbers stand on its lines, marked


class DocumentWatcher(Protocol):
    """Receiver of news about open documents."""

    def changed(self, uri: str, version: int | None, find_view: Callable[[], DocumentView | None]) -> None:
        """Handle a document of which there may be something else to say.

        Args:
            find_view: makes its view, where somebody wants it; None where nothing is known of the document.
        """
        ...

    def closed(self, uri: str) -> None:
        """Take back what was said of a document."""
        ...


class Documents:
    """Documents that the client has open.

    Args:
        units: counts columns for the client.
        abilities: what the client wants.
        watcher: is told what changes.
    """

    def __init__(self, *, units: UnitCounter, abilities: Abilities, watcher: DocumentWatcher) -> None:
        self._watcher = watcher
        self._open: dict[str, _HeldDocument] = {}
        self._findings: dict[str, Findings] = {}
        self._indexes: dict[str, tuple[MeasuredText, ...]] = {}
        self._known = Knowledge(
            snapshot=Snapshot(),
            settings=Settings(),
            abilities=abilities,
            units=units,
            places=PlaceFinder(units, self._find_open),
        )

    @property
    def places(self) -> PlaceFinder:
        """Finds measured places; a new one whenever there is new knowledge."""
        return self._known.places

    def open(self, uri: str, path: str, text: str, version: int | None) -> None:
        """The client opened a document."""
        edited = EditedText(text, self._known.units)
        self._open[uri] = _HeldDocument(local_path=os.path.realpath(path), edited=edited, version=version)
        self._note_saved(self._open[uri])
        self.tell(uri)

    def save(self, uri: str) -> None:
        """The client saved a document."""
        document = self._open.get(uri)
        if document is not None:
            self._note_saved(document)

    def _note_saved(self, document: _HeldDocument) -> None:
        """Keep what the document holds now as what the file holds, unless that can be seen not to be so."""
        stamp = read_stamp(document.local_path)
        if stamp is None or _may_hold(stamp, document.text):
            document.saved.pop(stamp, None)
            document.saved[stamp] = document.text
            while len(document.saved) > _KEPT_TEXTS:
                del document.saved[next(iter(document.saved))]
            document.is_view_current = False

    def change(self, uri: str, changes: Sequence[TextDocumentContentChangeEvent], version: int | None) -> bool:
        """The document's text was changed. Nobody is told yet: the person is typing."""
        document = self._open.get(uri)
        if document is None:
            return False
        document.edited.apply(changes)
        document.version, document.is_view_current = version, False
        return True

    def close(self, uri: str) -> None:
        """The client closed a document."""
        if self._open.pop(uri, None) is not None:
            self._watcher.closed(uri)

    def take(self, snapshot: Snapshot, settings: Settings) -> None:
        """Take a new snapshot and settings, and build the views of all documents again."""
        places = PlaceFinder(self._known.units, self._find_open, settings.unverified_lines)
        self._known = replace(self._known, snapshot=snapshot, settings=settings, places=places)
        self._indexes.clear()
        for uri, document in self._open.items():
            document.is_view_current = False
            self.tell(uri)

    def find_findings(self, local_path: str) -> Findings:
        """Return the results of background jobs for a source, or for the description of its launches."""
        return self._findings.get(local_path, _NOTHING)

    def note(self, local_path: str, **found: object) -> None:
        """A background job found something, or takes back what it found: fields of :class:`Findings`."""
        known = self.find_findings(local_path)
        if all(getattr(known, name) is value for name, value in found.items()):
            return
        self._findings[local_path] = replace(known, **found)
        if self._findings[local_path] == _NOTHING:
            del self._findings[local_path]
        for uri, document in self._open.items():
            if document.local_path == local_path:
                document.is_view_current = False
                self.tell(uri)

    def forget(self, *names: str) -> None:
        """Some fields of :class:`Findings` are not said of any document any more."""
        for local_path in [*self._findings]:
            self.note(local_path, **dict.fromkeys(names))

    def list_open(self) -> tuple[str, ...]:
        """The files of the open documents."""
        return tuple(document.local_path for document in self._open.values())

    @property
    def newest(self) -> str | None:
        """The document that was opened last; None where none is open."""
        return next(reversed(self._open), None)

    def find_local_path(self, uri: str) -> str | None:
        """The file of an open document, links resolved."""
        document = self._open.get(uri)
        return None if document is None else document.local_path

    def read_open(self, local_path: str) -> str | None:
        """The text of whichever open document is that file."""
        return next((document.text for document in self._open.values() if document.local_path == local_path), None)

    def view(self, uri: str) -> DocumentView | None:
        """The view of an open document; None for one that is not open, or of which nothing is known."""
        document = self._open.get(uri)
        if document is None:
            return None
        if not document.is_view_current:
            opened = OpenDocument(
                uri=uri,
                local_path=document.local_path,
                text=document.text,
                saved=document.saved,
                **asdict(self.find_findings(document.local_path)),
            )
            document.view = build_view(opened, self._known, self._index(document.local_path))
            document.is_view_current = True
        return document.view

    def _index(self, local_path: str) -> tuple[MeasuredText, ...]:
        """Index of the measurements of a file, built once per snapshot and not with every keystroke."""
        if local_path not in self._indexes:
            kernels = self._known.snapshot.by_file.get(local_path, ())
            self._indexes[local_path] = index_lines(kernels, local_path, self._known.settings.metric)
        return self._indexes[local_path]

    def _find_open(self, local_path: str) -> DocumentView | None:
        """The view of whichever open document is that file."""
        for uri, document in self._open.items():
            if document.local_path == local_path:
                return self.view(uri)
        return None

    def find_unmapped(self) -> tuple[UnmappedSource, ...]:
        """Open documents that no profile mentions, but that are called like a file in which a kernel was measured."""
        found: list[UnmappedSource] = []
        for document in self._open.values():
            if document.local_path in self._known.snapshot.by_file:
                continue
            name = os.path.basename(document.local_path)  # noqa: PTH119
            for profile in self._known.snapshot.profiles.values():
                missing = sorted(path for path in profile.list_missing() if re.split(r"[\\/]", path)[-1] == name)
                found.extend(
                    UnmappedSource(local_path=document.local_path, compiled_path=path, profile=profile.path.name)
                    for path in missing
                )
        return tuple(found)

    def find_unverified(self) -> tuple[UnverifiedSource, ...]:
        """Open documents that may not be what was measured."""
        choice = self._known.settings.unverified_lines
        return tuple(
            UnverifiedSource(
                local_path=document.local_path,
                compiled_path=file.compiled_path,
                profile=shown.profile.path.name,
                doubt=file.describe_doubt() or Doubt.SAVED_SINCE.value,
                is_shown=may_show_unverified(file, choice) and not _is_unknown(document, file),
            )
            for document in self._open.values()
            for shown in self._known.snapshot.by_file.get(document.local_path, ())[:1]
            for file in [one for one in shown.profile.files.values() if _is_unverified(document, one)][:1]
        )

    def tell(self, uri: str) -> None:
        """Have the watcher look at a document again."""
        document = self._open.get(uri)
        if document is not None:
            self._watcher.changed(uri, document.version, lambda: self.view(uri))


def _is_unverified(document: _HeldDocument, file: MeasuredFile) -> bool:
    """Whether nobody can tell what of a document was measured."""
    return file.local_path == document.local_path and (_is_unknown(document, file) or not file.is_verified)


def _is_unknown(document: _HeldDocument, file: MeasuredFile) -> bool:
    """Whether there is no text that could have been measured."""
    return file.lines is None and file.stamp not in document.saved


def _may_hold(stamp: Stamp, text: str) -> bool:
    """Whether a file is as long as a text: an editor can open what it kept of unsaved changes. It may add a last line end, and hide a mark."""
    size_bytes = len(text.encode("utf-8", errors="surrogatepass"))
    line_end = "\r\n" if text.endswith("\r\n") else "\n" if text.endswith("\n") else ""
    return stamp.size_bytes in (size_bytes, size_bytes - len(line_end), size_bytes + _BYTE_ORDER_MARK_BYTES)
