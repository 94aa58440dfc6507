"""Findings as SARIF 2.1.0, for code scanning services and SARIF viewers.

Rules are the stall reasons; a finding stands under the reason that dominates it. Built by hand: the object models published for Python are
either unmaintained or bring a validation library that costs more start-up time than the whole command.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0 Plus Errata 01", 2023; section numbers below are of it.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from gpa_lsp import __version__
from gpa_lsp.errors import Problem, ProblemSeverity
from gpa_lsp.locations import Frame
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.render.finding_words import describe_finding, describe_problem
from gpa_lsp.render.findings import Finding
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.model import Report
from gpa_lsp.report.names import demangle, shorten_name
from gpa_lsp.report.source_paths import parse_compiled_path

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE_ID = "SRCROOT"
"""Name of the folder that relative URIs are relative to (3.14.14)."""

NO_STALL_RULE = "selected"
"""Rule of findings whose samples are all issues."""

_FINGERPRINT = "gpaLspFinding/v1"
_LEVELS = {ProblemSeverity.ERROR: "error", ProblemSeverity.WARNING: "warning", ProblemSeverity.NOTE: "note"}

Json = dict[str, Any]


def build_sarif(report: Report, findings: Sequence[Finding], places: PlaceNames, folder: Path) -> Json:
    """A SARIF log with one run.

    Args:
        report: what was looked at; its problems become notifications of the run.
        findings: of this report; become results.
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """
    writer = _SarifWriter(places, folder)
    rules = list(dict.fromkeys(_rule_of(finding) for finding in findings))
    results = [writer.make_result(finding, rules.index(_rule_of(finding))) for finding in findings]
    has_error = any(problem.severity is ProblemSeverity.ERROR for problem in report.problems)
    run = {
        "tool": {"driver": {"name": "gpa-lsp", "version": __version__, "rules": [_make_rule(name) for name in rules]}},
        "invocations": [
            {
                "executionSuccessful": not has_error,
                "toolExecutionNotifications": [writer.make_notification(problem) for problem in report.problems],
            }
        ],
        "originalUriBaseIds": {BASE_ID: {"uri": folder.as_uri().rstrip("/") + "/"}},
        "columnKind": "utf16CodeUnits",
        "results": results,
    }
    return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}


def make_artifact_uri(path: str) -> str:
    r"""The URI of a path that need not exist here, of any system (3.4.3).

    >>> make_artifact_uri("/home/me/a b.cu"), make_artifact_uri("C:\\src\\k.cu"), make_artifact_uri("src/k.cu")
    ('file:///home/me/a%20b.cu', 'file:///C:/src/k.cu', 'src/k.cu')
    """
    parts = parse_compiled_path(path)
    joined = "/".join(quote(part, safe="!$&'()*+,;=@~") for part in parts.parts)
    if parts.anchor == "//":
        return f"file://{joined}"
    if parts.anchor:
        drive = parts.anchor.strip("/")
        return f"file:///{drive}/{joined}" if drive else f"file:///{joined}"
    return joined.replace(":", "%3A")


class _SarifWriter:
    """Builds the parts of a run; knows which fingerprints it has given out."""

    def __init__(self, places: PlaceNames, folder: Path) -> None:
        self._places = places
        self._folder = folder
        self._given: Counter[str] = Counter()

    def make_result(self, finding: Finding, rule_index: int) -> Json:
        """A result (3.27)."""
        result: Json = {
            "ruleId": _rule_of(finding),
            "ruleIndex": rule_index,
            "level": "note",
            "message": {"text": describe_finding(finding)},
            "locations": [self._make_location(finding)],
            "partialFingerprints": {_FINGERPRINT: self._make_fingerprint(finding)},
            "rank": round(100 * min(1.0, finding.share.ratio + finding.called_ratio), 4),
            "properties": _make_properties(finding),
        }
        related = self._make_related(finding)
        if related:
            result["relatedLocations"] = related
        return result

    def make_notification(self, problem: Problem) -> Json:
        """A notification (3.58)."""
        notification: Json = {
            "level": _LEVELS[problem.severity],
            "message": {"text": describe_problem(problem)},
        }
        if problem.path is not None:
            artifact = self._make_artifact(str(problem.path), problem.path)
            notification["locations"] = [{"physicalLocation": {"artifactLocation": artifact}}]
        return notification

    def _make_location(self, finding: Finding) -> Json:
        function = finding.function or finding.kernel.mangled_name
        location: Json = {
            "logicalLocations": [
                {
                    "name": shorten_name(demangle(function)),
                    "fullyQualifiedName": demangle(function),
                    "decoratedName": function,
                    "kind": "function",
                }
            ]
        }
        if finding.place is not None:
            place = Frame(file=finding.place.file, line=finding.place.line)
            location["physicalLocation"] = self._make_physical(finding, place)
        elif finding.profile_path is not None:
            artifact = self._make_artifact(str(finding.profile_path), finding.profile_path)
            location["physicalLocation"] = {"artifactLocation": artifact}
        return location

    def _make_related(self, finding: Finding) -> list[Json]:
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
            word = (
                "where the samples are"
                if level == 0
                else "inlined here"
                if level > own
                else "on the way to the samples"
            )
            name = shorten_name(demangle(frame.function)) if frame.function else ""
            related.append(
                {
                    "id": len(related) + 1,
                    "physicalLocation": self._make_physical(finding, frame),
                    "message": {"text": f"{word} ({name})" if name else word},
                }
            )
        return related

    def _make_physical(self, finding: Finding, frame: Frame) -> Json:
        artifact = self._make_artifact(frame.file, self._places.locate(finding.kernel, frame.file))
        physical: Json = {"artifactLocation": artifact}
        if frame.line:
            physical["region"] = {"startLine": frame.line}
        return physical

    def _make_artifact(self, path: str, found: Path | None) -> Json:
        if found is not None and found.is_absolute() and found.is_relative_to(self._folder):
            found = found.relative_to(self._folder)
        uri = make_artifact_uri(str(found) if found is not None else path)
        is_relative = not uri.startswith("file:")
        return {"uri": uri, "uriBaseId": BASE_ID} if is_relative else {"uri": uri}

    def _make_fingerprint(self, finding: Finding) -> str:
        """Stays the same when lines move: it knows kernel, function, file name and reason, and a running number, but no line."""
        file = "" if finding.place is None else finding.place.file
        name = (PureWindowsPath(file) if "\\" in file else PurePosixPath(file)).name
        key = "\0".join((finding.kernel.mangled_name, finding.function, name, _rule_of(finding)))
        self._given[key] += 1
        digest = hashlib.sha256(f"{key}\0{self._given[key]}".encode("utf-8", errors="surrogatepass"))
        return digest.hexdigest()[:32]


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
            "text": f"{text} Counted by sampling warps while the kernel ran; {name} is the profiler's own name of this warp state."
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
