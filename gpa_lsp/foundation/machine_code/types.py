"""The types and intrinsics of typed Python, the part of Python that :mod:`translate` makes machine code of.

To type checkers they are integers, floats and sequences; to the translator they are what they are called. A parameter of a :class:`Struct` is a
reference to one, a field of a struct lies within the other. Numbers wrap as the machine's do, ``//`` and ``%`` divide towards zero, and nothing is
converted that is not written, but for what changes no value: literals and truth values take the type of what they meet, and integers become ones of
more bits. Where only literals meet they are of 64 bits. A value may be one of a lane or, as :func:`lanes` gives them, 32 side by side: then
``a if condition else b`` chooses lane by lane.
"""

import ctypes
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

import msgspec

LANES = 32

_T = TypeVar("_T")
_Count = TypeVar("_Count")


class Number(msgspec.Struct, frozen=True):
    """A number of a lane, or one of each of 32."""

    name: str  # ``u8`` … ``s64``, ``f32``, ``f64``, ``bool``
    bits: int  # of it
    lanes: int = 1  # 1 or 32

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return self.name[0] == "f"

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.name[0] == "s"

    @property
    def is_bool(self) -> bool:
        """Whether it is a truth value."""
        return self.bits == 1

    def spread(self, lanes: int) -> "Number":
        """The type with another number of lanes."""
        return self if lanes == self.lanes else Number(self.name, self.bits, lanes)

    def __repr__(self) -> str:
        """The text for messages."""
        return self.name if self.lanes == 1 else f"{self.lanes} × {self.name}"


class PointerType(msgspec.Struct, frozen=True):
    """The type of a pointer to consecutive numbers, pointers or structs of one type."""

    to: Any

    def __repr__(self) -> str:
        """The text for messages."""
        return f"pointer to {self.to}"


class ArrayType(msgspec.Struct, frozen=True):
    """The type of a fixed number of values within a struct."""

    of: Any
    count: int


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
        """A pointer to consecutive values."""

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
        """A pointer to consecutive values."""

        def __class_getitem__(cls, to: Any) -> PointerType:
            """The type that points to another."""
            return PointerType(to)

    class Array:
        """Values within a struct, as many as a literal says."""

        def __class_getitem__(cls, parts: Any) -> ArrayType:
            """The type of an array, from the type of its values and their number."""
            kind, count = parts
            return ArrayType(kind, get_args(count)[0])


BOOL = Number("bool", 1)

_C_TYPES: dict[str, Any] = {
    "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "s8": ctypes.c_int8, "s16": ctypes.c_int16, "s32": ctypes.c_int32, "s64": ctypes.c_int64,
    "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip


class Struct:
    """Fields that lie one behind the other, aligned as C does."""

    fields: "dict[str, tuple[int, Any, int]]"  # offset in bytes, type and, of arrays, how many, by name
    c_type: "type[ctypes.Structure]"  # the same for ctypes

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


class Intrinsic:
    """A function that typed Python calls beside its own, with its name, its parameters and its meaning in words:
    :class:`~gpa_lsp.foundation.machine_code.intrinsics.Intrinsics` translates it.
    """

    def __init__(self, form: str, words: str) -> None:
        self.name = form.partition("(")[0]
        self.__doc__ = f"{form}: {words}"

    def __call__(self, *arguments: Any) -> Any:
        """Exist for type checkers; typed Python is translated, and never run."""
        raise NotImplementedError(self.__doc__)


lanes = Intrinsic("lanes(pointer)", "The 32 values from a place on.")
put = Intrinsic("put(pointer, values)", "Write 32 values from a place on.")
gather = Intrinsic(
    "gather(pointer, offsets, mask)",
    "A value of each lane of the mask, so many bytes (u64) behind a place; 0 for the others.",
)
scatter = Intrinsic(
    "scatter(pointer, offsets, mask, values)", "Write a value of each lane of the mask, the lowest lane first."
)
lanes_of = Intrinsic("lanes_of(mask)", "For each lane whether its bit is set.")
mask_of = Intrinsic("mask_of(holds)", "The bits of the lanes for which something holds.")
lane_numbers = Intrinsic("lane_numbers()", "0 to 31, u64.")
all_lanes = Intrinsic("all_lanes(value)", "The same value in each lane.")
union = Intrinsic("union(values)", "The bits of all lanes together.")
total = Intrinsic("total(values)", "The sum over all lanes.")
odd = Intrinsic("odd(values)", "The bits that are set in an odd number of lanes.")
highest = Intrinsic("highest(values)", "The highest of all lanes.")
lowest = Intrinsic("lowest(values)", "The lowest of all lanes.")
pick = Intrinsic("pick(values, sources)", "Of each lane the value that another lane (u32 < 32) has.")
as_bits = Intrinsic("as_bits(value)", "The bits of a number, as an unsigned integer.")
as_float = Intrinsic("as_float(bits)", "The number of 32 or 64 bits.")
view = Intrinsic("view(pointer, kind)", "A pointer to values of another type.")
local = Intrinsic("local(kind, count)", "Memory of a function, 64 bytes aligned: a pointer; of one struct, the struct.")
copy = Intrinsic("copy(to, source, size)", "Copy bytes that do not overlap, or are the same.")
fill = Intrinsic("fill(to, value, size)", "Write one byte everywhere.")
call = Intrinsic("call(function, *arguments)", "Call a function by its address (u64); it gives 64 bits.")
resize = Intrinsic("resize(pointer, size)", "C's realloc.")
release = Intrinsic("release(pointer)", "C's free.")
popcount = Intrinsic("popcount(value)", "How many bits are set.")
trailing_zeros = Intrinsic("trailing_zeros(value)", "Zeros below the lowest bit that is set; all bits where none is.")
leading_zeros = Intrinsic("leading_zeros(value)", "Zeros above the highest bit that is set; all bits where none is.")
reverse_bits = Intrinsic("reverse_bits(value)", "The lowest bit first.")
sqrt = Intrinsic("sqrt(value)", "The square root, rounded to the nearest.")
fma = Intrinsic("fma(a, b, c)", "The product and the sum, rounded once.")
round_even = Intrinsic("round_even(value)", "To the nearest integer, ties to even.")
truncate = Intrinsic("truncate(value)", "To an integer, towards zero.")
floor = Intrinsic("floor(value)", "To an integer, down.")
ceil = Intrinsic("ceil(value)", "To an integer, up.")
exp2 = Intrinsic("exp2(value)", "Two to the power of a double, by the C library; so are the following functions.")
log2 = Intrinsic("log2(value)", "The logarithm to the base two.")
sin = Intrinsic("sin(value)", "The sine.")
cos = Intrinsic("cos(value)", "The cosine.")
tanh = Intrinsic("tanh(value)", "The hyperbolic tangent.")
bits_of = Intrinsic("bits_of(mask)", "The numbers of the bits that are set, the lowest first, s64: for loops.")
unrolled = Intrinsic("unrolled(count)", "0 to count - 1 as literals, for a loop whose body is written out so often.")
