"""What a person does with a profile in a trusted workspace, by the extension as users get it."""

from pathlib import Path

import pytest

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
def main_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("main")
    workspace = make_workspace(folder / "workspace")
    results = run_suite(
        built,
        "main",
        folder,
        workspace=workspace.folder,
        settings={**choose_settings(workspace), "gpaLsp.importStrategy": "useBundled"},
        facts=tell_facts(workspace),
        extension=packaged,
    )
    check_nothing_stays(folder)
    return name_results(results, "main")


@pytest.mark.parametrize("name", find_names("main"))
def test_main(name: str, main_results: Results) -> None:
    assert main_results[name].error is None, main_results[name].error
