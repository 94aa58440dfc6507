"""VIEW: findings of a report: hot lines, and static findings where nothing was measured."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, LIBRARY_USE
from gpa_lsp.document.advice_words import NO_SASS, describe_priced, find_first_suggestion
from gpa_lsp.document.blocks import Paragraph
from gpa_lsp.document.findings import Finding, FindingReason, list_code_findings, name_kernels
from gpa_lsp.document.layout import Style, style_of_share
from gpa_lsp.document.notices import Notice, Related, Rule, build_notices, list_problems
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.locations import Frame, write_place
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_limit, format_percent, format_share
from gpa_lsp.foundation.prose import NOTHING, Sentence, join, say
from gpa_lsp.kernel.line_waits import LineWait, find_wait
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.kernel_lines import list_waits
from gpa_lsp.report.model import CodeFinding, KernelReport, Report
from gpa_lsp.report.source_paths import parse_compiled_path

NO_STALL_RULE = "selected"  # Rule of findings whose samples are all issues


def build_check(
    report: Report, findings: Sequence[Finding], places: PlaceNames, min_share_ratio: float
) -> list[Paragraph]:
    """Problems, findings, static findings, what their stall reasons mean, a line that counts them, and each kernel's first suggestion.

    Args:
        report: what was looked at.
        findings: of this report.
        places: how sources are shown.
        min_share_ratio: the limit the findings were chosen by, for the last line.
    """
    reasons = dict.fromkeys(reason.name for finding in findings for reason in finding.reasons)
    words = (
        *(f"{name}: {describe_stall_reason(name).description}" for name in reasons),
        summarise(report, findings, min_share_ratio),
        *list_first_suggestions(report),
    )
    return [
        *build_notices(list_notices(report, findings), places),
        *(Paragraph(text=((text, Style.DIM),)) for text in words),
    ]


def list_notices(report: Report, findings: Sequence[Finding]) -> list[Notice]:
    """A notice per problem and finding, the static ones last.

    Args:
        report: what was looked at.
        findings: of this report.
    """
    return [
        *list_problems(report.problems),
        *map(_make_notice, findings),
        *(notice for kernel in report.kernels for notice in _list_code_notices(kernel)),
    ]


def _list_code_notices(kernel: KernelReport) -> list[Notice]:
    found = kernel.code_findings or ()
    waits = list_waits(kernel) if found and kernel.total_samples else ()
    return [_make_code_notice(kernel, one, waits) for one in found]


def identify(scheme: str, kernel: KernelReport, function: str, file: str, rule: str) -> tuple[str, ...]:
    """Key of a notice that stays the same when lines move: kernel, function, file name and rule."""
    name = (PureWindowsPath(file) if "\\" in file else PurePosixPath(file)).name
    return (scheme, kernel.mangled_name, function, name, rule)


def _make_notice(finding: Finding) -> Notice:
    """A notice under the stall reason that dominates the finding."""
    place, kernel = finding.place, finding.kernel
    named = finding.caller or place
    frame = None if named is None else Frame(file=named.file, line=named.line)
    reason = finding.reasons[0].name if finding.reasons else NO_STALL_RULE
    percent = format_share(finding.share)
    ratio = finding.share.ratio + finding.called_ratio
    return Notice(
        text=((percent, style_of_share(ratio)), (describe_finding(finding).removeprefix(percent), Style.PLAIN)),
        title=f"{reason}: {describe_stall_reason(reason).description}",
        rule=_make_rule(reason),
        kernel=kernel,
        function=finding.function or kernel.mangled_name,
        frame=frame,
        path=finding.profile_path,
        name="" if finding.profile_path is not None else finding.kernel_name,
        identity=identify("gpaLspFinding/v1", kernel, finding.function, "" if frame is None else frame.file, reason),
        rank=round(100 * min(1.0, ratio), 4),
        related=tuple(_list_related(finding)),
        properties=_list_properties(finding),
    )


def _make_code_notice(kernel: KernelReport, finding: CodeFinding, waits: Sequence[LineWait]) -> Notice:
    rule = make_code_rule(finding.check)
    return Notice(
        text=describe_code_finding(finding, waits),
        title=f"GPU code: {finding.check} (static)",
        rule=rule,
        kernel=kernel,
        function=kernel.mangled_name,
        frame=None if finding.file is None else Frame(file=finding.file, line=finding.line or 0),
        path=kernel.profile_path,
        name=shorten_name(kernel.name),
        identity=identify("gpaLspFinding/v1", kernel, kernel.mangled_name, finding.file or "", rule.name),
        properties={"static": True, "certainty": finding.certainty, "kernel": kernel.name},
    )


def make_code_rule(check: str) -> Rule:
    """The rule of a static check."""
    from gpa_lsp.diagnosis.advice.find_statics import list_static_checks  # it imports them all

    titles = {one.name: one.title for one in list_static_checks().values()}
    return Rule(name=f"static/{check}", text=f"{titles.get(check, check)} (by the code alone).")


def _make_rule(name: str) -> Rule:
    reason = describe_stall_reason(name)
    return Rule(
        name=name,
        text=f"{reason.description[0].upper()}{reason.description[1:]}.",
        more=f"Group: {reason.group}.",
        help=f"Measured by sampling warps while the kernel ran; {name} is the profiler's name of this warp state.",
        tags=("performance", "gpu", reason.group),
    )


def _list_related(finding: Finding) -> Iterator[Related]:
    """The other frames of the hottest instruction's inline chain, innermost first."""
    if finding.caller is not None and finding.place is not None:
        yield "sampled code", Frame(file=finding.place.file, line=finding.place.line), None
    if finding.hottest is None or finding.hottest.chain is None or finding.place is None:
        return
    frames = finding.hottest.chain
    own = next((level for level, frame in enumerate(frames) if frame.source_line == finding.place), None)
    for level, frame in enumerate(frames if own is not None else ()):
        if frame.source_line != finding.place:
            word = "sampled code" if level == 0 else "inlined here" if level > (own or 0) else "inlined in between"
            name = f" ({shorten_name(demangle(frame.function))})" if frame.function else ""
            yield f"{word}{name}", frame, None


def _list_properties(finding: Finding) -> Mapping[str, Any]:
    share, hottest = finding.share, finding.hottest
    properties = {
        "kernel": finding.kernel.name,
        "samples": share.part_samples,
        "kernelSamples": share.whole_samples,
        "selfSamples": finding.self_samples,
        "latencySamples": finding.latency_samples,
        "calledSamplesEstimate": finding.called_samples,
        "share": {"ratio": share.ratio, "lowRatio": share.low_ratio, "highRatio": share.high_ratio},
        "byReason": {name: count.all_samples for name, count in finding.by_reason.items()},
    }
    if hottest is not None:
        properties["hottestInstruction"] = {
            "function": hottest.function,
            "pcOffset": hottest.pc_offset,
            "text": hottest.text,
            "samples": hottest.samples,
        }
    return properties


def summarise(report: Report, findings: Sequence[Finding], min_share_ratio: float) -> str:
    """Number of findings and kernels, and the limit they were chosen by."""
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


def list_first_suggestions(report: Report) -> Iterator[str]:
    """A line with the first suggestion of each kernel that has advice, and one that says where the others are."""
    names = name_kernels(report.kernels)
    found = [(kernel, find_first_suggestion(kernel)) for kernel in report.kernels]
    for kernel, first in found:
        if first is not None:
            doubt = f"; {NO_SASS}, so better advice may be missing" if kernel.lacks_sass else ""
            if first.optimizer == AT_THE_LIMIT:
                yield f"{names[kernel.name]} is at its limit: {first.hint}"
            elif first.optimizer == LIBRARY_USE:
                yield f"{names[kernel.name]}: {first.hint}"
            else:
                yield f"first suggestion for {names[kernel.name]}: {describe_priced(first)}{doubt}"
    if any(first is not None for _, first in found):
        yield "what limits each kernel, and all suggestions: gpa-lsp advise"


def name_code_place(kernel: KernelReport, finding: CodeFinding, places: PlaceNames) -> str:
    """``file:line`` of a static finding; the kernel's name for code without lines."""
    if finding.file is None:
        return shorten_name(kernel.name)
    return places.show_line(kernel, finding.file, finding.line or 0)


_SELF_SHOWN_BELOW = 0.995  # When nearly all samples are the line's own, nothing is said about inlining

_CALLED_SHOWN_FROM = 0.005


def describe_finding(finding: Finding) -> str:
    """A finding in a sentence: share, stall reasons, place in inlined code, and sample counts."""
    parts = [f"{_head(finding)}{_describe_reasons(finding)}"]
    inclusive = finding.share.part_samples
    if finding.place is not None and inclusive and finding.self_samples < _SELF_SHOWN_BELOW * inclusive:
        own = finding.self_samples / finding.share.whole_samples
        parts.append(
            f"{format_percent(own)} in the line itself, the rest inlined" if own else _describe_inlined(finding)
        )
    if finding.caller is not None and finding.place is not None:
        parts.append(f"in {finding.place}, called here (estimate)")
    if finding.called_ratio >= _CALLED_SHOWN_FROM:
        parts.append(f"about {format_percent(finding.called_ratio)} more in functions it calls (estimate)")
    if finding.hottest is not None and finding.hottest.text:
        parts.append(f"hottest {finding.hottest.text}")
    parts.append(f"{format_count(inclusive)} of {format_count(finding.share.whole_samples)} samples")
    return "; ".join(parts)


def describe_by_code(
    message: Sentence, remedy: Sentence, check: str, certainty: str, wait: LineWait | None = None
) -> Sentence:
    """A static finding with its remedy, marked as not measured; with its stalls where they were sampled."""
    likely = "" if certainty == "certain" else f", {certainty}"
    stalled = NOTHING if wait is None else say("{stalled}", stalled=wait.describe())
    return join((message, remedy, stalled, say("[static {check}{likely}]", check=check, likely=likely)))


def describe_code_finding(finding: CodeFinding, waits: Sequence[LineWait] = ()) -> Sentence:
    """A report's static finding in words.

    Args:
        waits: of the finding's kernel; empty where they are not told.
    """
    wait = None if finding.file is None else find_wait(waits, finding.file, finding.line or 0)
    return describe_by_code(finding.message, finding.remedy, finding.check, finding.certainty, wait)


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
    """A stall reason's share, in Nsight's spelling.

    >>> describe_reason(FindingReason(name="membar", samples=5, ratio=0.5))
    '50 % membar'
    """
    return f"{format_percent(reason.ratio)} {reason.name}"
