"""Expected outputs as files. ``UPDATE_GOLDEN=1`` rewrites them; the difference is then read in review like any other change."""

import difflib
import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare with ``tests/golden/<name>``, or rewrite it."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = "".join(
        difflib.unified_diff(expected.splitlines(True), text.splitlines(True), f"expected {name}", "printed")
    )
    assert not difference, difference + "\nIf this is meant: UPDATE_GOLDEN=1 python -m pytest"
