"""The JSON Schema of records (:mod:`gpa_lsp.report.json_records`), from their type hints and docstrings: what the code says is what is documented."""

import dataclasses
import inspect
import re
import types
import typing
from enum import Enum
from typing import Any

from gpa_lsp.report.json_records import list_record_fields

_ATTRIBUTE = re.compile(r"^    (\w+): (.*)$")


def make_record_schemas(kind: type) -> dict[str, Any]:
    """``$defs`` of a dataclass and of all it holds, by class name.

    >>> from gpa_lsp.analyses.answers import Bar
    >>> make_record_schemas(Bar)["Bar"]["properties"]["label"]
    {'type': 'string', 'description': 'what.'}
    """
    found: dict[str, Any] = {}
    _add(kind, found)
    return dict(sorted(found.items()))


def _add(kind: Any, found: dict[str, Any]) -> None:
    if kind.__name__ in found:
        return
    summary = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    if issubclass(kind, Enum):
        found[kind.__name__] = {"enum": [member.value for member in kind], "description": summary}
        return
    words = _read_attributes(inspect.getdoc(kind) or "")
    schema: dict[str, Any] = {"type": "object", "description": summary, "additionalProperties": False}
    found[kind.__name__] = schema
    fields = list_record_fields(kind)
    defaults = {field.name for field in dataclasses.fields(kind) if field.default is not dataclasses.MISSING}
    schema["required"] = [name for name in fields if name not in defaults]
    schema["properties"] = {
        name: {**_describe(hint, found), "description": words.get(name, f"{name.replace('_', ' ')}.")}
        for name, hint in fields.items()
    }


def _describe(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    plain = {bool: "boolean", str: "string", int: "integer"}
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in plain:
        return {"type": plain[hint]}
    if hint is float:
        return {"type": ["number", "null"]}
    if origin in (typing.Union, types.UnionType):
        kept = [part for part in parts if part is not type(None)]
        if len(kept) > 1:
            return {"type": ["string", "number", "null"]}
        return {"anyOf": [_describe(kept[0], found), {"type": "null"}]}
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return {"type": "array", "items": _describe(parts[0], found)}
    if origin is tuple:
        items = [_describe(part, found) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(parts), "maxItems": len(parts)}
    _add(hint, found)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _read_attributes(docstring: str) -> dict[str, str]:
    """What a docstring's ``Attributes:`` say, by name."""
    words: dict[str, str] = {}
    name = ""
    for line in docstring.partition("Attributes:\n")[2].splitlines():
        met = _ATTRIBUTE.match(line)
        if met:
            name = met[1]
            words[name] = met[2]
        elif name and line.startswith("        "):
            words[name] += " " + line.strip()
        else:
            name = ""
    return words
