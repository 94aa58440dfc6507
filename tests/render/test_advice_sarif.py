"""Advice as SARIF and as annotations: on the causing line, with the suffering lines beside it."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.document.advice_notices import list_advice_notices
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import build_sarif, write_github
from gpa_lsp.report.model import Report
from gpa_lsp.report.source_paths import SourceLocator
from tests.render.advice_examples import make_advice_example, make_advised
from tests.render.test_sarif import check_required
from tests.report_builder import build_kernel, build_report

LISTING = """
    f@/s/k.cu:3                LDG.E R2, [R4.64]  ; selected=1
    f@/s/k.cu:4                LDG.E R3, [R4.64]  ; selected=1
    g@/s/m.h:9 < f@/s/k.cu:5   FADD R2, R2, R3    ; long_scoreboard=60
    f@/s/k.cu:6                FADD R3, R2, R3    ; long_scoreboard=38
"""
BLAME = """
    2 <- 0  long_scoreboard=50  memory_global
    2 <- 1  long_scoreboard=10  memory_local
    3 <- 0  long_scoreboard     memory_global
"""
ADVICE = """
    loop_unrolling 1.25x
        region line 0
            2 <- 0 long_scoreboard
            3 <- 0 long_scoreboard
            2 <- 1 long_scoreboard
"""


def make_log(report: Report, folder: Path) -> Any:
    places = PlaceNames(SourceLocator([folder]), folder)
    log = build_sarif(list_advice_notices(report, places), places, folder)
    return json.loads(json.dumps(log, allow_nan=False))


def place(location: Any) -> tuple[str, int]:
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"].rsplit("/", 1)[1], physical["region"]["startLine"]


@pytest.mark.parametrize("report", [make_advice_example(), build_report()], ids=["example", "empty"])
def test_what_the_standard_requires(report: Report, tmp_path: Path) -> None:
    check_required(make_log(report, tmp_path))


def test_the_causing_line_first_then_those_that_suffer_then_other_causes(tmp_path: Path) -> None:
    report = build_report(build_kernel(LISTING, blame=BLAME, advice=ADVICE))
    (result,) = make_log(report, tmp_path)["runs"][0]["results"]
    assert [place(location) for location in result["locations"]] == [("k.cu", 3)]
    assert [(place(related), related["message"]["text"]) for related in result["relatedLocations"]] == [
        (("m.h", 9), "stalled on data from global memory at FADD R2, R2, R3: 60 samples"),
        (("k.cu", 6), "stalled on data from global memory at FADD R3, R2, R3: 38 samples"),
        (("k.cu", 4), "another cause at LDG.E R3, [R4.64]: 10 samples"),
    ]
    assert result["message"]["text"].startswith("Loop unrolling 1.22–1.28× in kernel (estimate, ")
    assert "/s/m.h:9 is stalled on data from global memory." in result["message"]["text"]
    assert result["rank"] == 20
    assert result["properties"]["speedup"]["estimate"] == 1.25


def test_the_line_that_is_here_is_annotated_not_the_library_it_calls(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("x\n")
    listing = f"in@/usr/include/i.h:3 < k@{source}:7  LDG.E R2, [R4.64]  ; lg_throttle=9"
    kernel = build_kernel(listing, advice="memory_transaction_reduction 1.1x\nregion line 0\n0 lg_throttle")
    (result,) = make_log(build_report(kernel), tmp_path)["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert (physical["artifactLocation"]["uri"], physical["region"]) == ("k.cu", {"startLine": 7})


def test_advice_about_the_launch_stands_on_the_kernels_first_line(tmp_path: Path) -> None:
    kernel = build_kernel(LISTING, advice="block_increase parallel 1.1x")
    (result,) = make_log(build_report(kernel), tmp_path)["runs"][0]["results"]
    assert [place(location) for location in result["locations"]] == [("k.cu", 3)]
    assert "relatedLocations" not in result


def test_code_without_lines_stands_on_its_profile(tmp_path: Path) -> None:
    kernel = build_kernel("-  LDG.E R2, [R4.64]  ; lg_throttle=9", advice="a 1.1x\nregion line 0\n0 lg_throttle")
    report = build_report(kernel)
    (result,) = make_log(report, tmp_path)["runs"][0]["results"]
    location = result["locations"][0]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "profile.ncu-rep", "uriBaseId": "SRCROOT"}}
    assert location["logicalLocations"][0]["decoratedName"] == "kernel"
    places = PlaceNames()
    (command,) = write_github(list_advice_notices(report, places), places).splitlines()
    assert command.startswith("::notice file=profile.ncu-rep,title=GPU advice%3A A 1.09–1.11×::A 1.09–1.11× in kernel ")


def test_a_bound_that_nobody_knows_is_null(tmp_path: Path) -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    first = kernel.advice.advice[0]
    endless = replace(first, speedup=replace(first.speedup, bound=math.inf, uncapped=math.inf))
    report = build_report(replace(kernel, advice=KernelAdvice(advice=(endless,), silences=())))
    (result,) = make_log(report, tmp_path)["runs"][0]["results"]
    assert result["properties"]["speedup"]["bound"] is None
    assert "no known upper bound" in result["message"]["text"]


def test_fingerprints_do_not_know_line_numbers(tmp_path: Path) -> None:
    def prints(line: int) -> list[str]:
        listing = f"f@/s/k.cu:{line}  LDG  ; wait=9\nf@/s/k.cu:{line + 1}  LDG  ; wait=9"
        advice = "a 1.1x\nregion line 0\n0 wait\na 1.2x\nregion line 1\n1 wait"
        results = make_log(build_report(build_kernel(listing, advice=advice)), tmp_path)["runs"][0]["results"]
        return [result["partialFingerprints"]["gpaLspAdvice/v1"] for result in results]

    assert prints(5) == prints(77)
    assert len(set(prints(5))) == 2
