"""Operands of ``wgmma.mma_async``: shapes and types (:func:`read_product`), the place of matrices in memory, and their elements as numbers.

Source: PTX ISA 9.0, section 9.7.15.5.2 (shapes, types and operands of wgmma.mma_async).
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Immediate, Operand, PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.matrix_layouts import BITS

S = ScalarType
GROUP_WARPS = 4  # Warps of a warp group; the rank in its block of the first one is a multiple of it
WARP_ROWS = 16  # Rows of A and D that belong to each of them
ROW_BYTES = 32  # A row of A, or a column of B: the depth is as many elements as this holds
_LEFT_REGISTERS = 4

_SHAPE = re.compile(r"m64n(\d{1,3})k(\d{1,3})", re.ASCII)
# By type of A: those of B, and of D
_FLOATS: dict[ScalarType, tuple[frozenset[ScalarType], frozenset[ScalarType]]] = {
    S.F16: (frozenset({S.F16}), frozenset({S.F16, S.F32})),
    S.BF16: (frozenset({S.BF16}), frozenset({S.F32})),
    S.TF32: (frozenset({S.TF32}), frozenset({S.F32})),
    S.E4M3: (frozenset({S.E4M3, S.E5M2}), frozenset({S.F16, S.F32})),
    S.E5M2: (frozenset({S.E4M3, S.E5M2}), frozenset({S.F16, S.F32})),
}
# By type of A: those of B. D is of S32.
_INTEGERS: dict[ScalarType, frozenset[ScalarType]] = {
    S.S8: frozenset({S.S8, S.U8}),
    S.U8: frozenset({S.S8, S.U8}),
    S.B1: frozenset({S.B1}),
}


class WarpGroupProduct(Struct, frozen=True, kw_only=True):
    """D = ±A · B (+ D): D of 64 rows, A of 64 rows and B of ``depth`` rows."""

    columns: int  # of B and D
    depth: int  # columns of A
    result: ScalarType  # type of D
    left: ScalarType  # type of A
    right: ScalarType  # type of B
    clamps: bool  # sums of integers are kept within 32 bits
    is_negated: bool  # one of A and B is negated, and the other is not
    left_is_vector: bool  # A stands in registers
    # in memory, neighbours of a column of A stand side by side, and not those of a row (*M-major*)
    left_is_turned: bool
    # in memory, neighbours of a row of B stand side by side, and not those of a column (*N-major*)
    right_is_turned: bool

    @property
    def result_registers(self) -> int:
        """Registers of D per lane."""
        return self.columns // 2 * BITS[self.result] // 32


def read_product(instruction: PtxInstruction) -> WarpGroupProduct | None:
    """Take a ``wgmma.mma_async`` apart: D is its destination; A, B, the predicate that keeps D, then signs and turns are its sources.

    Returns:
        None for a form that is not supported (sparse matrices), or that does not exist.
    """
    words, types = instruction.suffixes, instruction.types
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    if shape is None or "sp" in words or len(types) != 3 or len(instruction.sources) < 3:
        return None
    result, left, right = types
    columns, depth = int(shape[1]), int(shape[2])
    if not _fits(result, left, right) or not _has_shape(columns, depth, left) or (left is S.B1 and "and" not in words):
        return None
    factor = instruction.sources[0]
    is_vector = isinstance(factor, Vector)
    choices = _read_choices(instruction.sources[3:], left, is_vector=is_vector)
    if choices is None or (isinstance(factor, Vector) and len(factor.elements) != _LEFT_REGISTERS):
        return None
    is_negated, left_is_turned, right_is_turned = choices
    return WarpGroupProduct(
        columns=columns,
        depth=depth,
        result=result,
        left=left,
        right=right,
        clamps="satfinite" in words,
        is_negated=is_negated,
        left_is_vector=is_vector,
        left_is_turned=left_is_turned,
        right_is_turned=right_is_turned,
    )


def _fits(result: ScalarType, left: ScalarType, right: ScalarType) -> bool:
    if left in _FLOATS:
        rights, results = _FLOATS[left]
        return right in rights and result in results
    return left in _INTEGERS and right in _INTEGERS[left] and result is S.S32


def _has_shape(columns: int, depth: int, left: ScalarType) -> bool:
    """Multiples of 8 columns up to 256; of integers above 32 those of 16 alone."""
    step = 16 if left in _INTEGERS and columns > 32 else 8
    return 8 <= columns <= 256 and columns % step == 0 and depth * BITS[left] == 8 * ROW_BYTES


def _read_choices(
    operands: tuple[Operand, ...], left: ScalarType, *, is_vector: bool
) -> tuple[bool, bool, bool] | None:
    """Whether the product is negated, A is turned, and B is turned; None when the literals are not those of the form."""
    values = [operand.value if isinstance(operand, Immediate) else None for operand in operands]
    if left in _INTEGERS:
        return (False, False, False) if not values else None
    turns = (1 if is_vector else 2) if BITS[left] == 16 else 0
    if len(values) != 2 + turns or not {*values[:2]} <= {1, -1} or not {*values[2:]} <= {0, 1}:
        return None
    is_negated = values[0] != values[1]
    left_is_turned = turns == 2 and values[2] == 1
    return is_negated, left_is_turned, turns > 0 and values[-1] == 1


# Matrices in shared memory, given by descriptors of ``wgmma``: their place, :func:`find_rows`, and elements, :func:`arrange`.
#
# Such a matrix is read in rows of 16 bytes. Along the depth of the product it has 32 bytes: two rows side by side for
# each row of A (or column of B) where neighbours along the depth stand side by side (*K-major*); else, for elements of
# 16 bits, 16 rows, each of eight elements along the other side (*MN-major*). Eight rows of 16 · w bytes make an
# *atom*, w is 1, 2, 4 or 8 by the swizzle; atoms follow one another at the two strides of the descriptor. Within an
# atom, the three bits of an address above those of a row of 16 bytes are exchanged (exclusive or) with the low bits of
# the atom's row, which are those of the address above the lowest seven: one bit of them for a swizzle of 32 bytes, two
# for 64, three for 128.
#
# Source: PTX ISA 9.0, sections 9.7.15.5.1.2.1 (strides, canonical layouts) and 9.7.15.5.1.2.2 (matrix descriptor
# format).

UNIT_BYTES = 16  # Read at once; unit of the addresses and strides of a descriptor
_FIELD = (1 << 14) - 1
_START_BITS = 16
_STRIDE_SHIFT = 16
_BASE_SHIFT = 33
_MODE_SHIFT = 46
_WIDTHS = (1, 8, 4, 2)  # Units side by side in an atom, by swizzle mode
_TURNED_DEPTH = 16


def has_base_offset(descriptors: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Whether each descriptor has a base offset: its atoms begin at no multiple of an atom. Ignored without a swizzle."""
    fields = descriptors >> np.uint64(_START_BITS)
    found: npt.NDArray[np.bool_] = (fields >> np.uint64(_BASE_SHIFT) & np.uint64(7) != 0) & (
        fields >> np.uint64(_MODE_SHIFT) != 0
    )
    return found


def find_rows(descriptors: npt.NDArray[np.uint64], lines: int, *, is_turned: bool) -> npt.NDArray[np.int64]:
    """Addresses in shared memory of the rows of 16 bytes of matrices.

    Args:
        descriptors: uint64[x], base offsets not looked at.
    """
    fields = descriptors >> np.uint64(_START_BITS)
    starts = (descriptors & np.uint64(_FIELD)).astype(np.int64) * UNIT_BYTES
    found = np.empty((len(descriptors), 2 * lines), np.int64)
    for value in np.unique(fields):
        where = fields == value
        addresses = starts[where, None] + _find_offsets(int(value), lines, is_turned)
        swizzled = (_WIDTHS[int(value) >> _MODE_SHIFT] - 1) * UNIT_BYTES
        found[where] = addresses ^ (addresses >> 3 & swizzled)
    return found


@lru_cache(maxsize=256)
def _find_offsets(fields: int, lines: int, is_turned: bool) -> npt.NDArray[np.int64]:
    """int64[2 · lines]: distances of rows from the start of a matrix, before addresses are swizzled."""
    leading, stride = (fields & _FIELD) * UNIT_BYTES, (fields >> _STRIDE_SHIFT & _FIELD) * UNIT_BYTES
    width = _WIDTHS[fields >> _MODE_SHIFT]
    if not is_turned:
        line, half = np.arange(lines)[:, None], np.arange(2)[None, :]
        step = leading if width == 1 else UNIT_BYTES
        return (line % 8 * width * UNIT_BYTES + line // 8 * stride + half * step).reshape(-1)
    eight, depth = np.arange(lines // 8)[:, None], np.arange(_TURNED_DEPTH)[None, :]
    across, along = (stride, leading) if width == 1 else (leading, stride)
    beside = eight % width * UNIT_BYTES + eight // width * across
    return (beside + depth % 8 * width * UNIT_BYTES + depth // 8 * along).reshape(-1)


def arrange(words: npt.NDArray[np.uint32], kind: ScalarType, *, is_turned: bool) -> Any:
    """Rows as :func:`find_rows` lists them → elements.

    Args:
        is_turned: as of :func:`find_rows`.

    Returns:
        [x, lines, depth]: what :func:`unpack` gives.
    """
    count = len(words)
    if not is_turned:
        return unpack(words.reshape(count, -1, ROW_BYTES // 4), kind)
    elements = unpack(words, kind).reshape(count, -1, _TURNED_DEPTH, 8)
    return elements.transpose(0, 1, 3, 2).reshape(count, -1, _TURNED_DEPTH)


# Elements of matrices: from registers to numbers and back.

_TF32 = np.uint32(0xFFFF_E000)
_HALF_NAN = np.uint16(0x7FFF)  # The canonical NaN of f16


def unpack(registers: Any, kind: ScalarType) -> Any:
    """Registers [w, 32, r] → elements [w, 32, e]: float64 for floating point, small integers for integers, uint8 bits for B1."""
    return _UNPACKERS[kind](np.ascontiguousarray(registers))


@cache
def _list_e4m3() -> npt.NDArray[np.float64]:
    """The value of every e4m3, which has no infinity: float64[256]."""
    exponent, fraction = np.divmod(np.arange(128), 8)
    values = np.ldexp(fraction + 8.0 * (exponent > 0), np.maximum(exponent, 1) - 10)
    values[127] = np.nan
    return np.concatenate([values, -values])


_UNPACKERS: dict[ScalarType, Callable[[Any], Any]] = {
    S.F32: lambda registers: registers.astype(np.float64),
    S.TF32: lambda words: np.bitwise_and(words, _TF32).view(np.float32).astype(np.float64),
    S.F16: lambda words: words.view(np.float16).astype(np.float64),
    S.BF16: lambda words: (words.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64),
    S.E4M3: lambda words: _list_e4m3()[words.view(np.uint8)],
    S.E5M2: lambda words: (words.view(np.uint8).astype(np.uint16) << 8).view(np.float16).astype(np.float64),
    S.S32: lambda words: words.view(np.int32),
    S.U8: lambda words: words.view(np.uint8),
    S.S8: lambda words: words.view(np.int8),
    S.B1: lambda words: np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little"),
}


def pack(elements: Any, kind: ScalarType) -> Any:
    """Elements [w, 32, e] of a result in F32, S32 or F16 → registers [w, 32, r]: float32 or uint32; NaNs are canonical."""
    if kind is S.F32:
        nan = np.uint32(0x7FFF_FFFF).view(np.float32)
        return np.where(np.isnan(elements), nan, elements.astype(np.float32))
    if kind is S.S32:
        return elements.astype(np.int32).view(np.uint32)
    bits = elements.astype(np.float16).view(np.uint16)
    return np.ascontiguousarray(np.where(np.isnan(elements), _HALF_NAN, bits)).view(np.uint32)


def multiply_floats(a: Any, b: Any, c: Any) -> Any:
    """[w, m, k] · [w, k, n] + [w, m, n] in float64."""
    return np.add(np.matmul(a, b), c)


def multiply_integers(a: Any, b: Any, c: Any, *, clamps: bool) -> Any:
    """Exact products of small integers (by float64, which holds them) and sums in int64; modulo 2^32 or clamped to int32."""
    total = c + np.rint(np.matmul(a.astype(np.float64), b.astype(np.float64))).astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1) if clamps else total
