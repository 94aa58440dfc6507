"""Findings and advice as workflow commands: GitHub shows them as annotations on the lines of a pull request."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from gpa_lsp.document.advice_notes import AdviceNote, describe_note
from gpa_lsp.document.advice_words import show_estimate
from gpa_lsp.document.check_text import describe_code_finding, describe_finding, describe_problem, name_place
from gpa_lsp.document.findings import Finding, list_code_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.report.model import CodeFinding, KernelReport, Report

_COMMANDS = {
    ProblemSeverity.ERROR: "error",
    ProblemSeverity.WARNING: "warning",
    ProblemSeverity.NOTE: "notice",
}


def render_github(report: Report, findings: Sequence[Finding], places: PlaceNames) -> Iterator[str]:
    """One command per problem and finding, those by the code alone last.

    Args:
        report: what was looked at.
        findings: of this report.
        places: how sources are shown; relative to the repository's root, or GitHub cannot place them.
    """
    for problem in report.problems:
        yield _render_problem(problem, places)
    for finding in findings:
        yield _render_finding(finding, places)
    for kernel, by_code in list_code_findings(report):
        yield _render_by_code(kernel, by_code, places)


def render_advice_github(report: Report, notes: Sequence[AdviceNote], places: PlaceNames) -> Iterator[str]:
    """One command per problem and piece of advice.

    Args:
        report: what was looked at.
        notes: the advice of this report.
        places: how sources are shown; relative to the repository's root, or GitHub cannot place them.
    """
    for problem in report.problems:
        yield _render_problem(problem, places)
    for note in notes:
        yield _render_note(note, places)


def _render_problem(problem: Problem, places: PlaceNames) -> str:
    properties = {} if problem.path is None else {"file": _slashed(places.show_path(problem.path))}
    return make_command(_COMMANDS[problem.severity], describe_problem(problem), {**properties, "title": "gpa-lsp"})


def _render_finding(finding: Finding, places: PlaceNames) -> str:
    properties = {"file": name_place(finding, places)}
    if finding.place is not None:
        properties["file"] = _slashed(places.show_file(finding.kernel, finding.place.file))
        properties["line"] = str(max(1, finding.place.line))
    reason = finding.reasons[0].name if finding.reasons else "selected"
    return make_command("notice", describe_finding(finding), {**properties, "title": f"GPU stalls: {reason}"})


def _render_by_code(kernel: KernelReport, finding: CodeFinding, places: PlaceNames) -> str:
    properties: dict[str, str] = {}
    if finding.file is not None:
        file = _slashed(places.show_file(kernel, finding.file))
        properties = {"file": file, "line": str(max(1, finding.line or 0))}
    elif kernel.profile_path is not None:
        properties = {"file": _slashed(places.show_path(kernel.profile_path))}
    title = f"GPU code: {finding.check} (static)"
    return make_command("notice", describe_code_finding(finding), {**properties, "title": title})


def _render_note(note: AdviceNote, places: PlaceNames) -> str:
    properties: dict[str, str] = {}
    if note.frame is not None:
        properties = {
            "file": _slashed(places.show_file(note.kernel, note.frame.file)),
            "line": str(max(1, note.frame.line)),
        }
    elif note.kernel.profile_path is not None:
        properties = {"file": _slashed(places.show_path(note.kernel.profile_path))}
    title = f"GPU advice: {note.advice.title}, {show_estimate(note.advice.speedup)}"
    return make_command("notice", describe_note(note, places), {**properties, "title": title})


def make_command(name: str, message: str, properties: dict[str, str]) -> str:
    r"""A workflow command on one line with everything escaped that would end it early.

    Source: the escaping rules of GitHub's own toolkit: percent everywhere, colon and comma in properties as well; line ends
    are written out before.

    >>> make_command("notice", "5 % of it: a\nb", {"file": "a,b.cu", "line": "3"})
    '::notice file=a%2Cb.cu,line=3::5 %25 of it: a\\nb'
    """
    listed = ",".join(f"{key}={_escape(value, ':,')}" for key, value in properties.items())
    return f"::{name} {listed}::{_escape(message)}"


def _escape(text: str, also: str = "") -> str:
    text = make_visible(text).replace("%", "%25")
    for character in also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _slashed(path: str) -> str:
    return PurePath(path).as_posix()
