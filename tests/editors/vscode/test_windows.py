"""Windows: a narrow one, and two at once on one workspace."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.editors.vscode.code import (
    Result,
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

WINDOWS = ("first", "second")


@pytest.fixture(scope="session")
def narrow_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A window as wide as half a screen, with source and SASS in it."""
    folder = tmp_path_factory.mktemp("narrow")
    workspace = make_workspace(folder / "workspace")
    results = run_suite(
        built,
        "narrow",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
        window={"viewport": {"width": 900, "height": 640}},
    )
    check_nothing_stays(folder)
    return name_results(results, "narrow")


@pytest.mark.parametrize("name", find_names("narrow"))
def test_narrow(name: str, narrow_results: Results) -> None:
    assert narrow_results[name].error is None, narrow_results[name].error


def count_remembered(data: Path, kernel: str) -> int:
    """Measurements of a kernel in a history."""
    command = [sys.executable, "-m", "gpa_lsp", "history", "--format", "json"]
    environment = {**os.environ, "GPA_LSP_DATA_DIR": str(data)}
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return next(len(one["runs"]) for one in json.loads(printed)["kernels"] if one["name"].startswith(f"{kernel}("))


@pytest.fixture(scope="session")
def window_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """Two windows at once on one workspace, with one history."""
    folder = tmp_path_factory.mktemp("windows")
    workspace = make_workspace(folder / "workspace")
    shared = {"GPA_LSP_DATA_DIR": str(folder / "data"), "GPA_LSP_CACHE_DIR": str(folder / "cache")}

    def open_window(name: str) -> list[Result]:
        return run_suite(
            built,
            "window",
            folder / name,
            workspace=workspace.folder,
            settings=choose_settings(workspace),
            facts=tell_facts(workspace),
            environment={**shared, "GPA_TEST_WINDOW": name},
        )

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(open_window, WINDOWS))
    check_nothing_stays(folder)
    results = {name: name_results(each, "window") for name, each in zip(WINDOWS, found, strict=True)}
    assert workspace.runs == 2
    assert count_remembered(folder / "data", "relax") == 2  # before and after: neither lost nor twice
    return results


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", find_names("window"))
def test_two_windows(name: str, window: str, window_results: dict[str, Results]) -> None:
    assert window_results[window][name].error is None, window_results[window][name].error
