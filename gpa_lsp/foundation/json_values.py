"""Plain values as JSON and back: one class per type of value, which writes it, reads it and says what is wrong with it.

Reading raises a :class:`MisfitError`, which collects the way to the wrong value while it leaves the values around it: what is right costs nothing.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.foundation.numbers import format_file_value
from gpa_lsp.foundation.prose import Sentence

MAX_COUNT = (1 << 63) - 1  # Largest whole number that is read: what fits a column

_LARGEST_EXACT = 1 << 53
_SHOWN_CHARACTERS = 40

# What values further inside are held to: tables, and the numbers that a :attr:`Layout.scoped` field gave; of the kernel that is being read
InScope = dict[str, Any]


class MisfitError(Exception):
    """A value that is not what it should be.

    Args:
        message: what is wrong, without the place.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.way: list[str | int] = []  # Properties and positions that lead to it, innermost first

    def within(self, *keys: str | int) -> "MisfitError":
        """The same, seen from further outside."""
        self.way.extend(keys)
        return self

    @property
    def pointer(self) -> str:
        """RFC 6901 pointer to the value; empty for the whole document."""
        return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in reversed(self.way))


class Writing:
    """The state of a document that is being written.

    Args:
        is_expanded: shared values are written in place, not as positions in tables.
    """

    def __init__(self, *, is_expanded: bool = True) -> None:
        self.is_expanded = is_expanded
        self.tables: dict[str, list[Any]] = {}  # Shared values as JSON, by table
        self.kernel: Any = None  # What derived properties are derived from, beside their own object
        self._positions: dict[str, dict[Any, int]] = {}

        self._sentences: dict[str, Sentence | None] = {}

    def note(self, sentence: Sentence) -> None:
        """Keep the values of a sentence whose text is written. Where another with the same text has other values, neither's are kept."""
        if sentence.has_values:
            known = self._sentences.setdefault(sentence, sentence)
            if known is not None and known.parts != sentence.parts:
                self._sentences[sentence] = None

    @property
    def sentences(self) -> list[Sentence]:
        """The sentences that were noted, ordered by text."""
        return [sentence for _, sentence in sorted(self._sentences.items()) if sentence is not None]

    def share(self, table: str, value: Any, codec: "Codec") -> int:
        """The position of a value in its table."""
        positions = self._positions.setdefault(table, {})
        position = positions.get(value)
        if position is None:
            written = codec.write(value, self)
            position = positions[value] = len(positions)
            self.tables.setdefault(table, []).append(written)
        return position


class Lines:
    """An array that is written as it goes, an element a line.

    Args:
        rows: its elements as JSON values.
        are_open: they are objects that get a line for each property, and hold further :class:`Lines`.
    """

    def __init__(self, rows: Iterable[Any], *, are_open: bool = False) -> None:
        self.rows, self.are_open = rows, are_open


class Codec:
    """Writes and reads the values of one type."""

    def write(self, value: Any, to: Writing) -> Any:
        """Turn a value into one that ``json`` takes."""
        raise NotImplementedError

    def read(self, value: Any, scope: InScope) -> Any:
        """Turn a value that ``json`` gave into a value of the type. Raises :class:`MisfitError`."""
        raise NotImplementedError

    def write_many(self, values: Sequence[Any], to: Writing) -> Sequence[Any]:
        """A column of values."""
        return [self.write(value, to) for value in values]

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        """A column of values. Codecs that can look at a column as a whole do, and come here where something in it is wrong, to say what."""
        found: list[Any] = []
        try:
            for value in values:
                found.append(self.read(value, scope))  # noqa: PERF401 - how many were right is where it is wrong
        except MisfitError as wrong:
            wrong.within(len(found))
            raise
        return found


class _AsItIs(Codec):
    """Values that JSON has."""

    def write(self, value: Any, to: Writing) -> Any:
        return value

    def write_many(self, values: Sequence[Any], to: Writing) -> Sequence[Any]:
        return values


class Text(_AsItIs):
    """A text."""

    def read(self, value: Any, scope: InScope) -> str:
        if not isinstance(value, str):
            raise MisfitError(f"is {name_kind(value)}, not a string")
        return value

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        return values if set(map(type, values)) <= {str} else super().read_many(values, scope)


class SentenceText(Text):
    """A sentence as its text. Its values stand by the text in a table of the document, where it has one."""

    table = "sentences"

    def write(self, value: Any, to: Writing) -> str:
        if isinstance(value, Sentence):  # packages of others may give plain texts
            to.note(value)
        return str(value)

    def read(self, value: Any, scope: InScope) -> Sentence:
        text = super().read(value, scope)
        known = scope.get(self.table, {}).get(text)
        return Sentence((text,)) if known is None else known

    write_many, read_many = Codec.write_many, Codec.read_many


class Tagged(Codec):
    """A text, or one of several records, which then is the only property of an object, under the name of its kind."""

    def __init__(self, kinds: Mapping[type, Codec]) -> None:
        self.kinds = {kind.__name__.lower(): (kind, codec) for kind, codec in kinds.items()}

    def write(self, value: Any, to: Writing) -> Any:
        if isinstance(value, str):
            return value
        tag = type(value).__name__.lower()
        return {tag: self.kinds[tag][1].write(value, to)}

    def read(self, value: Any, scope: InScope) -> Any:
        if isinstance(value, str):
            return value
        for tag in hold_object(value):
            if tag in self.kinds:
                return read_part(self.kinds[tag][1], value, tag, scope)
        raise MisfitError(f"has none of the properties {', '.join(self.kinds)}")


class Flag(_AsItIs):
    """True or false."""

    def read(self, value: Any, scope: InScope) -> bool:
        if not isinstance(value, bool):
            raise MisfitError(f"is {name_kind(value)}, not true or false")
        return value


class Whole(_AsItIs):
    """A whole number in a range; ``3.0`` counts as 3, as in JSON Schema."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum, self.maximum = minimum, maximum

    def read(self, value: Any, scope: InScope) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise MisfitError(f"is {name_kind(value)}, not a whole number")
        if not self.minimum <= value <= self.maximum:
            raise MisfitError(f"is {value}, outside {self.minimum} to {self.maximum}")
        return value

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        if set(map(type, values)) == {int} and self.minimum <= min(values) and max(values) <= self.maximum:
            return values
        return super().read_many(values, scope)


class Number(Codec):
    """A finite number in a range; what rounding carried beyond its ends is written as the end, and whole ones without a decimal point.

    Args:
        minimum: with one, what is no number is written as it; without, as null.
        maximum: without one, infinity is written as null.
        null: what null stands for; None where it is refused.
    """

    def __init__(self, minimum: float = -math.inf, maximum: float = math.inf, *, null: float | None = None) -> None:
        self.minimum, self.maximum, self.null = minimum, maximum, null
        self._is_amount = math.isfinite(minimum)

    def write(self, value: Any, to: Writing) -> Any:
        if self._is_amount:
            value = min(max(self.minimum, value), self.maximum)
            if value < _LARGEST_EXACT and float(value).is_integer():
                return int(value)
        return float(value) if math.isfinite(value) else None

    def read(self, value: Any, scope: InScope) -> float:
        if value is None and self.null is not None:
            return self.null
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MisfitError(f"is {name_kind(value)}, not a number")
        if not abs(value) <= sys.float_info.max:
            raise MisfitError("is too large a number")
        if not self.minimum <= value <= self.maximum:
            above = f"outside {format_file_value(self.minimum)} to {format_file_value(self.maximum)}"
            raise MisfitError("is negative" if self.maximum == math.inf else f"is {format_file_value(value)}, {above}")
        return float(value)

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        least, largest = max(self.minimum, -sys.float_info.max), min(self.maximum, sys.float_info.max)
        if values and set(map(type, values)) <= {int, float} and least <= min(values) and max(values) <= largest:
            return list(map(float, values))
        return super().read_many(values, scope)


class Cell(Codec):
    """A text, a whole number or a finite number: what a cell of a table holds."""

    def write(self, value: Any, to: Writing) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def read(self, value: Any, scope: InScope) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_COUNT:
            return value
        return Number().read(value, scope)


class Spelled(Codec):
    """Values written as texts, enums among them; enums of numbers as their numbers.

    Args:
        texts: of each value.
        noun: what they are, where there are too many to list.
    """

    def __init__(self, texts: Mapping[Any, Any], noun: str = "") -> None:
        self.texts, self.noun = texts, noun
        self._values = {text: value for value, text in texts.items()}

    def write(self, value: Any, to: Writing) -> Any:
        return self.texts[value]

    def read(self, value: Any, scope: InScope) -> Any:
        if not isinstance(value, str):
            if any(isinstance(text, int) for text in self._values):
                value = Whole(0, MAX_COUNT).read(value, scope)
                if value not in self._values:
                    raise MisfitError(f"is {value}, which has no meaning here")
            else:
                raise MisfitError(f"is {name_kind(value)}, not a string")
        found = self._values.get(value)
        if found is None:
            raise MisfitError(_refuse_name(value, self.noun, self._values))
        return found


class NameIn(Text):
    """A text that is an element of something in scope."""

    def __init__(self, of: str) -> None:
        self._of = of

    def read(self, value: Any, scope: InScope) -> str:
        text = super().read(value, scope)
        if text not in scope[self._of]:
            raise MisfitError(_refuse_name(text, "", scope[self._of]))
        return text

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        return Codec.read_many(self, values, scope)


class Position(_AsItIs):
    """The number of an element of something in scope. Where that is empty, ``may_be_empty`` allows 0, which then names nothing."""

    def __init__(self, of: str, *, may_be_empty: bool = False) -> None:
        self._of, self._least = of, 0 if may_be_empty else -1

    def _find_range(self, scope: InScope) -> Whole:
        return Whole(0, max(self._least, len(scope[self._of]) - 1))

    def read(self, value: Any, scope: InScope) -> int:
        return self._find_range(scope).read(value, scope)

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        return self._find_range(scope).read_many(values, scope)


class PathText(Codec):
    """A path, as a text."""

    def write(self, value: Any, to: Writing) -> str:
        return str(value)

    def read(self, value: Any, scope: InScope) -> Path:
        return Path(Text().read(value, scope))


class OrNull(Codec):
    """A value, or None, which is null."""

    def __init__(self, inner: Codec) -> None:
        self.inner = inner

    def write(self, value: Any, to: Writing) -> Any:
        return None if value is None or value != value else self.inner.write(value, to)  # noqa: PLR0124 - or not-a-number

    def read(self, value: Any, scope: InScope) -> Any:
        return None if value is None else self.inner.read(value, scope)

    def write_many(self, values: Sequence[Any], to: Writing) -> Sequence[Any]:
        return values if isinstance(self.inner, _AsItIs) else super().write_many(values, to)

    def read_many(self, values: Sequence[Any], scope: InScope) -> Sequence[Any]:
        try:
            known = iter(self.inner.read_many([value for value in values if value is not None], scope))
        except MisfitError:
            return super().read_many(values, scope)
        return [None if value is None else next(known) for value in values]


class SharedValue(Codec):
    """A position in a table of the document, or the value in place."""

    def __init__(self, table: str, inner: Codec) -> None:
        self.table, self.inner = table, inner

    def write(self, value: Any, to: Writing) -> Any:
        return self.inner.write(value, to) if to.is_expanded else to.share(self.table, value, self.inner)

    def write_many(self, values: Sequence[Any], to: Writing) -> Sequence[Any]:
        written = {key: self.write(value, to) for key, value in {id(value): value for value in values}.items()}
        return [written[id(value)] for value in values]

    def read(self, value: Any, scope: InScope) -> Any:
        if type(value) is not int:
            return self.inner.read(value, scope)
        rows = scope.get(self.table, ())
        if not 0 <= value < len(rows):
            raise MisfitError(f"is {value}, but tables/{self.table} has {len(rows)} elements")
        return rows[value]


class Array(Codec):
    """An array of like values."""

    def __init__(self, item: Codec) -> None:
        self.item = item

    def write(self, value: Any, to: Writing) -> Any:
        return list(self.item.write_many(value, to))

    def read(self, value: Any, scope: InScope) -> Any:
        return tuple(self.item.read_many(hold_list(value), scope))


class Fixed(Codec):
    """An array of so many values, each of its own type."""

    def __init__(self, items: Sequence[Codec]) -> None:
        self.items = items

    def write(self, value: Any, to: Writing) -> Any:
        return [item.write(part, to) for item, part in zip(self.items, value, strict=True)]

    def read(self, value: Any, scope: InScope) -> Any:
        if len(hold_list(value)) != len(self.items):
            raise MisfitError(f"has {len(value)} elements, not {len(self.items)}")
        return tuple(read_part(item, value, number, scope) for number, item in enumerate(self.items))


class Table(Codec):
    """An object with properties of any names, all of one type."""

    def __init__(self, item: Codec) -> None:
        self.item = item

    def write(self, value: Any, to: Writing) -> Any:
        return {key: self.item.write(part, to) for key, part in value.items()}

    def read(self, value: Any, scope: InScope) -> Any:
        return {key: read_part(self.item, value, key, scope) for key in hold_object(value)}


def read_part(codec: Codec, value: Any, key: Any, scope: InScope) -> Any:
    """Read the part of a value under a key or at a position."""
    try:
        return codec.read(value[key], scope)
    except MisfitError as wrong:
        wrong.within(key)
        raise


def hold_list(value: Any) -> list[Any]:
    """A value that must be an array."""
    if not isinstance(value, list):
        raise MisfitError(f"is {name_kind(value)}, not an array")
    return value


def hold_object(value: Any) -> dict[str, Any]:
    """A value that must be an object."""
    if not isinstance(value, dict):
        raise MisfitError(f"is {name_kind(value)}, not an object")
    return value


def name_kind(value: Any) -> str:
    """The kind of a JSON value, with its article."""
    if value is None:
        return "null"
    for kind, name in ((bool, "a boolean"), (str, "a string"), (list, "an array"), (dict, "an object")):
        if isinstance(value, kind):
            return name
    return "a number"


def _refuse_name(text: str, noun: str, known: Iterable[Any]) -> str:
    shown = repr(text[:_SHOWN_CHARACTERS])
    if noun:
        return f"is {shown}, no {noun}"
    return f"is {shown}, not one of {', '.join(str(name)[:_SHOWN_CHARACTERS] for name in known)}"
