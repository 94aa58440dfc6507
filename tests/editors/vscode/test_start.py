"""How the extension comes by its server: the one that comes along, and one where no interpreter fits yet."""

import os
import shutil
import venv
from pathlib import Path

import pytest

from tests.editors.package_index import PackageIndex
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


@pytest.fixture(scope="session")
def setup_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Where the only Python on the path has no packages, with a package index on the loopback interface."""
    folder = tmp_path_factory.mktemp("setup")
    workspace = make_workspace(folder / "work" / "space")
    venv.create(folder / "bare", with_pip=False)
    extension = folder / "extension"
    shutil.copytree(packaged, extension)
    how = folder / "index"
    how.write_text("refuse")
    with PackageIndex(how) as index:
        (extension / "bundled" / "requirements.txt").write_text(index.requirement)
        results = run_suite(
            built,
            "setup",
            folder,
            workspace=workspace.folder,
            settings={
                "gpaLsp.importStrategy": "useBundled",  # the lent packages hold one that only the tests can import
                "gpaLsp.static.enable": False,
            },
            facts={
                **tell_facts(workspace),
                "index": str(how),
                "storage": str(folder / "user-data" / "User" / "globalStorage" / "gpa-lsp.gpa-lsp"),
            },
            extension=extension,
            environment={
                "PATH": str(folder / "bare" / "bin"),
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_FIND_LINKS": "",
                "PIP_INDEX_URL": index.address,
                "PIP_RETRIES": "1",
            },
        )
    check_nothing_stays(folder)
    return name_results(results, "setup")


@pytest.mark.parametrize("name", find_names("setup"))
def test_setup(name: str, setup_results: Results) -> None:
    assert setup_results[name].error is None, setup_results[name].error


@pytest.fixture(scope="session")
def bundled_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("bundled")
    workspace = make_workspace(folder / "workspace")
    venv.create(folder / "bare", with_pip=False)
    settings = {**choose_settings(workspace), "gpaLsp.importStrategy": "useBundled"}
    results = run_suite(
        built,
        "bundled",
        folder,
        workspace=workspace.folder,
        settings=settings,
        facts={**tell_facts(workspace), "bareInterpreter": str(folder / "bare" / "bin" / "python")},
        extension=packaged,
    )
    check_nothing_stays(folder)
    return name_results(results, "bundled")


@pytest.mark.parametrize("name", find_names("bundled"))
def test_bundled(name: str, bundled_results: Results) -> None:
    assert bundled_results[name].error is None, bundled_results[name].error
