"""Writes what the editors say of the server's options, from the fields of ``gpa_lsp.editor.settings.Settings``.

python editors/write_settings.py           writes it; run ``npm run contributions`` in editors/vscode afterwards
python editors/write_settings.py --check   ends with status 1 where something is out of date
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from gpa_lsp.editor.settings import OPTIONS, Option

EDITORS = Path(__file__).resolve().parent
PAGE = EDITORS / "README.md"
HELP = EDITORS / "neovim" / "doc" / "gpa_lsp.txt"
TABLE = EDITORS / "vscode" / "settings" / "server.json"

_WIDTH = 78


def write_all() -> dict[Path, str]:
    """What each file is to hold."""
    return {
        PAGE: _replace(
            PAGE, "<!-- settings: made by write_settings.py -->\n", "<!-- end of settings -->", draw_table()
        ),
        HELP: _replace(HELP, "*gpa_lsp-server-settings*\n\n", "\n====", draw_help()),
        TABLE: json.dumps(build_properties(), indent=2, ensure_ascii=False) + "\n",
    }


def _replace(path: Path, start: str, end: str, text: str) -> str:
    head, found, rest = path.read_text(encoding="utf-8").partition(start)
    if not found or end not in rest:
        raise SystemExit(f"{path} has no place for the settings: between {start!r} and {end!r}")
    return head + start + text + rest[rest.index(end) :]


def draw_table() -> str:
    """A Markdown table: name, default, meaning."""
    rows = [
        f"| `{name}` | {_show_default(option)} | {_describe(option)}{' ⚠' if option.is_restricted else ''} |"
        for name, option in OPTIONS.items()
    ]
    return "\n".join(["| name | default | meaning |", "|---|---|---|", *rows]) + "\n"


def draw_help() -> str:
    """Paragraphs of Vim's help."""
    return "".join(
        f"`{name}`  (default {_show_default(option)})\n{_wrap(_describe(option))}" for name, option in OPTIONS.items()
    )


def _wrap(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False) + "\n"


def _show_default(option: Option) -> str:
    return "none" if option.default is None else f"`{json.dumps(option.default)}`"


def _describe(option: Option) -> str:
    values = option.kind.schema.get("enum")
    choice = f" One of {', '.join(f'`{value}`' for value in values)}." if values else ""
    return f"{option.summary}{choice}"


def build_properties() -> dict[str, dict[str, Any]]:
    """Every option of the server: a definition for ``contributes.configuration``, and whether untrusted workspaces may set it."""
    return {f"gpaLsp.{name}": _build_property(option) for name, option in OPTIONS.items()}


def _build_property(option: Option) -> dict[str, Any]:
    said = {"default": option.default, "scope": "window", "markdownDescription": option.summary}
    return {**option.kind.schema, **said, **({"restricted": True} if option.is_restricted else {})}


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    outdated = {path: text for path, text in write_all().items() if path.read_text(encoding="utf-8") != text}
    if "--check" in arguments:
        for path in outdated:
            sys.stderr.write(f"{path} is out of date: run editors/write_settings.py, and `npm run contributions`\n")
        return 1 if outdated else 0
    for path, text in outdated.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
