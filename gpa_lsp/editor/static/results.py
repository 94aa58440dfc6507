"""Messages between the server and the process that compiles, and the results that the server keeps.

Plain data without numpy: it is unpickled between two requests, and this module is imported before the client has its answer to initialize.
"""

from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.model import CompilerMessage


class StaticJob(Struct, frozen=True, kw_only=True):
    """A source to compile and look at."""

    path: Path  # of the source, links resolved
    text: str  # what the editor holds of it
    roots: tuple[Path, ...]  # workspace folders: their headers are the user's own, and their programs are never run
    architecture: tuple[int, int] | None  # compute capability to compile for; None for that of the compile command
    limit_s: float  # for the compiler


class StaticKernel(Struct, frozen=True, kw_only=True):
    """A kernel by its code."""

    mangled_name: str  # linkage name
    name: str  # readable
    line: int | None  # topmost line of its body in the source; None when it has none there
    words: str  # resources and occupancy, as a lens says them
    page: str  # a page about it, Markdown


class StaticMark(Struct, frozen=True, kw_only=True):
    """A finding on a line of the source."""

    line: int  # 1-based, in the text that was compiled
    check: str  # which check found it
    message: str  # what there is
    remedy: str  # what to do; may be empty
    certainty: str  # ``certain`` or ``likely``
    is_in_loop: bool  # the code of it runs in a loop
    kernels: tuple[str, ...]  # mangled names of those it is in: instantiations of a template share their lines
    # file and line it was inlined from, where the finding itself is about that; None where it is about this line
    origin: tuple[str, int] | None = None
    is_costly: bool = False  # it matters outside loops too

    @property
    def sentence(self) -> str:
        """Finding and remedy."""
        return f"{self.message} {self.remedy}".rstrip()


class StaticRequest(Struct, frozen=True, kw_only=True):
    """Memory request of a warp on a line of the source."""

    line: int  # 1-based, in the text that was compiled
    words: str  # what is accessed, how the threads of a warp lie, and what it costs
    kernels: tuple[str, ...]  # mangled names of those it is in


class StaticResult(Struct, frozen=True, kw_only=True):
    """Result of a job."""

    path: Path  # of the source
    text: str  # that was compiled
    compiler: str = ""  # its name and version; empty when none ran
    has_failed: bool = False  # there is no code
    has_flags: bool = False  # the compile command of the source is known
    # of the compiler, in its order; those about the source itself name no file
    messages: tuple[CompilerMessage, ...] = ()
    kernels: tuple[StaticKernel, ...] = ()  # of the source, by line
    marks: tuple[StaticMark, ...] = ()  # on lines of the source, weightiest first
    requests: tuple[StaticRequest, ...] = ()  # to memory, by line
    seconds: float = 0.0  # from the job to this
    remarks: tuple[str, ...] = ()  # what was in doubt, a line each, for the log
    failure: str = ""  # why there is nothing at all, a line; empty otherwise
