"""What the code of sources says, as ``file:line: info: …`` and as workflow commands of GitHub."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.diagnosis.analyses.static.model import describe_resources
from gpa_lsp.document.check_text import SEVERITY_STYLES, describe_by_code, render_problem
from gpa_lsp.document.github import make_command
from gpa_lsp.document.layout import Line, Style, hang
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.kernel.names import demangle, shorten_name

_COMMANDS = {
    ProblemSeverity.ERROR: "error",
    ProblemSeverity.WARNING: "warning",
    ProblemSeverity.NOTE: "notice",
}


def describe_static(finding: StaticFinding) -> Sentence:
    """A finding as one sentence or two, marked as not measured."""
    return describe_by_code(finding.message, finding.remedy, finding.check, finding.certainty.value)


def render_static(
    sources: Sequence[SourceStatics], findings: Sequence[StaticFinding], places: PlaceNames, width: int | None = None
) -> Iterator[Line]:
    """The compilers' messages, then a line of resources per kernel, then findings, then how many there are.

    Args:
        sources: what was looked at.
        findings: of them, in the order to be shown.
        places: how sources are shown.
        width: characters per line of a screen; None keeps every finding on one line.
    """
    for source in sources:
        for message in source.unit.messages:
            yield from hang(_render_message(message, source, places), width)
        for note in source.unit.notes:
            path = places.show_path(source.path)
            yield from hang(((f"{path}: ", Style.PATH), ("note: ", Style.NOTE), (note, Style.PLAIN)), width)
        for problem in source.problems:
            yield from hang(render_problem(problem, places), width)
        for line, kernel in sorted(
            ((_find_line(one, source), one) for one in source.kernels), key=lambda found: found[0]
        ):
            place = _show_place(source.path, line, places)
            name = shorten_name(demangle(kernel.statics.mangled_name))
            words = f"{name}: {describe_resources(kernel.statics)} [static]"
            yield from hang(((f"{place}: ", Style.PATH), ("info: ", Style.NOTE), (words, Style.PLAIN)), width)
    for finding in findings:
        yield from hang(
            (
                (f"{name_static_place(finding, places)}: ", Style.PATH),
                ("info: ", Style.NOTE),
                (describe_static(finding), Style.PLAIN),
            ),
            width,
        )
    kernels = sum(len(source.kernels) for source in sources)
    summary = f"{format_count_of(len(findings), 'static finding')} in {format_count_of(kernels, 'kernel')}; nothing was measured"
    yield from hang(((summary, Style.DIM),), width)


def _find_line(kernel: KernelFindings, source: SourceStatics) -> int:
    """Of its body in the source; 0 where it is elsewhere."""
    return kernel.place.line if kernel.place is not None and kernel.place.file == str(source.path) else 0


def name_static_place(finding: StaticFinding, places: PlaceNames) -> str:
    """``file:line``, or the kernel for code without lines."""
    if finding.file is None:
        return shorten_name(demangle(finding.kernel))
    return _show_place(Path(finding.file), finding.line, places)


def _show_place(path: Path, line: int | None, places: PlaceNames) -> str:
    return write_place(places.show_path(path), line)


def _render_message(message: CompilerMessage, source: SourceStatics, places: PlaceNames) -> Line:
    place = _show_place(message.path or source.path, message.line, places)
    column = f":{message.column}" if message.line and message.column else ""
    number = f" [{message.number}]" if message.number else ""
    severity = message.severity
    return (
        (f"{place}{column}: ", Style.PATH),
        (f"{severity.value}: ", SEVERITY_STYLES[severity]),
        (f"{message.text}{number}", Style.PLAIN),
    )


def render_static_github(
    sources: Sequence[SourceStatics], findings: Sequence[StaticFinding], places: PlaceNames
) -> Iterator[str]:
    """One command per message of a compiler and per finding; paths are to be relative to the repository's root."""
    for source in sources:
        for message in source.unit.messages:
            properties = _place_properties(message.path or source.path, message.line, places)
            yield make_command(
                _COMMANDS[message.severity], message.text, {**properties, "title": source.unit.compiler or "compiler"}
            )
    for finding in findings:
        properties = {} if finding.file is None else _place_properties(Path(finding.file), finding.line, places)
        title = f"GPU code: {finding.check} (static)"
        yield make_command("notice", describe_static(finding), {**properties, "title": title})


def _place_properties(path: Path, line: int | None, places: PlaceNames) -> dict[str, str]:
    shown = Path(places.show_path(path)).as_posix()
    return {"file": shown} if not line else {"file": shown, "line": str(line)}
