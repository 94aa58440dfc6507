"""Findings as the ``findings`` array of a JSON report."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpa_lsp.render.finding_words import describe_finding
from gpa_lsp.render.findings import Finding
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.json_rows import make_reasons, make_share


def make_finding_rows(findings: Sequence[Finding], places: PlaceNames) -> Iterator[dict[str, Any]]:
    """``finding`` objects, in the order of the findings."""
    for finding in findings:
        place = finding.place
        yield {
            "kernel": finding.kernel.mangled_name,
            "profile_path": None if finding.profile_path is None else str(finding.profile_path),
            "file": None if place is None else place.file,
            "line": None if place is None else place.line,
            "shown_file": None if place is None else places.show_file(finding.kernel, place.file),
            "function": finding.function,
            "share": make_share(finding.share),
            "samples": finding.share.part_samples,
            "self_samples": finding.self_samples,
            "latency_samples": finding.latency_samples,
            "called_samples": finding.called_samples,
            "by_reason": make_reasons(finding.by_reason),
            "message": describe_finding(finding),
        }
