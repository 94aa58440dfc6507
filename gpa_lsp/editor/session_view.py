"""What can be asked about the session as a whole: the loaded profiles, every open document, and where measured places are."""

from typing import Protocol

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.editor.source.fixes import FixVerifier


class SassLibrary(Protocol):
    """The SASS documents of all shown kernels. A document is made when it is first asked for, and kept for a while."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that were chosen, in their order; None for the usual ones."""
        ...

    def find_uri(self, shown: VisibleKernel) -> str:
        """The document of a kernel."""
        ...

    def find_kernel(self, uri: str) -> VisibleKernel | None:
        """The kernel of a document; None when no loaded profile has it."""
        ...

    def make(self, uri: str) -> SassDocument | None:
        """The document as of now; None when no loaded profile has the kernel. Takes up to a third of a second for 20,000 instructions."""
        ...

    def view(self, uri: str) -> SassView | None:
        """The view of an open document that goes with the text its client holds; None when it is not open, or the text is no longer known."""
        ...


class SessionView(Protocol):
    """The session."""

    @property
    def snapshot(self) -> Snapshot:
        """What is known."""
        ...

    @property
    def settings(self) -> Settings:
        """The options."""
        ...

    @property
    def abilities(self) -> Abilities:
        """What the client wants."""
        ...

    @property
    def places(self) -> PlaceFinder:
        """Finds measured places."""
        ...

    @property
    def sass(self) -> SassLibrary:
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
