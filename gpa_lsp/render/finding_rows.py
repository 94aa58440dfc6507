"""Findings as the ``findings`` of a JSON report."""

from collections.abc import Iterator, Sequence

from gpa_lsp.render.finding_words import describe_finding
from gpa_lsp.render.findings import Finding
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report_file.report_records import SavedFinding


def make_finding_rows(findings: Sequence[Finding], places: PlaceNames) -> Iterator[SavedFinding]:
    """In the order of the findings."""
    for finding in findings:
        place = finding.place
        yield SavedFinding(
            kernel=finding.kernel.mangled_name,
            profile_path=None if finding.profile_path is None else str(finding.profile_path),
            file=None if place is None else place.file,
            line=None if place is None else place.line,
            shown_file=None if place is None else places.show_file(finding.kernel, place.file),
            function=finding.function,
            share=finding.share,
            samples=finding.share.part_samples,
            self_samples=finding.self_samples,
            latency_samples=finding.latency_samples,
            called_samples=finding.called_samples,
            by_reason=finding.by_reason,
            message=describe_finding(finding),
        )
