"""Names of element types: ``float``, ``int4``, ``unsigned long long``, ``f16`` → :class:`ElementType`."""

import difflib
import re

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError


class ElementType(Struct, frozen=True, kw_only=True):
    """Type of an argument's elements."""

    scalar: ScalarType  # of one number
    lanes: int = 1  # numbers in one element: 4 for ``float4``

    @property
    def bytes(self) -> int:
        """Size of an element."""
        return self.scalar.bytes * self.lanes

    @property
    def alignment_bytes(self) -> int:
        """Alignment in CUDA: vectors of two and four by their size, at most 16; vectors of three by one number."""
        return self.scalar.bytes if self.lanes == 3 else min(self.bytes, 16)


_SCALARS = {
    "f16": ScalarType.F16,
    "bf16": ScalarType.BF16,
    "f32": ScalarType.F32,
    "f64": ScalarType.F64,
    "half": ScalarType.F16,
    "__half": ScalarType.F16,
    "bfloat16": ScalarType.BF16,
    "__nv_bfloat16": ScalarType.BF16,
    "float": ScalarType.F32,
    "double": ScalarType.F64,
    "bool": ScalarType.U8,
    "char": ScalarType.S8,
    "signed char": ScalarType.S8,
    "uchar": ScalarType.U8,
    "unsigned char": ScalarType.U8,
    "short": ScalarType.S16,
    "ushort": ScalarType.U16,
    "unsigned short": ScalarType.U16,
    "int": ScalarType.S32,
    "uint": ScalarType.U32,
    "unsigned": ScalarType.U32,
    "unsigned int": ScalarType.U32,
    "long": ScalarType.S64,
    "ulong": ScalarType.U64,
    "unsigned long": ScalarType.U64,
    "long long": ScalarType.S64,
    "longlong": ScalarType.S64,
    "unsigned long long": ScalarType.U64,
    "ulonglong": ScalarType.U64,
    "size_t": ScalarType.U64,
    "ptrdiff_t": ScalarType.S64,
} | {
    name.format(bits): ScalarType(f"{letter}{bits}")
    for bits in (8, 16, 32, 64)
    for letter, names in (
        ("s", ("s{}", "i{}", "int{}", "int{}_t")),
        ("u", ("u{}", "uint{}", "uint{}_t")),
        ("b", ("b{}",)),
    )
    for name in names
}

_VECTOR = re.compile(
    r"(char|uchar|short|ushort|int|uint|long|ulong|longlong|ulonglong|float|double|half|__half)([1-4])"
)
_WITHOUT_MEANING = re.compile(r"\b(?:const|volatile|std::)\b\s*|std::|\s+(?=\s)")


def find_type(text: str) -> ElementType | None:
    """Type of a name; None for an unknown name.

    ``long`` has 64 bits, as on Linux.

    >>> find_type("float4"), find_type("unsigned int"), find_type("Particle")
    (ElementType(scalar=<ScalarType.F32: 'f32'>, lanes=4), ElementType(scalar=<ScalarType.U32: 'u32'>, lanes=1), None)
    """
    name = _WITHOUT_MEANING.sub("", text).strip()
    scalar = _SCALARS.get(name)
    if scalar is not None:
        return ElementType(scalar=scalar)
    match = _VECTOR.fullmatch(name)
    if match is None:
        return None
    return ElementType(scalar=_SCALARS[match[1]], lanes=int(match[2]))


def read_type(text: str) -> ElementType:
    """Type of a name, which has to be known.

    Raises:
        InputError: the name is not known; names the nearest one.
    """
    found = find_type(text)
    if found is None:
        near = difflib.get_close_matches(text[:40], _SCALARS, n=1)
        remedy = (
            f"did you mean {near[0]!r}?" if near else "use float, double, half, int, int64, unsigned char, float4 …"
        )
        raise InputError(f"the type {text[:40]!r} is unknown", remedy=remedy)
    return found


def check_scalar(value: int | float, kind: ScalarType) -> int | float:
    """Number as the type holds it: integers for integer types, floats for others.

    Raises:
        InputError: it does not fit.

    >>> check_scalar(3, ScalarType.F32), check_scalar(4.0, ScalarType.S32)
    (3.0, 4)
    """
    if kind.is_float:
        try:
            return float(value)
        except OverflowError:
            raise _refuse(value, kind) from None
    if isinstance(value, float):
        if not value.is_integer():
            raise InputError(
                f"{value} is not an integer, but the type is {kind.value}", remedy="give an integer, or another type"
            )
        value = int(value)
    bits = 8 * kind.bytes
    least = -(1 << (bits - 1)) if kind.value[0] in "sb" else 0
    most = (1 << (bits - 1)) - 1 if kind.value[0] == "s" else (1 << bits) - 1
    if not least <= value <= most:
        raise _refuse(value, kind)
    return value


def wrap(value: int | float, kind: ScalarType) -> int:
    """Number as C converts it to an integer type: of one that does not fit, the low bits.

    >>> wrap(0xFFFFFFFF, ScalarType.S32), wrap(-1, ScalarType.U8), wrap(7.9, ScalarType.S32)
    (-1, 255, 7)
    """
    bits = 8 * kind.bytes
    low = int(value) & ((1 << bits) - 1)
    return low - (1 << bits) if kind.value[0] == "s" and low >> (bits - 1) else low


def _refuse(value: int | float, kind: ScalarType) -> InputError:
    return InputError(f"{value} does not fit {kind.value}", remedy="give a smaller number, or a wider type")


def pack_scalar(value: int | float, kind: ScalarType) -> bytes:
    """Bytes of a number, little-endian, rounded to nearest; too large ones become infinite.

    >>> pack_scalar(-1, ScalarType.S16), pack_scalar(1.0, ScalarType.BF16), pack_scalar(1.0, ScalarType.F16)
    (b'\\xff\\xff', b'\\x80?', b'\\x00<')
    """
    if kind.is_float:
        return round_floats(np.array([value], dtype=np.float64), kind).tobytes()
    return (int(value) & ((1 << (8 * kind.bytes)) - 1)).to_bytes(kind.bytes, "little")


def round_floats(values: npt.NDArray[np.float64], kind: ScalarType) -> npt.NDArray[np.generic]:
    """Numbers in a float type's natural dtype: ``f16`` and ``bf16`` as bits; rounded to nearest, ties to even."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if kind == ScalarType.F16:
            return values.astype(np.float16).view(np.uint16)
        if kind == ScalarType.BF16:
            return _round_to_bfloat16(values)
        return values.astype(kind.natural_dtype)


def _round_to_bfloat16(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    """Rounds once: the double's own bits decide, not those of a float between."""
    bits = np.abs(values).astype(np.float32).view(np.uint32).astype(np.int64)
    # The float may have been rounded onto a tie; one unit is taken back or added so that the tie goes to the side the double is on.
    nearest = np.abs(values).astype(np.float32).astype(np.float64)
    bits = 2 * bits + np.where(nearest > np.abs(values), -1, np.where(nearest < np.abs(values), 1, 0))
    kept = bits >> 17
    rest = bits & 0x1FFFF
    rounded = kept + ((rest > 0x10000) | ((rest == 0x10000) & (kept & 1 == 1)))
    rounded = np.where(np.isinf(nearest), 0x7F80, np.where(np.isnan(values), 0x7FFF, rounded))
    return (rounded | np.where(np.signbit(values) & ~np.isnan(values), 0x8000, 0)).astype(np.uint16)
