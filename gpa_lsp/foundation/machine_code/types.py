"""The types and intrinsics of typed Python, the part of Python that :mod:`translate` makes machine code of.

To type checkers they are integers, floats and sequences; to the translator they are what they are called. A parameter of a :class:`Struct` is a
reference to one, a field of a struct lies within the other. Numbers wrap as the machine's do, ``//`` and ``%`` divide towards zero, and nothing is
converted that is not written, but for what changes no value: literals and truth values take the type of what they meet, and integers become ones of
more bits. Where only literals meet they are of 64 bits. A value may be one of a lane or, as :func:`lanes` gives them, 32 side by side: then
``a if condition else b`` chooses lane by lane.
"""

import ctypes
from collections.abc import Iterator
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, get_args

LANES = 32

_T = TypeVar("_T")
_Count = TypeVar("_Count")


class Number:
    """A number of a lane, or one of each of 32.

    Args:
        name: ``u8`` … ``s64``, ``f32``, ``f64``, ``bool``.
        bits: of it.
        lanes: 1 or 32.
    """

    __slots__ = ("bits", "is_float", "is_signed", "lanes", "name")

    def __init__(self, name: str, bits: int, lanes: int = 1) -> None:
        self.name = name
        self.bits = bits
        self.lanes = lanes
        self.is_float = name[0] == "f"
        self.is_signed = name[0] == "s"

    @property
    def is_bool(self) -> bool:
        """Whether it is a truth value."""
        return self.bits == 1

    def spread(self, lanes: int) -> "Number":
        """The same of another number of lanes."""
        return self if lanes == self.lanes else Number(self.name, self.bits, lanes)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same type."""
        return isinstance(other, Number) and (self.name, self.lanes) == (other.name, other.lanes)

    def __hash__(self) -> int:
        """Of name and lanes."""
        return hash((self.name, self.lanes))

    def __repr__(self) -> str:
        """For messages."""
        return self.name if self.lanes == 1 else f"{self.lanes} × {self.name}"


class PointerType:
    """Where numbers, pointers or structs lie one behind the other.

    Args:
        to: their type.
    """

    __slots__ = ("to",)

    def __init__(self, to: Any) -> None:
        self.to = to

    def __eq__(self, other: object) -> bool:
        """Whether it points to the same."""
        return isinstance(other, PointerType) and self.to == other.to

    def __hash__(self) -> int:
        """Of what it points to."""
        return hash(("pointer", self.to))

    def __repr__(self) -> str:
        """For messages."""
        return f"pointer to {self.to}"


class ArrayType:
    """Values within a struct.

    Args:
        of: their type.
        count: how many.
    """

    __slots__ = ("count", "of")

    def __init__(self, of: Any, count: int) -> None:
        self.of = of
        self.count = count


if TYPE_CHECKING:
    u8 = int
    u16 = int
    u32 = int
    u64 = int
    u128 = int
    s8 = int
    s16 = int
    s32 = int
    s64 = int
    s128 = int
    f32 = float
    f64 = float

    class Pointer(Generic[_T]):
        """Where values lie."""

        def __getitem__(self, place: Any) -> _T: ...
        def __setitem__(self, place: Any, value: Any) -> None: ...
        def __add__(self, count: Any) -> "Pointer[_T]": ...
        def __sub__(self, count: Any) -> "Pointer[_T]": ...

    class Array(Pointer[_T], Generic[_T, _Count]):
        """Values within a struct, as many as a literal says."""
else:
    u8, u16, u32, u64, u128 = (Number(f"u{bits}", bits) for bits in (8, 16, 32, 64, 128))
    s8, s16, s32, s64, s128 = (Number(f"s{bits}", bits) for bits in (8, 16, 32, 64, 128))
    f32, f64 = Number("f32", 32), Number("f64", 64)

    class Pointer:
        """Where values lie."""

        def __class_getitem__(cls, to: Any) -> PointerType:
            """The type that points to another."""
            return PointerType(to)

    class Array:
        """Values within a struct, as many as a literal says."""

        def __class_getitem__(cls, parts: Any) -> ArrayType:
            """Their type, and how many."""
            kind, count = parts
            return ArrayType(kind, get_args(count)[0])


BOOL = Number("bool", 1)

_C_TYPES: dict[str, Any] = {
    "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "s8": ctypes.c_int8, "s16": ctypes.c_int16, "s32": ctypes.c_int32, "s64": ctypes.c_int64,
    "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip


class Struct:
    """Fields that lie one behind the other, aligned as C does.

    Attributes:
        fields: offset in bytes, type and, of arrays, how many, by name.
        c_type: the same for ctypes.
    """

    fields: "dict[str, tuple[int, Any, int]]"
    c_type: "type[ctypes.Structure]"

    def __init_subclass__(cls) -> None:
        """Lay out the fields."""
        members: list[tuple[str, Any]] = []
        kinds: dict[str, tuple[Any, int]] = {}
        for name, hint in get_annotations(cls).items():
            kind, count = (hint.of, hint.count) if isinstance(hint, ArrayType) else (hint, 0)
            kinds[name] = kind, count
            c_type = _find_c_type(kind)
            members.append((name, c_type * count if count else c_type))
        cls.c_type = type(cls.__name__, (ctypes.Structure,), {"_fields_": members})
        cls.fields = {name: (getattr(cls.c_type, name).offset, *kind) for name, kind in kinds.items()}


def _find_c_type(kind: Any) -> Any:
    if isinstance(kind, Number):
        return _C_TYPES[kind.name]
    return ctypes.c_void_p if isinstance(kind, PointerType) else kind.c_type


def _only_translated() -> NoReturn:
    raise NotImplementedError("typed Python is translated, not run")


def lanes(pointer: "Pointer[_T]") -> Any:
    """The 32 values from a place on."""
    _only_translated()


def put(pointer: "Pointer[_T]", values: Any) -> None:
    """Write 32 values from a place on."""
    _only_translated()


def gather(pointer: "Pointer[_T]", offsets: Any, mask: u32) -> Any:
    """A value of each lane of the mask, so many bytes (u64) behind a place; 0 for the others."""
    _only_translated()


def scatter(pointer: "Pointer[_T]", offsets: Any, mask: u32, values: Any) -> None:
    """Write a value of each lane of the mask, the lowest lane first."""
    _only_translated()


def lanes_of(mask: u32) -> Any:
    """For each lane whether its bit is set."""
    _only_translated()


def mask_of(holds: Any) -> u32:
    """The bits of the lanes for which something holds."""
    _only_translated()


def lane_numbers() -> Any:
    """0 to 31, u64."""
    _only_translated()


def all_lanes(value: Any) -> Any:
    """The same value in each lane."""
    _only_translated()


def union(values: Any) -> Any:
    """The bits of all lanes together."""
    _only_translated()


def total(values: Any) -> Any:
    """The sum over all lanes."""
    _only_translated()


def highest(values: Any) -> Any:
    """The highest of all lanes."""
    _only_translated()


def lowest(values: Any) -> Any:
    """The lowest of all lanes."""
    _only_translated()


def pick(values: Any, sources: Any) -> Any:
    """Of each lane the value that another lane (u32 < 32) has."""
    _only_translated()


def as_bits(value: Any) -> Any:
    """The bits of a number, as an unsigned integer."""
    _only_translated()


def as_float(bits: Any) -> Any:
    """The number of 32 or 64 bits."""
    _only_translated()


def view(pointer: Any, kind: Any) -> Any:
    """A pointer to values of another type."""
    _only_translated()


def local(kind: Any, count: int = 1) -> Any:
    """Memory of a function, 64 bytes aligned: a pointer; of one struct, the struct."""
    _only_translated()


def copy(to: Any, source: Any, size: Any) -> None:
    """Copy bytes that do not overlap, or are the same."""
    _only_translated()


def fill(to: Any, value: Any, size: Any) -> None:
    """Write one byte everywhere."""
    _only_translated()


def call(function: Any, *arguments: Any) -> s64:
    """Call a function by its address (u64); it gives 64 bits."""
    _only_translated()


def resize(pointer: "Pointer[_T]", size: Any) -> "Pointer[_T]":
    """C's realloc."""
    _only_translated()


def release(pointer: Any) -> None:
    """C's free."""
    _only_translated()


def popcount(value: Any) -> Any:
    """How many bits are set."""
    _only_translated()


def trailing_zeros(value: Any) -> Any:
    """Zeros below the lowest bit that is set; all bits where none is."""
    _only_translated()


def leading_zeros(value: Any) -> Any:
    """Zeros above the highest bit that is set; all bits where none is."""
    _only_translated()


def reverse_bits(value: Any) -> Any:
    """The lowest bit first."""
    _only_translated()


def sqrt(value: Any) -> Any:
    """The square root, rounded to the nearest."""
    _only_translated()


def fma(a: Any, b: Any, c: Any) -> Any:
    """The product and the sum, rounded once."""
    _only_translated()


def round_even(value: Any) -> Any:
    """To the nearest integer, ties to even."""
    _only_translated()


def truncate(value: Any) -> Any:
    """To an integer, towards zero."""
    _only_translated()


def floor(value: Any) -> Any:
    """To an integer, down."""
    _only_translated()


def ceil(value: Any) -> Any:
    """To an integer, up."""
    _only_translated()


def bits_of(mask: Any) -> Iterator[int]:
    """The numbers of the bits that are set, the lowest first, s64: for loops."""
    _only_translated()


def unrolled(count: int) -> Iterator[int]:
    """0 to count - 1 as literals, for a loop whose body is written out so often."""
    _only_translated()
