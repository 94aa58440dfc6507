"""Facts that many ask about one thing, each found once: when it is first asked for."""

from collections.abc import Callable
from typing import Self, TypeVar, cast

Found = TypeVar("Found")


class SharedFacts:
    """What many ask about, with what they found; that goes when nobody asks any more.

    It is no field of the dataclasses that have it: it makes none different from another, and no copy takes it along.
    """

    __slots__ = ("_found",)
    _found: dict[Callable[..., object], object]

    def once(self, find: Callable[[Self], Found]) -> Found:
        """What a function finds here, kept for the next who asks."""
        try:
            found = self._found
        except AttributeError:
            found = {}
            object.__setattr__(self, "_found", found)
        if find not in found:
            found[find] = find(self)
        return cast("Found", found[find])
