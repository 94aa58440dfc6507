"""The JSON format of reports: its name, and its schema, which is also its documentation."""

import importlib.resources
import json
from typing import Any

SCHEMA_NAME = "gpa-lsp/report/1"
"""The value of a report's first property."""


def read_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the format; every property is described there, with its unit.

    >>> read_schema()["properties"]["schema"]["const"] == SCHEMA_NAME
    True
    """
    text = importlib.resources.files(__package__).joinpath("report_schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
