"""A finding as one sentence, the same in every view."""

from gpa_lsp.document.findings import Finding, FindingReason
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_count, format_percent, format_share
from gpa_lsp.foundation.prose import Sentence, join, say
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.model import CodeFinding
from gpa_lsp.report.source_paths import parse_compiled_path

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
