"""All launches of a source together take no longer to execute than they may."""

import itertools
from pathlib import Path

import pytest

from gpa_lsp.execution.prediction import simulation
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from gpa_lsp.foundation.errors import ProblemSeverity
from tests.prediction.kernels import NVRTC, write_project


def test_launches_for_which_no_time_is_left_are_not_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    source = write_project(tmp_path)
    every = simulate_code(source, kernel="saxpy", compile_settings=NVRTC)
    assert len(every.launches) == 2
    monkeypatch.setattr(simulation, "work_time", itertools.count().__next__)  # a second passes between two looks
    settings = SimulationSettings(total_seconds=2.5)
    found = simulate_code(source, kernel="saxpy", settings=settings, compile_settings=NVRTC)
    assert len(found.launches) == 1
    assert [(one.severity, one.message.partition(":")[0]) for one in found.problems] == [
        (ProblemSeverity.WARNING, "1 launch not simulated")
    ]
    nothing = simulate_code(
        source, kernel="saxpy", settings=SimulationSettings(total_seconds=0.5), compile_settings=NVRTC
    )
    assert nothing.launches == ()
    assert nothing.problems[-1].severity is ProblemSeverity.ERROR
