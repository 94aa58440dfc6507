"""What the server and the process that compiles say to each other, and what the server keeps of it.

Plain data without numpy: it is unpickled between two requests, and this module is imported before the client has its answer to initialize.
"""

from dataclasses import dataclass
from pathlib import Path

from gpa_lsp.errors import ProblemSeverity


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticMessage:
    """Something the compiler said.

    Attributes:
        severity: as it said it.
        text: its words.
        line: in the source, 1-based; None for other files and none.
        column: 1-based, in characters; None likewise.
        place: ``file:line`` where it is not in the source; empty where it is.
        number: the compiler's own; None without one.
    """

    severity: ProblemSeverity
    text: str
    line: int | None
    column: int | None
    place: str
    number: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticResult:
    """What became of a job.

    Attributes:
        path: of the source.
        text: that was compiled.
        compiler: its name and version; empty when none ran.
        has_failed: there is no code.
        has_flags: the compile command of the source is known.
        messages: of the compiler, in its order.
        kernels: of the source, by line.
        marks: on lines of the source, weightiest first.
        seconds: from the job to this.
        remarks: what was in doubt, a line each, for the log.
        failure: why there is nothing at all, a line; empty otherwise.
    """

    path: Path
    text: str
    compiler: str = ""
    has_failed: bool = False
    has_flags: bool = False
    messages: tuple[StaticMessage, ...] = ()
    kernels: tuple[StaticKernel, ...] = ()
    marks: tuple[StaticMark, ...] = ()
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()
    failure: str = ""
