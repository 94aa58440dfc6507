"""``mma.sync`` and ``wmma.mma``: D = A · B + C by a warp.

Products of f64 are fused with C one by one, in the order of the depth. Products of narrower numbers are exact in double precision; they are summed
there, in no particular order (all but always exactly), then C is added, and the result is rounded once, to nearest. Integers are exact, modulo
2^32 or clamped. Tensor cores cut intermediate sums off in ways NVIDIA does not document; results differ from
theirs in the last bits. Sparse and block-scaled forms are not supported.

Source: PTX ISA 9.0, section 9.7.14.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.matrix_layouts import (
    Fragment,
    MatrixProduct,
    find_product,
    find_shape,
    find_types,
    register_type,
)
from tests.emulator.oracle.directed import find_arithmetic
from tests.emulator.oracle.model import Family, WarpOperation

# ``mma.m8n8k4`` of halves: four products by the four quad pairs of a warp.
#
# Lanes 4q … 4q+3 and 16+4q … 16+4q+3 work on product q. Source: PTX ISA 9.0, section 9.7.14.5.1.

S = ScalarType


_TF32 = np.uint32(0xFFFF_E000)
_HALF_NAN = np.uint16(0x7FFF)  # The canonical NaN of f16


def unpack(registers: Any, kind: ScalarType) -> Any:
    """Registers [w, 32, r] → elements [w, 32, e]: float64 for floating point, small integers for integers, uint8 bits for B1."""
    return _UNPACKERS[kind](np.ascontiguousarray(registers))


def _split_nibbles(words: Any) -> Any:
    octets = words.view(np.uint8)
    return np.stack([octets & 0xF, octets >> 4], axis=-1).reshape(*octets.shape[:2], -1).view(np.int8)


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
    S.U4: _split_nibbles,
    S.S4: lambda words: np.subtract(np.bitwise_xor(_split_nibbles(words), np.int8(8)), np.int8(8)),
    S.F64: lambda registers: registers,
    S.B1: lambda words: np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little"),
}


def pack(elements: Any, kind: ScalarType) -> Any:
    """Elements [w, 32, e] of a result in F64, F32, S32 or F16 → registers [w, 32, r]: floats or uint32; NaNs of floats are canonical."""
    if kind is S.F64:
        return elements
    if kind is S.F32:
        nan = np.uint32(0x7FFF_FFFF).view(np.float32)
        return np.where(np.isnan(elements), nan, elements.astype(np.float32))
    if kind is S.S32:
        return elements.astype(np.int32).view(np.uint32)
    bits = elements.astype(np.float16).view(np.uint16)
    return np.ascontiguousarray(np.where(np.isnan(elements), _HALF_NAN, bits)).view(np.uint32)


def bind(instruction: PtxInstruction) -> WarpOperation | None:
    """Bind a dense matrix product."""
    types = find_types(instruction)
    if types is not None and instruction.opcode == "mma" and types[1] is S.F16 and find_shape(instruction) == (8, 8, 4):
        return bind_volta(instruction, types)
    product = find_product(instruction)
    return None if product is None else _bind_product(product)


def _bind_product(product: MatrixProduct) -> WarpOperation:
    result, left, right, addend = product.types
    fragments, counts = product.fragments, product.registers
    combine = _find_combination(product)
    a_end, b_end, results = counts[0], counts[0] + counts[1], counts[3]

    def evaluate(active: Any, *sources: Any) -> Any:
        registers = [np.broadcast_to(source, active.shape) for source in sources]
        a = _gather(fragments[0], unpack(np.stack(registers[:a_end], -1), left))
        b = _gather(fragments[1], unpack(np.stack(registers[a_end:b_end], -1), right))
        c = _gather(fragments[2], unpack(np.stack(registers[b_end:], -1), addend))
        packed = pack(_scatter(fragments[2], combine(a, b, c)), result)
        return tuple(packed[..., index] for index in range(packed.shape[-1])) if results > 1 else packed[..., 0]

    return WarpOperation(
        evaluate=evaluate,
        source_types=(
            *(register_type(left),) * counts[0],
            *(register_type(right),) * counts[1],
            *(register_type(addend),) * counts[2],
        ),
        result_types=(register_type(result),) * results,
    )


def _gather(fragment: Fragment, values: Any) -> Any:
    """[w, 32, e] values of lanes → [w, rows, columns]."""
    return values.reshape(len(values), -1).take(fragment.holders, axis=1).reshape(-1, fragment.rows, fragment.columns)


def _scatter(fragment: Fragment, matrix: Any) -> Any:
    """[w, rows, columns] → [w, 32, e]."""
    return matrix.reshape(len(matrix), -1).take(fragment.places, axis=1).reshape(-1, 32, fragment.elements)


def _find_combination(product: MatrixProduct) -> Callable[[Any, Any, Any], Any]:
    result, left = product.types[:2]
    if left is S.B1:
        joins = np.bitwise_and if product.joins_by_and else np.bitwise_xor
        return lambda a, b, c: multiply_bits(a, b, c, joins)
    if result is S.S32:
        return lambda a, b, c: multiply_integers(a, b, c, clamps=product.is_clamped)
    return multiply_doubles if result is S.F64 else multiply_floats


def multiply_floats(a: Any, b: Any, c: Any) -> Any:
    """[w, m, k] · [w, k, n] + [w, m, n] in float64."""
    return np.add(np.matmul(a, b), c)


def multiply_integers(a: Any, b: Any, c: Any, *, clamps: bool) -> Any:
    """Exact products of small integers (by float64, which holds them) and sums in int64; modulo 2^32 or clamped to int32."""
    total = c + np.rint(np.matmul(a.astype(np.float64), b.astype(np.float64))).astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1) if clamps else total


def multiply_doubles(a: Any, b: Any, c: Any) -> Any:
    """The same with fused multiply-adds."""
    shape = c.shape
    total = np.ascontiguousarray(c).reshape(-1)
    fuse, _ = find_arithmetic(S.F64, "fma", "rn")
    for place in range(a.shape[2]):
        left = np.broadcast_to(a[:, :, place, None], shape).reshape(-1)
        right = np.broadcast_to(b[:, None, place, :], shape).reshape(-1)
        total = fuse(left, right, total)
    return total.reshape(shape)


def multiply_bits(a: Any, b: Any, c: Any, joins: Any) -> Any:
    """Counts of ones in the rows of A joined with the columns of B."""
    joined = joins(a[:, :, None, :], b.transpose(0, 2, 1)[:, None, :, :])
    return c + joined.sum(axis=-1, dtype=np.int64)


_LANES = np.arange(32)
_QUAD = _LANES % 16 // 4
_LOW = _LANES % 4
_HIGH = np.where(_LANES < 16, 0, 4)

Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _place_factor(*, along_lane: bool) -> Places:
    """Row and column of A (of B: turned) [32, 4]: a row per lane, or a column per lane."""
    elements = np.arange(4)[None, :]
    if along_lane:
        return np.broadcast_to((_LOW + _HIGH)[:, None], (32, 4)), np.broadcast_to(elements, (32, 4))
    return elements + _HIGH[:, None], np.broadcast_to(_LOW[:, None], (32, 4))


def _place_sum(kind: ScalarType) -> Places:
    """Row and column of C and D [32, 8]."""
    element = np.arange(8)[None, :]
    lane = _LANES[:, None]
    if kind is S.F16:
        return np.broadcast_to((_LOW + _HIGH)[:, None], (32, 8)), np.broadcast_to(element, (32, 8))
    return (lane & 1) + (element & 2) + _HIGH[:, None], (element & 4) + (lane & 2) + (element & 1)


def bind_volta(
    instruction: PtxInstruction, types: tuple[ScalarType, ScalarType, ScalarType, ScalarType]
) -> WarpOperation | None:
    """Bind ``mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype``."""
    layouts = [word for word in instruction.suffixes if word in ("row", "col")]
    result, _, right, addend = types
    sums = {S.F16: 4, S.F32: 8}
    if len(layouts) != 2 or right is not S.F16 or result not in sums or addend not in sums:
        return None
    counts = [len(source.elements) if isinstance(source, Vector) else 1 for source in instruction.sources]
    if counts != [2, 2, sums[addend]]:
        return None
    left_row, left_column = _place_factor(along_lane=layouts[0] == "row")
    right_column, right_row = _place_factor(along_lane=layouts[1] == "col")
    given, wanted = _place_sum(addend), _place_sum(result)
    quad = _QUAD[:, None]

    def evaluate(active: Any, *sources: Any) -> Any:
        registers = [np.broadcast_to(source, active.shape) for source in sources]
        a = np.empty((len(active), 4, 8, 4))
        b = np.empty((len(active), 4, 4, 8))
        total = np.empty((len(active), 4, 8, 8))
        a[:, quad, left_row, left_column] = unpack(np.stack(registers[:2], -1), S.F16)
        b[:, quad, right_row, right_column] = unpack(np.stack(registers[2:4], -1), S.F16)
        total[:, quad, given[0], given[1]] = unpack(np.stack(registers[4:], -1), addend)
        total += np.matmul(a, b)
        packed = pack(total[:, quad, wanted[0], wanted[1]], result)
        return tuple(packed[..., index] for index in range(packed.shape[-1]))

    return WarpOperation(
        evaluate=evaluate,
        source_types=(*(S.U32,) * 4, *(register_type(addend),) * sums[addend]),
        result_types=(register_type(result),) * sums[result],
    )


FAMILY = Family(opcodes=("mma", "wmma"), bind=bind)
