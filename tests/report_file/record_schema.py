"""The JSON Schema of records from their codecs and docstrings: what the code says is what is documented.

``gpa_lsp/report/saved/report_schema.json`` is made here, and a test says that it is as the code is.
"""

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

import gpa_lsp.report.saved
from gpa_lsp.foundation.json_records import InnerObject, Property, RecordCodec, RowsCodec, StandInCodec
from gpa_lsp.foundation.json_values import (
    Array,
    Cell,
    Codec,
    Fixed,
    Flag,
    NameIn,
    Number,
    OrNull,
    PathText,
    Position,
    SharedValue,
    Spelled,
    Table,
    Tagged,
    Text,
    Whole,
)
from gpa_lsp.report.saved import SCHEMA_NAME
from gpa_lsp.report.saved.report_records import REPORT, SavedReport

Schema = dict[str, Any]

SCHEMA_FILE = Path(gpa_lsp.report.saved.__file__).parent / "report_schema.json"

_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_FIELD = re.compile(r"^    (\w+): [^#]*(?:# (.*))?$")
_COMMENT = re.compile(r"^    # (.*)$")
_MOST_LISTED = 100


def read_schema() -> Schema:
    """The schema of reports as it is shipped."""
    schema: Schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return schema


def make_report_schema() -> Schema:
    """The schema of reports as the code is."""
    found: dict[str, Schema] = {}
    root = make_schema(REPORT.find(SavedReport), found)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gpa-lsp:report:3",
        "title": SCHEMA_NAME,
        **root,
        "$defs": dict(sorted(found.items())),
    }


def show_schema(value: Any, level: int = 0) -> str:
    """Format a schema as text, a line for each described property and each list of required ones."""
    if level > 3 or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    indent = "\n" + "  " * (level + 1)
    lines = [f"{indent}{json.dumps(key)}: {show_schema(part, level + 1)}" for key, part in value.items()]
    return "{" + ",".join(lines) + indent[:-2] + "}" + ("" if level else "\n")


def make_schema(codec: Codec, found: dict[str, Schema]) -> Schema:
    """Make the schema of a codec's JSON; ``found`` gets the ``$defs`` it refers to, by class name."""
    match codec:
        case RecordCodec():
            name = codec.kind.__name__
            if name not in found:
                found[name] = {}
                found[name].update(_describe_record(codec, found))
            return {"$ref": f"#/$defs/{name}"}
        case RowsCodec():
            return {"type": "array", "items": make_schema(codec.row, found)}
        case OrNull():
            return {"anyOf": [make_schema(codec.inner, found), {"type": "null"}]}
        case SharedValue():
            position = {"type": "integer", "minimum": 0, "description": f"Position in tables/{codec.table}."}
            return {"anyOf": [position, make_schema(codec.inner, found)]}
        case Array() | Fixed() | Table() | Tagged():
            return _describe_parts_of(codec, found)
        case StandInCodec():
            return make_schema(codec.inner, found)
    return _describe_plain(codec)


def _describe_parts_of(codec: Array | Fixed | Table | Tagged, found: dict[str, Schema]) -> Schema:
    match codec:
        case Array():
            return {"type": "array", "items": make_schema(codec.item, found)}
        case Fixed():
            items = [make_schema(item, found) for item in codec.items]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        case Table():
            return {"type": "object", "additionalProperties": make_schema(codec.item, found)}
        case Tagged():
            return {"anyOf": [{"type": "string"}, *_describe_kinds(codec, found)]}


def _describe_kinds(codec: Tagged, found: dict[str, Schema]) -> Iterator[Schema]:
    """An object with the only property of each kind."""
    for tag, (_, inner) in codec.kinds.items():
        yield {"type": "object", "properties": {tag: make_schema(inner, found)}, "required": [tag]}


def _describe_plain(codec: Codec) -> Schema:
    match codec:
        case NameIn() | Text() | PathText():
            return {"type": "string"}
        case Flag():
            return {"type": "boolean"}
        case Position():
            return {"type": "integer", "minimum": 0}
        case Whole():
            limits = {"minimum": codec.minimum, "maximum": codec.maximum}
            return {"type": "integer", **{key: limit for key, limit in limits.items() if abs(limit) < 1 << 53}}
        case Number():
            limits = {"minimum": codec.minimum, "maximum": codec.maximum}
            kind = "number" if codec.null is None else ["number", "null"]
            return {"type": kind, **{key: limit for key, limit in limits.items() if abs(limit) < float("inf")}}
        case Cell():
            return {"type": ["string", "number"]}
        case Spelled() if len(codec.texts) > _MOST_LISTED:
            return {"type": "string"}
        case Spelled():
            return {"enum": list(codec.texts.values())}
    raise TypeError(codec)


def _describe_record(codec: RecordCodec, found: dict[str, Schema]) -> Schema:
    document = inspect.getdoc(codec.kind) or ""
    summary = _write_sentence(document.partition("\n\nAttributes:")[0].replace("\n\n", " ").replace("\n", " "))
    return {
        "type": "object",
        "description": summary,
        **_describe_parts(codec.properties, found, _read_comments(codec.kind)),
    }


def _describe_parts(parts: Iterable[Property | InnerObject], found: dict[str, Schema], words: dict[str, str]) -> Schema:
    """Properties of an object, those of what is spread among them included."""
    required: list[str] = []
    properties: dict[str, Schema] = {}
    for one in parts:
        if isinstance(one, InnerObject):
            inner = _describe_parts(one.parts, found, words)
            is_known = not all(isinstance(part.codec, OrNull) for part in one.parts if part.is_read)
            properties[one.key] = {"type": "object" if is_known else ["object", "null"], **inner}
            required.extend([one.key] if any(part.is_required and part.is_read for part in one.parts) else ())
        elif one.key:
            described = make_schema(one.codec, found)
            text = words.get(one.name or one.key, "Computed from the rest; not read back." if one.make else "")
            properties[one.key] = {**described, "description": text} if text else described
            required.extend([one.key] if one.is_required and one.is_read else ())
        else:
            spread = _find_record(one.codec)
            said = _read_comments(spread.kind)
            inner = _describe_parts(spread.properties, found, said)
            if one.sign:
                inner["properties"][one.sign] = {
                    "anyOf": [inner["properties"][one.sign], {"type": "null"}],
                    "description": inner["properties"][one.sign].pop("description"),
                }
            properties.update(inner["properties"])
            required.extend(inner["required"] if one.is_read and one.is_required else ())
    return {"required": required, "properties": properties}


def _find_record(codec: Codec) -> RecordCodec:
    while not isinstance(codec, RecordCodec):
        assert isinstance(codec, OrNull | StandInCodec)
        codec = codec.inner
    return codec


def _read_comments(kind: type) -> dict[str, str]:
    """Read the description of each field of a record and of its bases: the comment behind or above it, or its part of the docstring."""
    words: dict[str, str] = {}
    for one in reversed(kind.__mro__[: kind.__mro__.index(Struct)]):
        above: list[str] = []
        for line in inspect.getsource(one).splitlines():
            met = _FIELD.match(line)
            if met and (above or met[2]):
                words[met[1]] = " ".join([*above, met[2] or ""]).strip()
            comment = _COMMENT.match(line)
            above = [*above, comment[1]] if comment else []
        words.update(_ATTRIBUTE.findall(inspect.getdoc(one) or ""))
    return {name: _write_sentence(text) for name, text in words.items()}


def _write_sentence(text: str) -> str:
    """Rewrite a comment for readers of JSON who do not know Python."""
    text = re.sub(r"^\w+\[[\w, ]+\](?: \([^)]*\))?,? ", "", text)
    text = re.sub(r":\w+:`[~.]*(?:[\w.]+\.)?(\w+)`", r"\1", text).replace("``", "").replace("None", "null")
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith((".", "?")) else ".")
