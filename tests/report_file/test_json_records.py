"""Records as JSON: what is written comes back, what is wrong is named, and the schema says what the code does."""

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import (
    Bar,
    Column,
    Table,
)
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.json_records import make_record, read_record
from gpa_lsp.report.saved.store import read_report, write_report
from tests.analyses_samples import ANALYSES, ANSWER
from tests.report_builder import build_kernel, build_report
from tests.report_file.record_schema import read_schema


def read(value: Any) -> KernelAnalyses:
    document = json.loads(json.dumps(value, allow_nan=False))
    return read_record(document, KernelAnalyses, path=Path("report.json"), remedy="write it again")


def test_what_is_written_comes_back() -> None:
    assert read(make_record(ANALYSES)) == ANALYSES


def test_a_report_with_analyses_survives(tmp_path: Path) -> None:
    kernel = replace(build_kernel("a.cu:1  EXIT ; selected=1"), analyses=ANALYSES)
    write_report(build_report(kernel), tmp_path / "r.json")
    assert read_report(tmp_path / "r.json").kernels[0].analyses == ANALYSES


def test_written_records_keep_to_the_schema() -> None:
    schema = {"$ref": "#/$defs/KernelAnalyses", "$defs": read_schema()["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(make_record(ANALYSES))


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
