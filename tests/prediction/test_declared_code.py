"""Machine code that brings no PTX: what it says of its kernels is what its PTX says, and launches are simulated alike."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gpa_lsp.basis.errors import InputError
from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.compiler.builds import read_build
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.launches.read_launches import read_launches
from gpa_lsp.prediction import launch_timing
from gpa_lsp.prediction.declared_code import declare_code
from gpa_lsp.prediction.simulation import Simulation, simulate_launch
from gpa_lsp.ptx.model import PtxModule, Space
from gpa_lsp.ptx.parse import parse_ptx
from gpa_lsp.simulator.profile_document import make_document
from tests.conftest import ROOT

_CUBINS = sorted((ROOT / "fixtures" / "cubins").glob("sm_*/*.cubin"))
_LAUNCHES = ROOT / "tests" / "emulator" / "kernels" / "fixtures"


def _list_parameters(module: PtxModule) -> dict[str, list[tuple[int, int]]]:
    return {
        one.name: [(each.offset_bytes, each.size_bytes) for each in one.parameters]
        for one in module.functions.values()
        if one.is_entry
    }


def _list_variables(module: PtxModule) -> dict[str, tuple[Space, int]]:
    found = (
        one for one in module.variables.values() if one.space in (Space.GLOBAL, Space.CONST) and not one.is_texture
    )
    return {one.name: (one.space, one.size_bytes) for one in found}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_fixtures_declare_what_their_ptx_declares(architecture: str) -> None:
    compared = 0
    for path in _CUBINS:
        if path.parent.name != architecture:
            continue
        for unit in read_build(path, assembles=False):
            assert unit.cubin is not None and unit.ptx is not None
            written = parse_ptx(unit.ptx, name=path.name)
            declared = parse_ptx(declare_code(unit.cubin, unit.compute_capability), name=path.name)
            assert _list_parameters(declared) == _list_parameters(written), path.name
            assert _list_variables(written).items() <= _list_variables(declared).items(), path.name
            for name, variable in written.variables.items():
                if variable.initial and not variable.initial_symbols:
                    begun = declared.variables[name].initial or b""
                    assert begun[: len(variable.initial)].ljust(len(variable.initial), b"\0") == variable.initial, name
            compared += 1
    assert compared > 50


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
    gpu = launch_timing.FoundGpu(name="a GPU", compute_capability=(8, 6))
    assert launch_timing._declare_without_ptx(path, gpu) == []
    bare = tuple(replace(unit, ptx=None) for unit in units)
    monkeypatch.setattr(launch_timing, "read_build", lambda *_, **__: bare)
    ((image, module),) = launch_timing._declare_without_ptx(path, gpu)
    assert image == units[0].cubin and ["short_def_use" in one.name for one in module.entries] == [True]
    assert launch_timing._declare_without_ptx(path, replace(gpu, compute_capability=(9, 0))) == []


@pytest.mark.parametrize("step", [211, 1009])
def test_damaged_code_is_refused_or_declares_less(step: int) -> None:
    content = bytearray((ROOT / "fixtures" / "cubins" / "sm_80" / "constant_indexed_original.cubin").read_bytes())
    for place in range(0, len(content), step):
        content[place] ^= 0xFF
        with suppress(InputError):
            parse_ptx(declare_code(bytes(content), (8, 0), path=Path("k.cubin")), name="k.cubin")
        content[place] ^= 0xFF
