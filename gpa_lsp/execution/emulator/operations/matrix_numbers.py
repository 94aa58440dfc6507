"""Elements of matrices: from registers to numbers and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.halves import decode_table, narrow_double, widen, widen_bfloat
from gpa_lsp.execution.emulator.operations.single import canonicalise

S = ScalarType

_TF32 = np.uint32(0xFFFF_E000)


def unpack(registers: Any, kind: ScalarType) -> Any:
    """Registers [w, 32, r] → elements [w, 32, e]: float64 for floating point, small integers for integers, uint8 bits for B1."""
    return _UNPACKERS[kind](np.ascontiguousarray(registers))


def _unpack_nibbles(words: Any) -> Any:
    octets = words.view(np.uint8)
    return np.stack([octets & 0xF, octets >> 4], axis=-1).reshape(*octets.shape[:2], -1).view(np.int8)


def _unpack_signed_nibbles(words: Any) -> Any:
    nibbles = _unpack_nibbles(words)
    return np.subtract(np.bitwise_xor(nibbles, np.int8(8)), np.int8(8))


_UNPACKERS: dict[ScalarType, Callable[[Any], Any]] = {
    S.F64: lambda registers: registers,
    S.F32: lambda registers: registers.astype(np.float64),
    S.TF32: lambda words: np.bitwise_and(words, _TF32).view(np.float32).astype(np.float64),
    S.F16: lambda words: widen(S.F16)(words.view(np.uint16)).astype(np.float64),
    S.BF16: lambda words: widen_bfloat(words.view(np.uint16)).astype(np.float64),
    S.E4M3: lambda words: decode_table("e4m3")[words.view(np.uint8)],
    S.E5M2: lambda words: decode_table("e5m2")[words.view(np.uint8)],
    S.S32: lambda words: words.view(np.int32),
    S.U8: lambda words: words.view(np.uint8),
    S.S8: lambda words: words.view(np.int8),
    S.U4: _unpack_nibbles,
    S.S4: _unpack_signed_nibbles,
    S.B1: lambda words: np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little"),
}


def pack(elements: Any, kind: ScalarType) -> Any:
    """Elements [w, 32, e] of a result → registers [w, 32, r]: uint32, float32 or float64."""
    if kind is S.F64:
        return elements
    if kind is S.F32:
        return canonicalise(elements.astype(np.float32))
    if kind is S.S32:
        return elements.astype(np.int32).view(np.uint32)
    bits = narrow_double(kind)(np.ascontiguousarray(elements))
    return np.ascontiguousarray(bits).view(np.uint32)


def multiply_floats(a: Any, b: Any, c: Any) -> Any:
    """[w, m, k] · [w, k, n] + [w, m, n] in float64."""
    return np.add(np.matmul(a, b), c)


def multiply_integers(a: Any, b: Any, c: Any, *, clamps: bool) -> Any:
    """Exact products of small integers (by float64, which holds them) and sums in int64; modulo 2^32 or clamped to int32."""
    total = c + np.rint(np.matmul(a.astype(np.float64), b.astype(np.float64))).astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1) if clamps else total
