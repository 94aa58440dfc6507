"""The project that every editor's tests open."""

from pathlib import Path

import pytest

from tests.editors.workspace import Workspace, make_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A copy of the project, in a folder whose name is a trap for URIs."""
    return make_workspace(tmp_path / "wörk #1 %20")
