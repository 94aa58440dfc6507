"""Launches recorded beside the sources of their kernels, emulated from there."""

import shutil
from pathlib import Path

import pytest

from gpa_lsp.launches.read_launches import read_launches
from gpa_lsp.prediction.launch_sources import LaunchChoice
from gpa_lsp.prediction.model import PredictionSettings
from gpa_lsp.prediction.predict import predict_source
from gpa_lsp.programs.beside_sources import Described, describe_beside
from gpa_lsp.programs.build import build_program
from tests.programs.built import SOURCES, require_compiler, run


def record(folder: Path) -> tuple[Path, Described]:
    source = Path(shutil.copy(SOURCES / "symbols.cu", folder))
    shutil.copy(SOURCES / "checking.h", folder)
    require_compiler()
    build_program(f"nvcc -std=c++17 {source.name} -o symbols", folder=folder, limit_s=300.0, take=bytearray().extend)
    found, _ = run(folder / "symbols", records=folder / "records")
    return source, describe_beside(found, folder)


def test_recorded_launches_are_what_an_editor_emulates(tmp_path: Path) -> None:
    source, described = record(tmp_path)
    description = tmp_path / "symbols.launch.toml"
    assert described == Described(written=(description,), left_alone=())
    shutil.rmtree(tmp_path / "records")  # the data lies beside the source
    assert list((tmp_path / "symbols.launches").iterdir())
    names = [launch.kernel for launch in read_launches(description)]
    found = predict_source(source, launches=LaunchChoice(path=description), settings=PredictionSettings())
    assert [kernel.mangled_name for kernel in found.kernels] == names and names
    assert all(not kernel.faults and kernel.volumes is not None for kernel in found.kernels)


@pytest.mark.parametrize("text", ["", "# mine\n"])
def test_what_somebody_wrote_stays(text: str, tmp_path: Path) -> None:
    description = tmp_path / "symbols.launch.toml"
    description.write_text(text)
    _, described = record(tmp_path)
    assert described == Described(written=(), left_alone=(description,)) and description.read_text() == text


def test_recording_again_replaces_what_was_recorded(tmp_path: Path) -> None:
    record(tmp_path)
    before = (tmp_path / "symbols.launch.toml").read_text()
    _, described = record(tmp_path)
    assert described.written and (tmp_path / "symbols.launch.toml").read_text() == before
