"""Workspaces of other kinds: a fresh clone, one that is not trusted, one with fixes, and one whose neighbour is clangd."""

import json
import shutil
import sys

import pytest

from tests.editors.vscode.code import HERE, FindResults, Place, Results, bundle, choose_settings, list_tests
from tests.editors.workspace import LAUNCH, make_clone

CLANGD_FLAGS = """\
-xc++
-D__global__=
-D__device__=
-D__restrict__=
"""
"""Enough for clangd to know the names of the project without a CUDA toolkit."""


def run_clone(place: Place) -> Results:
    settings = {"gpaLsp.interpreter": sys.executable, "gpaLsp.static.enable": False}
    return place.run("clone", make_clone(place.folder / "workspace"), usual={}, settings=settings)


def run_restricted(place: Place) -> Results:
    """A workspace whose settings name a command to measure with, and an interpreter that leaves a trace when it is started."""
    workspace = place.make_workspace()
    interpreter = workspace.folder / "python"
    interpreter.write_text(
        f'#!/bin/sh\ntouch "{workspace.control}/workspace-interpreter"\nexec "{sys.executable}" "$@"\n'
    )
    interpreter.chmod(0o755)
    users = {name: value for name, value in choose_settings(workspace).items() if not name.startswith("gpaLsp.profile")}
    own = {**choose_settings(workspace), "gpaLsp.interpreter": str(interpreter)}
    (workspace.folder / ".vscode").mkdir()
    (workspace.folder / ".vscode" / "settings.json").write_text(json.dumps(own))
    return place.run("restricted", workspace, usual=users, trusted=False)


def run_fixes(place: Place) -> Results:
    workspace = place.make_workspace()
    workspace.source.with_suffix(".launch.toml").write_text(LAUNCH)
    return place.run("fixes", workspace)


def run_clangd(place: Place) -> Results:
    installed = place.tools.editors / "clangd"
    clangd = str(installed) if installed.exists() else shutil.which("clangd")
    if clangd is None:
        pytest.skip("clangd is not installed: tests/editors/install_neovim.sh also installs it")
    workspace = place.make_workspace()
    (workspace.folder / "compile_flags.txt").write_text(CLANGD_FLAGS)
    client = place.folder / "clangd-client"
    shutil.copytree(HERE / "clangd", client)
    bundle(HERE / "clangd" / "extension.ts", client / "extension.cjs")
    return place.run("clangd", workspace, neighbour=client, environment={"GPA_TEST_CLANGD": clangd})


SUITES = {"clone": run_clone, "restricted": run_restricted, "fixes": run_fixes, "clangd": run_clangd}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_workspaces(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    assert result.error is None, result.error
