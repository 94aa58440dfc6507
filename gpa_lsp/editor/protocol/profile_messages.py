"""Messages between the server and the processes that read profiles."""

from pathlib import Path

from msgspec import Struct

from gpa_lsp.editor.snapshot import MeasuredKernel
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.report.history.model import KernelHistory
from gpa_lsp.report.measured_files import MeasuredFile


class ProfileJob(Struct, frozen=True, kw_only=True):
    """Profile to read."""

    profile: Path  # the file
    roots: tuple[Path, ...]  # workspace folders sources are looked for in
    path_mappings: tuple[tuple[str, str], ...]  # as in the settings
    keeps_history: bool = False  # remember what was measured, and compare with what was
    may_ask_git: bool = False  # what a source held when it was measured; not in a workspace that is not trusted


class FilesFound(Struct, frozen=True, kw_only=True):
    """A profile's sources on this machine; comes before the kernels that are written in them, and says all of them in the end."""

    profile: Path
    files: tuple[MeasuredFile, ...]


class KernelRead(Struct, frozen=True, kw_only=True):
    """One kernel. Kernels come one by one so that the server never unpickles for long between two requests."""

    profile: Path  # where it is from
    kernel: MeasuredKernel  # what was measured
    is_early: bool = False  # others of the profile are still being judged, so that it may be shown before them


class PastFound(Struct, frozen=True, kw_only=True):
    """Change since earlier measurements of a kernel that was sent before all were judged."""

    profile: Path  # which
    number: int  # how many of its kernels were sent before
    history: KernelHistory  # what changed


class ProfileRead(Struct, frozen=True, kw_only=True):
    """The end of a profile: everything of it was sent."""

    profile: Path  # which
    remarks: tuple[str, ...]  # what was in doubt, a line each, for the log
    size_bytes: int = 0  # of all its messages: what keeping it costs, in proportion


class ProfileFailed(Struct, frozen=True, kw_only=True):
    """The end of a profile that could not be read; ``reason`` is a line for people."""

    profile: Path
    reason: str


ProfileMessage = Step | FilesFound | KernelRead | PastFound  # What is told of a profile before its end

ProfileEnd = ProfileRead | ProfileFailed
