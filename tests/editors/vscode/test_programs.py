"""A program that is built for the emulator and recorded there."""

import shutil
from pathlib import Path

import pytest

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
    make_workspace,
)
from tests.programs.built import SOURCES, require_compiler


@pytest.fixture(scope="session")
def recording_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace with the source of a program that is built for the emulator and run there, by the server that comes along."""
    require_compiler()
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    folder = tmp_path_factory.mktemp("recording")
    workspace = make_workspace(folder / "workspace")
    for name in ("symbols.cu", "checking.h"):
        shutil.copy(SOURCES / name, workspace.folder)
    build = ["nvcc", "-std=c++17", "symbols.cu", "-o", "symbols"]
    results = run_suite(
        built,
        "recording",
        folder,
        workspace=workspace.folder,
        settings={
            **choose_settings(workspace),
            "gpaLsp.importStrategy": "useBundled",
            "gpaLsp.emulation.recordBuildCommand": build,
        },
        facts=tell_facts(workspace),
        extension=packaged,
    )
    check_nothing_stays(folder)
    return name_results(results, "recording")


@pytest.mark.parametrize("name", find_names("recording"))
def test_recording(name: str, recording_results: Results) -> None:
    assert recording_results[name].error is None, recording_results[name].error
