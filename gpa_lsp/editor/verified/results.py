"""What the server and the process that tries fixes say to each other, and what the server keeps of it.

Plain data without numpy: this module is imported before the client has its answer to initialize.
"""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpa_lsp.editor.document_view import DocumentView
    from gpa_lsp.editor.source.fixes import Fix


class FixJob(Struct, frozen=True, kw_only=True):
    """A fix to try: one source in two versions."""

    path: Path  # of the source, links resolved
    text: str  # what the editor holds of it
    edited: str  # the same with the fix
    kernel: str  # mangled name of the kernel that the fix is for
    lines: tuple[int, ...]  # of ``text``, where the code that matters is, the best one first
    edited_lines: tuple[int, ...]  # the same ones of ``edited``
    threads: int | None  # of a block, as it was measured; None when unknown
    dynamic_shared_bytes: int | None  # of a block, as given at launch; None when unknown
    roots: tuple[Path, ...]  # workspace folders: their programs are never run
    architecture: tuple[int, int] | None  # compute capability to compile for; None for that of the compile command
    limit_s: float  # for the compiler, each time
    measured_on: str | None = None  # name of the GPU the kernel was measured on; None when unknown


class LaunchedQuestion(Enum):
    """What is compared of launches with a fix and without it, in the order in which it is."""

    SECTORS = "sectors"  # Of memory, emulated
    CYCLES = "cycles"  # And what limits the kernel, simulated


class LaunchedJob(Struct, frozen=True, kw_only=True):
    """The same fix to emulate or to simulate, where launches are described."""

    base: FixJob  # the fix
    question: LaunchedQuestion  # what is compared
    launches_path: Path  # the description of its launches
    launches_text: str  # what it says
    machine: str | None  # name of the GPU to predict for; None for one of the architecture
    seconds: float  # for emulating all launches of one version, or executing the blocks of one that is simulated
    memory_bytes: int  # for one launch


class FixState(Enum):
    """What became of a fix; the values are those of ``data.state``, see ``editors/PROTOCOL.md``."""

    PENDING = "pending"  # Nothing yet: it is being compiled, or will be
    CHANGED = "changed"
    SAME = "same"  # The compiler makes the same code with it
    FAILED = "failed"  # The source does not compile with it, and does without
    UNKNOWN = "unknown"  # It cannot be compiled here, with or without


class FixVerdict(Struct, frozen=True, kw_only=True):
    """What the compiler says of a fix."""

    state: FixState  # what became of it
    words: str = ""  # a clause for a title; empty where there is nothing to say
    details: tuple[str, ...] = ()  # all of it, sentences
    has_losses: bool = False  # something becomes worse

    @property
    def is_doubtful(self) -> bool:
        """Nobody should apply it without having read what is said of it."""
        return self.has_losses or self.state is FixState.FAILED


PENDING = FixVerdict(state=FixState.PENDING)
UNKNOWN = FixVerdict(state=FixState.UNKNOWN)


class LaunchedResult(Struct, frozen=True, kw_only=True):
    """What became of an emulation or a simulation."""

    words: str = ""  # a clause for a title; empty where the fix changes nothing
    sentence: str = ""  # the same, or that nothing changes; empty where nothing can be compared
    has_losses: bool = False  # with the fix it is worse


class OfferedFix(Struct, frozen=True, kw_only=True):
    """A fix as it was offered."""

    key: str  # by which the client names it
    uri: str  # of the document
    text: str  # of the document then
    fix: "Fix"  # itself
    verdict: FixVerdict  # what is known of it by now


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
