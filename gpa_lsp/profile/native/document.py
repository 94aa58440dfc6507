"""A JSON file as a tree of :class:`Element`, within bounds."""

import json
from pathlib import Path
from typing import Any

from gpa_lsp.basis.errors import InputError, UnsupportedInputError
from gpa_lsp.basis.numbers import format_bytes
from gpa_lsp.basis.regular_files import open_regular_file
from gpa_lsp.profile.native import FORMAT, FORMAT_FAMILY, VERSIONS
from gpa_lsp.profile.native.elements import Element

_MAX_BYTES = 128 << 20
"""A parsed document takes some ten times its text in memory."""


def read_document(path: Path) -> Element:
    """Parse a file and check that it is of a version of this format that is read.

    Raises:
        InputError: not JSON, not UTF-8, too large, nested too deeply, or not this format; names line and column.
        UnsupportedInputError: another version of this format.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        if size_bytes > _MAX_BYTES:
            message = f"is larger than {format_bytes(_MAX_BYTES)}, the limit for profiles in JSON"
            raise InputError(message, path=path, remedy="split it into several profiles")
        data = stream.read(size_bytes)
    root = Element(_parse(data))
    if not isinstance(root.value, dict):
        raise root.fail("is not a JSON object")
    name = root.value.get("format")
    if isinstance(name, str) and name in VERSIONS:
        return root
    if isinstance(name, str) and name.startswith(FORMAT_FAMILY):
        message = f"is of format {name[:40]!r}; this version reads {' and '.join(map(repr, VERSIONS))}"
        raise UnsupportedInputError(message, place="/format", remedy="update gpa-lsp or write the profile again")
    raise Element(name, "/format").fail(f"does not say {FORMAT!r}")


def _parse(data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", place=f"offset {error.start:#x}", remedy="save it as UTF-8") from None
    try:
        return json.loads(text, object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"is not JSON ({error.msg})", place=place, remedy="correct it there or write it again"
        ) from None
    except RecursionError:
        raise InputError("is nested too deeply for this format", remedy="write it again") from None
    except ValueError as error:
        raise InputError(f"is not JSON this format allows ({error})", remedy="correct it or write it again") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {repeated!r} occurs twice in one object")
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number; write {{'number': 'nan'}} and its like")
