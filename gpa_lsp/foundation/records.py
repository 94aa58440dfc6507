"""Records with fields that are compared otherwise than by ``==``, or not at all, and what is found of a record once, for all who ask.

All other records are plain :class:`msgspec.Struct`.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from msgspec import Struct


class ColumnRecord(Struct, frozen=True):
    """A record that is compared by what its arrays hold; an array has no truth of its own."""

    def __eq__(self, other: object) -> bool:
        """Whether both are of one type, with equal fields."""
        try:
            return super().__eq__(other)
        except ValueError:
            return all(_is_same(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)

    __hash__ = Struct.__hash__


class PartlyCompared(Struct, frozen=True):
    """A record some of whose fields make it no different from another, and are not written to files."""

    UNCOMPARED: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        """Whether both are of one type, with equal compared fields."""
        if type(other) is not type(self):
            return NotImplemented
        names = (name for name in self.__struct_fields__ if name not in self.UNCOMPARED)
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        """Hash of the compared fields."""
        return hash(tuple(getattr(self, name) for name in self.__struct_fields__ if name not in self.UNCOMPARED))


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if hasattr(one, "shape") or hasattr(other, "shape"):
        is_alike = getattr(one, "shape", None) == getattr(other, "shape", None)
        return is_alike and bool((one == other).all())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)


Found = TypeVar("Found")
Details = ParamSpec("Details")

_FOUND = "found"


class SharedFacts:
    """Base of what many ask about: what was found goes when nothing asks any more.

    It is no field: it makes no record different from another, and no copy takes it along. A record that has it needs ``dict=True``.
    """

    __slots__ = ()

    def once(
        self, find: Callable[Concatenate[Self, Details], Found], *details: Details.args, **_: Details.kwargs
    ) -> Found:
        """The result of a function of this record and further arguments, kept for the next call."""
        found = self.__dict__.setdefault(_FOUND, {})
        key = (find, details)
        if key not in found:
            found[key] = find(self, *details)  # type: ignore[call-arg]
        return cast("Found", found[key])

    def forget(self) -> None:
        """Let go of what was found. Some of it holds its owner, and both would stay until the garbage collector looks at them."""
        self.__dict__.pop(_FOUND, None)


Owner = TypeVar("Owner", bound=SharedFacts)


def remembered(find: Callable[Concatenate[Owner, Details], Found]) -> Callable[Concatenate[Owner, Details], Found]:
    """Decorates what finds something of an owner, and perhaps of further arguments, which are given by place, so that it is found once.

    What was found belongs to the very owner it was found of, whatever another one's content, and goes with it. It is shared, and must not be
    written to.
    """

    @wraps(find)
    def find_once(owner: Owner, /, *details: Details.args, **named: Details.kwargs) -> Found:
        assert not named
        return owner.once(find, *details, **named)

    return find_once


Key = TypeVar("Key")

_MOST_REMEMBERED = 8192  # answers of an IdentityCache; when there are more, all are forgotten


class IdentityCache(Generic[Key, Found]):
    """A pure function of one immutable object, whose answers are remembered by the object's identity.

    Measurements stay the same objects from one keystroke to the next, but comparing or hashing them would take longer than most answers.
    Objects are kept as long as their answers, so that no other one can take their identity.

    Args:
        function: the function.

    >>> lengths = IdentityCache(len)
    >>> lengths("ab"), lengths("abc")
    (2, 3)
    """

    def __init__(self, function: Callable[[Key], Found]) -> None:
        self._function = function
        self._known: dict[int, tuple[Key, Found]] = {}

    def __call__(self, key: Key) -> Found:
        """The function's answer."""
        known = self._known.get(id(key))
        if known is not None:
            return known[1]
        value = self._function(key)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[id(key)] = (key, value)
        return value
