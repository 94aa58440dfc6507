"""View of the session as a whole: the loaded profiles, every open document, and the places of measured lines."""

from typing import Protocol

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.sass.library import SassDocuments
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.editor.source.fixes import FixVerifier


class SessionView(Protocol):
    """The session."""

    @property
    def snapshot(self) -> Snapshot:
        """Loaded profiles and shown kernels."""
        ...

    @property
    def settings(self) -> Settings:
        """The options."""
        ...

    @property
    def abilities(self) -> Abilities:
        """Messages and views that the client can show."""
        ...

    @property
    def places(self) -> PlaceFinder:
        """Finds measured places."""
        ...

    @property
    def sass(self) -> SassDocuments:
        """The SASS documents."""
        ...

    @property
    def fixes(self) -> FixVerifier:
        """Tries fixes before they are applied."""
        ...

    def can(self, capability: str) -> bool:
        """Whether the client has a capability, named by its place among them."""
        ...

    def view(self, uri: str) -> DocumentView | None:
        """The view of an open source; None when it is not open, or no profile mentions it."""
        ...
