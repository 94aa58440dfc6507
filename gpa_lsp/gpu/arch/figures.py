"""A number of a table with its origin: :class:`Figure`, or :class:`Unknown` with the reason there is none.

Both have ``.value``, so that a figure every table must know reads ``architecture.occupancy.max_warps_per_sm.value`` (an ``int``), and one
that may be missing reads the same and is None where it is.
"""

import re
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from gpa_lsp.foundation.errors import CatalogueError

T = TypeVar("T")


class Status(StrEnum):
    """How far a value can be trusted."""

    MEASURED = "measured"  # Somebody ran it on this architecture, or read it off code made for it
    DOCUMENTED = "documented"  # The vendor, or data the vendor provided, says so
    # A model's constant, chosen so that it agrees with measurements on this architecture; the note says which model
    FITTED = "fitted"
    ASSUMED = "assumed"  # Carried over from a neighbour, proposed, or from a source that was not checked


class Figure(Struct, Generic[T], frozen=True, kw_only=True):
    """A value and where it comes from.

    >>> Figure(value=64, sources=("guide",), status=Status.DOCUMENTED).value
    64
    """

    value: T  # the value, in the unit its name ends with
    sources: tuple[str, ...]  # keys into ``Architecture.sources``; never empty
    status: Status  # how far it can be trusted
    note: str | None = None  # what else the reader must know; None when nothing
    # lowest and highest value the sources give; None where they agree or where there is one
    spread: tuple[float, float] | None = None


class Unknown(Struct, frozen=True, kw_only=True):
    """No value, on purpose.

    >>> Unknown(why="no such instruction").value is None
    True
    """

    why: str  # the reason, one sentence without full stop

    @property
    def value(self) -> None:
        """None: so that a reader asks for ``.value`` alike, whether it is known or not."""
        return


# How people name an architecture: sm_90, sm_90a, compute_90, 9.0 or 90.
ARCHITECTURE_PATTERN = r"(?:(?:sm|compute)_)?(\d{1,2})\.?(\d)[af]?"


def parse_architecture_name(text: str) -> tuple[int, int] | None:
    """Compute capability of an architecture's name; None for other texts.

    >>> parse_architecture_name("sm_86"), parse_architecture_name("12.0"), parse_architecture_name("90"), parse_architecture_name("90x")
    ((8, 6), (12, 0), (9, 0), None)
    """
    match = re.fullmatch(ARCHITECTURE_PATTERN, text, re.ASCII)
    return None if match is None else (int(match[1]), int(match[2]))


def parse_compute_capability(text: str, file: str) -> tuple[int, int]:
    """``"8.6"`` as a pair.

    Raises:
        CatalogueError: it is not two numbers and a dot.

    >>> parse_compute_capability("12.1", "sm_120.toml")
    (12, 1)
    """
    major, dot, minor = text.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise CatalogueError(f'{file}: compute_capability {text!r} is not of the form "8.6"')
    return int(major), int(minor)
