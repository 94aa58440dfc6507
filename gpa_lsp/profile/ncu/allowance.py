"""Decode the small parts of an entry (rules, call-stack frames, functions of a table) one by one, as many as its size can honestly hold.

Two bytes of a report can be an empty message that costs hundreds of bytes once it is decoded. Repeated parts are therefore declared as bytes in the
schema and decoded here: real ones take tens of bytes each, and an entry that holds far more of them than its size suggests was made to fill
memory; the rest of it is left out. A part that cannot be decoded costs only itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import DecodeError

_FREE_PARTS = 1000
_BYTES_PER_PART = 16
_MAX_PART_BYTES = 1 << 20


class Allowance:
    """What is left for one entry, and what had to be left out."""

    def __init__(self, size_bytes: int) -> None:
        self._left = _FREE_PARTS + size_bytes // _BYTES_PER_PART
        self._left_out = 0
        self._broken = 0

    def take(self, parts: Sequence[Any]) -> Sequence[Any]:
        """The parts, or as many of the first ones as are still allowed.

        >>> allowance = Allowance(size_bytes=0)
        >>> len(allowance.take(range(999))), len(allowance.take(range(5)))
        (999, 1)
        >>> allowance.describe()
        ['4 parts are more, or larger, than an entry of this size holds; they are left out']
        """
        count = min(len(parts), self._left)
        self._left -= count
        self._left_out += len(parts) - count
        return parts if count == len(parts) else parts[:count]

    def decode(self, message_class: Any, parts: Sequence[bytes], *, is_flat: bool = False) -> Iterator[Any]:
        """Decode encoded parts, as far as they are allowed and sound.

        Args:
            parts: their bytes.
        """
        for data in self.take(parts):
            if len(data) > _MAX_PART_BYTES and not is_flat:
                self._left_out += 1
                continue
            try:
                message = message_class.FromString(data)
            except DecodeError:
                self._broken += 1
                continue
            yield message

    def describe(self) -> list[str]:
        """A sentence for everything that was left out; nothing when nothing was."""
        problems = []
        if self._left_out:
            problems.append(
                f"{self._left_out} parts are more, or larger, than an entry of this size holds; they are left out"
            )
        if self._broken:
            problems.append(f"{self._broken} parts cannot be decoded and are left out")
        return problems
