"""The configuration that the pages in ``editors/`` tell people to copy, for tests to copy as well."""

import re
from pathlib import Path

EDITORS = Path(__file__).resolve().parents[2] / "editors"


def read_blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language, in order."""
    text = (EDITORS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
