"""JSON laid out for people: what there is much of takes one line each."""

import json
from collections.abc import Iterator
from typing import Any

_OPENED = frozenset({"modules", "launches"})
"""Arrays of objects whose members each get their own lines."""
_LISTED = frozenset({"functions", "sources", "samples", "metrics", "attributes", "rules", "call_stack", "problems"})
"""Arrays and objects with one line per item."""


def render_document(document: dict[str, Any]) -> str:
    """A document as indented JSON text, ending in a newline.

    >>> print(render_document({"format": "f", "launches": [{"kernel": "k", "samples": [{"pc_offset": 0}, {"pc_offset": 16}]}]}), end="")
    {
      "format": "f",
      "launches": [
        {
          "kernel": "k",
          "samples": [
            {"pc_offset": 0},
            {"pc_offset": 16}
          ]
        }
      ]
    }
    """
    return "".join(_render_object(document, "")) + "\n"


def _render_object(members: dict[str, Any], indent: str) -> Iterator[str]:
    yield "{"
    separator = "\n"
    for name, value in members.items():
        yield f"{separator}{indent}  {json.dumps(name, ensure_ascii=False)}: "
        yield from _render_member(name, value, indent + "  ")
        separator = ",\n"
    yield f"\n{indent}}}" if members else "}"


def _render_member(name: str, value: Any, indent: str) -> Iterator[str]:
    if name in _OPENED and value:
        yield "["
        separator = "\n"
        for item in value:
            yield f"{separator}{indent}  "
            yield from _render_object(item, indent + "  ")
            separator = ",\n"
        yield f"\n{indent}]"
    elif name == "device":
        yield from _render_object(value, indent)
    elif name in _LISTED and value:
        yield from _render_list(value, indent)
    else:
        yield _render_line(value)


def _render_list(value: Any, indent: str) -> Iterator[str]:
    is_object = isinstance(value, dict)
    yield "{" if is_object else "["
    separator = "\n"
    for item in value.items() if is_object else value:
        line = f"{_render_line(item[0])}: {_render_line(item[1])}" if is_object else _render_line(item)
        yield f"{separator}{indent}  {line}"
        separator = ",\n"
    yield f"\n{indent}" + ("}" if is_object else "]")


def _render_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
