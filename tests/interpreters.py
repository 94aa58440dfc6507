"""Other releases of Python, where they are installed."""

import subprocess
import sys

import pytest

from gpa_lsp.foundation.processes.search_paths import find_program
from tests.patience import LIMIT_S


def find_interpreter(minor: int) -> str:
    """Python 3 of a release, ours or one that is installed and starts; skips the test where there is none."""
    if minor == sys.version_info[1]:
        return sys.executable
    path = find_program(f"python3.{minor}")
    asked = [str(path), "-c", "import sys; print(sys.version_info[1], sys.executable)"]
    done = None if path is None else subprocess.run(asked, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done is None or done.returncode != 0 or not done.stdout.startswith(f"{minor} "):
        pytest.skip(f"Python 3.{minor} is not installed")
    return done.stdout.split(maxsplit=1)[1].strip()
