"""Work with a profile in a trusted workspace, by the extension as users get it."""

import pytest

from tests.editors.vscode.code import FindResults, Place, Results, list_tests


def run_main(place: Place) -> Results:
    settings = {"gpaLsp.importStrategy": "useBundled"}
    return place.run("main", place.make_workspace(), settings=settings, extension=place.packaged)


SUITES = {"main": run_main}


@pytest.mark.parametrize(("suite", "name"), list_tests(*SUITES))
def test_main(suite: str, name: str, results: FindResults) -> None:
    result = results(suite, SUITES[suite])[name]
    result.check()
    assert result.error is None
