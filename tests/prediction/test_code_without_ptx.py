"""Machine code that brings no PTX: launches are simulated and timed as with it."""

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.ptx_files import read_build
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction import launch_timing
from gpa_lsp.execution.prediction.simulation import Simulation, simulate_launch
from gpa_lsp.execution.simulator.profile_document import make_document
from tests.conftest import ROOT

_LAUNCHES = ROOT / "tests" / "emulator" / "kernels" / "fixtures"


def _simulate(name: str, launch: LaunchDescription, *, has_ptx: bool) -> Simulation:
    path = ROOT / "fixtures" / "cubins" / "sm_80" / f"{name}.cubin"
    (unit,) = read_build(path, assembles=False)
    return simulate_launch(unit if has_ptx else replace(unit, ptx=None), launch, path=path)


@pytest.mark.parametrize("pattern", ["short_def_use", "constant_indexed"])
def test_a_launch_is_simulated_with_and_without_ptx(pattern: str) -> None:
    if find_tool("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed")
    launch = read_launches(_LAUNCHES / f"{pattern}.launch.toml")[0]
    with_ptx, without = (_simulate(f"{pattern}_original", launch, has_ptx=has_ptx) for has_ptx in (True, False))
    assert with_ptx.problems == without.problems
    assert len(without.launches) == 1
    documents = [make_document(one.launches, one.problems) for one in (with_ptx, without)]
    assert documents[0] == documents[1]
    assert documents[1]["launches"][0]["samples"]


def test_a_build_without_ptx_is_launched_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "fixtures" / "cubins" / "sm_80" / "short_def_use_original.cubin"
    units = read_build(path, assembles=False)
    gpu = launch_timing.Greeting(name="a GPU", compute_capability=(8, 6))
    assert launch_timing._list_images_without_ptx(path, gpu) == []
    bare = tuple(replace(unit, ptx=None) for unit in units)
    monkeypatch.setattr(launch_timing, "read_build", lambda *_, **__: bare)
    (code,) = launch_timing._list_images_without_ptx(path, gpu)
    assert code.unit.cubin == units[0].cubin
    assert ["short_def_use" in one.name for one in code.module.entries] == [True]
    assert launch_timing._list_images_without_ptx(path, replace(gpu, compute_capability=(9, 0))) == []
