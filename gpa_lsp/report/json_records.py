"""Dataclasses as JSON objects and back, by their type hints: for parts of a report that are a closed vocabulary.

A field is a property of its own name; an enum is its value, a tuple an array, None null. A number that is not finite becomes null, and null
where a number is asked for is read as not-a-number: unknown. Properties nobody knows are passed over, and a missing one takes its field's
default, so that older and newer reports can be read.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Any, TypeVar

from gpa_lsp.report.json_cursor import MAX_COUNT, JsonCursor

Record = TypeVar("Record")
Reader = Callable[[JsonCursor], Any]


def make_record(value: Any) -> Any:
    """A dataclass, and what it holds, as JSON values.

    Raises:
        TypeError: it holds something that is no record, enum, tuple or plain value.

    >>> from gpa_lsp.analyses.answers import Bar
    >>> make_record(Bar(label="L2", ratio=0.5))
    {'label': 'L2', 'ratio': 0.5, 'ceiling_ratio': 1.0, 'words': ''}
    """
    if value is None or isinstance(value, bool | int) or type(value) is str:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [make_record(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {name: make_record(getattr(value, name)) for name in list_record_fields(type(value))}
    raise TypeError(f"{type(value).__name__} is no part of a record")


def read_record(at: JsonCursor, kind: type[Record]) -> Record:
    """A dataclass back from its JSON object.

    Raises:
        InputError: a property is missing or of another type.
    """
    found: Record = _find_reader(kind)(at)
    return found


def list_record_fields(kind: Any) -> dict[str, Any]:
    """Name → type of the fields of a dataclass that are written: those that count when it is compared."""
    if kind not in _FIELDS:
        hints = typing.get_type_hints(kind)
        _FIELDS[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.compare}
    return _FIELDS[kind]


_FIELDS: dict[Any, dict[str, Any]] = {}
_READERS: dict[Any, Reader] = {}


def _find_reader(hint: Any) -> Reader:
    if hint not in _READERS:
        _READERS[hint] = _make_reader(hint)
    return _READERS[hint]


def _make_reader(hint: Any) -> Reader:
    """What reads a value of this type."""
    plain: dict[Any, Reader] = {
        bool: JsonCursor.flag,
        str: JsonCursor.text,
        float: _read_float,
        int: lambda at: at.count(minimum=-MAX_COUNT),
    }
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in plain:
        return plain[hint]
    if origin in (typing.Union, types.UnionType):
        return _read_union(tuple(part for part in parts if part is not type(None)), is_optional=type(None) in parts)
    if origin is tuple:
        return _read_tuple(parts)
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return lambda at: _read_number_of(at, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda at: at.choice(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _read_dataclass(hint)
    raise TypeError(f"{hint} is no part of a record")


def _read_number_of(at: JsonCursor, kind: type[IntEnum]) -> IntEnum:
    number = at.count()
    if number not in [member.value for member in kind]:
        at.fail(f"is {number}, which stands for nothing here")
    return kind(number)


def _read_float(at: JsonCursor) -> float:
    found = at.maybe(JsonCursor.number)
    return math.nan if found is None else found


def _read_union(parts: tuple[Any, ...], *, is_optional: bool) -> Reader:
    """One type or nothing; or a cell of a table, which is a text or a number."""
    if len(parts) == 1:
        read = JsonCursor.number if parts[0] is float else _find_reader(parts[0])
    elif set(parts) == {str, int, float}:
        read = JsonCursor.scalar
    else:
        raise TypeError(f"no reader tells {parts} apart")
    return (lambda at: at.maybe(read)) if is_optional else read


def _read_tuple(parts: tuple[Any, ...]) -> Reader:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return lambda at: tuple(_find_reader(parts[0])(item) for item in at.items())

    def read_fixed(at: JsonCursor) -> tuple[Any, ...]:
        items = list(at.items())
        if len(items) != len(parts):
            at.fail(f"has {len(items)} elements, not {len(parts)}")
        return tuple(_find_reader(part)(item) for part, item in zip(parts, items, strict=True))

    return read_fixed


def _read_dataclass(kind: type) -> Reader:
    hints = list_record_fields(kind)
    optional = {field.name for field in dataclasses.fields(kind) if field.default is not dataclasses.MISSING}

    def read(at: JsonCursor) -> Any:
        values = {}
        for name, hint in hints.items():
            if name in optional and not at.has(name):
                continue
            values[name] = _find_reader(hint)(at.at(name))
        return kind(**values)

    return read
