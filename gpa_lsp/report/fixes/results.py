"""Jobs that try fixes, and their results: plain data without numpy, imported before the client gets its answer to initialize."""

from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace


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
    """Quantity to compare between launches with and without a fix, in order of cost."""

    SECTORS = "sectors"  # Of memory, emulated
    CYCLES = "cycles"  # And what limits the kernel, simulated


class LaunchedJob(Struct, frozen=True, kw_only=True):
    """A fix to emulate or simulate, where launches are described."""

    base: FixJob  # the fix
    question: LaunchedQuestion  # what is compared
    launches_path: Path  # the description of its launches
    launches_text: str | None  # what an editor holds of it; None to read the file
    machine: str | None  # name of the GPU to predict for; None for one of the architecture
    seconds: float  # for emulating all launches of one version, or executing the blocks of one that is simulated
    memory_bytes: int  # for one launch


class FixState(Enum):
    """State of a fix; the values are those of ``data.state``, see ``editors/PROTOCOL.md``."""

    PENDING = "pending"  # Nothing yet: it is being compiled, or will be
    CHANGED = "changed"
    SAME = "same"  # The compiler makes the same code with it
    FAILED = "failed"  # The source does not compile with it, and does without
    UNKNOWN = "unknown"  # It cannot be compiled here, with or without


class FixVerdict(Struct, frozen=True, kw_only=True):
    """The compiler's result for a fix."""

    state: FixState  # what became of it
    words: str = ""  # a clause for a title; empty where there is nothing to say
    details: tuple[str, ...] = ()  # all of it, sentences
    has_losses: bool = False  # something becomes worse
    # run time without it / run time with it, of the described launches as they were simulated; None where none was
    simulated_speedup: float | None = None

    @property
    def is_doubtful(self) -> bool:
        """Whether the fix should be read before it is applied."""
        return self.has_losses or self.state is FixState.FAILED


PENDING = FixVerdict(state=FixState.PENDING)
UNKNOWN = FixVerdict(state=FixState.UNKNOWN)


class LaunchedResult(Struct, frozen=True, kw_only=True):
    """Result of an emulation or a simulation."""

    words: str = ""  # a clause for a title; empty where the fix changes nothing
    sentence: str = ""  # the same, or that nothing changes; empty where nothing can be compared
    has_losses: bool = False  # with the fix it is worse
    speedup: float | None = None  # run time without it / run time with it; None where nothing was simulated


def add_launched(verdict: FixVerdict, result: LaunchedResult) -> FixVerdict:
    """Verdict of the compiler extended by the result of an emulation or simulation."""
    if not result.sentence:
        return verdict
    joint = ", but " if result.has_losses and not verdict.has_losses else ", "
    return replace(
        verdict,
        words=f"{verdict.words}{joint}{result.words}" if result.words else verdict.words,
        details=(*verdict.details, result.sentence),
        has_losses=verdict.has_losses or result.has_losses,
        simulated_speedup=verdict.simulated_speedup if result.speedup is None else result.speedup,
    )
