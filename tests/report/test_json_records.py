"""Records as JSON: what is written comes back, what is wrong is named, and the schema says what the code does."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpa_lsp.report
from gpa_lsp.analyses.answers import (
    Answer,
    Bar,
    Chart,
    ChartKind,
    Column,
    Finding,
    LineMark,
    Missing,
    Quantity,
    Series,
    Table,
    Weight,
)
from gpa_lsp.analyses.model import KernelAnalyses
from gpa_lsp.analyses.roofline_model import (
    KernelRoofline,
    OperationCount,
    Point,
    Roof,
    Roofline,
    Traffic,
)
from gpa_lsp.errors import InputError
from gpa_lsp.machine.model import (
    Bandwidth,
    ClockBasis,
    Clocks,
    Machine,
    MemoryLevel,
    OperationKind,
    Peak,
    RoofOrigin,
)
from gpa_lsp.report.json_cursor import JsonCursor
from gpa_lsp.report.json_records import make_record, read_record
from gpa_lsp.report.record_schema import make_record_schemas
from gpa_lsp.report.store import read_report, write_report
from tests.report_builder import build_kernel, build_report

SCHEMA_FILE = Path(gpa_lsp.report.__file__).parent / "analyses_schema.json"

MACHINE = Machine(
    name="a GPU",
    compute_capability=(8, 0),
    sm_count=108,
    clocks=Clocks(basis=ClockBasis.MEASURED, sm_hz=1.0e9, l2_hz=None, dram_hz=1.5e9, source="counters"),
    peaks=(
        Peak(
            kind=OperationKind.FP32,
            ops_per_cycle=13824,
            ops_per_s=1.3824e13,
            origin=RoofOrigin.COUNTERS,
            source="sm__sass_…",
        ),
    ),
    bandwidths=(
        Bandwidth(
            level=MemoryLevel.DRAM,
            bytes_per_cycle=1280,
            clock_hz=1.5e9,
            bytes_per_s=1.92e12,
            origin=RoofOrigin.DEVICE,
            source="bus",
            is_certain=False,
        ),
    ),
    issue_per_cycle=432,
    doubts=("one",),
)
ROOFLINE = Roofline(
    launch_index=3,
    duration_s=1e-3,
    operations=(OperationCount(kind=OperationKind.FP32, operations=1e9, source="ffma"),),
    traffic=(Traffic(level=MemoryLevel.DRAM, bytes=1e9, source="dram", transactions=3e7),),
    warp_instructions=5e7,
    roofs=(Roof(name="DRAM bandwidth", kind=None, level=MemoryLevel.DRAM, limit_per_s=1.9e12, achieved_per_s=1e12),),
    points=(
        Point(
            kind=OperationKind.FP32,
            level=MemoryLevel.DRAM,
            intensity=1.0,
            achieved_ops_per_s=1e12,
            attainable_ops_per_s=1.9e12,
            is_memory_side=True,
        ),
    ),
    instruction_points=(),
    dominant=OperationKind.FP32,
    missing=(Missing(what="bytes from L2", metrics=("lts__t_sectors.sum",)),),
)
ANSWER = Answer(
    analysis="occupancy",
    title="Occupancy",
    summary="Half.",
    findings=(Finding(text="one", weight=Weight.HIGH, remedy="two", share_ratio=0.5),),
    bars=(Bar(label="theoretical", ratio=0.5),),
    tables=(
        Table(
            title="t",
            columns=(Column(name="a"), Column(name="b", quantity=Quantity.WARPS)),
            rows=(("x", 3), (None, 1.5)),
            current_row=1,
        ),
    ),
    charts=(
        Chart(
            title="c",
            kind=ChartKind.STEPS,
            x_label="x",
            y_label="y",
            y_quantity=Quantity.RATIO,
            series=(Series(label="s", xs=(1.0, 2.0), ys=(0.5, 1.0)),),
            current_x=1.0,
        ),
    ),
    marks=(
        LineMark(
            measure="excess sectors",
            value=3.0,
            quantity=Quantity.COUNT,
            share_ratio=None,
            text="…",
            file="a.cu",
            line=3,
            function="f",
            pc_offset=16,
        ),
    ),
    missing=(Missing(what="TLB misses", why="no public counter"),),
)
ANALYSES = KernelAnalyses(
    roofline=KernelRoofline(machine=MACHINE, whole=ROOFLINE, launches=(ROOFLINE,), left_out=2), answers=(ANSWER,)
)


def read(value: Any) -> KernelAnalyses:
    document = json.loads(json.dumps(value, allow_nan=False))
    return read_record(JsonCursor(document, path=Path("report.json")), KernelAnalyses)


def test_what_is_written_comes_back() -> None:
    assert read(make_record(ANALYSES)) == ANALYSES


def test_a_report_with_analyses_survives(tmp_path: Path) -> None:
    kernel = replace(build_kernel("a.cu:1  EXIT ; selected=1"), analyses=ANALYSES)
    write_report(build_report(kernel), tmp_path / "r.json")
    assert read_report(tmp_path / "r.json").kernels[0].analyses == ANALYSES


def test_written_records_keep_to_the_schema() -> None:
    schema = {"$ref": "#/$defs/KernelAnalyses", "$defs": make_record_schemas(KernelAnalyses)}
    jsonschema.Draft202012Validator(schema).validate(make_record(ANALYSES))


def test_the_schema_file_is_what_the_code_says() -> None:
    title = "The part of gpa-lsp/report/1 under 'analyses'"
    expected = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    expected["$defs"] = make_record_schemas(KernelAnalyses)
    text = json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        SCHEMA_FILE.write_text(text, encoding="utf-8", newline="\n")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text, "UPDATE_GOLDEN=1 writes it anew"


def test_every_property_of_the_schema_is_described_in_its_docstring() -> None:
    for name, schema in make_record_schemas(KernelAnalyses).items():
        assert schema["description"], name
        for field, described in schema.get("properties", {}).items():
            assert described["description"] != f"{field.replace('_', ' ')}.", f"{name}.{field} is not described"


def test_a_number_that_is_not_finite_is_unknown_when_it_comes_back() -> None:
    endless = replace(ANALYSES, answers=(replace(ANSWER, bars=(Bar(label="x", ratio=math.inf),)),))
    assert math.isnan(read(make_record(endless)).answers[0].bars[0].ratio)


def test_missing_properties_take_their_defaults_and_unknown_ones_are_passed_over() -> None:
    record = make_record(ANALYSES)
    del record["answers"][0]["missing"]
    record["answers"][0]["new"] = {"to": "us"}
    assert read(record) == replace(ANALYSES, answers=(replace(ANSWER, missing=()),))


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("/answers/0/findings/0/weight", "heavy", "not one of"),
        ("/answers/0/tables/0/rows/0/0", {}, "not a number"),
        ("/answers/0/tables/0/rows/0/0", True, "not a number"),
        ("/answers", None, "not an array"),
        ("/roofline/machine/compute_capability", [8], "has 1 elements, not 2"),
        ("/roofline/machine/clocks/sm_hz", "fast", "not a number"),
        ("/roofline/launches/0/roofs/0/level", "L9", "not one of"),
        ("/answers/0/marks/0/line", 1.5, "not a whole number"),
    ],
)
def test_what_is_wrong_is_named_by_its_pointer(pointer: str, value: Any, words: str) -> None:
    record = make_record(ANALYSES)
    *way, last = pointer.strip("/").split("/")
    at: Any = record
    for key in way:
        at = at[int(key) if isinstance(at, list) else key]
    at[int(last) if isinstance(at, list) else last] = value
    with pytest.raises(InputError, match=words) as raised:
        read(record)
    assert raised.value.place == pointer


CELLS = st.none() | st.text() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)


@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_any_table_survives(rows: list[tuple[Any, Any]]) -> None:
    table = Table(title="", columns=(Column(name="a"), Column(name="b")), rows=tuple(rows))
    analyses = replace(ANALYSES, answers=(replace(ANSWER, tables=(table,)),))
    assert read(make_record(analyses)) == analyses
