"""Findings as SARIF 2.1.0, for code scanning services and SARIF viewers.

Rules are the stall reasons; a finding stands under the reason that dominates it.
"""

from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.document.finding_words import describe_code_finding, describe_finding
from gpa_lsp.document.findings import Finding, list_code_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif_parts import Json, SarifParts
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.model import CodeFinding, KernelReport, Report

NO_STALL_RULE = "selected"  # Rule of findings whose samples are all issues

_FINGERPRINT = "gpaLspFinding/v1"


def build_sarif(report: Report, findings: Sequence[Finding], places: PlaceNames, folder: Path) -> Json:
    """A SARIF log with one run.

    Args:
        report: what was looked at; its problems become notifications of the run.
        findings: of this report; become results.
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """
    parts = SarifParts(places, folder)
    rules = list(dict.fromkeys(_rule_of(finding) for finding in findings))
    by_code = list_code_findings(report)
    checks = list(dict.fromkeys(finding.check for _, finding in by_code))
    results = [_make_result(parts, finding, rules.index(_rule_of(finding))) for finding in findings]
    results.extend(
        _make_code_result(parts, kernel, finding, len(rules) + checks.index(finding.check))
        for kernel, finding in by_code
    )
    return parts.make_log(report, [*map(_make_rule, rules), *map(make_code_rule, checks)], results)


def _make_result(parts: SarifParts, finding: Finding, rule_index: int) -> Json:
    place = finding.place
    frame = None if place is None else Frame(file=place.file, line=place.line)
    file = "" if place is None else place.file
    fingerprint = parts.make_fingerprint(finding.kernel, finding.function, file, _rule_of(finding))
    result: Json = {
        "ruleId": _rule_of(finding),
        "ruleIndex": rule_index,
        "level": "note",
        "message": {"text": describe_finding(finding)},
        "locations": [parts.make_location(finding.kernel, finding.function, frame)],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "rank": round(100 * min(1.0, finding.share.ratio + finding.called_ratio), 4),
        "properties": _make_properties(finding),
    }
    related = _make_related(parts, finding)
    if related:
        result["relatedLocations"] = related
    return result


def _make_code_result(parts: SarifParts, kernel: KernelReport, finding: CodeFinding, rule_index: int) -> Json:
    rule = f"static/{finding.check}"
    frame = None if finding.file is None else Frame(file=finding.file, line=finding.line or 0)
    fingerprint = parts.make_fingerprint(kernel, kernel.mangled_name, finding.file or "", rule)
    return {
        "ruleId": rule,
        "ruleIndex": rule_index,
        "level": "note",
        "message": {"text": describe_code_finding(finding)},
        "locations": [parts.make_location(kernel, kernel.mangled_name, frame)],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "properties": {"static": True, "certainty": finding.certainty, "kernel": kernel.name},
    }


def make_code_rule(check: str) -> Json:
    """A reportingDescriptor (3.49) of a check of code."""
    from gpa_lsp.diagnosis.advice.find_statics import list_static_checks  # it imports them all

    titles = {one.name: one.title for one in list_static_checks().values()}
    text = f"{titles.get(check, check)} (by the code alone)"
    return {"id": f"static/{check}", "shortDescription": {"text": text}}


def _make_related(parts: SarifParts, finding: Finding) -> list[Json]:
    """The other frames of the hottest instruction's inline chain, innermost first."""
    if finding.hottest is None or finding.hottest.chain is None or finding.place is None:
        return []
    frames = finding.hottest.chain
    own = next((level for level, frame in enumerate(frames) if frame.source_line == finding.place), None)
    if own is None:
        return []
    related: list[Json] = []
    for level, frame in enumerate(frames):
        if frame.source_line == finding.place:
            continue
        word = "sampled code" if level == 0 else "inlined here" if level > own else "inlined in between"
        name = shorten_name(demangle(frame.function)) if frame.function else ""
        related.append(
            {
                "id": len(related) + 1,
                "physicalLocation": parts.make_physical(finding.kernel, frame),
                "message": {"text": f"{word} ({name})" if name else word},
            }
        )
    return related


def _rule_of(finding: Finding) -> str:
    return finding.reasons[0].name if finding.reasons else NO_STALL_RULE


def _make_rule(name: str) -> Json:
    """A reportingDescriptor (3.49)."""
    reason = describe_stall_reason(name)
    text = reason.description[0].upper() + reason.description[1:] + "."
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("_")),
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text} Group: {reason.group}."},
        "help": {
            "text": f"{text} Measured by sampling warps while the kernel ran; {name} is the profiler's name of this warp state."
        },
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["performance", "gpu", reason.group]},
    }


def _make_properties(finding: Finding) -> Json:
    share = finding.share
    properties: Json = {
        "kernel": finding.kernel.name,
        "samples": share.part_samples,
        "kernelSamples": share.whole_samples,
        "selfSamples": finding.self_samples,
        "latencySamples": finding.latency_samples,
        "calledSamplesEstimate": finding.called_samples,
        "share": {"ratio": share.ratio, "lowRatio": share.low_ratio, "highRatio": share.high_ratio},
        "byReason": {name: count.all_samples for name, count in finding.by_reason.items()},
    }
    if finding.hottest is not None:
        hottest = finding.hottest
        properties["hottestInstruction"] = {
            "function": hottest.function,
            "pcOffset": hottest.pc_offset,
            "text": hottest.text,
            "samples": hottest.samples,
        }
    return properties
