"""What the server and the processes that read profiles say to each other."""

from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.editor.snapshot import MeasuredKernel
from gpa_lsp.history.model import KernelHistory
from gpa_lsp.processes.frames import Step
from gpa_lsp.report.measured_files import MeasuredFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileJob:
    """What to read.

    Attributes:
        profile: the file.
        roots: workspace folders sources are looked for in.
        path_mappings: as in the settings.
        blamer: how causes are found.
        keeps_history: remember what was measured, and compare with what was.
        may_ask_git: what a source held when it was measured; not in a workspace that is not trusted.
    """

    profile: Path
    roots: tuple[Path, ...]
    path_mappings: tuple[tuple[str, str], ...]
    blamer: str = "scoreboard"
    keeps_history: bool = False
    may_ask_git: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFound:
    """A profile's sources on this machine; comes before the kernels that are written in them, and says all of them in the end."""

    profile: Path
    files: tuple[MeasuredFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRead:
    """One kernel. Kernels come one by one so that the server never unpickles for long between two requests.

    Attributes:
        profile: where it is from.
        kernel: what was measured.
        is_early: others of the profile are still being judged, so that it may be shown before them.
    """

    profile: Path
    kernel: MeasuredKernel
    is_early: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFound:
    """What changed since earlier measurements of a kernel that was sent before all were judged.

    Attributes:
        profile: which.
        number: how many of its kernels were sent before.
        history: what changed.
    """

    profile: Path
    number: int
    history: KernelHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRead:
    """The end of a profile: everything of it was sent.

    Attributes:
        profile: which.
        remarks: what was in doubt, a line each, for the log.
        size_bytes: of all its messages: what keeping it costs, in proportion.
    """

    profile: Path
    remarks: tuple[str, ...]
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFailed:
    """The end of a profile that could not be read; ``reason`` is a line for people."""

    profile: Path
    reason: str


ProfileMessage = Step | FilesFound | KernelRead | PastFound
"""What is told of a profile before its end."""

ProfileEnd = ProfileRead | ProfileFailed
