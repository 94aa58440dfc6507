"""The extension in a real VS Code: its server, its web client in Chromium, a workspace with a profile, and a neighbour that answers for CUDA C++.

Each test of ``vscode/suite`` is a test here; all tests of a suite run in one window, one after the other.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.vscode.code import EXTENSION, HERE, Result, Tools, find_left_over, find_tools, run_npm, run_suite
from tests.editors.workspace import CAUSE, DIVIDING, DOUBLES, LOOP, VICTIM, Workspace, make_workspace

Results = dict[str, Result]


def find_names(suite: str) -> list[str]:
    """Names of a suite's tests, as they stand in its text."""
    return re.findall(r'^  \["(.+)", async', (HERE / "suite" / f"{suite}.ts").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return find_tools(tmp_path_factory.mktemp("vscode"))


@pytest.fixture(scope="session")
def built(tools: Tools) -> Tools:
    """The tools, after the extension was built."""
    done = run_npm("run", "build")
    assert done.returncode == 0, done.stdout + done.stderr
    return tools


def tell_facts(workspace: Workspace) -> dict[str, object]:
    texts = {"cause": CAUSE, "victim": VICTIM, "loop": LOOP, "doubles": DOUBLES, "dividing": DIVIDING, "kernel": "void relax("}
    return {
        "source": str(workspace.source),
        "control": str(workspace.control),
        "lines": {name: workspace.find_line(text) for name, text in texts.items()},
    }


@pytest.fixture(scope="session")
def main_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("main")
    workspace = make_workspace(folder / "workspace")
    settings = {
        "gpaLsp.interpreter": sys.executable,
        "gpaLsp.pollSeconds": 0.1,
        "gpaLsp.profile.command": [*workspace.measure_command, "${output}"],
        "gpaLsp.profile.debounceSeconds": 0.1,
    }
    results = run_suite(
        built, "main", folder, workspace=workspace.folder, settings=settings, facts=tell_facts(workspace)
    )
    assert find_left_over(folder) == []
    return {result.name: result for result in results}


@pytest.mark.parametrize("name", find_names("main"))
def test_main(name: str, main_results: Results) -> None:
    assert main_results[name].error is None, main_results[name].error


def test_types_and_generated_parts(built: Tools) -> None:
    suite = subprocess.run(
        [EXTENSION / "node_modules" / ".bin" / "tsc", "--noEmit", "-p", HERE / "suite"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert suite.returncode == 0, suite.stdout
    assert not re.findall(r":\s*any\b|<any>|as any\b", "".join(path.read_text() for path in (EXTENSION / "src").glob("*.ts")))


def test_settings_are_the_servers() -> None:
    done = subprocess.run(
        [sys.executable, EXTENSION / "scripts" / "read_settings.py", "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_unit_tests(tools: Tools) -> None:
    done = run_npm("test")
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 14  # type: ignore[index]
