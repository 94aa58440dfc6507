"""Launches that are described: simulated with a save, and timed on a GPU that is made up."""

import pytest

from tests.editors.made_up_gpu import make_gpu
from tests.editors.vscode.code import FindResults, Place, Results, list_tests, tell_facts
from tests.editors.workspace import describe_relax, write_moving


def run_simulation(place: Place) -> Results:
    """A workspace with a source whose launch is described, and no profile of it, and one that was measured and is described, too."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    workspace = place.make_workspace()
    write_moving(workspace.folder)
    describe_relax(workspace.profile)  # beside its source it would be emulated, too
    return place.run("simulation", workspace, settings={"gpaLsp.emulation.machine": "A100"})


def run_timing(place: Place) -> Results:
    """A workspace with a source whose launch is described, and a GPU that is made up."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    workspace = place.make_workspace()
    write_moving(workspace.folder)
    gpu = make_gpu(place.folder / "gpu")
    return place.run(
        "timing",
        workspace,
        settings={"gpaLsp.simulation.onSave": False, "gpaLsp.profile.onSave": False},
        facts={**tell_facts(workspace), "times": str(gpu.times)},
        environment=gpu.variables,
    )


SUITES = {"simulation": run_simulation, "timing": run_timing}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_launches(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    assert result.error is None, result.error
