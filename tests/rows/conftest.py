"""The device image of a small kernel."""

from pathlib import Path

import pytest


@pytest.fixture
def image(fixtures: Path) -> bytes:
    return (fixtures / "cubins" / "sm_80" / "short_def_use_original.cubin").read_bytes()
