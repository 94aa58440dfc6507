"""Many kernels in one source, and many reports in one workspace."""

import os
import sys
from pathlib import Path

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from tests.bench.many_kernels import make_workspace as make_many_kernels
from tests.conftest import find_corpus
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
    add_reports,
    make_workspace,
)

CROWD = 170
"""Kernels in one source: 1,800 lines, of which 300 and more are hot."""


@pytest.fixture(scope="session")
def crowd_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Many kernels in one long source; GPA_TEST_CROWD names a folder with another such workspace."""
    if find_tool("nvcc") is None or find_corpus() is None:
        pytest.skip("nvcc or the corpus of real reports (GPA_LSP_CORPUS) is missing")
    folder = tmp_path_factory.mktemp("crowd")
    workspace = Path(os.environ.get("GPA_TEST_CROWD", folder / "workspace"))
    workspace.mkdir(exist_ok=True)
    source, _ = make_many_kernels(workspace, CROWD)
    settings = {"gpaLsp.interpreter": sys.executable, "gpaLsp.static.enable": False}
    facts = {"source": str(source), "control": str(folder), "lines": {}}
    results = run_suite(built, "crowd", folder, workspace=workspace, settings=settings, facts=facts)
    check_nothing_stays(folder)
    print((folder / "crowd.json").read_text())
    return name_results(results, "crowd")


@pytest.mark.parametrize("name", find_names("crowd"))
def test_crowd(name: str, crowd_results: Results) -> None:
    assert crowd_results[name].error is None, crowd_results[name].error


@pytest.fixture(scope="session")
def access_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """In a workspace with a hundred reports, whose older ones are none of a reader's business."""
    folder = tmp_path_factory.mktemp("access")
    workspace = make_workspace(folder / "workspace")
    add_reports(workspace, 99)
    results = run_suite(
        built,
        "access",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
    )
    check_nothing_stays(folder)
    return name_results(results, "access")


@pytest.mark.parametrize("name", find_names("access"))
def test_access(name: str, access_results: Results) -> None:
    assert access_results[name].error is None, access_results[name].error
