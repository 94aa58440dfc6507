"""``popc clz bfind brev fns bfe bfi bmsk szext``.

Source: PTX ISA 9.0, sections 9.7.1.15 to 9.7.1.22.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import SIGNED, as_unsigned, find_type
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
    """``popc clz brev``."""
    unsigned, reverses = as_unsigned(kind), instruction.opcode == "brev"
    count: Function = _reverse if reverses else _count_ones if instruction.opcode == "popc" else _count_leading_zeros
    return LaneOperation(evaluate=count, source_types=(unsigned,), result_types=(unsigned if reverses else S.U32,))


def _bind_find(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation:
    """Position of the highest bit that is set (of a negative number: clear), or 0xFFFFFFFF."""
    unsigned, highest = as_unsigned(kind), np.uint32(kind.bytes * 8 - 1)
    gives_shift = "shiftamt" in instruction.suffixes

    def evaluate(a: Any) -> Any:
        zeros = _count_leading_zeros(np.where(a < 0, ~a, a).view(unsigned.natural_dtype))
        return np.where(zeros > highest, np.uint32(0xFFFF_FFFF), zeros if gives_shift else highest - zeros)

    return LaneOperation(evaluate=evaluate, source_types=(kind if kind in SIGNED else unsigned,), result_types=(S.U32,))


def _bind_nth(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if kind is not S.B32:
        return None
    return LaneOperation(evaluate=find_nth_set, source_types=(S.U32, S.U32, S.S32), result_types=(S.U32,))


def _bind_extract(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``bfe``: length and position count by their low eight bits; a signed field is extended by its highest bit that exists."""
    source = kind if kind in SIGNED else as_unsigned(kind)
    width, dtype = np.uint32(kind.bytes * 8), kind.natural_dtype
    most = width - np.uint32(kind in SIGNED)  # from beyond the top come copies of the sign

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        position = np.minimum(b & _BYTE, most)
        length = np.minimum(c & _BYTE, width - position)
        field = a << (width - position - length).astype(dtype) >> (width - length).astype(dtype)
        return np.where(length > 0, field, dtype.type(0))

    return LaneOperation(evaluate=evaluate, source_types=(source, S.U32, S.U32), result_types=(source,))


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


def _list_bits(values: Any) -> Any:
    """Bits of unsigned integers, lowest first: uint8[n, width]."""
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    return np.unpackbits(octets, axis=1, bitorder="little")


def _count_ones(values: Any) -> Any:
    return _list_bits(values).sum(axis=1, dtype=np.uint32)


def _count_leading_zeros(values: Any) -> Any:
    seen = np.maximum.accumulate(_list_bits(values)[:, ::-1], axis=1)
    return (1 - seen).sum(axis=1, dtype=np.uint32)


def _reverse(values: Any) -> Any:
    return np.packbits(_list_bits(values), axis=1).view(values.dtype.newbyteorder(">")).astype(values.dtype)[:, 0]


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
    "brev": _bind_count,
    "fns": _bind_nth,
    "bfe": _bind_extract,
    "bfi": _bind_insert,
    "bmsk": _bind_mask,
    "szext": _bind_extend,
}

FAMILY = Family(opcodes=tuple(_BINDERS), bind=bind)
