"""Launches that are described: simulated with a save, and timed on a GPU that is made up."""

import pytest

from tests.editors.made_up_gpu import make_gpu
from tests.editors.vscode.code import (
    Results,
    Tools,
    check_nothing_stays,
    choose_settings,
    find_names,
    name_results,
    run_suite,
    tell_facts,
)
from tests.editors.workspace import (
    describe_relax,
    make_workspace,
    write_moving,
)


@pytest.fixture(scope="session")
def simulation_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace with a source whose launch is described, and no profile of it, and one that was measured and is described, too."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    folder = tmp_path_factory.mktemp("simulation")
    workspace = make_workspace(folder / "workspace")
    write_moving(workspace.folder)
    describe_relax(workspace.profile)  # beside its source it would be emulated, too
    results = run_suite(
        built,
        "simulation",
        folder,
        workspace=workspace.folder,
        settings={
            **choose_settings(workspace),
            "gpaLsp.emulation.machine": "A100",
        },
        facts=tell_facts(workspace),
    )
    check_nothing_stays(folder)
    return name_results(results, "simulation")


@pytest.mark.parametrize("name", find_names("simulation"))
def test_simulation(name: str, simulation_results: Results) -> None:
    assert simulation_results[name].error is None, simulation_results[name].error


@pytest.fixture(scope="session")
def timing_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace with a source whose launch is described, and a GPU that is made up."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    folder = tmp_path_factory.mktemp("timing")
    workspace = make_workspace(folder / "workspace")
    write_moving(workspace.folder)
    gpu = make_gpu(folder / "gpu")
    quiet = {"gpaLsp.simulation.onSave": False}
    results = run_suite(
        built,
        "timing",
        folder,
        workspace=workspace.folder,
        settings={**choose_settings(workspace), **quiet, "gpaLsp.profile.onSave": False},
        facts={**tell_facts(workspace), "times": str(gpu.times)},
        environment=gpu.variables,
    )
    check_nothing_stays(folder)
    return name_results(results, "timing")


@pytest.mark.parametrize("name", find_names("timing"))
def test_timing(name: str, timing_results: Results) -> None:
    assert timing_results[name].error is None, timing_results[name].error
