"""Static findings of an open source: jobs and results of the process that makes them, and their places on the lines as they are now.

Plain data without numpy: it is unpickled between two requests, and this module is imported before the client has its answer to initialize.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile


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


class StaticState(Struct, frozen=True, kw_only=True):
    """State of one source: the latest code that could be compiled, and the compiler's latest messages."""

    code: StaticResult | None  # the latest result with code; None when there was none yet
    last: StaticResult  # the latest result
    code_file: MeasuredFile | None  # the text of ``code``, for finding its lines
    last_file: MeasuredFile  # the text of ``last``


def take_result(known: StaticState | None, result: StaticResult) -> StaticState:
    """The state after a result: one without code leaves what was known of the code, whose lines are followed."""
    file = _make_file(result)
    if not result.has_failed and not result.failure:
        return StaticState(code=result, last=result, code_file=file, last_file=file)
    code, code_file = (None, None) if known is None else (known.code, known.code_file)
    return StaticState(code=code, last=result, code_file=code_file, last_file=file)


def _make_file(result: StaticResult) -> MeasuredFile:
    return MeasuredFile(
        compiled_path=str(result.path),
        local_path=str(result.path),
        lines=split_lines(result.text),
    )


class StaticAnchor(Struct, frozen=True, kw_only=True):
    """A kernel and the line its lens stands on."""

    line: int  # 1-based, in the document now
    kernel: StaticKernel  # by its code
    is_edited: bool  # the document changed since it was compiled


class PlacedStatics(Struct, frozen=True, kw_only=True):
    """Static findings placed on a document."""

    anchors: tuple[StaticAnchor, ...]  # kernels that no profile measured, by line
    marks: Mapping[int, tuple[StaticMark, ...]]  # current line → findings of those kernels, weightiest first
    requests: Mapping[int, tuple[str, ...]]  # current line → what warps request of memory there
    # the compiler's latest, with the line they stand on now; None where it is gone or the message names another file
    messages: tuple[tuple[int | None, CompilerMessage], ...]
    compiler: str  # that said them
    has_failed: bool  # the latest text could not be compiled
    has_flags: bool  # with the flags of the project's own compile command


def place_statics(state: StaticState, finder: LineFinder, measured: Collection[str]) -> PlacedStatics:
    """Put what is known on the lines of a text.

    A finding is left out when profiles measured every kernel it is in: their advice knows what costs time, and two voices on one line are one
    too many. So is a measured kernel's lens.
    """
    marks: dict[int, list[StaticMark]] = {}
    requests: dict[int, list[str]] = {}
    anchors: list[StaticAnchor] = []
    if state.code is not None and state.code_file is not None:
        for mark in state.code.marks:
            line = finder.find(state.code_file, mark.line)
            if line is not None and not all(name in measured for name in mark.kernels):
                marks.setdefault(line, []).append(mark)
        for request in state.code.requests:
            line = finder.find(state.code_file, request.line)
            if line is not None and not all(name in measured for name in request.kernels):
                requests.setdefault(line, []).append(request.words)
        is_edited = finder.is_edited(state.code_file)
        for kernel in state.code.kernels:
            line = finder.find_kernel(kernel.name, state.code_file, [kernel.line])
            if line is not None and kernel.mangled_name not in measured:
                anchors.append(StaticAnchor(line=line, kernel=kernel, is_edited=is_edited))
    return PlacedStatics(
        anchors=tuple(sorted(anchors, key=lambda anchor: anchor.line)),
        marks={line: tuple(found) for line, found in marks.items()},
        requests={line: tuple(found) for line, found in requests.items()},
        messages=tuple((_find_message(one, state.last_file, finder), one) for one in state.last.messages),
        compiler=state.last.compiler,
        has_failed=state.last.has_failed,
        has_flags=state.last.has_flags,
    )


def place_code_findings(
    kernels: Iterable[VisibleKernel], local_path: str, finder: LineFinder
) -> Iterator[tuple[int, StaticMark]]:
    """Place findings of machine code where a profile counted nothing, on current lines; once for all instantiations of a template."""
    merged: dict[tuple[int, str, str], tuple[StaticMark, list[str]]] = {}
    for shown in kernels:
        report = shown.kernel.report
        for finding in report.code_findings or ():
            file = None if finding.file is None else shown.profile.files.get(finding.file)
            if file is None or file.local_path != local_path or not finding.line:
                continue
            line = finder.find(file, finding.line)
            if line is None:
                continue
            mark = StaticMark(
                line=finding.line,
                check=finding.check,
                message=finding.message,
                remedy=finding.remedy,
                certainty=finding.certainty,
                is_in_loop=finding.is_in_loop,
                is_costly=finding.is_costly,
                kernels=(),
            )
            _, names = merged.setdefault((line, mark.check, mark.message), (mark, []))
            names.append(report.mangled_name)
    for (line, _, _), (mark, names) in merged.items():
        yield line, replace(mark, kernels=tuple(names))


def _find_message(message: CompilerMessage, file: MeasuredFile, finder: LineFinder) -> int | None:
    return None if message.path is not None or message.line is None else finder.find(file, message.line)
