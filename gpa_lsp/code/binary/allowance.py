"""A limit on what a reader builds from an input, so that a lying file cannot make a small image into gigabytes.

Tables of a file may name the same long string a million times, or chain every line to every other. A sound file stays far below a small
multiple of its own size; a reader that passes it stops with an error instead of filling the memory.
"""

from pathlib import Path

from gpa_lsp.foundation.errors import InputError

# The remedy for what only a truncated or altered file can contain
DAMAGED = "the file is damaged: take a fresh copy or build it again"


class Allowance:
    """Counts down what one reading may still produce.

    Args:
        limit: units (bytes, frames) that may be spent in all.
        path: the file, for the error.
        place: where in it, for the error.

    >>> allowance = Allowance(10, path=None, place="section .strtab")
    >>> allowance.spend(7)
    >>> allowance.spend(7)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpa_lsp.foundation.errors.InputError: section .strtab: the table expands to many times its own size; the file is damaged: take a fresh copy ...
    """

    __slots__ = ("_left", "_path", "_place")

    def __init__(self, limit: int, *, path: Path | None, place: str) -> None:
        self._left = limit
        self._path = path
        self._place = place

    def spend(self, amount: int) -> None:
        """Take ``amount`` from what is left.

        Raises:
            InputError: it is used up.
        """
        self._left -= amount
        if self._left < 0:
            raise InputError(
                "the table expands to many times its own size", path=self._path, place=self._place, remedy=DAMAGED
            )
