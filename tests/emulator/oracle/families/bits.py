"""``popc clz bfind brev fns bfe bfi bmsk szext``.

Source: PTX ISA 9.0, sections 9.7.1.15 to 9.7.1.22.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.modifiers import SIGNED, as_unsigned, find_literal, find_type
from tests.emulator.oracle.lanes import over_lanes
from tests.emulator.oracle.model import Family, LaneOperation

Function = Callable[..., Any]
S = ScalarType
_WIDE = frozenset({S.B32, S.U32, S.S32, S.B64, S.U64, S.S64})
_BYTE = np.uint32(0xFF)


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a bit instruction of 32 or 64 bits."""
    kind = find_type(instruction)
    if kind is None or kind not in _WIDE:
        return None
    return _BINDERS[instruction.opcode](instruction, kind)


def _bind_count(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation:
    count = count_ones if instruction.opcode == "popc" else count_leading_zeros
    return LaneOperation(evaluate=count, source_types=(as_unsigned(kind),), result_types=(S.U32,))


def _bind_find(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation:
    """Position of the highest bit that is set (of a negative number: clear), or 0xFFFFFFFF."""
    unsigned = as_unsigned(kind)
    width = kind.bytes * 8
    highest = np.uint32(width - 1)
    gives_shift = "shiftamt" in instruction.suffixes
    sign_shift = kind.natural_dtype.type(width - 1)
    signed = kind in SIGNED

    def evaluate(a: Any) -> Any:
        if signed:
            a = np.bitwise_xor(a, np.right_shift(a, sign_shift))
        zeros = count_leading_zeros(a.view(unsigned.natural_dtype))
        if not gives_shift:
            return np.subtract(highest, zeros)  # no bit at all: −1
        return np.bitwise_or(zeros, np.negative((zeros > highest).astype(np.uint32)))

    return LaneOperation(evaluate=evaluate, source_types=(kind if signed else unsigned,), result_types=(S.U32,))


def _bind_reverse(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation:
    unsigned = as_unsigned(kind)
    return LaneOperation(evaluate=reverse_bits, source_types=(unsigned,), result_types=(unsigned,))


def _bind_nth(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if kind is not S.B32:
        return None
    return LaneOperation(evaluate=over_lanes(find_nth_set), source_types=(S.U32, S.U32, S.S32), result_types=(S.U32,))


def _bind_extract(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``bfe``: length and position count by their low eight bits; a signed field is extended by its highest bit that exists."""
    position, length = find_literal(instruction, 1), find_literal(instruction, 2)
    unsigned = as_unsigned(kind)
    if position is not None and length is not None:
        evaluate = _extract_fixed(kind, position & 0xFF, length & 0xFF)
    else:
        evaluate = _extract(kind)
    source = kind if kind in SIGNED else unsigned
    return LaneOperation(evaluate=evaluate, source_types=(source, S.U32, S.U32), result_types=(source,))


def _extract_fixed(kind: ScalarType, position: int, length: int) -> Function:
    """Two shifts: the field to the top, then down with or without the sign."""
    width = kind.bytes * 8
    dtype = kind.natural_dtype
    signed = kind in SIGNED
    if length == 0:
        return lambda a, _b, _c: np.bitwise_xor(a, a)
    if position >= width:
        top = dtype.type(width - 1)
        return (lambda a, _b, _c: np.right_shift(a, top)) if signed else (lambda a, _b, _c: np.bitwise_xor(a, a))
    length = min(length, width - position)
    up, down = dtype.type(width - position - length), dtype.type(width - length)
    return lambda a, _b, _c: np.right_shift(np.left_shift(a, up), down)


def _extract(kind: ScalarType) -> Function:
    width = kind.bytes * 8
    signed = kind in SIGNED
    dtype = kind.natural_dtype
    limit = np.uint32(width)

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        position, length = np.minimum(b & _BYTE, limit), c & _BYTE
        if signed:  # from beyond the top come copies of the sign
            position = np.minimum(position, limit - np.uint32(1))
        length = np.minimum(length, limit - position)
        up = (limit - position - length).astype(dtype)
        down = (limit - length).astype(dtype)
        field = np.right_shift(np.left_shift(a, up), down)
        return np.multiply(field, length > np.uint32(0))

    return evaluate


def _bind_insert(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation:
    """``bfi d, a, b, c, d``: the low bits of a put into b at a position, for a length."""
    unsigned = as_unsigned(kind)
    dtype = unsigned.natural_dtype
    width = np.uint32(kind.bytes * 8)
    one = dtype.type(1)

    def evaluate(a: Any, b: Any, c: Any, d: Any) -> Any:
        position, length = np.minimum(c & _BYTE, width).astype(dtype), np.minimum(d & _BYTE, width).astype(dtype)
        mask = np.left_shift(np.subtract(np.left_shift(one, length), one), position)
        return np.bitwise_xor(b, np.bitwise_and(np.bitwise_xor(b, np.left_shift(a, position)), mask))

    return LaneOperation(evaluate=evaluate, source_types=(unsigned, unsigned, S.U32, S.U32), result_types=(unsigned,))


def _bind_mask(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``bmsk.clamp|wrap.b32``: a field of ones from a position, of a length."""
    if kind is not S.B32:
        return None
    wraps = "wrap" in instruction.suffixes
    one, most, low = np.uint32(1), np.uint32(32), np.uint32(31)

    def evaluate(a: Any, b: Any) -> Any:
        position = np.bitwise_and(a, low) if wraps else np.minimum(a, most)
        length = np.bitwise_and(b, low) if wraps else np.minimum(b, most)
        return np.left_shift(np.subtract(np.left_shift(one, length), one), position)

    return LaneOperation(evaluate=evaluate, source_types=(S.U32, S.U32), result_types=(S.U32,))


def _bind_extend(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``szext.clamp|wrap.u32|s32``: the low n bits, extended by zeros or by their highest."""
    if kind.bytes != 4:
        return None
    signed, wraps = kind in SIGNED, "wrap" in instruction.suffixes
    dtype = kind.natural_dtype
    low, most = np.uint32(31), np.uint32(32)

    def evaluate(a: Any, b: Any) -> Any:
        length = np.bitwise_and(b, low) if wraps else np.minimum(b, most)
        unused = np.subtract(most, length).astype(dtype)
        field = np.right_shift(np.left_shift(a, unused), unused)
        return np.multiply(field, length > np.uint32(0))

    source = kind if signed else S.U32
    return LaneOperation(evaluate=evaluate, source_types=(source, S.U32), result_types=(source,))


_MASKS = {
    4: ((1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0F0F_0F0F)),
    8: ((1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F)),
}
_ONES = {4: 0x0101_0101, 8: 0x0101_0101_0101_0101}


def count_ones(values: Any) -> Any:
    """Bits that are set, as uint32. Values of uint32 or uint64."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(values).astype(np.uint32)
    kind = values.dtype.type
    (one, odd), (two, pairs), (four, nibbles) = _MASKS[values.dtype.itemsize]
    values = values - ((values >> kind(one)) & kind(odd))
    values = (values & kind(pairs)) + ((values >> kind(two)) & kind(pairs))
    values = (values + (values >> kind(four))) & kind(nibbles)
    total = np.multiply(values, kind(_ONES[values.dtype.itemsize]))
    return np.right_shift(total, kind(values.dtype.itemsize * 8 - 8)).astype(np.uint32)


def count_leading_zeros(values: Any) -> Any:
    """Zeros above the highest bit that is set, as uint32; the width for 0. Values of uint32 or uint64."""
    if values.dtype.itemsize == 4:
        _, exponent = np.frexp(values.astype(np.float64))  # exact
        return np.subtract(np.uint32(32), exponent.astype(np.uint32))
    high = np.right_shift(values, np.uint64(32)).astype(np.uint32)
    low = values.astype(np.uint32)
    in_high, in_low = count_leading_zeros(high), count_leading_zeros(low)
    return np.add(in_high, np.multiply(in_low, np.equal(high, np.uint32(0))))


def reverse_bits(values: Any) -> Any:
    """Bits in the reverse order. Values of uint32 or uint64."""
    kind = values.dtype.type
    for shift, mask in _MASKS[values.dtype.itemsize]:
        low = np.left_shift(np.bitwise_and(values, kind(mask)), kind(shift))
        values = np.bitwise_or(low, np.bitwise_and(np.right_shift(values, kind(shift)), kind(mask)))
    return values.byteswap()


def find_nth_set(
    mask: npt.NDArray[np.uint32], start: npt.NDArray[np.uint32], offset: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint32]:
    """``fns``: position of the n-th bit that is set, counted from a start up (offset > 0) or down (offset < 0).

    Offset 0 asks whether the bit at the start is set. 0xFFFFFFFF where there is none. Source: PTX ISA 9.0, section 9.7.1.18.
    """
    bits = (mask[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    places = np.arange(32)
    begin = np.minimum(start, 32).astype(np.int64)[:, None]
    offsets = offset.astype(np.int64)[:, None]
    upward = np.cumsum(bits * (places >= begin), axis=1)
    downward = np.cumsum((bits * (places <= begin))[:, ::-1], axis=1)[:, ::-1]
    wanted = np.abs(offsets)
    up = (offsets > 0) & (upward == wanted) & (places >= begin)
    down = (offsets < 0) & (downward == wanted) & (places <= begin)
    found = (up | down | ((offsets == 0) & (places == begin))) & (bits != 0) & (start < 32)[:, None]
    result = np.where(found.any(axis=1), found.argmax(axis=1), 0xFFFF_FFFF)
    return result.astype(np.uint32)


_BINDERS: dict[str, Callable[[PtxInstruction, ScalarType], LaneOperation | None]] = {
    "popc": _bind_count,
    "clz": _bind_count,
    "bfind": _bind_find,
    "brev": _bind_reverse,
    "fns": _bind_nth,
    "bfe": _bind_extract,
    "bfi": _bind_insert,
    "bmsk": _bind_mask,
    "szext": _bind_extend,
}

FAMILY = Family(opcodes=tuple(_BINDERS), bind=bind)
