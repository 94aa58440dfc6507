"""Launches recorded beside the sources of their kernels, emulated from there."""

import shutil
from pathlib import Path

import pytest

from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import PredictionSettings
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.programs.build import build_program
from gpa_lsp.execution.programs.examine import Described, describe_beside
from tests.programs.built import MACHINE, SOURCES, require_compiler, run


def record(folder: Path, name: str = "symbols", **settings: object) -> tuple[Path, Described]:
    source = Path(shutil.copy(SOURCES / f"{name}.cu", folder))
    shutil.copy(SOURCES / "checking.h", folder)
    require_compiler()
    build_program(
        f"nvcc -std=c++17 {source.name} -o {name}",
        machine=MACHINE,
        folder=folder,
        limit_s=300.0,
        take=bytearray().extend,
    )
    found, _ = run(folder / name, records=folder / "records", **settings)
    return source, describe_beside(found, folder)


def test_recorded_launches_are_what_an_editor_emulates(tmp_path: Path) -> None:
    source, described = record(tmp_path)
    description = tmp_path / "symbols.launch.toml"
    assert described.written == (description,) and not described.left_alone and not described.left_out
    assert [name.partition("(")[0] for name in described.kernels] == ["filter"]
    shutil.rmtree(tmp_path / "records")  # the data lies beside the source
    assert list((tmp_path / "symbols.launches").iterdir())
    names = [launch.kernel for launch in read_launches(description)]
    found = predict_code(source, launches=LaunchChoice(path=description), settings=PredictionSettings())
    assert [kernel.mangled_name for kernel in found.kernels] == names and names
    assert all(not kernel.faults and kernel.volumes is not None for kernel in found.kernels)


@pytest.mark.parametrize("text", ["", "# mine\n"])
def test_a_handwritten_description_stays(text: str, tmp_path: Path) -> None:
    description = tmp_path / "symbols.launch.toml"
    description.write_text(text)
    _, described = record(tmp_path)
    assert described.left_alone == (description,) and not described.written and description.read_text() == text
    assert described.left_out and all("was not written by a recording" in one.reason for one in described.left_out)


def test_data_of_other_origin_stays(tmp_path: Path) -> None:
    data = tmp_path / "symbols.launches"
    data.mkdir()
    (data / "mine.bin").write_bytes(b"1")
    _, described = record(tmp_path)
    assert described.left_alone and (data / "mine.bin").read_bytes() == b"1"


def test_recording_again_replaces_what_was_recorded(tmp_path: Path) -> None:
    record(tmp_path)
    before = (tmp_path / "symbols.launch.toml").read_text()
    _, described = record(tmp_path)
    assert described.written and (tmp_path / "symbols.launch.toml").read_text() == before


def test_a_launch_can_be_chosen_and_other_data_makes_another_description(tmp_path: Path) -> None:
    description = tmp_path / "heat_until_steady.launch.toml"
    texts = []
    for number in (1, 3):
        _, described = record(tmp_path, "heat_until_steady", recorded_launch=number)
        assert described.written == (description,)
        texts.append(description.read_text().replace(f"# Launch {number} of", "# Launch of"))
    assert texts[0] != texts[1]
    _, described = record(tmp_path, "heat_until_steady", recorded_launch=100_000)
    (left_out,) = described.left_out
    assert left_out.name.startswith("step(") and left_out.reason.startswith("it was launched ")
    assert description.exists(), "what was recorded before stays"
