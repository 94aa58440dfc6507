from collections.abc import Callable
from pathlib import Path

import pytest

from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.read import read_profile


@pytest.fixture
def read_bytes(tmp_path: Path) -> Callable[..., Profile]:
    """Write bytes to a file and read it as a profile."""

    def read(data: bytes, name: str = "test.ncu-rep") -> Profile:
        path = tmp_path / name
        path.write_bytes(data)
        return read_profile(path)

    return read
