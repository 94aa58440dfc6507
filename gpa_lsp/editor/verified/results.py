"""What the server and the process that tries fixes say to each other, and what the server keeps of it.

Plain data without numpy: this module is imported before the client has its answer to initialize.
"""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpa_lsp.basis.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpa_lsp.editor.document_view import DocumentView
    from gpa_lsp.editor.source.fixes import Fix


@dataclass(frozen=True, slots=True, kw_only=True)
class FixJob:
    """A fix to try: one source in two versions.

    Attributes:
        path: of the source, links resolved.
        text: what the editor holds of it.
        edited: the same with the fix.
        kernel: mangled name of the kernel that the fix is for.
        lines: of ``text``, where the code that matters is, the best one first.
        edited_lines: the same ones of ``edited``.
        threads: of a block, as it was measured; None when unknown.
        dynamic_shared_bytes: of a block, as given at launch; None when unknown.
        roots: workspace folders: their programs are never run.
        architecture: compute capability to compile for; None for that of the compile command.
        limit_s: for the compiler, each time.
        measured_on: name of the GPU the kernel was measured on; None when unknown.
    """

    path: Path
    text: str
    edited: str
    kernel: str
    lines: tuple[int, ...]
    edited_lines: tuple[int, ...]
    threads: int | None
    dynamic_shared_bytes: int | None
    roots: tuple[Path, ...]
    architecture: tuple[int, int] | None
    limit_s: float
    measured_on: str | None = None


class LaunchedQuestion(Enum):
    """What is compared of launches with a fix and without it, in the order in which it is."""

    SECTORS = "sectors"
    """Of memory, emulated."""
    CYCLES = "cycles"
    """And what limits the kernel, simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedJob:
    """The same fix to emulate or to simulate, where launches are described.

    Attributes:
        base: the fix.
        question: what is compared.
        launches_path: the description of its launches.
        launches_text: what it says.
        machine: name of the GPU to predict for; None for one of the architecture.
        seconds: for emulating all launches of one version, or executing the blocks of one that is simulated.
        memory_bytes: for one launch.
    """

    base: FixJob
    question: LaunchedQuestion
    launches_path: Path
    launches_text: str
    machine: str | None
    seconds: float
    memory_bytes: int


class FixState(Enum):
    """What became of a fix; the values are those of ``data.state``, see ``editors/PROTOCOL.md``."""

    PENDING = "pending"
    """Nothing yet: it is being compiled, or will be."""
    CHANGED = "changed"
    SAME = "same"
    """The compiler makes the same code with it."""
    FAILED = "failed"
    """The source does not compile with it, and does without."""
    UNKNOWN = "unknown"
    """It cannot be compiled here, with or without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixVerdict:
    """What the compiler says of a fix.

    Attributes:
        state: what became of it.
        words: a clause for a title; empty where there is nothing to say.
        details: all of it, sentences.
        has_losses: something becomes worse.
    """

    state: FixState
    words: str = ""
    details: tuple[str, ...] = ()
    has_losses: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Nobody should apply it without having read what is said of it."""
        return self.has_losses or self.state is FixState.FAILED


PENDING = FixVerdict(state=FixState.PENDING)
UNKNOWN = FixVerdict(state=FixState.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedResult:
    """What became of an emulation or a simulation.

    Attributes:
        words: a clause for a title; empty where the fix changes nothing.
        sentence: the same, or that nothing changes; empty where nothing can be compared.
        has_losses: with the fix it is worse.
    """

    words: str = ""
    sentence: str = ""
    has_losses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedFix:
    """A fix as it was offered.

    Attributes:
        key: by which the client names it.
        uri: of the document.
        text: of the document then.
        fix: itself.
        verdict: what is known of it by now.
    """

    key: str
    uri: str
    text: str
    fix: "Fix"
    verdict: FixVerdict


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
