"""Windows: a narrow one, and two at once on one workspace."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.editors.vscode.code import FindResults, Place, Results, check_nothing_stays, list_tests

WINDOWS = ("first", "second")


def run_narrow(place: Place) -> Results:
    """A window as wide as half a screen, with source and SASS in it."""
    return place.run("narrow", place.make_workspace(), window={"viewport": {"width": 900, "height": 640}})


def count_remembered(data: Path, kernel: str) -> int:
    """Measurements of a kernel in a history."""
    command = [sys.executable, "-m", "gpa_lsp", "history", "--format", "json"]
    environment = {**os.environ, "GPA_LSP_DATA_DIR": str(data)}
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return next(len(one["runs"]) for one in json.loads(printed)["kernels"] if one["name"].startswith(f"{kernel}("))


def run_windows(place: Place) -> Results:
    """Two windows at once on one workspace, with one history."""
    folder, workspace = place.folder, place.make_workspace()
    shared = {"GPA_LSP_DATA_DIR": str(folder / "data"), "GPA_LSP_CACHE_DIR": str(folder / "cache")}

    def open_window(window: str) -> Results:
        (folder / window).mkdir()
        here = replace(place, folder=folder / window)
        return here.run("window", workspace, environment={**shared, "GPA_TEST_WINDOW": window})

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(open_window, WINDOWS))
    check_nothing_stays(folder)  # what the servers remember is written by now
    assert workspace.runs == 2
    assert count_remembered(folder / "data", "relax") == 2  # before and after: neither lost nor twice
    return {f"{window}: {name}": one for window, each in zip(WINDOWS, found, strict=True) for name, one in each.items()}


SUITES = {"narrow": run_narrow, "window": run_windows}
TESTS = [
    *list_tests("narrow"),
    *(("window", f"{window}: {name}") for window in WINDOWS for _, name in list_tests("window")),
]


@pytest.mark.parametrize(("suite", "name"), TESTS)
def test_windows(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    assert result.error is None, result.error
