"""Samples by the place that launched a kernel, in saved reports."""

from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.profile.model import PlaceSamples
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.store import read_report
from tests.report_builder import build_kernel, build_report
from tests.report_file.json_documents import change, dump, refuse, strict_schema, write

LISTING = """
    k.cu:4    LDG.E R2, [R4.64]    ; long_scoreboard=60/50 selected=4
    k.cu:5    FFMA R2, R2, R3, R6  ; wait=3
    -         EXIT                 ;
"""


def make_kernel() -> KernelReport:
    kernel = build_kernel(LISTING)
    samples = kernel.instructions.all_samples
    first = samples[:1] // 3
    places = (
        PlaceSamples(call_stack=("step at a.py:3", "main at a.py:9"), rows=np.array([0]), all_samples=first),
        PlaceSamples(call_stack=(), rows=np.array([0, 1]), all_samples=np.stack([samples[0] - first[0], samples[1]])),
    )
    return replace(kernel, places=places)


def test_places_are_read_as_they_were_written(tmp_path: Path) -> None:
    document = dump(build_report(make_kernel()))
    jsonschema.Draft202012Validator(strict_schema()).validate(document)
    assert document["kernels"][0]["places"]["call_stacks"] == [["step at a.py:3", "main at a.py:9"], []]
    assert document["kernels"][0]["places"]["rows"][:2] == [
        {"place": 0, "row": 0, "reason": "long_scoreboard", "samples": 20},
        {"place": 0, "row": 0, "reason": "selected", "samples": 1},
    ]
    (read,) = read_report(write(tmp_path / "r.json", document)).kernels
    for one, other in zip(read.places, make_kernel().places, strict=True):
        assert one.call_stack == other.call_stack
        assert one.rows.tolist() == other.rows.tolist()
        assert one.all_samples.tolist() == other.all_samples.tolist()


def test_a_report_without_them_is_read(tmp_path: Path) -> None:
    document = dump(build_report(make_kernel()))
    change(document, "/kernels/0/places", ...)
    (read,) = read_report(write(tmp_path / "r.json", document)).kernels
    assert read.places == ()


def test_without_places_there_is_no_table() -> None:
    assert dump(build_report(replace(make_kernel(), places=())))["kernels"][0]["places"] is None


@pytest.mark.parametrize(
    ("pointer", "value", "place", "words"),
    [
        ("/rows/0/reason", "wait", "/rows", "has 20 samples of wait at instruction 0, which has 0"),
        ("/rows/0/samples", 1 << 62, "/rows", "more samples than the kernel's 67"),
        ("/rows/0/samples", -1, "/rows/0/samples", "outside 0 to"),
        ("/rows/0/place", 2, "/rows/0/place", "outside 0 to 1"),
        ("/rows/0/row", 3, "/rows/0/row", "outside 0 to 2"),
        ("/rows/0/reason", "sleeping", "/rows/0/reason", "'sleeping'"),
        ("/call_stacks/0", "main", "/call_stacks/0", "not an array"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, pointer: str, value: Any, place: str, words: str) -> None:
    error = refuse(tmp_path, build_report(make_kernel()), [(f"/kernels/0/places{pointer}", value)])
    assert error.place == f"/kernels/0/places{place}"
    assert words in error.message
