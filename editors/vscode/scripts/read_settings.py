"""Writes ``settings/server.json``, the server's options as VS Code wants to know them. Run ``npm run contributions`` afterwards.

python scripts/read_settings.py           writes it
python scripts/read_settings.py --check   ends with status 1 when it is out of date
"""

import json
import sys
from pathlib import Path
from typing import Any

from gpa_lsp.lsp.option import Option
from gpa_lsp.lsp.settings import OPTIONS

TABLE = Path(__file__).resolve().parent.parent / "settings" / "server.json"


def build_table() -> dict[str, dict[str, Any]]:
    """Every option of the server: a definition for ``contributes.configuration``, and whether untrusted workspaces may set it."""
    return {f"gpaLsp.{name}": _build_property(option) for name, option in OPTIONS.items()}


def _build_property(option: Option) -> dict[str, Any]:
    definition = {**option.schema, "default": option.default, "scope": "window", "markdownDescription": option.summary}
    return {**definition, "restricted": True} if option.is_restricted else definition


def main(arguments: list[str]) -> int:
    """Write the table, or compare it."""
    text = json.dumps(build_table(), indent=2, ensure_ascii=False) + "\n"
    if "--check" not in arguments:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if TABLE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(
        "settings/server.json is out of date: run editors/vscode/scripts/read_settings.py and `npm run contributions`\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
