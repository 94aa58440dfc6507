"""What the server and the process that compiles say to each other, and what the server keeps of it.

Plain data without numpy: it is unpickled between two requests, and this module is imported before the client has its answer to initialize.
"""

from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.compiler.model import CompilerMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticJob:
    """A source to compile and look at.

    Attributes:
        path: of the source, links resolved.
        text: what the editor holds of it.
        roots: workspace folders: their headers are the user's own, and their programs are never run.
        architecture: compute capability to compile for; None for that of the compile command.
        limit_s: for the compiler.
    """

    path: Path
    text: str
    roots: tuple[Path, ...]
    architecture: tuple[int, int] | None
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticKernel:
    """A kernel by its code.

    Attributes:
        mangled_name: linkage name.
        name: readable.
        line: topmost line of its body in the source; None when it has none there.
        words: resources and occupancy, as a lens says them.
        page: a page about it, Markdown.
    """

    mangled_name: str
    name: str
    line: int | None
    words: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticMark:
    """A finding on a line of the source.

    Attributes:
        line: 1-based, in the text that was compiled.
        check: which check found it.
        message: what there is.
        remedy: what to do; may be empty.
        certainty: ``certain`` or ``likely``.
        is_in_loop: the code of it runs in a loop.
        is_costly: it matters outside loops too.
        kernels: mangled names of those it is in: instantiations of a template share their lines.
        origin: file and line it was inlined from, where the finding itself is about that; None where it is about this line.
    """

    line: int
    check: str
    message: str
    remedy: str
    certainty: str
    is_in_loop: bool
    kernels: tuple[str, ...]
    origin: tuple[str, int] | None = None
    is_costly: bool = False

    @property
    def sentence(self) -> str:
        """What there is, and what to do."""
        return f"{self.message} {self.remedy}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticRequest:
    """What a warp requests of memory on a line of the source.

    Attributes:
        line: 1-based, in the text that was compiled.
        words: what is accessed, how the threads of a warp lie, and what it costs.
        kernels: mangled names of those it is in.
    """

    line: int
    words: str
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticResult:
    """What became of a job.

    Attributes:
        path: of the source.
        text: that was compiled.
        compiler: its name and version; empty when none ran.
        has_failed: there is no code.
        has_flags: the compile command of the source is known.
        messages: of the compiler, in its order; those about the source itself name no file.
        kernels: of the source, by line.
        marks: on lines of the source, weightiest first.
        requests: to memory, by line.
        seconds: from the job to this.
        remarks: what was in doubt, a line each, for the log.
        failure: why there is nothing at all, a line; empty otherwise.
    """

    path: Path
    text: str
    compiler: str = ""
    has_failed: bool = False
    has_flags: bool = False
    messages: tuple[CompilerMessage, ...] = ()
    kernels: tuple[StaticKernel, ...] = ()
    marks: tuple[StaticMark, ...] = ()
    requests: tuple[StaticRequest, ...] = ()
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()
    failure: str = ""
