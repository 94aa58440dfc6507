"""Small JSON files that people and other programs write: each wrong value is an error naming its JSON pointer (RFC 6901).

:meth:`Element.read` reads a value as a type: the record that holds what was read says what may stand in the file.
"""

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import fields

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import open_regular_file
from gpa_lsp.foundation.numbers import format_bytes, format_file_value

_SPECIAL_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_MAX_INTEGER = (1 << 63) - 1
_MAX_METRIC_INTEGER = (1 << 64) - 1
_MAX_NAME = 200  # characters of a member's name in a pointer

# A whole number written in hexadecimal, as a text with 0x
Address = Annotated[int, re.compile(r"0x[0-9a-fA-F]{1,16}")]
# (major, minor) written as "8.0"
Capability = Annotated[tuple[int, int], re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")]


class Element(Struct, frozen=True):
    """A JSON value and its place."""

    value: Any  # as ``json`` parsed it
    remedy: str  # what to do about what is wrong
    pointer: str = ""  # JSON pointer from the root; empty for the root itself

    def fail(self, message: str) -> InputError:
        """The error to raise about this value."""
        return InputError(message, place=self.pointer or "the whole document", remedy=self.remedy)

    def at(self, key: str | int, value: Any) -> "Element":
        """A value inside this one."""
        name = str(key)[:_MAX_NAME].replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode()
        return Element(value, self.remedy, f"{self.pointer}/{name}")

    def read_members(self, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, "Element"]:
        """Members of an object with a fixed set of names; ``comment`` is allowed everywhere and left out.

        Raises:
            InputError: not an object, a member that is not known, or one that is missing.
        """
        members = self.read_map()
        members.pop("comment", None)
        for name in members:
            if name not in known:
                raise members[name].fail("is not a member this format has")
        for name in required:
            if name not in members:
                raise self.fail(f"lacks the member {name!r}")
        return members

    def read_map(self) -> dict[str, "Element"]:
        """Members of an object whose names are data."""
        if not isinstance(self.value, dict):
            raise self.fail(f"is {_name_type(self.value)}, not an object")
        return {name: self.at(name, value) for name, value in self.value.items()}

    def read_items(self, count: int | None = None) -> list["Element"]:
        """Items of an array; exactly ``count`` of them if that is given."""
        if not isinstance(self.value, list):
            raise self.fail(f"is {_name_type(self.value)}, not an array")
        if count is not None and len(self.value) != count:
            raise self.fail(f"has {len(self.value)} items, not {count}")
        return [self.at(index, value) for index, value in enumerate(self.value)]

    def read_text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.fail(f"is {_name_type(self.value)}, not a string")
        return self.check_text(self.value)

    def check_text(self, text: str) -> str:
        """The text itself, unless it holds half a surrogate pair, which no file can be written with."""
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise self.fail("holds half a surrogate pair") from None
        return text

    def read_choice(self, choices: Iterable[str]) -> str:
        """A string out of a fixed set."""
        text = self.read_text()
        if text not in choices:
            raise self.fail(f"is {text!r}, not one of {', '.join(choices)}")
        return text

    def read_flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.fail(f"is {_name_type(self.value)}, not true or false")
        return self.value

    def read_integer(self, maximum: int = _MAX_INTEGER, minimum: int = 0) -> int:
        """A whole number; 16.0 is one too, as in JSON Schema."""
        is_whole = isinstance(self.value, float) and self.value.is_integer()
        if not (isinstance(self.value, int) or is_whole) or isinstance(self.value, bool):
            raise self.fail(f"is {_name_type(self.value)}, not an integer")
        if not minimum <= self.value <= maximum:
            raise self.fail(f"is not between {minimum} and {maximum}")
        return int(self.value)

    def read_number(self) -> int | float:
        """A number; ``{"number": "nan"}`` and its like included."""
        if isinstance(self.value, dict):
            return _SPECIAL_NUMBERS[self.read_members(("number",), ("number",))["number"].read_choice(_SPECIAL_NUMBERS)]
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.fail(f"is {_name_type(self.value)}, not a number")
        return self.value

    def read(self, kind: Any) -> Any:
        """The value as a type.

        Args:
            kind: text, flag, number or enumeration; a record, a tuple, a mapping or a union of such; annotated by :class:`msgspec.Meta` with the
                least and the most, or one of :data:`Address` and :data:`Capability`. ``None`` in a union is what a missing member stands for.

        Raises:
            InputError: it is not of that type.
        """
        if (simple := _SIMPLE.get(kind)) is not None:
            return simple(self)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._read_annotated(*arguments)
        if origin is Literal:
            return self.read_choice(arguments)
        if origin in (Union, UnionType):
            members = [member for member in arguments if member is not NoneType]
            is_text = str in members and isinstance(self.value, str)
            return self.read_text() if is_text else self.read(members[0])
        if origin is tuple:
            is_open = arguments[-1] is ...
            items = self.read_items(None if is_open else len(arguments))
            return tuple(item.read(arguments[0 if is_open else index]) for index, item in enumerate(items))
        if origin is not None:
            return {item.check_text(name): item.read(arguments[1]) for name, item in self.read_map().items()}
        if issubclass(kind, Enum):
            return kind(self.read_choice([member.value for member in kind]))
        return kind(**self.read_fields(kind))

    def read_fields(
        self, kind: type[Struct], without: Iterable[str] = (), optional: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The members of an object that are fields of a record, by name; those without a default must be there.

        Args:
            without: fields that the object does not have.
            optional: fields that need not be there although they have no default.
        """
        known = {name: found for name, found in _list_fields(kind).items() if name not in without}
        required = [name for name, (_, is_required) in known.items() if is_required and name not in optional]
        members = self.read_members(known, required)
        return {name: member.read(known[name][0]) for name, member in members.items()}

    def _read_annotated(self, kind: Any, mark: Any) -> Any:
        if isinstance(mark, Meta) and kind is int:
            return self.read_integer(int(mark.le or _MAX_INTEGER), int(mark.ge or 0))
        if isinstance(mark, Meta):
            number = self.read_number()
            least, most = (mark.ge if mark.gt is None else mark.gt) or 0, mark.le or 0
            if least <= number <= most and number != mark.gt:
                return float(number)
            least_words = f"above {least} and at most" if mark.gt is not None else f"between {least} and"
            raise self.fail(f"is not {least_words} {format_file_value(most)}")
        text = self.read_text()
        match = mark.fullmatch(text)
        if kind is int and match is None:
            raise self.fail(f"is {text!r}, not a hexadecimal address such as '0x7f00'")
        if match is None:
            raise self.fail(f"is {text!r}, not a compute capability such as '8.0'")
        return int(text, 16) if kind is int else (int(match[1]), int(match[2]))


def _read_metric_number(element: Element) -> int | float:
    number = element.read_number()
    if isinstance(number, int) and abs(number) > _MAX_METRIC_INTEGER:
        raise element.fail("is an integer of more than 64 bits")
    return number


_SIMPLE: Mapping[Any, Any] = {
    str: Element.read_text,
    bool: Element.read_flag,
    int: Element.read_integer,
    float: lambda element: float(_read_metric_number(element)),
    int | float: _read_metric_number,
    int | float | str: lambda element: (
        element.read_text() if isinstance(element.value, str) else _read_metric_number(element)
    ),
}


@cache
def _list_fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type of each field of a record, and whether it has no default."""
    return {field.name: (field.type, field.required) for field in fields(kind)}


def _name_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "an array", str: "a string", int: "an integer", float: "a number"}
    return names.get(type(value), type(value).__name__)


def read_json(path: Path, *, most_bytes: int, what: str, remedy: str, keeps_null: bool = True) -> Element:
    """Parse a file as one JSON object.

    Args:
        most_bytes: of the file.
        what: such files are, for messages.
        remedy: what to do about what is wrong in it.
        keeps_null: members that are null are not the same as absent ones.

    Raises:
        InputError: not a file, too large, not UTF-8, not JSON, nested too deeply, with a member twice or a number that is none.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        if size_bytes > most_bytes:
            message = f"is larger than {format_bytes(most_bytes)}, the limit for {what}"
            raise InputError(message, path=path, remedy="split it, or name another file")
        data = stream.read(size_bytes)

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the member {repeated!r} occurs twice in one object")
        return members if keeps_null else {name: value for name, value in pairs if value is not None}

    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=build, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", place=f"offset {error.start:#x}", remedy="save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"is not JSON ({error.msg})", place=place, remedy=remedy) from None
    except RecursionError:
        raise InputError("is nested too deeply for this format", remedy=remedy) from None
    except ValueError as error:
        raise InputError(f"is not JSON this format allows ({error})", remedy=remedy) from None
    root = Element(value, remedy)
    root.read_map()
    return root


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; where one may be, write {{'number': 'nan'}} and its like")
