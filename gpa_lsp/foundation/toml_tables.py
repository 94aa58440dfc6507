"""TOML files as tables whose values are checked, with the line in every error; the lines on which tables begin: the standard library's reader does
not say.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import tomli

from gpa_lsp.foundation.errors import CatalogueError, InputError
from gpa_lsp.foundation.number_expressions import LARGEST, Number, evaluate
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord

Finder = Callable[[str], Number]  # Value of a name in expressions

_LARGEST_FILE_BYTES = 4 << 20
_MOST_ENTRIES = 10_000
_MOST_THREADS = 1 << 62

Place = tuple[str | int, ...]  # Keys and indexes that lead to a table or value, e.g. ``("launch", 0, "arguments", 2)``.


class TomlLines:
    """Places and their lines.

    Args:
        text: TOML that is known to be right; of any other text the answers are good for nothing, but there are some.

    >>> lines = TomlLines('a = 1\\n[[t]]\\nx = [\\n  { y = 1 },\\n  { y = 2 },\\n]\\n')
    >>> lines.find(("t", 0)), lines.find(("t", 0, "x", 1)), lines.find(("t", 0, "x", 1, "y")), lines.find(("t", 0, "absent"))
    (2, 5, 5, 2)
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Place, int] = {(): 1}
        self._scan(text)

    def find(self, place: Place) -> int:
        """1-based line of a place, or of the nearest thing around it that is there."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def _scan(self, text: str) -> None:
        scanner = _Scanner(self._lines)
        line = 1
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:  # only blanks are left
                return
            kind = match.lastgroup or ""
            token = match[kind]
            if kind != "comment":
                scanner.take(kind, token, line)
            line += token.count("\n")
            place = match.end()


class Table(ColumnRecord, frozen=True, kw_only=True):
    """One table."""

    content: Mapping[str, Any]  # as the standard library reads it
    place: Place  # where it is in the file
    lines: TomlLines | None  # of the file; None for Python values
    path: Path | None  # of the file, for messages; None for a text that came from none

    @property
    def line(self) -> int:
        """The line at which it begins, 1-based."""
        return 1 if self.lines is None else self.lines.find(self.place)

    def refuse(self, message: str, *, remedy: str, key: str | None = None, number: int | None = None) -> InputError:
        """An error at the table, at one of its keys, or at one of a list's values."""
        return InputError(message, path=self.path, place=self._find_place(key, number), remedy=remedy)

    def locate(self, error: InputError, key: str, number: int | None = None) -> InputError:
        """An error with the place of a key, or of one of a list's values, filled in, unless it has one."""
        if error.place is None and error.path in (None, self.path):
            error.place = self._find_place(key, number)
        return error.at(self.path) if self.path is not None else error

    def _find_place(self, key: str | None, number: int | None) -> str:
        place = tuple(part for part in (*self.place, key, number) if part is not None)
        if self.lines is not None:
            return f"line {self.lines.find(place)}"
        return (
            "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".") or "keys"
        )

    def check_keys(self, known: Collection[str], what: str) -> None:
        """Refuse keys that mean nothing.

        Raises:
            InputError: there is one; names the nearest one that is known.
        """
        for key in self.content:
            if key not in known:
                near = difflib.get_close_matches(key[:60], known, n=1)
                remedy = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
                raise self.refuse(f"{what} has no key {key[:60]!r}", remedy=remedy, key=key)

    def read_text(self, key: str, default: str | None = None) -> str:
        """A text.

        Raises:
            InputError: it is none, or is missing and there is no default.
        """
        value = self.content.get(key, default)
        if value is None:
            raise self.refuse(f"{key!r} is missing", remedy=f'write {key} = "…"')
        if not isinstance(value, str) or not value.strip() or len(value) > 4096:
            raise self.refuse(f"{key!r} is not text", remedy=f'write {key} = "…"', key=key)
        return value

    def read_choice(self, key: str, choices: Collection[str], default: str) -> str:
        """One of several words."""
        value = self.content.get(key, default)
        if value not in choices:
            near = difflib.get_close_matches(str(value)[:60], choices, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"choose among {', '.join(sorted(choices))}"
            raise self.refuse(f"{key} is {str(value)[:60]!r}", remedy=remedy, key=key)
        return str(value)

    def read_flag(self, key: str) -> bool:
        """True or false; false when missing."""
        value = self.content.get(key, False)
        if not isinstance(value, bool):
            raise self.refuse(f"{key!r} is neither true nor false", remedy=f"write {key} = true", key=key)
        return value

    def read_number(self, key: str, find: Finder, default: Number | None = None) -> Number:
        """A number, or an expression that gives one.

        Raises:
            InputError: it is none, or is missing and there is no default.
        """
        value = self.content.get(key, default)
        if value is None:
            raise self.refuse(f"{key!r} is missing", remedy=f"write {key} = NUMBER")
        return self.evaluate(value, find, key)

    def evaluate(self, value: object, find: Finder, key: str) -> Number:
        """A value as a number: numbers, ``true`` and ``false``, expressions, ``"nan"`` and ``"inf"``."""
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, float) or (isinstance(value, int) and abs(value) <= LARGEST):
            return value
        if isinstance(value, int):
            raise self.refuse(f"{key} has more than 100 bits", remedy="give a smaller number", key=key)
        if not isinstance(value, str):
            raise self.refuse(
                f"{key!r} is not a number", remedy=f"write {key} = NUMBER, or an expression in quotes", key=key
            )
        if value.strip().lower() in ("nan", "inf", "-inf", "+inf"):
            return float(value)
        try:
            return evaluate(value, find)
        except InputError as error:
            raise self.locate(error, key) from None

    def read_integer(
        self, key: str, find: Finder, default: int | None = None, *, least: int = 0, most: int = (1 << 63) - 1
    ) -> int:
        """An integer within limits.

        Raises:
            InputError: it is none, is beyond them, or is missing and there is no default.
        """
        return self.check_integer(self.read_number(key, find, default), key, least=least, most=most)

    def check_integer(self, value: Number, key: str, *, least: int, most: int = (1 << 63) - 1) -> int:
        """A number as an integer within limits."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, float):
            raise self.refuse(f"{key} is {value}, not an integer", remedy="write // or ceildiv(…)", key=key)
        if not least <= value <= most:
            limit = f"at least {format_count(least)}" if value < least else f"at most {format_count(most)}"
            raise self.refuse(f"{key} is {value}", remedy=f"give a number of {limit}", key=key)
        return value

    def read_dimensions(
        self, key: str, find: Finder, default: tuple[int, int, int] | None = None, *, most: int = _MOST_THREADS
    ) -> tuple[int, int, int]:
        """One to three integers of at least 1, along x, y and z; 1 where none is given.

        Raises:
            InputError: they are none, or are missing and there is no default.
        """
        if key not in self.content and default is not None:
            return default
        if self.content.get(key) is None:
            raise self.refuse(f"{key!r} is missing", remedy=f"write {key} = NUMBER or {key} = [X, Y, Z]")
        values = self.read_list(key)
        if not 1 <= len(values) <= 3:
            raise self.refuse(f"{key} has {len(values)} numbers", remedy="give one to three", key=key)
        numbers = [self.evaluate(one, find, key) for one in values] + [1, 1]
        x, y, z = (self.check_integer(one, key, least=1, most=most) for one in numbers[:3])
        return x, y, z

    def read_list(self, key: str) -> Sequence[Any]:
        """The values of a list; of anything else the value alone, and none when missing."""
        value = self.content.get(key, [])
        return value if isinstance(value, (list, tuple)) else [value]

    def read_tables(self, key: str, what: str) -> "tuple[Table, ...]":
        """An array of tables; empty when missing."""
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.refuse(f"{key!r} is not a list of {what}", remedy=f"write {key} = [ {{ … }}, {{ … }} ]", key=key)
        if len(value) > _MOST_ENTRIES:
            raise self.refuse(f"{len(value)} {what}", remedy=f"write at most {_MOST_ENTRIES}", key=key)
        return tuple(
            Table(content=one, place=(*self.place, key, number), lines=self.lines, path=self.path)
            for number, one in enumerate(value)
        )

    def read_table(self, key: str) -> "Table":
        """A table inside this one; empty when missing."""
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            raise self.refuse(f"{key!r} is not a table", remedy=f"write {key} = {{ … }}", key=key)
        return Table(content=value, place=(*self.place, key), lines=self.lines, path=self.path)


def read_toml(path: Path, *, text: str | None = None) -> Table:
    """The table that a whole file is.

    Args:
        path: of the file.
        text: what it holds, where an editor has it unsaved; None reads the file.

    Raises:
        InputError: it cannot be read, is too large, or is not TOML. Says the line.
    """
    content, lines = _read_content(read_toml_text(path) if text is None else text, path)
    return Table(content=content, place=(), lines=lines, path=path)


def read_toml_text(path: Path) -> str:
    """Text of a file that is to be read as TOML, now or by another process.

    Raises:
        InputError: it cannot be read, is too large, or is not UTF-8.
    """
    try:
        if not path.is_file():
            raise InputError("there is no such file", path=path, remedy="write it, or have one generated")
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise InputError(
                f"has more than {_LARGEST_FILE_BYTES} bytes", path=path, remedy="put long arrays into files"
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8: {error.reason}", path=path, place=f"byte {error.start}", remedy="save it as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy="check its permissions") from None


def read_own_table(path: Path) -> dict[str, Any]:
    """A table that is part of the package.

    Raises:
        CatalogueError: it is malformed.
    """
    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise CatalogueError(f"{path.name}: {error}") from error


@lru_cache(maxsize=2)
def _read_content(text: str, path: Path) -> tuple[dict[str, Any], TomlLines]:
    """The content of a text, and its lines: kept, since an exploration reads one text for each configuration. Callers must not change it."""
    return _parse(text, path), TomlLines(text)


def _parse(text: str, path: Path) -> dict[str, Any]:
    if len(text) > _LARGEST_FILE_BYTES:
        raise InputError(
            f"has more than {_LARGEST_FILE_BYTES} characters", path=path, remedy="put long arrays into files"
        )
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        where = place.rstrip(")").partition(",")[0]
        where = where if where.startswith("line") else f"line {text.count(chr(10)) + 1}"
        raise InputError(
            f"is not TOML: {(message or str(error))[:200]}", path=path, place=where, remedy="see toml.io"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not TOML: {str(error)[:200]}", path=path, remedy="see toml.io") from None


_TOKEN = re.compile(
    r'[ \t\r]*+(?:(?P<string>"""(?>(?:[^"\\]|\\.|"{1,2}(?!"))*)"{3,5}|\'\'\'(?>(?:[^\']|\'{1,2}(?!\'))*)\'{3,5}'
    r'|"(?>(?:[^"\\\n]|\\.)*)"|\'[^\'\n]*+\')'
    r"|(?P<comment>#[^\n]*+)|(?P<newline>\n)|(?P<mark>[\[\]{},=.])|(?P<bare>[^\s\[\]{},=.\"'#]++)|(?P<other>.))",
    re.DOTALL,
)


class _Scanner:
    """Follows headers, keys and brackets."""

    def __init__(self, lines: dict[Place, int]) -> None:
        self._lines = lines
        self._counts: dict[Place, int] = {}
        self._table: Place = ()
        self._key: list[str] = []
        self._key_line = 0
        # Open brackets in values: (bracket, where its content belongs, index of the next element)
        self._open: list[tuple[str, Place, int]] = []
        self._header = 0  # Opening brackets of a table's header that were met
        self._is_value = False

    def take(self, kind: str, token: str, line: int) -> None:
        if self._is_value or self._open:
            self._take_in_value(kind, token, line)
        elif kind == "newline":
            if self._header:
                self._end_header()
            self._key = []
        elif kind == "mark":
            self._take_mark(token, line)
        else:
            if not self._key:
                self._key_line = line
            self._key.append(token.strip("\"'"))

    def _take_mark(self, token: str, line: int) -> None:
        if token == "[":
            self._header += 1
            self._key_line = line
        elif token == "=":
            self._begin_value((*self._table, *self._key))

    def _begin_value(self, place: Place) -> None:
        self._lines.setdefault(place, self._key_line)
        self._open.append(("=", place, 0))
        self._key = []
        self._is_value = True

    def _end_header(self) -> None:
        path: Place = ()
        for level, word in enumerate(self._key):
            path = (*path, word)
            is_last = level == len(self._key) - 1
            if is_last and self._header > 1:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        self._table = path
        self._lines[path] = self._key_line
        self._header = 0

    def _take_in_value(self, kind: str, token: str, line: int) -> None:
        bracket, place, index = self._open[-1]
        if bracket == "{" and self._is_key(kind, token, line):
            return
        if kind == "newline":
            if bracket == "=" and len(self._open) == 1:
                self._close()
            return
        here = (*place, index) if bracket == "[" else place
        if token in ("[", "{") and kind == "mark":
            self._lines.setdefault(here, line)
            self._open.append((token, here, 0))
        elif kind == "mark" and token in ("]", "}"):
            if bracket == "=":
                self._close()
            self._close()
        elif kind == "mark" and token == ",":
            if bracket == "=":
                self._close()
                self._key = []
            else:
                self._open[-1] = (bracket, place, index + 1)
        elif bracket == "[":
            self._lines.setdefault(here, line)

    def _is_key(self, kind: str, token: str, line: int) -> bool:
        """Whether a token is of a key in an inline table; keys are gathered until ``=``."""
        if kind in ("bare", "string"):
            if not self._key:
                self._key_line = line
            self._key.append(token.strip("\"'"))
            return True
        if kind == "mark" and token == "=":
            self._begin_value((*self._open[-1][1], *self._key))
            return True
        return kind in ("newline", "other") or token == "."

    def _close(self) -> None:
        if self._open:
            self._open.pop()
        self._key = []
        if not self._open:
            self._is_value = False
