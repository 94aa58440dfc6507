"""Reports survive their JSON form, the form keeps to its schema, and older ones are read."""

import io
import json
import math
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp import __version__
from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, KernelAdvice, Region, Speedup, Standing
from gpa_lsp.diagnosis.analyses.answers import Bar, Column, Table
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
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.figures import Share, measure_share
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.report.model import DeviceReport, KernelReport, Report
from gpa_lsp.report.saved import is_saved_report
from gpa_lsp.report.saved.store import read_report, write_report
from tests.advice.subjects import build_edges
from tests.analyses_samples import ANALYSES, ANSWER
from tests.conftest import examples
from tests.golden_files import check_golden
from tests.render.advice_examples import make_advised
from tests.report_builder import OUTSIDE, Row, build_kernel, build_report
from tests.report_file.json_documents import change, dump, expand, strict_schema, write
from tests.report_file.known_reports import ADVISED, make_full_report, make_report, make_unknown_report
from tests.report_file.record_schema import SCHEMA_FILE, make_report_schema, show_schema
from tests.strategies import COUNTS, TEXTS, records

EARLIER = Path(__file__).parent / "earlier"


def read_back(path: Path, document: Any) -> Report:
    return read_report(write(path / "r.json", document))


def test_the_schema_file_is_what_the_code_says() -> None:
    text = show_schema(make_report_schema())
    if os.environ.get("UPDATE_GOLDEN"):
        SCHEMA_FILE.write_text(text, encoding="utf-8", newline="\n")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text, "UPDATE_GOLDEN=1 writes it again"


def test_schema_is_a_schema_and_describes_every_property() -> None:
    schema = make_report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, part in schema["$defs"].items():
        assert part["description"], name
        for key, value in part["properties"].items():
            assert "description" in value or "properties" in value, (name, key)
    assert "likewise" not in SCHEMA_FILE.read_text(encoding="utf-8")  # each description can be read by itself


@pytest.mark.parametrize("is_expanded", [False, True])
def test_a_report_as_it_is_written(is_expanded: bool, tmp_path: Path) -> None:
    """A row per line, what many rows have in tables or, expanded, in each row; an indent changes white space only."""
    report, path = make_full_report(), tmp_path / "report.json"
    write_report(report, path, is_expanded=is_expanded)
    text = path.read_text(encoding="utf-8").replace(f'"version":"{__version__}"', '"version":"0.1.0"')
    check_golden(f"report_file/{'expanded' if is_expanded else 'report'}.json", text)
    assert expand(read_report(path)) == expand(report)
    assert is_saved_report(path)
    assert [found.name for found in tmp_path.iterdir()] == ["report.json"]
    written = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(strict_schema()).validate(written)
    assert dump(report, indent=2, is_expanded=is_expanded) == written
    assert dump(report, with_sources=False)["kernels"][0]["embedded_sources"] == {}


def test_columns_keep_their_types(tmp_path: Path) -> None:
    blame = read_back(tmp_path, dump(make_full_report())).kernels[2].blame
    assert (blame.edges.use_row.dtype, blame.edges.category.dtype) == ("int32", "uint8")
    assert blame.unattributed.reason.dtype == "int16"


@pytest.mark.parametrize(("version", "report"), [(1, make_report()), (2, make_unknown_report())])
def test_reports_of_earlier_versions_are_read(version: int, report: Report) -> None:
    """``earlier/`` holds what the last program of each version wrote of these reports."""
    path = EARLIER / f"version_{version}.json"
    assert f'"schema":"gpa-lsp/report/{version}"' in path.read_text(encoding="ascii")
    assert expand(read_report(path)) == expand(report)


def test_reports_of_older_and_other_writers_are_read(tmp_path: Path) -> None:
    report, document = make_full_report(), dump(make_full_report())
    edges = document["kernels"][2]["blame"]["edges"]
    edges[1] |= {name: float(edges[1][name] or 0) for name in ("use_row", "group", "distance_cycles")}
    edges.reverse()
    for pointer, value in {
        "/later": {"x": 1},
        "/kernels/0/later": {"x": 1},
        "/kernels/0/lines/0/later": {"x": 1},
        "/kernels/0/samples/total": 97.0,
        "/kernels/0/instructions/0/file": "k.cu",  # in place of its position in a table
        "/kernels/3/advice/0/regions/0/hotspots/0/def/text": "NOP",  # what repeats the instructions is not believed
        "/kernels/3/advice/0/hotspots": [],
        "/kernels/3/analyses/answers/0/new": {"to": "us"},
    }.items():
        change(document, pointer, value)
    assert expand(read_back(tmp_path, document)) == expand(report)
    for pointer in ("blame", "advice"):
        change(document, f"/kernels/0/{pointer}", ...)
    for pointer in ("/0/launches/0/elapsed_cycles", "/3/advice_silences", "/3/analyses/answers/0/missing", "/4/places"):
        change(document, f"/kernels{pointer}", ...)
    document["kernels"][1]["duration_ns"] = 11
    long, empty, _, advised, placed = read_back(tmp_path, document).kernels
    assert (long.blame, long.advice, long.launches[0].elapsed_cycles) == (None, None, None)
    assert expand(long) == expand(report.kernels[0])
    assert (empty.duration_ns, type(empty.duration_ns)) == (11.0, float)
    assert (len(advised.advice.advice), advised.advice.silences) == (2, ())
    assert (advised.analyses.answers[0].missing, placed.places) == ((), ())


def test_a_report_without_verdicts_is_read_with_them(tmp_path: Path) -> None:
    kernel = make_advised()
    document = dump(build_report(kernel))
    del document["kernels"][0]["advice_refusals"]
    for one in document["kernels"][0]["advice"]:
        del one["standing"]
    back = read_back(tmp_path, document).kernels[0]
    assert back.advice == kernel.advice
    assert [one.titles for one in back.advice.refusals] == [("Overlap stores with further work",)]


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    """Unknown when they come back, but for what has no limit and stays without."""
    endless = replace(ANALYSES, answers=(replace(ANSWER, bars=(Bar(label="x", ratio=math.inf),)),))
    first = make_report().kernels[3].advice.advice[0]
    first = replace(first, speedup=replace(first.speedup, bound=math.inf, high=math.inf, uncapped=math.inf))
    kernel = replace(
        build_kernel(ADVISED, durations_ns=(math.nan, math.inf)),
        duration_ns=math.nan,
        device=DeviceReport(name=None, compute_capability=None, sm_count=None, sm_clock_hz=math.inf),
        analyses=endless,
        advice=KernelAdvice(advice=(first,), refusals=()),
    )
    written = dump(build_report(kernel))["kernels"][0]
    assert (written["duration_ns"], written["device"]["sm_clock_hz"], written["places"]) == (None, None, None)
    assert [launch["duration_ns"] for launch in written["launches"]] == [None, None]
    assert written["advice"][0]["speedup"]["bound"] is None
    back = read_back(tmp_path, dump(build_report(kernel))).kernels[0]
    assert back.advice == kernel.advice
    assert math.isnan(back.analyses.answers[0].bars[0].ratio)


def test_elapsed_cycles_survive(tmp_path: Path) -> None:
    kernel = build_kernel("k.cu:1  NOP  ; wait=1")
    kernel = replace(kernel, launches=(replace(kernel.launches[0], elapsed_cycles=1234.5),))
    assert read_back(tmp_path, dump(build_report(kernel))).kernels[0].launches == kernel.launches


# Any report survives.

_samples = st.integers(1, 1 << 40).flatmap(lambda every: st.tuples(st.just(every), st.integers(0, every)))


def _by_reason(*reasons: str) -> st.SearchStrategy[dict[str, tuple[int, int]]]:
    return st.dictionaries(st.sampled_from(reasons), _samples, max_size=4)


_rows = st.builds(
    Row,
    function=st.sampled_from(["k", "helper", OUTSIDE]),
    pc_offset=st.just(0),
    text=TEXTS,
    chain=st.none() | st.lists(records(Frame, file=TEXTS.filter(bool)), min_size=1, max_size=3).map(tuple),
    samples=_by_reason("long_scoreboard", "wait", "selected", "barrier", "flux_capacitor"),
    control=st.none() | st.tuples(*(st.integers(0, most) for most in (15, 1, 7, 7, 63))),
    executions=st.integers(-1, 1 << 50),
)


def _place(rows: list[Row]) -> list[Row]:
    """Rows grouped by function, at ascending offsets."""
    ordered = sorted(rows, key=lambda row: row.function)
    return [replace(row, pc_offset=16 * number) for number, row in enumerate(ordered)]


_kernels = st.builds(
    build_kernel,
    st.lists(_rows, max_size=6).map(_place),
    name=TEXTS,
    mangled_name=TEXTS.filter(bool),
    profile_path=st.none() | st.sampled_from(["a.ncu-rep", "folder/b c.ncu-rep"]),
    durations_ns=st.lists(st.none() | st.floats(0, 1e15), max_size=3),
    truncated=st.booleans(),
    failure=st.none() | TEXTS,
    sources=st.dictionaries(TEXTS, TEXTS, max_size=2),
    measured_unix_s=st.none() | COUNTS,
    device=records(DeviceReport, compute_capability=st.none() | st.tuples(st.integers(0, 20), st.integers(0, 20))),
)
_problems = records(Problem, path=st.none() | st.just(Path("x/y")), is_passing=False)

# Any advice.

_row = st.integers(0, 2)
_speedups = st.tuples(*2 * [st.floats(0, 1e9)], *2 * [st.floats(0, allow_nan=False)]).flatmap(
    lambda numbers: records(Speedup, **dict(zip(("low", "estimate", "high", "bound"), sorted(numbers), strict=True)))
)
_scopes = records(Scope, row=_row)
_hotspots = records(
    Hotspot,
    def_row=_row,
    use_row=st.none() | _row,
    resource=st.none() | st.integers(0, 5 * 256 - 1),
    def_loop=st.none() | _scopes,
    use_loop=st.none() | _scopes,
).map(lambda found: replace(found, use_loop=None) if found.use_row is None else found)
_shares: st.SearchStrategy[Share] = st.integers(1, 1 << 40).flatmap(
    lambda whole: st.builds(measure_share, st.integers(0, whole), st.just(whole))
)
_placed = {"scope": _scopes, "share": _shares, "speedup": _speedups}
_regions = records(Region, **_placed, density=st.floats(0, 1), hotspots=st.lists(_hotspots, max_size=2).map(tuple))
_advice = records(
    Advice, **_placed, regions=st.lists(_regions, max_size=2).map(tuple), standing=Standing.NOW, contexts=()
)
_all_advice = records(
    KernelAdvice,
    advice=st.lists(_advice, max_size=2).map(tuple),
    refusals=st.just(()) | st.just(make_advised().advice.refusals),
)

# Any blame that adds up.

_edge_columns = {
    "category": st.sampled_from(BlameCategory),
    "dependency": st.sampled_from(Dependency),
    "resource": st.integers(-1, 5 * 256 - 1),
    "group": st.integers(0, (1 << 31) - 1),
    "distance_cycles": st.integers(-1, (1 << 31) - 1),
    "distance_instructions": st.integers(-1, (1 << 31) - 1),
}


@st.composite
def _blamed(draw: st.DrawFn) -> KernelReport:
    functions = ["kernel"] * 3 + ["helper"] * 2
    rows = [
        Row(
            function=function,
            pc_offset=16 * number,
            text="NOP",
            chain=None,
            samples=draw(_by_reason("wait", "selected")),
        )
        for number, function in enumerate(functions[: draw(st.integers(0, 5))])
    ]
    reasons = build_kernel(rows).instructions.reasons
    edges: list[dict[str, Any]] = []
    lost: list[tuple[float, ...]] = []
    for number, row in enumerate(rows):
        for reason, (every, latency) in row.samples.items():
            weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
            for weight in weights:
                part = (every * weight / sum(weights), latency * weight / sum(weights))
                at = {"use_row": number, "reason": reasons.index(reason)}
                if draw(st.booleans()):
                    columns = {name: draw(column) for name, column in _edge_columns.items()}
                    samples = dict(zip(("all_samples", "latency_samples"), part, strict=True))
                    edges.append({**at, "def_row": draw(st.integers(0, len(rows) - 1)), **samples, **columns})
                else:
                    lost.append((*at.values(), draw(st.sampled_from(UnattributedCause)), *part))
    counts = build_kernel(rows, blame="").blame.issue_counts.counts
    issues = draw(st.lists(st.floats(0, 1e12), min_size=len(rows), max_size=len(rows)))
    blame = KernelBlame(
        blamer=draw(TEXTS),
        edges=build_edges(edges),
        unattributed=Unattributed.from_rows(lost).sort_by("row", "reason", "cause"),
        issue_counts=draw(records(IssueCounts, counts=counts + issues)),
        coverage=draw(records(SingleDependencyCoverage)),
        wait_check=draw(st.none() | records(WaitCheck, correlation=st.none() | st.floats(-1, 1))),
    )
    return build_kernel(rows, blame=blame)


_advised = _all_advice.map(lambda advice: build_kernel(ADVISED, advice=advice))
_reports = st.builds(
    lambda kernels, problems: build_report(*kernels, problems=problems),
    st.lists(_kernels | _blamed() | _advised, max_size=2),
    st.lists(_problems, max_size=2),
)


@examples(150)
@given(report=_reports, is_expanded=st.booleans())
def test_any_report_survives(tmp_path_factory: pytest.TempPathFactory, report: Report, is_expanded: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    write_report(report, path, is_expanded=is_expanded)
    first = path.read_bytes()
    back = read_report(path)
    assert expand(back) == expand(report)
    write_report(back, path, is_expanded=is_expanded)
    assert path.read_bytes() == first
    jsonschema.Draft202012Validator(strict_schema()).validate(json.loads(first))


_cells = st.none() | st.text() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)


@given(rows=st.lists(st.tuples(_cells, _cells), max_size=5))
def test_any_table_of_an_analysis_survives(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    table = Table(title="", columns=(Column(name="a"), Column(name="b")), rows=tuple(rows))
    analyses = replace(ANALYSES, answers=(replace(ANSWER, tables=(table,)),))
    stream = io.StringIO()
    write_report(build_report(replace(build_kernel(), analyses=analyses)), stream)
    path = write(tmp_path_factory.getbasetemp() / "table.json", stream.getvalue())
    assert read_report(path).kernels[0].analyses == analyses
