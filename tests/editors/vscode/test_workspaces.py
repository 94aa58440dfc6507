"""Workspaces of other kinds: a fresh clone, one that is not trusted, one with fixes, and one whose neighbour is clangd."""

import json
import shutil
import sys

import pytest

from tests.editors.vscode.code import (
    HERE,
    Results,
    Tools,
    bundle,
    check_nothing_stays,
    choose_settings,
    find_names,
    name_results,
    run_suite,
    tell_facts,
)
from tests.editors.workspace import (
    LAUNCH,
    make_clone,
    make_workspace,
)

CLANGD_FLAGS = """\
-xc++
-D__global__=
-D__device__=
-D__restrict__=
"""
"""Enough for clangd to know the names of the project without a CUDA toolkit."""


@pytest.fixture(scope="session")
def clone_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("clone")
    workspace = make_clone(folder / "workspace")
    settings = {"gpaLsp.interpreter": sys.executable, "gpaLsp.static.enable": False}
    results = run_suite(
        built, "clone", folder, workspace=workspace.folder, settings=settings, facts=tell_facts(workspace)
    )
    check_nothing_stays(folder)
    return name_results(results, "clone")


@pytest.mark.parametrize("name", find_names("clone"))
def test_clone(name: str, clone_results: Results) -> None:
    assert clone_results[name].error is None, clone_results[name].error


@pytest.fixture(scope="session")
def restricted_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace whose settings name a command to measure with, and an interpreter that leaves a trace when it is started."""
    folder = tmp_path_factory.mktemp("restricted")
    workspace = make_workspace(folder / "workspace")
    interpreter = workspace.folder / "python"
    interpreter.write_text(
        f'#!/bin/sh\ntouch "{workspace.control}/workspace-interpreter"\nexec "{sys.executable}" "$@"\n'
    )
    interpreter.chmod(0o755)
    users = {name: value for name, value in choose_settings(workspace).items() if not name.startswith("gpaLsp.profile")}
    own = {**choose_settings(workspace), "gpaLsp.interpreter": str(interpreter)}
    (workspace.folder / ".vscode").mkdir()
    (workspace.folder / ".vscode" / "settings.json").write_text(json.dumps(own))
    results = run_suite(
        built,
        "restricted",
        folder,
        workspace=workspace.folder,
        settings=users,
        facts=tell_facts(workspace),
        trusted=False,
    )
    check_nothing_stays(folder)
    return name_results(results, "restricted")


@pytest.mark.parametrize("name", find_names("restricted"))
def test_restricted(name: str, restricted_results: Results) -> None:
    assert restricted_results[name].error is None, restricted_results[name].error


@pytest.fixture(scope="session")
def fixes_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("fixes")
    workspace = make_workspace(folder / "workspace")
    workspace.source.with_suffix(".launch.toml").write_text(LAUNCH)
    results = run_suite(
        built,
        "fixes",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
    )
    check_nothing_stays(folder)
    return name_results(results, "fixes")


@pytest.mark.parametrize("name", find_names("fixes"))
def test_fixes(name: str, fixes_results: Results) -> None:
    assert fixes_results[name].error is None, fixes_results[name].error


@pytest.fixture(scope="session")
def clangd_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    installed = built.editors / "clangd"
    clangd = str(installed) if installed.exists() else shutil.which("clangd")
    if clangd is None:
        pytest.skip("clangd is not installed: tests/editors/install_neovim.sh also installs it")
    folder = tmp_path_factory.mktemp("clangd")
    workspace = make_workspace(folder / "workspace")
    (workspace.folder / "compile_flags.txt").write_text(CLANGD_FLAGS)
    shutil.copytree(HERE / "clangd", folder / "clangd-client")
    bundle(HERE / "clangd" / "extension.ts", folder / "clangd-client" / "extension.cjs")
    results = run_suite(
        built,
        "clangd",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
        neighbour=folder / "clangd-client",
        environment={"GPA_TEST_CLANGD": clangd},
    )
    check_nothing_stays(folder)
    return name_results(results, "clangd")


@pytest.mark.parametrize("name", find_names("clangd"))
def test_clangd(name: str, clangd_results: Results) -> None:
    assert clangd_results[name].error is None, clangd_results[name].error
