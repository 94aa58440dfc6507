"""Reading JSON that may be wrong: a place in a document that checks what is asked of it and names itself (RFC 6901) when it is not there."""

import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from gpa_lsp.errors import InputError

MAX_COUNT = (1 << 63) - 1
"""Largest count that fits the columns."""

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


class JsonCursor:
    """A value and the way to it.

    Args:
        value: as ``json.loads`` gives it.
        path: the file, for errors.
        parent: the value this one stands in; None for the whole document.
        key: property name or position in the parent.
        remedy: for errors; taken from the parent when empty.
    """

    __slots__ = ("_key", "_parent", "_path", "_remedy", "_value")
    _remedy: str

    def __init__(
        self,
        value: Any,
        *,
        path: Path | None,
        parent: "JsonCursor | None" = None,
        key: str | int = "",
        remedy: str = "",
    ) -> None:
        self._value = value
        self._path = path
        self._parent = parent
        self._key = key
        self._remedy = remedy or (parent._remedy if parent is not None else "")

    @property
    def pointer(self) -> str:
        """RFC 6901 pointer of this value; empty for the whole document."""
        if self._parent is None:
            return ""
        return f"{self._parent.pointer}/{str(self._key).replace('~', '~0').replace('/', '~1')}"

    def fail(self, message: str) -> NoReturn:
        """Raise the error for this place.

        Raises:
            InputError: always.
        """
        raise InputError(message, path=self._path, place=self.pointer or None, remedy=self._remedy)

    def at(self, key: str) -> "JsonCursor":
        """A property that must be there."""
        if not isinstance(self._value, dict):
            self.fail(f"is {_name(self._value)}, not an object")
        if key not in self._value:
            self.fail(f"lacks the property {key!r}")
        return JsonCursor(self._value[key], path=self._path, parent=self, key=key)

    def find(self, key: str) -> "JsonCursor":
        """A property that older writers do not know; null where it is missing."""
        if isinstance(self._value, dict) and key not in self._value:
            return JsonCursor(None, path=self._path, parent=self, key=key)
        return self.at(key)

    def has(self, key: str) -> bool:
        """Whether it is an object with this property."""
        return isinstance(self._value, dict) and key in self._value

    def items(self) -> Iterator["JsonCursor"]:
        """The elements of an array."""
        if not isinstance(self._value, list):
            self.fail(f"is {_name(self._value)}, not an array")
        for position, value in enumerate(self._value):
            yield JsonCursor(value, path=self._path, parent=self, key=position)

    def column(self, key: str) -> list[Any]:
        """One property of every object in an array, unchecked: a fast way for long arrays, whose values are then checked together."""
        if not isinstance(self._value, list):
            self.fail(f"is {_name(self._value)}, not an array")
        try:
            return [row[key] for row in self._value]
        except (KeyError, TypeError, IndexError):
            return [row.at(key)._value for row in self.items()]  # says which one it is

    def entries(self) -> Iterator[tuple[str, "JsonCursor"]]:
        """The properties of an object used as a table."""
        if not isinstance(self._value, dict):
            self.fail(f"is {_name(self._value)}, not an object")
        for key, value in self._value.items():
            yield key, JsonCursor(value, path=self._path, parent=self, key=key)

    def text(self) -> str:
        """A string."""
        if not isinstance(self._value, str):
            self.fail(f"is {_name(self._value)}, not a string")
        return self._value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self._value, bool):
            self.fail(f"is {_name(self._value)}, not true or false")
        return self._value

    def count(self, *, minimum: int = 0, maximum: int = MAX_COUNT) -> int:
        """A whole number in a range; ``3.0`` counts as 3, as in JSON Schema."""
        value = self._value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"is {_name(self._value)}, not a whole number")
        if not minimum <= value <= maximum:
            self.fail(f"is {value}, outside {minimum} to {maximum}")
        return value

    def number(self) -> float:
        """A finite number."""
        if isinstance(self._value, bool) or not isinstance(self._value, int | float):
            self.fail(f"is {_name(self._value)}, not a number")
        try:
            value = float(self._value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            self.fail("is too large a number")
        return value

    def scalar(self) -> str | int | float:
        """A text, a whole number or a finite number."""
        if isinstance(self._value, str):
            return self._value
        if isinstance(self._value, int) and not isinstance(self._value, bool) and abs(self._value) <= MAX_COUNT:
            return self._value
        return self.number()

    def positive(self) -> float:
        """A finite number that is not negative."""
        value = self.number()
        if value < 0:
            self.fail("is negative")
        return value

    def ratio(self) -> float:
        """A number from 0 to 1."""
        value = self.number()
        if not 0 <= value <= 1:
            self.fail(f"is {value:g}, outside 0 to 1")
        return value

    def names(self, known: Mapping[str, T]) -> T:
        """What a name stands for."""
        text = self.text()
        if text not in known:
            self.fail(f"is {text[:40]!r}, not one of {', '.join(name[:40] for name in known)}")
        return known[text]

    def choice(self, kind: type[E]) -> E:
        """A member of an enum, by its value."""
        text = self.text()
        found = next((member for member in kind if member.value == text), None)
        if found is None:
            self.fail(f"is {text[:40]!r}, not one of {', '.join(str(member.value) for member in kind)}")
        return found

    def maybe(self, read: "Callable[[JsonCursor], T]") -> T | None:
        """None for null, else what ``read`` makes of it."""
        return None if self._value is None else read(self)


def _name(value: Any) -> str:
    """What kind of JSON value this is."""
    if value is None:
        return "null"
    for kind, name in ((bool, "a boolean"), (str, "a string"), (list, "an array"), (dict, "an object")):
        if isinstance(value, kind):
            return name
    return "a number"
