"""Typed access to parsed JSON that knows where it is: every wrong value is an error naming its JSON pointer (RFC 6901)."""

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_CAPABILITY = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")
_SPECIAL_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_MAX_INTEGER = (1 << 63) - 1
_MAX_METRIC_INTEGER = (1 << 64) - 1
_REMEDY = "compare it with native_schema.json in the package gpa_lsp.profile"


class Element(Struct, frozen=True):
    """A JSON value and its place."""

    value: Any  # as ``json`` parsed it
    pointer: str = ""  # JSON pointer from the root; empty for the root itself

    def fail(self, message: str) -> InputError:
        """The error to raise about this value."""
        return InputError(message, place=self.pointer or "the whole document", remedy=_REMEDY)

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
        return {name: Element(value, f"{self.pointer}/{_escape(name)}") for name, value in self.value.items()}

    def read_items(self, count: int | None = None) -> list["Element"]:
        """Items of an array; exactly ``count`` of them if that is given."""
        if not isinstance(self.value, list):
            raise self.fail(f"is {_name_type(self.value)}, not an array")
        if count is not None and len(self.value) != count:
            raise self.fail(f"has {len(self.value)} items, not {count}")
        return [Element(value, f"{self.pointer}/{index}") for index, value in enumerate(self.value)]

    def read_text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.fail(f"is {_name_type(self.value)}, not a string")
        return check_text(self.value, self)

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

    def read_integer(self, maximum: int = _MAX_INTEGER) -> int:
        """An integer of at least 0; 16.0 is one too, as in JSON Schema."""
        is_whole = isinstance(self.value, float) and self.value.is_integer()
        if not (isinstance(self.value, int) or is_whole) or isinstance(self.value, bool):
            raise self.fail(f"is {_name_type(self.value)}, not an integer")
        if not 0 <= self.value <= maximum:
            raise self.fail(f"is not between 0 and {maximum}")
        return int(self.value)

    def read_number(self) -> int | float:
        """A number; ``{"number": "nan"}`` and its like included."""
        if isinstance(self.value, dict):
            return _SPECIAL_NUMBERS[self.read_members(("number",), ("number",))["number"].read_choice(_SPECIAL_NUMBERS)]
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.fail(f"is {_name_type(self.value)}, not a number")
        if isinstance(self.value, int) and abs(self.value) > _MAX_METRIC_INTEGER:
            raise self.fail("is an integer of more than 64 bits")
        return self.value

    def read_float(self) -> float:
        """A number, as a float."""
        return float(self.read_number())

    def read_scalar(self) -> int | float | str:
        """A number or a string."""
        return self.read_text() if isinstance(self.value, str) else self.read_number()

    def read_address(self) -> int:
        """An absolute address, written in hexadecimal with 0x."""
        text = self.read_text()
        if _ADDRESS.fullmatch(text) is None:
            raise self.fail(f"is {text!r}, not a hexadecimal address such as '0x7f00'")
        return int(text, 16)

    def read_capability(self) -> tuple[int, int]:
        """A compute capability such as "8.0"."""
        match = _CAPABILITY.fullmatch(self.read_text())
        if match is None:
            raise self.fail(f"is {self.value!r}, not a compute capability such as '8.0'")
        return int(match[1]), int(match[2])


def check_text(text: str, place: Element) -> str:
    """The text itself, unless it holds half a surrogate pair, which no file can be written with.

    Raises:
        InputError: it does.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise place.fail("holds half a surrogate pair") from None
    return text


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode("ascii")


def _name_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "an array", str: "a string", int: "an integer", float: "a number"}
    return names.get(type(value), type(value).__name__)
