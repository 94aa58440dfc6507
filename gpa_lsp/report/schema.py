"""The JSON format of reports: its name, and its schema, which is also its documentation."""

import importlib.resources
import json
from typing import Any

SCHEMA_NAME = "gpa-lsp/report/1"
"""The value of a report's first property."""


def read_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the format; every property is described there, with its unit.

    The part under ``analyses`` is a file of its own, written by the tests from the dataclasses it describes.

    >>> read_schema()["properties"]["schema"]["const"] == SCHEMA_NAME
    True
    """
    folder = importlib.resources.files(__package__)
    schema: dict[str, Any] = json.loads(folder.joinpath("report_schema.json").read_text(encoding="utf-8"))
    records = json.loads(folder.joinpath("analyses_schema.json").read_text(encoding="utf-8"))
    schema["$defs"].update(records["$defs"])
    return schema
