"""Findings as ``file:line: info: …``, the form that terminals and editors make clickable."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, LIBRARY_USE
from gpa_lsp.document.advice_words import NO_SASS, find_best_advice, summarise_advice
from gpa_lsp.document.blocks import Item, Items, Part
from gpa_lsp.document.findings import Finding, FindingReason, list_code_findings, name_kernels
from gpa_lsp.document.layout import Line, Style, hang, style_of_share
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_limit, format_percent, format_share
from gpa_lsp.foundation.prose import Sentence, join, say
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.model import CodeFinding, KernelReport, Report
from gpa_lsp.report.source_paths import parse_compiled_path

SEVERITY_STYLES = {
    ProblemSeverity.ERROR: Style.ERROR,
    ProblemSeverity.WARNING: Style.WARNING,
    ProblemSeverity.NOTE: Style.NOTE,
}


def render_check(
    report: Report,
    findings: Sequence[Finding],
    places: PlaceNames,
    min_share_ratio: float,
    width: int | None = None,
) -> Iterator[Line]:
    """Problems first, then findings, then what code alone says, then one line that counts them, and the best advice for each kernel that has some.

    Args:
        report: what was looked at.
        findings: of this report.
        places: how sources are shown.
        min_share_ratio: the limit the findings were chosen by, for the last line.
        width: characters per line of a screen; None keeps every finding on one line, for editors and scripts to read.
    """
    for problem in report.problems:
        yield from hang(render_problem(problem, places), width)
    for finding in findings:
        yield from hang(_render_finding(finding, places), width)
    for kernel, by_code in list_code_findings(report):
        yield from hang(_render_by_code(kernel, by_code, places), width)
    yield from hang(((summarise(report, findings, min_share_ratio), Style.DIM),), width)
    for line in list_best_advice(report):
        yield from hang(((line, Style.DIM),), width)


def build_problems(problems: Sequence[Problem], places: PlaceNames) -> list[Part]:
    """All of them at the end of a page, under a heading; nothing where there is none."""
    items = [Item(text=render_problem(problem, places)) for problem in problems]
    return [Part(title="Problems", blocks=[Items(items=items)])] if items else []


def render_problem(problem: Problem, places: PlaceNames) -> Line:
    """A problem as ``file: severity: …``."""
    path = problem.path
    place: Line = () if path is None else ((places.show_path(path), Style.PATH), (": ", Style.PLAIN))
    style = SEVERITY_STYLES[problem.severity]
    return (*place, (f"{problem.severity.value}: ", style), (describe_problem(problem), Style.PLAIN))


def name_place(finding: Finding, places: PlaceNames) -> str:
    """Where a finding points: ``file:line``, or the profile for code without lines."""
    if finding.place is not None:
        return places.show_line(finding.kernel, finding.place.file, finding.place.line)
    return places.show_path(finding.profile_path) if finding.profile_path is not None else finding.kernel_name


def summarise(report: Report, findings: Sequence[Finding], min_share_ratio: float) -> str:
    """How many findings in how many kernels, and by which limit."""
    static = len(list_code_findings(report))
    return _summarise_samples(report, findings, min_share_ratio) + (
        f"; {format_count_of(static, 'static finding')}" if static else ""
    )


def _summarise_samples(report: Report, findings: Sequence[Finding], min_share_ratio: float) -> str:
    kernels = format_count_of(len(report.kernels), "kernel")
    if not report.kernels:
        return "no kernel found"
    if not any(kernel.total_samples for kernel in report.kernels):
        return f"no samples in {kernels}"
    limit = format_limit(min_share_ratio)
    if not findings:
        return f"no line of {kernels} holds {limit} or more of its kernel's samples"
    return f"{format_count_of(len(findings), 'finding')} in {kernels} (places with {limit} or more of their kernel's samples)"


def list_best_advice(report: Report) -> Iterator[str]:
    """A line for each kernel with advice: the piece with the largest estimate."""
    names = name_kernels(report.kernels)
    for kernel in report.kernels:
        best = find_best_advice(kernel)
        if best is not None:
            doubt = f"; {NO_SASS}, so better advice may be missing" if kernel.lacks_sass else ""
            if best.optimizer == AT_THE_LIMIT:
                yield f"{names[kernel.name]} is at its limit: {best.hint}"
            elif best.optimizer == LIBRARY_USE:
                yield f"{names[kernel.name]}: {best.hint}"
            else:
                yield f"best advice for {names[kernel.name]}: {summarise_advice(best)} (gpa-lsp advise shows where{doubt})"


def name_code_place(kernel: KernelReport, finding: CodeFinding, places: PlaceNames) -> str:
    """Where a finding by the code alone points: ``file:line``, or the kernel for code without lines."""
    if finding.file is None:
        return shorten_name(kernel.name)
    return places.show_line(kernel, finding.file, finding.line or 0)


def _render_by_code(kernel: KernelReport, finding: CodeFinding, places: PlaceNames) -> Line:
    return (
        (name_code_place(kernel, finding, places), Style.PATH),
        (": ", Style.PLAIN),
        ("info: ", Style.NOTE),
        (describe_code_finding(finding), Style.PLAIN),
    )


def _render_finding(finding: Finding, places: PlaceNames) -> Line:
    percent = format_share(finding.share)
    heat = style_of_share(finding.share.ratio + finding.called_ratio)
    return (
        (name_place(finding, places), Style.PATH),
        (": ", Style.PLAIN),
        ("info: ", Style.NOTE),
        (percent, heat),
        (describe_finding(finding).removeprefix(percent), Style.PLAIN),
    )


_SELF_SHOWN_BELOW = 0.995  # When nearly all samples are the line's own, nothing is said about inlining

_CALLED_SHOWN_FROM = 0.005


def describe_finding(finding: Finding) -> str:
    """What a finding says: how much, why, where in it, and counted from what."""
    parts = [f"{_head(finding)}{_describe_reasons(finding)}"]
    inclusive = finding.share.part_samples
    if finding.place is not None and inclusive and finding.self_samples < _SELF_SHOWN_BELOW * inclusive:
        own = finding.self_samples / finding.share.whole_samples
        parts.append(
            f"{format_percent(own)} in the line itself, the rest inlined" if own else _describe_inlined(finding)
        )
    if finding.called_ratio >= _CALLED_SHOWN_FROM:
        parts.append(f"about {format_percent(finding.called_ratio)} more in functions it calls (estimate)")
    if finding.hottest is not None and finding.hottest.text:
        parts.append(f"hottest {finding.hottest.text}")
    parts.append(f"{format_count(inclusive)} of {format_count(finding.share.whole_samples)} samples")
    return "; ".join(parts)


def describe_by_code(message: Sentence, remedy: Sentence, check: str, certainty: str) -> Sentence:
    """What the code alone says of a line, marked as not measured."""
    likely = "" if certainty == "certain" else f", {certainty}"
    return join((message, remedy, say("[static {check}{likely}]", check=check, likely=likely)))


def describe_code_finding(finding: CodeFinding) -> Sentence:
    """The same of a finding of a report."""
    return describe_by_code(finding.message, finding.remedy, finding.check, finding.certainty)


def _head(finding: Finding) -> str:
    head = f"{format_share(finding.share)} of the samples of {finding.kernel_name}"
    if finding.place is None:
        where = "" if finding.function == finding.kernel.mangled_name else f" in {finding.function_name}"
        return f"{head}{where}, which has no line information"
    return head


def _describe_inlined(finding: Finding) -> str:
    if not finding.same_samples:
        return "all of it inlined"
    innermost = finding.same_samples[-1]
    return f"all of it inlined from {write_place(parse_compiled_path(innermost.file).parts[-1], innermost.line)}"


def _describe_reasons(finding: Finding) -> str:
    if not finding.reasons:
        return ": issuing, not stalled" if finding.share.part_samples else ""
    return "; of these " + ", ".join(describe_reason(reason) for reason in finding.reasons)


def describe_reason(reason: FindingReason) -> str:
    """A stall reason's share in Nsight's spelling, with what it means.

    >>> describe_reason(FindingReason(name="membar", samples=5, ratio=0.5))
    '50 % membar (waiting for a memory fence to complete)'
    """
    return f"{format_percent(reason.ratio)} {reason.name} ({describe_stall_reason(reason.name).description})"


def describe_problem(problem: Problem) -> str:
    """A problem without its file: place or kernel, message and remedy."""
    where = problem.place
    if problem.kernel is not None and problem.kernel not in (where or problem.message):
        where = ", ".join(part for part in (where, shorten_name(demangle(problem.kernel))) if part)
    text = f"{where}: {problem.message}" if where else problem.message
    return f"{text}; {problem.remedy}" if problem.remedy else text
