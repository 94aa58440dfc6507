"""Tools of tests of JSON reports: writing, comparing, and the schema at its strictest."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct

from gpa_lsp.report.model import Report
from gpa_lsp.report.saved.store import write_report
from tests.report_file.record_schema import read_schema


def dump(report: Report, **options: Any) -> Any:
    stream = io.StringIO()
    write_report(report, stream, **options)
    return json.loads(stream.getvalue(), parse_constant=lambda name: pytest.fail(f"{name} was written"))


def expand(value: Any) -> Any:
    """A value in which instruction tables are written out per row, so that their numbering does not matter."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if not isinstance(value, Struct):
        if isinstance(value, tuple):
            return tuple(expand(item) for item in value)
        return list(value.items()) if isinstance(value, dict) else value
    plain = {name: getattr(value, name) for name in value.__struct_fields__}
    if "chain_index" in plain:
        plain["functions"] = [value.functions[index] for index in value.function_index]
        plain["chains"] = [value.chains[index] if index >= 0 else None for index in value.chain_index]
        del plain["function_index"], plain["chain_index"]
    return {name: expand(item) for name, item in plain.items()}


def strict_schema() -> dict[str, Any]:
    """The schema with every property that it does not describe forbidden: what the writer must keep to."""
    schema = read_schema()
    for part in schema["$defs"].values():
        for inner in [part, *part.get("properties", {}).values()]:
            if "properties" in inner:
                inner["additionalProperties"] = False
    return schema


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def change(document: Any, pointer: str, value: Any) -> Any:
    """Put a value in the place an RFC 6901 pointer names; ``...`` takes it away."""
    *way, last = [int(step) if step.isdigit() else step for step in pointer.split("/")[1:]]
    place = document
    for step in way:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document
