"""``cvt`` into and out of pairs (f16x2, bf16x2, e4m3x2, e5m2x2, e2m1x2, e2m3x2, e3m2x2, ue8m0x2), tf32, and ``cvt.pack``.

Of ``cvt d, a, b`` into a pair, a becomes the upper and b the lower element. Source: PTX ISA 9.0, sections 9.7.9.22 and 9.7.9.23.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_rounding
from tests.emulator.oracle.halves import (
    FORMATS,
    clip_negative,
    decode_scale_table,
    decode_table,
    encode,
    encode_scale,
    round_to_format,
    widen,
)
from tests.emulator.oracle.model import Family, LaneOperation

Function = Callable[..., Any]
S = ScalarType

_SMALL = {"e4m3x2": "e4m3", "e5m2x2": "e5m2", "e2m3x2": "e2m3", "e3m2x2": "e3m2", "e2m1x2": "e2m1", "ue8m0x2": "ue8m0"}
_HALVES = {"f16x2": S.F16, "bf16x2": S.BF16}
_FORMATS = {*_SMALL, *_HALVES, "f16", "bf16", "f32", "tf32"}


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a conversion of packed or eight-bit numbers."""
    words = instruction.suffixes
    if "pack" in words:
        return _bind_pack(instruction)
    named = [word for word in words if word in _FORMATS]
    if len(named) != 2 or "rs" in words or any("scale" in word for word in words):
        return None
    result, source = named
    if result == "tf32" and source == "f32":
        function = _convert_one("tf32", words)
        return LaneOperation(evaluate=function, source_types=(S.F32,), result_types=(S.U32,))
    if source == "f32" and (result in _HALVES or result in _SMALL) and len(instruction.sources) == 2:
        return _bind_from_singles(result, words)
    if result in _SMALL and source in _HALVES:
        return _bind_from_pair(result, source, words)
    if result in _HALVES and source in _SMALL:
        return _bind_from_small(result, source, words)
    return None


def _convert_one(name: str, words: tuple[str, ...]) -> Function:
    """float32[n] → bits, with the rounding and the ``.satfinite`` and ``.relu`` of the instruction."""
    mode = find_rounding(words)
    saturates = "satfinite" in words
    relu = "relu" in words
    if name == "ue8m0":
        return lambda values: encode_scale(values, rounds_up=mode == "rp", saturates=saturates)

    def convert(values: Any) -> Any:
        rounded = round_to_format(values.astype(np.float64), name, mode, saturates=saturates)
        rounded = clip_negative(rounded) if relu else rounded
        if FORMATS[name].nan_bits is None:  # no NaN in the format: the largest number
            rounded = np.where(np.isnan(rounded), FORMATS[name].largest, rounded)
        return encode(rounded, name)

    return convert


def _find_layout(result: str) -> tuple[str, ScalarType, int]:
    """Element format, type of the register, and bits by which the upper element is moved up."""
    if result in _HALVES:
        return result.removesuffix("x2"), S.U32, 16
    return _SMALL[result], S.U8 if result == "e2m1x2" else S.U16, 4 if result == "e2m1x2" else 8


def _bind_from_singles(result: str, words: tuple[str, ...]) -> LaneOperation:
    name, kind, distance = _find_layout(result)
    convert = _convert_one(name, words)
    dtype = kind.natural_dtype
    shift = dtype.type(distance)

    def evaluate(a: Any, b: Any) -> Any:
        return np.bitwise_or(np.left_shift(convert(a).astype(dtype), shift), convert(b).astype(dtype))

    return LaneOperation(evaluate=evaluate, source_types=(S.F32, S.F32), result_types=(kind,))


def _bind_from_pair(result: str, source: str, words: tuple[str, ...]) -> LaneOperation:
    name, kind, distance = _find_layout(result)
    convert, to_single = _convert_one(name, words), widen(_HALVES[source])
    dtype = kind.natural_dtype
    shift = dtype.type(distance)

    def evaluate(a: Any) -> Any:
        elements = convert(to_single(np.ascontiguousarray(a).view(np.uint16))).astype(dtype)
        return np.bitwise_or(np.left_shift(elements[1::2], shift), elements[0::2])

    return LaneOperation(evaluate=evaluate, source_types=(S.U32,), result_types=(kind,))


def _bind_from_small(result: str, source: str, words: tuple[str, ...]) -> LaneOperation:
    name, kind, distance = _find_layout(source)
    table = decode_scale_table() if name == "ue8m0" else decode_table(name)
    if "relu" in words:
        table = np.where(table <= 0, 0.0, table)
    with np.errstate(all="ignore"):
        bits = encode(table, result.removesuffix("x2")).astype(np.uint32)
    low = np.uint32(len(table) - 1)

    def evaluate(a: Any) -> Any:
        wide = a.astype(np.uint32)
        high = bits[np.bitwise_and(np.right_shift(wide, np.uint32(distance)), low)]
        return np.bitwise_or(np.left_shift(high, np.uint32(16)), bits[np.bitwise_and(wide, low)])

    return LaneOperation(evaluate=evaluate, source_types=(kind,), result_types=(S.U32,))


_PACKED = {"u16": 16, "s16": 16, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "u2": 2, "s2": 2}


def _bind_pack(instruction: PtxInstruction) -> LaneOperation | None:
    """``cvt.pack.sat.convertType.s32{.b32} d, a, b{, c}``: clamped a and b over the low bits of c, moved up."""
    element = next((word for word in instruction.suffixes if word in _PACKED), None)
    if element is None or "s32" not in instruction.suffixes:
        return None
    bits = _PACKED[element]
    has_rest = len(instruction.sources) == 3
    if has_rest == (bits == 16):
        return None
    lowest = -(1 << (bits - 1)) if element[0] == "s" else 0
    mask = np.uint32((1 << bits) - 1)
    low, high = np.int32(lowest), np.int32(lowest + (1 << bits) - 1)

    def evaluate(a: Any, b: Any, *rest: Any) -> Any:
        upper, lower = (np.bitwise_and(np.clip(part, low, high).view(np.uint32), mask) for part in (a, b))
        both = np.bitwise_or(np.left_shift(upper, np.uint32(bits)), lower)
        return np.bitwise_or(np.left_shift(rest[0], np.uint32(2 * bits)), both) if rest else both

    sources = (S.S32, S.S32, S.U32) if has_rest else (S.S32, S.S32)
    return LaneOperation(evaluate=evaluate, source_types=sources, result_types=(S.U32,))


FAMILY = Family(opcodes=("cvt",), bind=bind)
