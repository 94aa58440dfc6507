"""The settings as a table for people, made from the one list there is: ``python -m gpa_lsp.lsp.settings_table``."""

import json
import sys

from gpa_lsp.lsp.option import Option
from gpa_lsp.lsp.settings import OPTIONS


def draw_settings_table() -> str:
    """A Markdown table: name, default, meaning."""
    rows = [f"| `{name}` | {_show_default(option)} | {_describe(option)} |" for name, option in OPTIONS.items()]
    return "\n".join(["| name | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _show_default(option: Option) -> str:
    return "none" if option.default is None else f"`{json.dumps(option.default)}`"


def _describe(option: Option) -> str:
    values = option.schema.get("enum")
    choice = f" One of {', '.join(f'`{value}`' for value in values)}." if isinstance(values, list) else ""
    return f"{option.summary}{choice}{' ⚠' if option.is_restricted else ''}"


if __name__ == "__main__":
    sys.stdout.write(draw_settings_table())
