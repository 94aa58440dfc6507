"""PTX's fundamental types: :class:`ScalarType`, and how their values stand in numpy arrays."""

from enum import Enum

import numpy as np


class ScalarType(Enum):
    """A type of one register or one element; the value is its PTX name without the dot.

    Values stand in arrays of the *natural* dtype: signed and unsigned integers in their own, bits (``b8`` … ``b64``) in the unsigned one,
    ``f32`` and ``f64`` in floats, half precision (``f16``, ``bf16``) as ``uint16`` bits, pairs (``f16x2``, ``bf16x2``) and ``tf32`` as
    ``uint32`` bits, predicates in ``bool``. Registers are *stored* in the unsigned dtype of their width, but ``f32``, ``f64`` and ``pred``
    in their natural one, so that going from one to the other is a view and never a copy.

    Source: PTX ISA 9.0, section 5.2 (types).
    """

    B8 = "b8"
    U8 = "u8"
    S8 = "s8"
    B16 = "b16"
    U16 = "u16"
    S16 = "s16"
    F16 = "f16"
    BF16 = "bf16"
    B32 = "b32"
    U32 = "u32"
    S32 = "s32"
    F32 = "f32"
    TF32 = "tf32"
    F16X2 = "f16x2"
    BF16X2 = "bf16x2"
    U16X2 = "u16x2"
    S16X2 = "s16x2"
    E4M3 = "e4m3"
    E5M2 = "e5m2"
    E4M3X2 = "e4m3x2"
    E5M2X2 = "e5m2x2"
    B64 = "b64"
    U64 = "u64"
    S64 = "s64"
    F64 = "f64"
    F32X2 = "f32x2"
    B128 = "b128"
    B1 = "b1"
    U4 = "u4"
    S4 = "s4"
    PRED = "pred"

    @property
    def bytes(self) -> int:
        """Size in memory; predicates and types below one byte say 1."""
        return _BYTES.get(self) or max(1, int(self.value[1:]) // 8)

    @property
    def is_signed(self) -> bool:
        """A signed integer."""
        return self.value[0] == "s" and self is not ScalarType.S16X2

    @property
    def is_float(self) -> bool:
        """Any floating-point type, pairs and eight-bit ones included."""
        return self.value[0] in "fet" or self.value.startswith("bf")

    @property
    def is_integer(self) -> bool:
        """A signed or unsigned integer; bits count as unsigned."""
        return not self.is_float and self is not ScalarType.PRED

    @property
    def natural_dtype(self) -> "np.dtype[np.generic]":
        """The dtype values stand in (see the class); 128 bits have none and raise ``KeyError``."""
        return _NATURAL[self]

    @property
    def storage_dtype(self) -> "np.dtype[np.generic]":
        """The dtype a register of this type is kept in."""
        natural = _NATURAL[self]
        if self in (ScalarType.F32, ScalarType.F64, ScalarType.PRED):
            return natural
        return np.dtype(f"u{natural.itemsize}")


_BYTES = {
    ScalarType.PRED: 1, ScalarType.F16X2: 4, ScalarType.BF16X2: 4, ScalarType.U16X2: 4, ScalarType.S16X2: 4,
    ScalarType.TF32: 4, ScalarType.BF16: 2, ScalarType.E4M3: 1, ScalarType.E5M2: 1, ScalarType.E4M3X2: 2,
    ScalarType.E5M2X2: 2, ScalarType.F32X2: 8,
}  # fmt: skip

_NATURAL: dict[ScalarType, "np.dtype[np.generic]"] = {
    kind: np.dtype(f"{'i' if kind.is_signed else 'u'}{kind.bytes}")
    for kind in ScalarType
    if kind not in (ScalarType.PRED, ScalarType.F32, ScalarType.F64, ScalarType.B128)
} | {
    ScalarType.PRED: np.dtype(np.bool_),
    ScalarType.F32: np.dtype(np.float32),
    ScalarType.F64: np.dtype(np.float64),
}


def align_up(offset: int, alignment: int) -> int:
    """Round an offset up to a multiple of ``alignment``.

    >>> align_up(5, 4), align_up(8, 4)
    (8, 8)
    """
    return -(-offset // alignment) * alignment


TYPES = {kind.value: kind for kind in ScalarType}  # Types by name
