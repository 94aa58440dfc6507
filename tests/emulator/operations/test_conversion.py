"""``cvt`` against fractions: every pair of types, rounding and modifier."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gpa_lsp.execution.emulator.semantics.find import find_meaning
from tests.emulator.operations.evaluating import as_signed, bits_of, edge_integers, evaluate, read_instruction
from tests.emulator.operations.exact_floats import (
    BF16,
    F16,
    F32,
    F64,
    Layout,
    decode,
    decode_table,
    edge_floats,
    encode,
    flush,
    is_finite,
    is_nan,
)

FLOATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
REGISTERS = {"f16": "%h", "bf16": "%h", "f32": "%f", "f64": "%e"}
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
MODES = ("rn", "rz", "rm", "rp")
NANS = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFF_FFFF}


def register(kind: str) -> str:
    return REGISTERS.get(kind) or {8: "%h", 16: "%h", 32: "%r", 64: "%d"}[int(kind[1:])]


def value(pattern: int, kind: str) -> int:
    bits = int(kind[1:])
    return as_signed(pattern, bits) if kind[0] == "s" else pattern & ((1 << bits) - 1)


def limits(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", INTEGERS)
def test_integers(result: str, source: str) -> None:
    patterns = edge_integers(max(16, int(source[1:])))
    mask = (1 << int(result[1:])) - 1
    text = f"{result}.{source} {register(result)}1, {register(source)}2"
    assert bits_of(evaluate(f"cvt.{text}", patterns)) == [value(p, source) & mask for p in patterns]
    low, high = limits(result)
    found = bits_of(evaluate(f"cvt.sat.{text}", patterns))
    assert found == [min(max(value(p, source), low), high) & mask for p in patterns]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", FLOATS)
def test_integers_to_floats(result: str, source: str, mode: str) -> None:
    if result == "bf16" and int(source[1:]) == 8:
        return
    patterns = edge_integers(max(16, int(source[1:])), more=60)
    patterns += [(1 << 24) + 1, (1 << 25) + 2, (1 << 53) + 1, (1 << 54) + 2, (1 << 63) + 1, (1 << 63) + (1 << 39)]
    found = bits_of(evaluate(f"cvt.{mode}.{result}.{source} {register(result)}1, {register(source)}2", patterns))
    assert found == [encode(Fraction(value(p, source)), FLOATS[result], mode) for p in patterns]


ROUNDERS = {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil, "rni": round}


@pytest.mark.parametrize("mode", ROUNDERS)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("result", INTEGERS)
def test_floats_to_integers(result: str, source: str, mode: str) -> None:
    layout = FLOATS[source]
    patterns = edge_floats(layout, more=60)
    low, high = limits(result)
    numbers = [
        Fraction(n) + d
        for n in (0, 1, 2, 5, low, high)
        for d in (Fraction(-1, 2), Fraction(1, 2), Fraction(1, 4), 0, 1)
    ]
    patterns += [encode(number, layout) for number in numbers]
    nan = 1 << int(result[1:]) - 1 if source == "f64" or result[1:] == "64" else 0
    expected = []
    for pattern in patterns:
        if is_nan(pattern, layout):
            expected.append(nan)
            continue
        if is_finite(pattern, layout):
            number = ROUNDERS[mode](decode(pattern, layout))
        else:
            number = low - 1 if pattern & layout.sign else high + 1
        expected.append(min(max(number, low), high) & ((1 << int(result[1:])) - 1))
    found = bits_of(
        evaluate(
            f"cvt.{mode}.{result}.{source} {register(result)}1, {register(source)}2", patterns_as(patterns, source)
        )
    )
    assert found == expected


def patterns_as(patterns: list[int], kind: str) -> np.ndarray:
    layout = FLOATS[kind]
    unsigned = np.array(patterns, f"u{layout.bits // 8}")
    return unsigned.view(f"f{layout.bits // 8}") if kind in ("f32", "f64") else unsigned


def convert(pattern: int, source: Layout, result: Layout, mode: str) -> int | None:
    if is_nan(pattern, source):
        return None
    negative = bool(pattern & source.sign)
    if not is_finite(pattern, source):
        return result.infinity | (result.sign if negative else 0)
    return encode(decode(pattern, source), result, mode, negative_zero=negative)


def check(found: list[int], expected: list[int | None], kind: str) -> None:
    for got, wanted in zip(found, expected, strict=True):
        if wanted is not None:
            assert got == wanted, (hex(got), hex(wanted))
        elif kind in NANS:
            assert got == NANS[kind], hex(got)
        else:
            assert is_nan(got, FLOATS[kind])


NARROWING = [
    ("f32", "f64"),
    ("f16", "f64"),
    ("bf16", "f64"),
    ("f16", "f32"),
    ("bf16", "f32"),
    ("bf16", "f16"),
    ("f16", "bf16"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("result", "source"), NARROWING)
def test_narrowing_floats(result: str, source: str, mode: str) -> None:
    wide, narrow = FLOATS[source], FLOATS[result]
    patterns = edge_floats(wide, more=60)
    # Just on, above and below the middles of the narrow format, its largest and its smallest numbers included.
    for bits in [*edge_floats(narrow, more=10), narrow.infinity - 1, 0, 1, 2]:
        if is_finite(bits, narrow) and is_finite(bits + 1, narrow):
            middle = encode((decode(bits, narrow) + decode(bits + 1, narrow)) / 2, wide)
            patterns += [bit for bit in (middle - 1, middle, middle + 1) if 0 <= bit < 1 << wide.bits]
    text = f"cvt.{mode}.{result}.{source} {register(result)}1, {register(source)}2"
    found = bits_of(evaluate(text, patterns_as(patterns, source)))
    check(found, [convert(pattern, wide, narrow, mode) for pattern in patterns], result)


@pytest.mark.parametrize(
    ("result", "source"), [("f64", "f32"), ("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16")]
)
def test_widening_floats(result: str, source: str) -> None:
    patterns = edge_floats(FLOATS[source], more=60)
    found = bits_of(
        evaluate(f"cvt.{result}.{source} {register(result)}1, {register(source)}2", patterns_as(patterns, source))
    )
    check(found, [convert(pattern, FLOATS[source], FLOATS[result], "rn") for pattern in patterns], result)


@pytest.mark.parametrize("mode", ROUNDERS)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_rounding_to_integral_values(kind: str, mode: str) -> None:
    layout = FLOATS[kind]
    patterns = [bits for bits in edge_floats(layout, more=60) if is_finite(bits, layout)]
    patterns += [encode(Fraction(n, 2), layout) for n in range(-9, 10) if n]
    found = bits_of(
        evaluate(f"cvt.{mode}.{kind}.{kind} {register(kind)}1, {register(kind)}2", patterns_as(patterns, kind))
    )
    expected = [
        encode(Fraction(ROUNDERS[mode](decode(bits, layout))), layout, negative_zero=bool(bits & layout.sign))
        for bits in patterns
    ]
    assert found == expected


def test_flushing_and_saturation() -> None:
    subnormal = [1, F32.sign | 1, 0x007F_FFFF, 0x0080_0000]
    singles = patterns_as(subnormal, "f32")
    assert bits_of(evaluate("cvt.ftz.f64.f32 %e1, %f1", singles))[:3] == [0, F64.sign, 0]
    assert evaluate("cvt.rpi.ftz.s32.f32 %r1, %f1", singles).tolist() == [0, 0, 0, 1]
    tiny = np.array([1e-40, -1e-40, 1.5, np.nan])
    assert bits_of(evaluate("cvt.rn.ftz.f32.f64 %f1, %e1", tiny)) == [0, F32.sign, 0x3FC0_0000, 0x7FFF_FFFF]
    assert evaluate("cvt.rn.sat.f32.f64 %f1, %e1", tiny).tolist() == [np.float32(1e-40), 0, 1, 0]
    assert evaluate("cvt.sat.f32.f32 %f1, %f2", np.float32([2, -1, 0.5, np.nan])).tolist() == [1, 0, 0.5, 0]
    halves = evaluate("cvt.rn.satfinite.f16.f32 %h1, %f1", np.float32([1e6, -np.inf, 3]))
    assert halves.view(np.float16).tolist() == [65504, -65504, 3]
    halves = evaluate("cvt.rn.relu.bf16.f32 %h1, %f1", np.float32([-2, np.nan, 3]))
    assert bits_of(halves) == [0, 0x7FFF, 0x4040]


def test_packing_halves() -> None:
    upper, lower = np.float32([1, -2, 1e9, np.nan]), np.float32([0.5, 65519, 3, 1])
    found = evaluate("cvt.rn.f16x2.f32 %r1, %f1, %f2", upper, lower)
    assert found.view(np.uint16)[0::2].view(np.float16).tolist() == [0.5, 65504, 3, 1]
    assert [hex(int(bits)) for bits in found.view(np.uint16)[1::2]] == ["0x3c00", "0xc000", "0x7c00", "0x7fff"]
    found = evaluate("cvt.rz.relu.bf16x2.f32 %r1, %f1, %f2", upper, lower)
    for got, x, y in zip(bits_of(found), upper.tolist(), lower.tolist(), strict=True):
        for half, number in ((got >> 16, x), (got & 0xFFFF, y)):
            assert half == (0x7FFF if math.isnan(number) else encode(Fraction(max(number, 0)), BF16, "rz"))


def nearest_small(number: float, name: str) -> int:
    """The nearest number of a small format by search, ties to the even pattern, clamped."""
    table = decode_table(name).tolist()
    half = len(table) // 2
    finite = [bits for bits in range(half) if math.isfinite(table[bits])]
    best = min(
        finite, key=lambda bits: (abs(table[bits] - abs(number)), bits & 1)
    )  # differences of these are exact in double
    return best | (half if math.copysign(1, number) < 0 else 0)


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m1", "e2m3", "e3m2"])
def test_small_floats(name: str) -> None:
    random = np.random.Generator(np.random.PCG64(4))
    table = decode_table(name)
    known = table[np.isfinite(table)]
    middles = (np.sort(known)[:-1] + np.sort(known)[1:]) / 2
    numbers = np.concatenate([known, middles, random.uniform(-1.2, 1.2, 100) * known.max(), [1e9, -1e9, 1e-9]]).astype(
        np.float32
    )
    result = "%r" if name == "none" else "%h"
    distance = 4 if name == "e2m1" else 8
    found = bits_of(evaluate(f"cvt.rn.satfinite.{name}x2.f32 {result}1, %f1, %f2", numbers, numbers[::-1].copy()))
    numbers_back = numbers[::-1].tolist()
    assert found == [
        nearest_small(x, name) << distance | nearest_small(y, name)
        for x, y in zip(numbers.tolist(), numbers_back, strict=True)
    ]
    unpacked = evaluate(f"cvt.rn.f16x2.{name}x2 %r1, %h1", np.array(found, np.uint8 if name == "e2m1" else np.uint16))
    halves = unpacked.view(np.uint16).view(np.float16)
    assert halves[0::2].tolist() == [table[nearest_small(y, name)] for y in numbers_back]
    assert halves[1::2].tolist() == [table[nearest_small(x, name)] for x in numbers.tolist()]


def test_tables_of_eight_bit_floats_have_their_known_corners() -> None:
    e4m3, e5m2 = decode_table("e4m3"), decode_table("e5m2")
    assert (e4m3[0x7E], e4m3[0x08], e4m3[0x01], e4m3[0x38]) == (448, 2.0**-6, 2.0**-9, 1)
    assert (e5m2[0x7B], e5m2[0x7C], e5m2[0x04], e5m2[0x01], e5m2[0x3C]) == (57344, math.inf, 2.0**-14, 2.0**-16, 1)
    assert math.isnan(e4m3[0x7F]) and math.isnan(e5m2[0x7E]) and math.isnan(e4m3[0xFF])


def test_eight_bit_floats_keep_nan() -> None:
    numbers = np.float32([np.nan, np.inf])
    assert bits_of(evaluate("cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2", numbers, numbers)) == [0x7F7F, 0x7E7E]
    assert bits_of(evaluate("cvt.rn.satfinite.e5m2x2.f32 %h1, %f1, %f2", numbers, numbers)) == [0x7F7F, 0x7B7B]
    halves = np.array([0x3C00_C000], np.uint32)
    assert bits_of(evaluate("cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r1", halves)) == [0x38C0]
    assert bits_of(evaluate("cvt.rn.satfinite.relu.e4m3x2.f16x2 %h1, %r1", halves)) == [0x3800]


def test_scales_are_powers_of_two() -> None:
    numbers = np.float32([1, 3, -0.75, 0, 2.0**-127, 1e-45, 3e38, np.inf, np.nan])
    zeros = np.zeros(9, np.float32)
    down = [127, 128, 126, 0, 0, 0, 254, 255, 255]
    assert bits_of(evaluate("cvt.rz.ue8m0x2.f32 %h1, %f1, %f2", zeros, numbers)) == down
    up = [127, 129, 127, 0, 0, 0, 254, 254, 255]
    found = bits_of(evaluate("cvt.rp.satfinite.ue8m0x2.f32 %h1, %f1, %f2", numbers, zeros))
    assert found == [bits << 8 for bits in up]
    unpacked = evaluate("cvt.rn.bf16x2.ue8m0x2 %r1, %h1", np.uint16([0x807F, 0x00FF]))
    assert bits_of(unpacked) == [0x4000_3F80, 0x0040_7FFF]


def test_tf32_has_ten_stored_bits() -> None:
    numbers = np.float32([1, 1 + 2**-11, 1 + 2**-10, 1 + 3 * 2**-11, -1 - 2**-11, np.inf])
    found = evaluate("cvt.rna.tf32.f32 %r1, %f1", numbers).view(np.float32)
    assert found.tolist() == [1, 1 + 2**-10, 1 + 2**-10, 1 + 2**-9, -1 - 2**-10, math.inf]
    assert all(bits & 0x1FFF == 0 for bits in bits_of(found))


def test_packing_integers() -> None:
    a, b, c = [300, -5, -40000, 70000], [-300, 127, 3, -70000], [0xAABB_CCDD] * 4
    found = bits_of(evaluate("cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4", a, b, c))
    assert found == [0xCCDD_0000 | min(max(x, 0), 255) << 8 | min(max(y, 0), 255) for x, y in zip(a, b, strict=True)]
    found = bits_of(evaluate("cvt.pack.sat.s16.s32 %r1, %r2, %r3", a, b))
    assert found == [
        (min(max(x, -32768), 32767) & 0xFFFF) << 16 | min(max(y, -32768), 32767) & 0xFFFF
        for x, y in zip(a, b, strict=True)
    ]


def test_flushed_numbers_agree_with_the_model() -> None:
    patterns = edge_floats(F32, more=10)
    found = bits_of(evaluate("cvt.rn.ftz.f16.f32 %h1, %f1", patterns_as(patterns, "f32")))
    check(found, [convert(flush(bits, F32), F32, F16, "rn") for bits in patterns], "f16")


@pytest.mark.parametrize(
    "text", ["cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2", "cvt.s32.f32 %r1, %f1", "cvt.rn.f32.pred %f1, %p1"]
)
def test_forms_that_are_not_known(text: str) -> None:
    assert find_meaning(read_instruction(text)) is None
