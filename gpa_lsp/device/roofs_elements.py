"""Values of a roofs file with their places: every wrong one is an error naming its JSON pointer (RFC 6901)."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes, format_file_value
from gpa_lsp.basis.regular_files import open_regular_file

MAX_BYTES = 1 << 20
"""A roofs file takes a few kilobytes."""
MAX_RATE = 1e18
"""Operations or bytes per second; 100 times what the largest GPU does."""
MAX_CLOCK_HZ = 1e11

_REMEDY = "compare it with roofs.schema.json in the package gpa_lsp.device, or measure again with `gpa-lsp calibrate`"
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class RoofsElement:
    """A JSON value and its place.

    Attributes:
        value: as ``json`` parsed it.
        pointer: JSON pointer from the root; empty for the root itself.
    """

    value: Any
    pointer: str = ""

    def fail(self, message: str) -> NoReturn:
        """Raise the error about this value.

        Raises:
            InputError: always.
        """
        raise InputError(message, place=self.pointer or "the whole document", remedy=_REMEDY)

    def read_map(self) -> dict[str, "RoofsElement"]:
        """Members of an object."""
        if not isinstance(self.value, dict):
            self.fail("is not an object")
        return {name: RoofsElement(value, f"{self.pointer}/{_escape(name)}") for name, value in self.value.items()}

    def read_members(self, known: Iterable[str]) -> dict[str, "RoofsElement"]:
        """Members of an object with a fixed set of names; ``comment`` and nulls are left out."""
        members = self.read_map()
        members.pop("comment", None)
        for name, member in members.items():
            if name not in known:
                member.fail("is not a member this format has")
        return {name: member for name, member in members.items() if member.value is not None}

    def read_rate(self, maximum: float = MAX_RATE) -> float:
        """A finite number above zero."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("is not a number")
        if not 0 < self.value <= maximum:
            self.fail(f"is not above 0 and at most {format_file_value(maximum)}")
        return float(self.value)

    def read_share(self) -> float:
        """A number from 0 to 1."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("is not a number")
        if not 0 <= self.value <= 1:
            self.fail("is not between 0 and 1")
        return float(self.value)

    def read_count(self, maximum: int) -> int:
        """A whole number from 1 on."""
        number = self.read_rate(maximum)
        if not number.is_integer():
            self.fail("is not a whole number")
        return int(number)

    def read_text(self) -> str:
        """A short string of printable characters."""
        if not isinstance(self.value, str):
            self.fail("is not a string")
        if len(self.value) > _MAX_TEXT or not self.value.isprintable():
            self.fail(f"is longer than {_MAX_TEXT} characters, or not printable")
        return self.value

    def read_capability(self) -> tuple[int, int]:
        """A compute capability such as ``"9.0"``."""
        match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", self.read_text())
        if match is None:
            self.fail("is not a compute capability such as '9.0'")
        return int(match[1]), int(match[2])


def read_json(path: Path) -> RoofsElement:
    """Parse a file as one JSON object.

    Raises:
        InputError: not a file, too large, not UTF-8, not JSON, nested too deeply, with a member twice or a number that is none.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        if size_bytes > MAX_BYTES:
            message = f"is larger than {format_bytes(MAX_BYTES)}, the limit for files of ceilings"
            raise InputError(message, path=path, remedy="name a file of ceilings")
        data = stream.read(MAX_BYTES)
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", place=f"offset {error.start:#x}", remedy="save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"is not JSON ({error.msg})", place=place, remedy=_REMEDY) from None
    except RecursionError:
        raise InputError("is nested too deeply for this format", remedy=_REMEDY) from None
    except ValueError as error:
        raise InputError(f"is not JSON this format allows ({error})", remedy=_REMEDY) from None
    if not isinstance(value, dict):
        RoofsElement(value).fail("is not an object")
    return RoofsElement(value)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _escape(name: str) -> str:
    return name[:_MAX_TEXT].replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode("ascii")
