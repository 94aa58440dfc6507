"""What holds of the engine holds of both: numpy alone, and the compiled core with numpy beside it."""

import pytest

from gpa_lsp.foundation.machine_code import VARIABLE
from tests.emulator.compiled.comparing import require_core


@pytest.fixture(autouse=True, params=("numpy", "core"))
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test by each engine."""
    if request.param == "numpy":
        monkeypatch.setenv(VARIABLE, "0")
    else:
        require_core()
