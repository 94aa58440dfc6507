"""SARIF logs: what the standard requires, and what viewers rely on."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.document.check_view import list_notices
from gpa_lsp.document.findings import find_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import BASE_ID, build_sarif, make_artifact_uri
from gpa_lsp.report.model import Report
from gpa_lsp.report.source_paths import SourceLocator
from tests.render.examples import make_example
from tests.report_builder import build_kernel, build_report


def make_log(report: Report, folder: Path) -> Any:
    places = PlaceNames(SourceLocator([folder]), folder)
    notices = list_notices(report, find_findings(report, 0.015))
    return json.loads(json.dumps(build_sarif(notices, places, folder), allow_nan=False))


def check_required(log: Any) -> None:
    """The properties SARIF 2.1.0 requires, and the indexes that must fit (3.13, 3.14, 3.19, 3.27, 3.28, 3.29, 3.30, 3.49, 3.58)."""
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = driver["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)
        for notification in invocation["toolExecutionNotifications"]:
            assert notification["message"]["text"]
            for location in notification.get("locations", []):
                check_location(location, run)
    for result in run["results"]:
        assert result["message"]["text"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert 0 <= result["rank"] <= 100
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            check_location(location, run)
        ids = [location["id"] for location in result.get("relatedLocations", [])]
        assert len(set(ids)) == len(ids)
    prints = [json.dumps(result["partialFingerprints"]) for result in run["results"]]
    assert len(set(prints)) == len(prints)


def check_location(location: Any, run: Any) -> None:
    assert "physicalLocation" in location or location["logicalLocations"]
    physical = location.get("physicalLocation")
    if physical is None:
        return
    artifact = physical["artifactLocation"]
    is_absolute = artifact["uri"].startswith("file://")
    assert is_absolute is ("uriBaseId" not in artifact)
    if not is_absolute:
        assert artifact["uriBaseId"] in run["originalUriBaseIds"]
        assert ":" not in artifact["uri"].split("/")[0]
    assert " " not in artifact["uri"]
    assert physical.get("region", {"startLine": 1})["startLine"] >= 1


@pytest.mark.parametrize("report", [make_example(), build_report()], ids=["example", "empty"])
def test_what_the_standard_requires(report: Report, tmp_path: Path) -> None:
    check_required(make_log(report, tmp_path))


def test_sources_below_the_folder_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "my src").mkdir()
    source = tmp_path / "my src" / "k.cu"
    source.write_text("x\n")
    log = make_log(build_report(build_kernel(f"{source}:1  NOP  ; wait=9")), tmp_path)
    (result,) = log["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "my%20src/k.cu", "uriBaseId": BASE_ID}
    assert log["runs"][0]["originalUriBaseIds"][BASE_ID]["uri"] == tmp_path.as_uri() + "/"


def test_the_inline_chain_becomes_related_locations(tmp_path: Path) -> None:
    listing = """
        in@/l/i.h:3 < mid@/l/m.h:2 < k@/l/k.cu:1  FADD R1, R2, R3  ; wait=9
        mid@/l/m.h:2 < k@/l/k.cu:1                NOP              ; wait=1
        k@/l/k.cu:1                               NOP              ; wait=1
    """
    report = build_report(build_kernel(listing))
    results = make_log(report, tmp_path)["runs"][0]["results"]
    by_uri = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: result for result in results}
    related = [location["message"]["text"] for location in by_uri["file:///l/m.h"]["relatedLocations"]]
    assert related == ["sampled code (in)", "inlined here (k)"]


def test_frames_between_a_finding_and_its_samples(tmp_path: Path) -> None:
    listing = """
        in@/l/i.h:3 < mid@/l/m.h:2 < k@/l/k.cu:1  FADD R1, R2, R3  ; wait=9
        k@/l/k.cu:1                               NOP              ; wait=1
    """
    (result, _) = make_log(build_report(build_kernel(listing)), tmp_path)["runs"][0]["results"]
    related = [location["message"]["text"] for location in result["relatedLocations"]]
    assert related == ["sampled code (in)", "inlined in between (mid)"]


def test_fingerprints_do_not_know_line_numbers(tmp_path: Path) -> None:
    def prints(line: int) -> list[str]:
        listing = f"f@/s/k.cu:{line}  NOP  ; wait=9\nf@/s/k.cu:{line + 1}  NOP  ; wait=8"
        results = make_log(build_report(build_kernel(listing)), tmp_path)["runs"][0]["results"]
        return [result["partialFingerprints"]["gpaLspFinding/v1"] for result in results]

    assert prints(5) == prints(77)
    assert len(set(prints(5))) == 2


def test_lines_the_compiler_did_not_number_have_no_region(tmp_path: Path) -> None:
    log = make_log(build_report(build_kernel("/s/k.cu:0  NOP  ; wait=9")), tmp_path)
    physical = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "file:///s/k.cu"}}


def test_problems_become_notifications(tmp_path: Path) -> None:
    (invocation,) = make_log(make_example(), tmp_path)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [note["level"] for note in invocation["toolExecutionNotifications"]] == ["error", "warning", "note"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/a/ü #?%.cu", "file:///a/%C3%BC%20%23%3F%25.cu"),
        ("\\\\server\\share\\k.cu", "file://server/share/k.cu"),
        ("d:\\x\\k.cu", "file:///D:/x/k.cu"),
        ("odd:name.cu", "odd%3Aname.cu"),
        ("../up.cu", "../up.cu"),
    ],
)
def test_uris(path: str, uri: str) -> None:
    assert make_artifact_uri(path) == uri
