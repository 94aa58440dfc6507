"""Findings as SARIF 2.1.0, for code scanning services and SARIF viewers.

Rules are the stall reasons; a finding stands under the reason that dominates it.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from gpa_lsp import __version__
from gpa_lsp.document.check_text import describe_code_finding, describe_finding, describe_problem
from gpa_lsp.document.findings import Finding, list_code_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.model import CodeFinding, KernelReport, Report
from gpa_lsp.report.source_paths import parse_compiled_path

NO_STALL_RULE = "selected"  # Rule of findings whose samples are all issues

_FINGERPRINT = "gpaLspFinding/v1"

Json = dict[str, Any]


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


class SarifParts:
    """Builds the parts of a run; knows which fingerprints it has given out.

    Args:
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """

    def __init__(self, places: PlaceNames, folder: Path) -> None:
        self._places = places
        self._folder = folder
        self._given: Counter[str] = Counter()

    def make_log(self, report: Report, rules: Sequence[Json], results: Sequence[Json]) -> Json:
        """A log with one run (3.13, 3.14); the report's problems become notifications of it."""
        has_error = any(problem.severity is ProblemSeverity.ERROR for problem in report.problems)
        run = {
            "tool": {"driver": {"name": "gpa-lsp", "version": __version__, "rules": list(rules)}},
            "invocations": [
                {
                    "executionSuccessful": not has_error,
                    "toolExecutionNotifications": [self._make_notification(problem) for problem in report.problems],
                }
            ],
            "originalUriBaseIds": {BASE_ID: {"uri": self._folder.as_uri().rstrip("/") + "/"}},
            "columnKind": "utf16CodeUnits",
            "results": list(results),
        }
        return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [_make_shown(run)]}

    def make_location(self, kernel: KernelReport, function: str, frame: Frame | None) -> Json:
        """A location (3.28): the line, or for code without lines the profile, and the function around it."""
        name = function or kernel.mangled_name
        location: Json = {
            "logicalLocations": [
                {
                    "name": shorten_name(demangle(name)),
                    "fullyQualifiedName": demangle(name),
                    "decoratedName": name,
                    "kind": "function",
                }
            ]
        }
        if frame is not None:
            location["physicalLocation"] = self.make_physical(kernel, frame)
        elif kernel.profile_path is not None:
            artifact = self._make_artifact(str(kernel.profile_path), kernel.profile_path)
            location["physicalLocation"] = {"artifactLocation": artifact}
        return location

    def make_physical(self, kernel: KernelReport, frame: Frame) -> Json:
        """A physicalLocation (3.29); without a region where the compiler gave no line."""
        artifact = self._make_artifact(frame.file, self._places.locate(kernel, frame.file))
        physical: Json = {"artifactLocation": artifact}
        if frame.line:
            physical["region"] = {"startLine": frame.line}
        return physical

    def make_fingerprint(self, kernel: KernelReport, function: str, file: str, rule: str) -> str:
        """Stays the same when lines move: it knows kernel, function, file name and rule, and a running number, but no line."""
        name = (PureWindowsPath(file) if "\\" in file else PurePosixPath(file)).name
        key = "\0".join((kernel.mangled_name, function, name, rule))
        self._given[key] += 1
        digest = hashlib.sha256(f"{key}\0{self._given[key]}".encode("utf-8", errors="surrogatepass"))
        return digest.hexdigest()[:32]

    def _make_notification(self, problem: Problem) -> Json:
        notification: Json = {
            "level": _LEVELS[problem.severity],
            "message": {"text": describe_problem(problem)},
        }
        if problem.path is not None:
            artifact = self._make_artifact(str(problem.path), problem.path)
            notification["locations"] = [{"physicalLocation": {"artifactLocation": artifact}}]
        return notification

    def _make_artifact(self, path: str, found: Path | None) -> Json:
        if found is not None and found.is_absolute() and found.is_relative_to(self._folder):
            found = found.relative_to(self._folder)
        uri = make_artifact_uri(str(found) if found is not None else path)
        is_relative = not uri.startswith("file:")
        return {"uri": uri, "uriBaseId": BASE_ID} if is_relative else {"uri": uri}


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


# Parts of a SARIF log that do not depend on its results: locations, notifications, fingerprints, the run.
#
# Built by hand: the object models published for Python are either unmaintained or bring a validation library that
# costs more start-up time than the whole command.
#
# Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0 Plus Errata 01", 2023; section
# numbers below are of it.

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE_ID = "SRCROOT"  # Name of the folder that relative URIs are relative to (3.14.14)

_LEVELS = {ProblemSeverity.ERROR: "error", ProblemSeverity.WARNING: "warning", ProblemSeverity.NOTE: "note"}


def make_artifact_uri(path: str) -> str:
    r"""The URI of a path that need not exist here, of any system (3.4.3).

    >>> make_artifact_uri("/home/me/a b.cu"), make_artifact_uri("C:\\src\\k.cu"), make_artifact_uri("src/k.cu")
    ('file:///home/me/a%20b.cu', 'file:///C:/src/k.cu', 'src/k.cu')
    """
    parts = parse_compiled_path(path)
    joined = "/".join(quote(_encode(part), safe="!$&'()*+,;=@~") for part in parts.parts)
    if parts.anchor == "//":
        return f"file://{joined}"
    if parts.anchor:
        drive = parts.anchor.strip("/")
        return f"file:///{drive}/{joined}" if drive else f"file:///{joined}"
    return joined.replace(":", "%3A")


def _encode(part: str) -> bytes:
    """The bytes of a name of a file; of one that no file can have, all the same some."""
    try:
        return part.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:
        return part.encode("utf-8", errors="surrogatepass")


def _make_shown(value: Any, name: str = "") -> Any:
    """A value of the log without anything that steers a viewer; in a message's text no name becomes a link (3.11.6)."""
    if isinstance(value, dict):
        return {make_visible(key): _make_shown(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_make_shown(one) for one in value]
    if not isinstance(value, str):
        return value
    return make_visible(value.replace("](", "] (") if name == "text" else value)
