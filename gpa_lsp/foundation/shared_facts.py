"""Facts that many ask about one thing, each found once: when it is first asked for."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar, cast
from weakref import WeakKeyDictionary

Found = TypeVar("Found")
Owner = TypeVar("Owner")
Details = ParamSpec("Details")

_FOUND = "found"


class SharedFacts:
    """Base of what many ask about: what was found goes when nothing asks any more.

    It is no field: it makes no record different from another, and no copy takes it along. A record that has it needs ``dict=True``.
    """

    __slots__ = ()

    def once(self, find: Callable[[Self], Found]) -> Found:
        """What a function finds here, kept for the next who asks."""
        found = self.__dict__.setdefault(_FOUND, {})
        if find not in found:
            found[find] = find(self)
        return cast("Found", found[find])

    def forget(self) -> None:
        """Let go of what was found. Some of it holds its owner, and both would stay until the garbage collector looks at them."""
        self.__dict__.pop(_FOUND, None)


class Remembered(Generic[Owner, Details, Found]):
    """Decorates what finds something of a function or module, and perhaps of further arguments, which are given by place.

    A launch is explored with hundreds of blocks: what does not depend on the launch is found once. Results belong to the very
    object they were found of, whatever another one's content, and go with it. They are shared, so nobody may write into them.
    """

    def __init__(self, find: Callable[Concatenate[Owner, Details], Found]) -> None:
        self._find = find
        self._known: WeakKeyDictionary[Owner, dict[tuple[object, ...], Found]] = WeakKeyDictionary()
        update_wrapper(self, find)

    def __call__(self, owner: Owner, /, *details: Details.args, **named: Details.kwargs) -> Found:
        """The result, found the first time it is asked for."""
        known = self._known.setdefault(owner, {})
        key = (details, tuple(named.items()))
        if key not in known:
            known[key] = self._find(owner, *details, **named)
        return known[key]
