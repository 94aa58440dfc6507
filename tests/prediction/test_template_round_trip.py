"""Descriptions that are written for kernels of the fixtures are taken by what reads descriptions, with the note that they guess."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.exploration.subjects import prepare_exploration
from gpa_lsp.execution.prediction.fault_answer import note_guesses
from gpa_lsp.execution.prediction.model import EDITOR_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.execution.prediction.trace_files import TraceWriter, read_pieces
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from tests.conftest import ROOT
from tests.prediction.kernels import NVRTC

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")

# every other one; the fixture with the huge body is there to be slow
SOURCES = [
    one for one in sorted((ROOT / "fixtures" / "kernels").glob("*/original.cu")) if one.parent.name != "huge_body"
][::2]
# as little work on any machine: what is asserted holds for descriptions of any size
SETTINGS = replace(EDITOR_PREDICTION, budget=Budget(seconds=20.0, warp_instructions=20_000))
SIMULATION = SimulationSettings(seconds=20.0, executions=50_000)


def list_errors(problems: tuple[Problem, ...]) -> list[str]:
    """Errors other than what no description can change: texels lie where the driver puts them."""
    return [str(one) for one in problems if one.severity is ProblemSeverity.ERROR and " TLD " not in one.message]


@pytest.mark.parametrize("source", SOURCES, ids=[one.parent.name for one in SOURCES])
def test_what_is_written_is_taken(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernel" / source.name
    shutil.copytree(source.parent, path.parent)
    described = path.with_suffix(".launch.toml")
    described.write_text(write_templates(path, settings=NVRTC, fits=SETTINGS))
    (launch,) = read_launches(described)
    notes = note_guesses(launch)
    assert len(notes) == 1 and notes[0].message.startswith("guessed in the launch description: ")

    with TraceWriter(tmp_path / "traced") as writer:
        found = predict_code(path, settings=SETTINGS, compile_settings=NVRTC, sinks=[writer])
    assert list_errors(found.problems) == []
    (kernel,) = found.kernels
    assert list_errors(kernel.problems) == [] and notes[0].message in [one.message for one in kernel.problems]
    assert sum(len(one.accesses) for one in read_pieces(tmp_path / "traced"))

    subject = prepare_exploration(path, compile_settings=NVRTC)
    assert any(notes[0].message in str(one) for one in subject.notes)
    ranked = subject.evaluate(subject.current)
    assert ranked.seconds is not None, ranked.why_not

    simulated = simulate_code(path, settings=SIMULATION, compile_settings=NVRTC)
    assert list_errors(simulated.problems) == []
    assert all(one.is_guessed for one in simulated.launches)
    assert notes[0].message in [one.message for one in simulated.problems]
