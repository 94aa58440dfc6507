"""A program that is built for the emulator and recorded there."""

import shutil

import pytest

from tests.editors.vscode.code import FindResults, Place, Results, list_tests
from tests.programs.built import SOURCES, require_compiler


def run_recording(place: Place) -> Results:
    """A workspace with the source of a program that is built for the emulator and run there, by the server that comes along."""
    require_compiler()
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    workspace = place.make_workspace()
    for name in ("symbols.cu", "checking.h"):
        shutil.copy(SOURCES / name, workspace.folder)
    build = ["nvcc", "-std=c++17", "symbols.cu", "-o", "symbols"]
    settings = {"gpaLsp.importStrategy": "useBundled", "gpaLsp.emulation.recordBuildCommand": build}
    return place.run("recording", workspace, settings=settings, extension=place.packaged)


SUITES = {"recording": run_recording}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_programs(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    assert result.error is None, result.error
