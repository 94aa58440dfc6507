"""Launches that are described or recorded: emulated, simulated, timed on a GPU that is made up, by the server that comes along."""

import shutil

import pytest

from tests.editors.made_up_gpu import make_gpu
from tests.editors.vscode.code import FindResults, Place, Results, list_tests, tell_facts
from tests.editors.workspace import describe_relax, write_moving
from tests.programs.built import SOURCES, require_compiler


def run_launches(place: Place) -> Results:
    """A workspace with a measured source whose launch is described, one that nobody measured, and a program that can be run in the emulator."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    require_compiler()
    workspace = place.make_workspace()
    write_moving(workspace.folder)
    describe_relax(workspace.profile)  # beside its source it would be emulated, too
    for name in ("symbols.cu", "checking.h"):
        shutil.copy(SOURCES / name, workspace.folder)
    gpu = make_gpu(place.folder / "gpu")
    return place.run(
        "launches",
        workspace,
        settings={
            "gpaLsp.importStrategy": "useBundled",
            "gpaLsp.emulation.machine": "A100",
            "gpaLsp.emulation.recordBuildCommand": ["nvcc", "-std=c++17", "symbols.cu", "-o", "symbols"],
            "gpaLsp.profile.onSave": False,
            "gpaLsp.timing.onSave": False,  # until the tests that time
        },
        facts={**tell_facts(workspace), "times": str(gpu.times)},
        environment=gpu.variables,
        extension=place.packaged,
    )


SUITES = {"launches": run_launches}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_launches(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    result.check()
    assert result.error is None
