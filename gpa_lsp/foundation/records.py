"""Records with fields that are compared otherwise than by ``==``, or not at all. All other records are plain :class:`msgspec.Struct`."""

from collections.abc import Mapping
from typing import Any, ClassVar

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
