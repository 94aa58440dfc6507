"""Fixes as they are offered, with what is known of each.

Plain data without numpy: this module is imported before the client has its answer to initialize.
"""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpa_lsp.editor.document_view import DocumentView
    from gpa_lsp.editor.source.fixes import Fix
    from gpa_lsp.report.fixes.results import FixVerdict


class OfferedFix(Struct, frozen=True, kw_only=True):
    """A fix as it was offered."""

    key: str  # by which the client names it
    uri: str  # of the document
    text: str  # of the document then
    fix: "Fix"  # itself
    verdict: "FixVerdict"  # what is known of it by now


class FixVerifier(Protocol):
    """Tries fixes in the background."""

    @property
    def may_leave_edits(self) -> bool:
        """The client asks for the edits of a fix when it is looked at, so that they can come with what is said of them."""
        ...

    def offer(self, view: "DocumentView", fixes: "Sequence[Fix]") -> "tuple[OfferedFix, ...]":
        """Fixes that somebody is about to see: they are tried from now on, and those before them no more."""
        ...

    def find(self, key: str) -> OfferedFix | None:
        """One that was offered; None for one that is forgotten."""
        ...

    async def wait(self, key: str) -> OfferedFix | None:
        """The same when something is known of it, or after a moment."""
        ...
