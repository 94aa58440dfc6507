"""Blame survives its JSON form exactly, and files that lose or invent samples are refused."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    Dependency,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
    WaitCheck,
)
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.report.model import InstructionColumns, KernelReport
from gpa_lsp.report.saved.store import read_report, write_report
from tests.advice.subjects import build_edges
from tests.conftest import examples
from tests.report_builder import Row, build_kernel, build_report
from tests.report_file.json_documents import dump, expand, refuse, strict_schema, write

LISTING = """
    k.cu:4  LDG.E R2, [R4.64]   ; selected=4
    k.cu:4  LDG.E R3, [R6.64]   ; selected=4
    k.cu:5  FFMA R2, R2, R3, R6 ; long_scoreboard=61/50 wait=7/3 selected=4
    -       EXIT                ; drain=9
"""

BLAME = """
    2 <- 0  long_scoreboard=40.75/30  memory_global R2 8c 2i g0
    2 <- 1  long_scoreboard=20.25/20  memory_global/scoreboard 6c 1i g0
    2 <- ?  wait=2/1  no_producer
    2 <- ?  wait=1/1  no_code
    2 <- 1  wait=4/1  issue/issue
    3 <- ?  drain     work_bound
"""


def make_kernel() -> KernelReport:
    kernel = build_kernel(LISTING, blame=BLAME)
    assert kernel.blame is not None
    problem = Problem(severity=ProblemSeverity.WARNING, message="too large", kernel="kernel", remedy="none")
    return replace(kernel, blame=replace(kernel.blame, problems=(problem,)))


def test_the_promised_fields() -> None:
    blame = dump(build_report(make_kernel()))["kernels"][0]["blame"]
    assert blame["blamer"] == "scoreboard"
    assert blame["single_dependency_coverage"] == {
        "before": 0.625, "after": 0.9375, "nodes": 4, "group": 0.99, "group_samples": 89, "explained": 1.0,
    }  # fmt: skip
    assert blame["unattributed"] == {
        "drain": {"all": 9, "latency": 0, "cause": "work_bound"},
        "wait": {"all": 3, "latency": 2, "cause": "no_producer"},
    }
    assert blame["issue_counts"]["counts"] == [4, 4, 4, 0]
    assert blame["wait_check"] == {"correlation": 0.98, "measured_samples": 100, "predicted_samples": 97.5, "rows": 3}
    assert [edge for edge in blame["edges"] if edge["use_row"] != edge["def_row"]] == [
        {
            "use_row": 2, "def_row": 0, "reason": "long_scoreboard", "all": 40.75, "latency": 30,
            "category": "memory_global", "dependency": "read_after_write", "resource": "R2", "group": 0,
            "distance_cycles": 8, "distance_instructions": 2,
        },
        {
            "use_row": 2, "def_row": 1, "reason": "long_scoreboard", "all": 20.25, "latency": 20,
            "category": "memory_global", "dependency": "scoreboard", "resource": None, "group": 0,
            "distance_cycles": 6, "distance_instructions": 1,
        },
        {
            "use_row": 2, "def_row": 1, "reason": "wait", "all": 4, "latency": 1,
            "category": "issue", "dependency": "issue", "resource": None, "group": 1,
            "distance_cycles": None, "distance_instructions": None,
        },
    ]  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
def test_round_trip(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_report(build_report(make_kernel()), path, indent=indent)
    (back,) = read_report(path).kernels
    assert expand(back) == expand(make_kernel())
    assert back.blame is not None
    assert back.blame.edges.use_row.dtype == "int32"
    assert back.blame.edges.category.dtype == "uint8"
    assert back.blame.unattributed.reason.dtype == "int16"
    jsonschema.Draft202012Validator(strict_schema()).validate(json.loads(path.read_text()))


def test_every_edge_has_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_report(build_report(make_kernel()), path)
    edges = [line for line in path.read_text().splitlines() if line.startswith('{"use_row"')]
    assert len(edges) == len(make_kernel().blame.edges)  # type: ignore[union-attr]
    assert max(map(len, edges)) < 250


def test_edges_of_other_writers_are_put_in_order(tmp_path: Path) -> None:
    document = dump(build_report(make_kernel()))
    document["kernels"][0]["blame"]["edges"].reverse()
    (back,) = read_report(write(tmp_path / "r.json", document)).kernels
    assert expand(back) == expand(make_kernel())


def test_whole_numbers_may_have_a_decimal_point(tmp_path: Path) -> None:
    document = dump(build_report(make_kernel()))
    edge = document["kernels"][0]["blame"]["edges"][1]
    edge["use_row"], edge["group"], edge["distance_cycles"] = float(edge["use_row"]), float(edge["group"]), 0.0
    (back,) = read_report(write(tmp_path / "r.json", document)).kernels
    assert expand(back) == expand(make_kernel())


@pytest.mark.parametrize(
    ("pointer", "value", "place", "words"),
    [
        ("/edges/0/use_row", 4, "/edges/0/use_row", "is 4, outside 0 to 3"),
        ("/edges/0/def_row", -1, "/edges/0/def_row", "is -1, outside 0 to 3"),
        ("/edges/0/use_row", 3, "", "instruction 0 has 0 samples of selected in edges and unattributed, not the 4"),
        ("/edges/0/all", 1e300, "", "instruction 0 has 1e+300 samples of selected"),
        ("/edges/0/all", -1, "/edges/0/all", "is negative"),
        ("/edges/0/latency", 9, "/edges", "has more not-issued samples than samples in element 0"),
        ("/edges/2/latency", 29.5, "", "has 49.5 not-issued samples of long_scoreboard"),
        ("/edges/0/reason", "naptime", "/edges/0/reason", "is 'naptime', not one of drain, long_scoreboard"),
        ("/edges/0/category", "ISSUED", "/edges/0/category", "is 'ISSUED', not one of memory_global"),
        ("/edges/0/dependency", 3, "/edges/0/dependency", "is a number, not a string"),
        ("/edges/0/resource", "R256", "/edges/0/resource", "is 'R256', no register"),
        ("/edges/0/resource", 2, "/edges/0/resource", "a number, not a string"),
        ("/edges/1/reason", None, "/edges/1/reason", "is null, not a string"),
        ("/edges/1/use_row", None, "/edges/1/use_row", "is null, not a whole number"),
        ("/edges/1/use_row", 1 << 70, "/edges/1/use_row", "outside 0 to 3"),
        ("/edges/1/use_row", 0.5, "/edges/1/use_row", "a number, not a whole number"),
        ("/edges/1/all", 10**400, "/edges/1/all", "too large"),
        ("/edges/1", [], "/edges/1", "is an array, not an object"),
        ("/edges/0/distance_cycles", -1, "/edges/0/distance_cycles", "is -1, outside 0"),
        ("/edges/0/group", 1 << 31, "/edges/0/group", "outside 0 to 2147483647"),
        ("/edges/0/distance_cycles", 1 << 40, "/edges/0/distance_cycles", "outside"),
        ("/edges/0/distance_instructions", ..., "/edges/0", "lacks the property 'distance_instructions'"),
        ("/edges", {}, "/edges", "is an object, not an array"),
        ("/edges", [], "", "has 0 samples"),
        ("/unattributed_rows/0/cause", "bad luck", "/unattributed_rows/0/cause", "not one of no_code"),
        ("/unattributed_rows/0/row", 9, "/unattributed_rows/0/row", "outside 0 to 3"),
        ("/unattributed_rows/0/all", True, "/unattributed_rows/0/all", "a boolean, not a number"),
        ("/issue_counts/counts", [1], "/issue_counts/counts", "has 1 numbers for 4 instructions"),
        ("/issue_counts/counts/1", -0.5, "/issue_counts/counts/1", "is negative"),
        ("/issue_counts/counts/1", 10**400, "/issue_counts/counts/1", "too large"),
        ("/issue_counts/is_exact", 1, "/issue_counts/is_exact", "not true or false"),
        ("/single_dependency_coverage/after", 1.5, "/single_dependency_coverage/after", "is 1.5, outside 0 to 1"),
        ("/wait_check/predicted_samples", -3, "/wait_check/predicted_samples", "is negative"),
        ("/blamer", None, "/blamer", "is null, not a string"),
        ("/problems/0/severity", "odd", "/problems/0/severity", "not one of error"),
    ],
)
def test_a_wrong_value_is_named_by_its_pointer(
    tmp_path: Path, pointer: str, value: Any, place: str, words: str
) -> None:
    error = refuse(tmp_path, build_report(make_kernel()), [(f"/kernels/0/blame{pointer}", value)])
    assert words in str(error)
    assert error.place == f"/kernels/0/blame{place}"


def test_blame_without_instructions_is_refused(tmp_path: Path) -> None:
    kernel = make_kernel()
    gone: list[tuple[str, Any]] = [("/kernels/0/instructions", [])]
    assert refuse(tmp_path, build_report(kernel), gone).place == "/kernels/0/blame/edges/0/use_row"


# Hypothesis: any blame that adds up survives.

_texts = st.text(max_size=8)
_ratios = st.none() | st.floats(0, 1)
_counts = st.integers(0, 1 << 40)


@st.composite
def _rows(draw: st.DrawFn) -> list[Row]:
    reasons = ["long_scoreboard", "wait", "selected"]
    return [
        Row(
            function="kernel" if number < 3 else "helper",
            pc_offset=16 * number,
            text="NOP",
            chain=None,
            samples={
                reason: draw(st.integers(1, 1 << 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
                for reason in draw(st.lists(st.sampled_from(reasons), unique=True))
            },
        )
        for number in range(draw(st.integers(0, 5)))
    ]


@st.composite
def _blamed(draw: st.DrawFn) -> KernelReport:
    rows = draw(_rows())
    columns: InstructionColumns = build_kernel(rows).instructions
    edges: list[dict[str, Any]] = []
    lost: list[tuple[float, ...]] = []
    for number, row in enumerate(rows):
        for reason, (every, latency) in row.samples.items():
            weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
            for weight in weights:
                part = (every * weight / sum(weights), latency * weight / sum(weights))
                if draw(st.booleans()):
                    edges.append(_draw_edge(draw, number, columns.reasons.index(reason), len(rows), part))
                else:
                    cause = draw(st.sampled_from(UnattributedCause))
                    lost.append((number, columns.reasons.index(reason), cause, *part))
    issues = draw(st.lists(st.floats(0, 1e12), min_size=len(rows), max_size=len(rows)))
    template = build_kernel(rows, blame="").blame
    assert template is not None
    blame = KernelBlame(
        blamer=draw(_texts),
        edges=build_edges(edges),
        unattributed=Unattributed.from_rows(lost).sort_by("row", "reason", "cause"),
        issue_counts=IssueCounts(
            counts=template.issue_counts.counts + issues,
            is_exact=draw(st.booleans()),
            why=draw(_texts),
            chi_square_per_row=draw(st.none() | st.floats(0, 1e9)),
        ),
        coverage=SingleDependencyCoverage(
            before_ratio=draw(_ratios),
            after_ratio=draw(_ratios),
            nodes=draw(_counts),
            group_ratio=draw(_ratios),
            group_samples=draw(_counts),
            explained_ratio=draw(_ratios),
        ),
        wait_check=draw(
            st.none()
            | st.builds(
                WaitCheck,
                correlation=st.none() | st.floats(-1, 1),
                measured_samples=_counts,
                predicted_samples=st.floats(0, 1e15),
                rows=_counts,
            )
        ),
    )
    return build_kernel(rows, blame=blame)


def _draw_edge(draw: st.DrawFn, use: int, reason: int, row_count: int, part: tuple[float, float]) -> dict[str, Any]:
    distances = st.integers(-1, (1 << 31) - 1)
    return {
        "use_row": use,
        "def_row": draw(st.integers(0, row_count - 1)),
        "reason": reason,
        "category": draw(st.sampled_from(BlameCategory)),
        "dependency": draw(st.sampled_from(Dependency)),
        "resource": draw(st.integers(-1, 5 * 256 - 1)),
        "group": draw(st.integers(0, (1 << 31) - 1)),
        "all_samples": part[0],
        "latency_samples": part[1],
        "distance_cycles": draw(distances),
        "distance_instructions": draw(distances),
    }


@examples(60)
@given(kernel=_blamed())
def test_any_blame_survives(tmp_path_factory: pytest.TempPathFactory, kernel: KernelReport) -> None:
    path = tmp_path_factory.getbasetemp() / "any_blame.json"
    write_report(build_report(kernel), path)
    first = path.read_bytes()
    back = read_report(path)
    assert expand(back.kernels[0]) == expand(kernel)
    write_report(back, path)
    assert path.read_bytes() == first
    jsonschema.Draft202012Validator(strict_schema()).validate(json.loads(first))
