"""The public names stay: what a program of somebody else relies on."""

import inspect
from pathlib import Path

import pytest

from gpa_lsp import api
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.saved.store import write_report
from tests.conftest import ROOT

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"


def test_names_and_parameters_are_kept() -> None:
    assert set(api.__all__) == {
        "Advice", "GpaError", "InputError", "KernelReport", "Report", "advise", "def_use_graph", "find_kernel", "kernels", "load",
        "predict",
    }  # fmt: skip
    kept = {
        "load": ["paths", "sources", "mappings", "mode"],
        "kernels": ["report", "name"],
        "find_kernel": ["report", "name"],
        "advise": ["kernel"],
        "def_use_graph": ["kernel", "around", "steps"],
        "predict": ["expressions", "launch", "gpu", "mode"],
    }
    for name, parameters in kept.items():
        assert list(inspect.signature(getattr(api, name)).parameters) == parameters


def test_attributes_that_are_documented() -> None:
    kernel = api.load(EXAMPLE).kernels[0]
    for name in (
        "name",
        "mangled_name",
        "duration_ns",
        "total_samples",
        "by_reason",
        "lines",
        "instructions",
        "limiter",
    ):
        assert hasattr(kernel, name)
    (first, *_) = api.advise(kernel)
    assert (
        first.optimizer
        and first.title
        and first.hint
        and first.speedup.low <= first.speedup.estimate <= first.speedup.high
    )


def test_saved_reports_are_read_as_profiles_are(tmp_path: Path) -> None:
    report = api.load(EXAMPLE)
    saved = tmp_path / "saved.json"
    with saved.open("w", encoding="utf-8") as stream:
        write_report(report, stream)
    again = api.load(saved)
    assert [kernel.name for kernel in again.kernels] == [kernel.name for kernel in report.kernels]
    assert (
        api.def_use_graph(again.kernels[0]).number_of_edges() == api.def_use_graph(report.kernels[0]).number_of_edges()
    )


def test_a_damaged_saved_report_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"schema": "gpa-lsp/report/3", "kernels": 7}', encoding="utf-8")
    report = api.load(damaged, EXAMPLE)
    assert len(report.kernels) == 2
    assert [problem.path for problem in report.problems if problem.path == damaged] == [damaged]


def test_kernels_are_found_by_name() -> None:
    report = api.load(EXAMPLE)
    assert api.kernels(report) == report.kernels
    assert [kernel.name for kernel in api.kernels(report, "inline")] == [api.find_kernel(report, "inline_chain").name]
    with pytest.raises(InputError, match="short_def_use"):
        api.find_kernel(report, "nobody")
