"""The programs that drive VS Code, and the extension, packaged once for all workers of a run."""

import fcntl
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import find_shared_folder
from tests.editors.vscode.code import (
    EXTENSION,
    FindResults,
    Place,
    Results,
    Tools,
    check_nothing_stays,
    find_tools,
    run_npm,
)


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return find_tools(tmp_path_factory.mktemp("vscode"))


@pytest.fixture(scope="session")
def packaged(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as users get it, unpacked. It is built on the way, in its own folder, where no other worker may build it meanwhile."""
    shared = find_shared_folder(tmp_path_factory)
    folder = shared / "packaged"
    with (shared / "packaged.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            done = run_npm("run", "package", PYTHON=sys.executable)
            assert done.returncode == 0, done.stdout + done.stderr
            unpacked = shared / "unpacked"
            with ZipFile(EXTENSION / "gpa-lsp.vsix") as archive:
                archive.extractall(unpacked)
            unpacked.rename(folder)
    return folder / "extension"


@pytest.fixture(scope="session")
def built(tools: Tools, packaged: Path) -> Tools:
    """The tools, after the extension was built."""
    return tools


@pytest.fixture(scope="session")
def results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> FindResults:
    """A function that gives what the tests of a suite reported. Each suite runs once, and leaves no process; what skips it skips all of its tests."""
    known: dict[str, Results | BaseException] = {}  # what a failed or skipped run raised stands for its results

    def find(suite: str, run: Callable[[Place], Results]) -> Results:
        if suite not in known:
            folder = tmp_path_factory.mktemp(suite)
            try:
                known[suite] = run(Place(folder=folder, tools=built, packaged=packaged))
                check_nothing_stays(folder)
            except (Exception, pytest.skip.Exception) as error:
                known[suite] = error
        found = known[suite]
        if isinstance(found, BaseException):
            raise found
        return found

    return find
