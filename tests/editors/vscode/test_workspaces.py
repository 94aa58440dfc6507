"""A workspace of others: a fresh clone that is not trusted."""

import json
import sys

import pytest

from tests.editors.vscode.code import FindResults, Place, Results, choose_settings, list_tests
from tests.editors.workspace import make_clone


def run_clone(place: Place) -> Results:
    """A workspace whose settings name a command to measure with, and an interpreter that leaves a trace when it is started."""
    workspace = make_clone(place.folder / "workspace")
    interpreter = workspace.folder / "python"
    interpreter.write_text(
        f'#!/bin/sh\ntouch "{workspace.control}/workspace-interpreter"\nexec "{sys.executable}" "$@"\n'
    )
    interpreter.chmod(0o755)
    own = {**choose_settings(workspace), "gpaLsp.interpreter": str(interpreter)}
    (workspace.folder / ".vscode").mkdir()
    (workspace.folder / ".vscode" / "settings.json").write_text(json.dumps(own))
    users = {"gpaLsp.interpreter": sys.executable, "gpaLsp.static.enable": False}
    return place.run("clone", workspace, usual=users, trusted=False)


SUITES = {"clone": run_clone}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_workspaces(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    result.check()
    assert result.error is None
