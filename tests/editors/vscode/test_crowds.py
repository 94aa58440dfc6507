"""Many kernels in one source, and many reports in one workspace."""

import os
import sys
from pathlib import Path

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from tests.bench.many_kernels import make_workspace as make_many_kernels
from tests.conftest import find_corpus
from tests.editors.vscode.code import FindResults, Place, Results, list_tests, name_results, run_suite
from tests.editors.workspace import add_reports

CROWD = 170
"""Kernels in one source: 1,800 lines, of which 300 and more are hot."""


def run_crowd(place: Place) -> Results:
    """Many kernels in one long source; GPA_TEST_CROWD names a folder with another such workspace."""
    if find_tool("nvcc") is None or find_corpus() is None:
        pytest.skip("nvcc or the corpus of real reports (GPA_LSP_CORPUS) is missing")
    workspace = Path(os.environ.get("GPA_TEST_CROWD", place.folder / "workspace"))
    workspace.mkdir(exist_ok=True)
    source, _ = make_many_kernels(workspace, CROWD)
    settings = {"gpaLsp.interpreter": sys.executable, "gpaLsp.static.enable": False}
    facts = {"source": str(source), "control": str(place.folder), "lines": {}}
    found = run_suite(place.tools, "crowd", place.folder, workspace=workspace, settings=settings, facts=facts)
    print((place.folder / "crowd.json").read_text())
    return name_results(found, "crowd")


def run_access(place: Place) -> Results:
    """In a workspace with a hundred reports, whose older ones are none of a reader's business."""
    workspace = place.make_workspace()
    add_reports(workspace, 99)
    return place.run("access", workspace)


SUITES = {"crowd": run_crowd, "access": run_access}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_crowds(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    assert result.error is None, result.error
