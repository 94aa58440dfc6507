"""What was found out about objects that never change, kept while they are asked about again and again."""

from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class IdentityCache(Generic[_Key, _Value]):
    """A pure function of one immutable object, whose answers are remembered by the object's identity.

    Measurements stay the same objects from one keystroke to the next, but comparing or hashing them would take longer than most answers.
    Objects are kept as long as their answers, so that no other one can take their identity.

    Args:
        function: the function.
        size: answers remembered; when there are more, all are forgotten.

    >>> lengths = IdentityCache(len, size=2)
    >>> lengths("ab"), lengths("abc")
    (2, 3)
    """

    def __init__(self, function: Callable[[_Key], _Value], size: int = 8192) -> None:
        self._function = function
        self._size = size
        self._known: dict[int, tuple[_Key, _Value]] = {}

    def __call__(self, key: _Key) -> _Value:
        """The function's answer."""
        known = self._known.get(id(key))
        if known is not None:
            return known[1]
        value = self._function(key)
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[id(key)] = (key, value)
        return value
