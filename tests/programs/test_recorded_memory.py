"""Memory recorded beside arguments: textures, arrays whose addresses others hold, objects made by device code."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.launches.launch import LaunchDescription, TextureArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.launched_code import read_modules
from tests.programs.built import SOURCES, build, run

Arrays = dict[str, npt.NDArray[Any]]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "records"


def emulate_recorded(program: str, kernel: str, records: Path) -> tuple[LaunchDescription, Arrays]:
    """Run a program, and one of its recorded launches again, from its files alone."""
    found, _ = run(build(SOURCES / f"{program}.cu", records.parent), records=records)
    (recorded,) = [one.recorded for one in found.kernels if one.name.partition("(")[0] == kernel]
    (launch,) = read_launches(recorded.description)
    ((_, module),) = read_modules(recorded.module, None, None, [])
    result = emulate(module, launch)
    assert result.is_complete and not result.faults
    return launch, result.arrays


def test_textures_are_recorded_with_their_texels(records: Path) -> None:
    launch, arrays = emulate_recorded("textures", "read", records)
    textures = [one for one in launch.arguments if isinstance(one, TextureArgument)]
    assert [(one.name, one.width, one.height) for one in textures] == [
        ("array", 30, 20), ("pitched", 30, 20), ("linear", 600, 0),
    ]  # fmt: skip
    assert arrays["out"][:600].tolist() == [1003.0 * (i % 101) for i in range(600)]


def test_layers_and_cubes_are_recorded(records: Path) -> None:
    launch, arrays = emulate_recorded("layered_textures", "read_cube", records)
    assert isinstance(launch.arguments[0], TextureArgument) and launch.arguments[0].layers == 6
    assert arrays["out"][: 8 * 8 * 6].tolist() == list(range(8 * 8 * 6))


def test_rows_whose_addresses_an_array_holds_are_recorded(records: Path) -> None:
    launch, arrays = emulate_recorded("pointers_in_memory", "sum_rows", records)
    assert len(launch.memory) == 8
    rows = [arrays[one.name].view(np.int32) for one in launch.memory]
    assert sorted(arrays["sums"].tolist()) == sorted(int(row.sum()) for row in rows)


def test_objects_of_device_code_are_recorded_with_their_functions_and_textures(records: Path) -> None:
    launch, arrays = emulate_recorded("virtual_objects", "measure", records)
    assert {one.name for one in launch.variables} >= {"_ZTV3Box", "_ZTV6Looked"}
    assert any(isinstance(one, TextureArgument) and one.handle is not None for one in launch.memory)
    assert arrays["areas"][:48].tolist() == [2.0 * i if i % 3 else 100.0 + i for i in range(48)]


def test_blocks_of_a_recorded_cooperative_launch_meet(records: Path) -> None:
    launch, arrays = emulate_recorded("conjugate_gradient", "solve", records)
    assert launch.grid == (12, 1, 1)
    x, b = arrays["x"], arrays["b"]
    assert np.abs(4 * x[1:-1] - x[:-2] - x[2:] - b[1:-1]).max() < 1e-5
