"""Start where no interpreter has the server's packages: the extension makes an environment, and says what is wrong."""

import os
import shutil
import sys
import venv

import pytest

from tests.editors.package_index import PackageIndex
from tests.editors.vscode.code import FindResults, Place, Results, list_tests, tell_facts
from tests.editors.workspace import make_workspace


def run_setup(place: Place) -> Results:
    """Run where the only Python on the path has no packages, with a package index on the loopback interface."""
    folder = place.folder
    workspace = make_workspace(folder / "work" / "space")
    venv.create(folder / "bare", with_pip=False)
    extension = folder / "extension"
    shutil.copytree(place.packaged, extension)
    how = folder / "index"
    how.write_text("refuse")
    storage = folder / "user-data" / "User" / "globalStorage" / "gpa-lsp.gpa-lsp"
    with PackageIndex(how) as index:
        (extension / "bundled" / "requirements.txt").write_text(index.requirement)
        return place.run(
            "setup",
            workspace,
            usual={},
            settings={
                "gpaLsp.importStrategy": "useBundled",  # the lent packages hold one that only the tests can import
                "gpaLsp.static.enable": False,
            },
            facts={
                **tell_facts(workspace),
                "index": str(how),
                "storage": str(storage),
                "bareInterpreter": str(folder / "bare" / "bin" / "python"),
                "interpreter": sys.executable,
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


SUITES = {"setup": run_setup}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_start(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    result.check()
    assert result.error is None
