"""What follows from a PTX function or module alone, found once for as long as it lives: :class:`Remembered`."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Details = ParamSpec("Details")
Found = TypeVar("Found")


class Remembered(Generic[Owner, Details, Found]):
    """Decorates what finds something of a function or module, and perhaps of further arguments, which are given by place.

    A launch is explored with hundreds of blocks: what does not depend on the launch is not found anew for each. Results belong to the very
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
