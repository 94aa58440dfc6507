"""Integer arithmetic against Python's integers."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.emulator.operations.evaluating import as_signed, bind, bits_of, edge_integers, evaluate, pairs

REGISTERS = {16: "%h", 32: "%r", 64: "%d"}


def write(name: str, bits: int, *operands: int, wide: bool = False) -> str:
    """``name d, a, b…`` with registers of a width; ``operands`` are widths of sources."""
    result = REGISTERS[bits * 2 if wide else bits]
    return f"{name} {result}1, " + ", ".join(f"{REGISTERS[width]}{place + 2}" for place, width in enumerate(operands))


def value(pattern: int, kind: str) -> int:
    bits = int(kind[1:])
    return as_signed(pattern, bits) if kind[0] == "s" else pattern & ((1 << bits) - 1)


def trunc_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


KINDS = ("u16", "s16", "u32", "s32", "u64", "s64")
BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul.lo": lambda a, b, _: a * b,
    "mul.hi": lambda a, b, bits: (a * b) >> bits,
    "min": lambda a, b, _: min(a, b),
    "max": lambda a, b, _: max(a, b),
    "div": lambda a, b, _: trunc_div(a, b) if b else -1,
    "rem": lambda a, b, _: a - b * trunc_div(a, b) if b else -1,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, kind: str) -> None:
    bits = int(kind[1:])
    a, b = pairs(edge_integers(bits))
    found = bits_of(evaluate(write(f"{name}.{kind}", bits, bits, bits), a, b))
    expected = [
        BINARY[name](value(x, kind), value(y, kind), bits) & ((1 << bits) - 1) for x, y in zip(a, b, strict=True)
    ]
    assert found == expected


@examples(30)
@given(st.data())
def test_division_of_anything(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(("s32", "u32", "s64", "u64")))
    bits = int(kind[1:])
    numbers = st.lists(st.integers(0, (1 << bits) - 1), min_size=3, max_size=3)
    a, b = data.draw(numbers), data.draw(numbers)
    for name in ("div", "rem"):
        found = bits_of(evaluate(write(f"{name}.{kind}", bits, bits, bits), a, b))
        assert found == [
            BINARY[name](value(x, kind), value(y, kind), bits) & ((1 << bits) - 1) for x, y in zip(a, b, strict=True)
        ]


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind: str) -> None:
    bits = int(kind[1:])
    a, b = pairs(edge_integers(bits))
    c = [pattern * 0x0123_4567_89AB_CDEF + 5 for pattern in a]
    mask = (1 << 2 * bits) - 1
    found = evaluate(write(f"mul.wide.{kind}", bits, bits, bits, wide=True), a, b)
    assert bits_of(found) == [value(x, kind) * value(y, kind) & mask for x, y in zip(a, b, strict=True)]
    found = evaluate(write(f"mad.wide.{kind}", bits, bits, bits, 2 * bits, wide=True), a, b, c)
    assert bits_of(found) == [(value(x, kind) * value(y, kind) + z) & mask for x, y, z in zip(a, b, c, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_multiply_add(kind: str) -> None:
    bits = int(kind[1:])
    a, b = pairs(edge_integers(bits))
    c = list(reversed(a))
    mask = (1 << bits) - 1
    for half, shift in (("lo", 0), ("hi", bits)):
        found = bits_of(evaluate(write(f"mad.{half}.{kind}", bits, bits, bits, bits), a, b, c))
        assert found == [
            ((value(x, kind) * value(y, kind) >> shift) + z) & mask for x, y, z in zip(a, b, c, strict=True)
        ]


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_products_of_24_bits(kind: str) -> None:
    a, b = pairs(edge_integers(32))

    def low(pattern: int) -> int:
        return value(pattern & 0xFFFFFF, f"{kind[0]}24")

    for half, shift in (("lo", 0), ("hi", 16)):
        found = bits_of(evaluate(write(f"mul24.{half}.{kind}", 32, 32, 32), a, b))
        assert found == [(low(x) * low(y) >> shift) & 0xFFFF_FFFF for x, y in zip(a, b, strict=True)]
        found = bits_of(evaluate(write(f"mad24.{half}.{kind}", 32, 32, 32, 32), a, b, a))
        assert found == [((low(x) * low(y) >> shift) + x) & 0xFFFF_FFFF for x, y in zip(a, b, strict=True)]


def clamp(number: int) -> int:
    return min(max(number, -(2**31)), 2**31 - 1) & 0xFFFF_FFFF


def test_saturation() -> None:
    a, b = pairs(edge_integers(32))
    signed = [(as_signed(x, 32), as_signed(y, 32)) for x, y in zip(a, b, strict=True)]
    assert bits_of(evaluate("add.sat.s32 %r1, %r2, %r3", a, b)) == [clamp(x + y) for x, y in signed]
    assert bits_of(evaluate("sub.sat.s32 %r1, %r2, %r3", a, b)) == [clamp(x - y) for x, y in signed]
    assert bits_of(evaluate("add.sat.u32 %r1, %r2, %r3", a, b)) == [
        min(x + y, 2**32 - 1) for x, y in zip(a, b, strict=True)
    ]
    assert bits_of(evaluate("sub.sat.u32 %r1, %r2, %r3", a, b)) == [max(x - y, 0) for x, y in zip(a, b, strict=True)]
    high = bits_of(evaluate("mad.hi.sat.s32 %r1, %r2, %r3, %r4", a, b, a))
    assert high == [clamp((x * y >> 32) + x) for x, y in signed]


@pytest.mark.parametrize("kind", KINDS)
def test_one_operand_and_distances(kind: str) -> None:
    bits = int(kind[1:])
    mask = (1 << bits) - 1
    a, b = pairs(edge_integers(bits))
    found = bits_of(evaluate(write(f"sad.{kind}", bits, bits, bits, bits), a, b, a))
    assert found == [(abs(value(x, kind) - value(y, kind)) + x) & mask for x, y in zip(a, b, strict=True)]
    if kind[0] == "s":
        assert bits_of(evaluate(write(f"abs.{kind}", bits, bits), a)) == [abs(value(x, kind)) & mask for x in a]
        assert bits_of(evaluate(write(f"neg.{kind}", bits, bits), a)) == [-value(x, kind) & mask for x in a]


@pytest.mark.parametrize("bits", [32, 64])
def test_carry_chains(bits: int) -> None:
    a, b = pairs(edge_integers(bits))
    mask = (1 << bits) - 1
    for carry in (False, True):
        carries = [carry] * len(a)
        for name, sign in (("add", 1), ("sub", -1)):
            totals = [x + sign * y for x, y in zip(a, b, strict=True)]
            result, flag = evaluate(write(f"{name}.cc.u{bits}", bits, bits, bits), a, b)
            assert bits_of(result) == [total & mask for total in totals]
            assert flag.tolist() == [not 0 <= total <= mask for total in totals]
            totals = [total + sign * carry for total in totals]
            result, flag = evaluate(write(f"{name}c.cc.s{bits}", bits, bits, bits), a, b, carries)
            assert bits_of(result) == [total & mask for total in totals]
            assert flag.tolist() == [not 0 <= total <= mask for total in totals]
            assert bits_of(evaluate(write(f"{name}c.u{bits}", bits, bits, bits), a, b, carries)) == bits_of(result)
        for kind in (f"u{bits}", f"s{bits}"):
            for half in ("lo", "hi"):
                products = [value(x, kind) * value(y, kind) for x, y in zip(a, b, strict=True)]
                parts = [(product >> (bits if half == "hi" else 0)) & mask for product in products]
                totals = [part + y + carry for part, y in zip(parts, b, strict=True)]
                result, flag = evaluate(write(f"madc.{half}.cc.{kind}", bits, bits, bits, bits), a, b, b, carries)
                assert bits_of(result) == [total & mask for total in totals]
                assert flag.tolist() == [total > mask for total in totals]
                result, flag = evaluate(write(f"mad.{half}.cc.{kind}", bits, bits, bits, bits), a, b, b)
                assert flag.tolist() == [part + y > mask for part, y in zip(parts, b, strict=True)]


def test_a_128_bit_sum_is_a_chain_of_four() -> None:
    first, second = 0xFFFF_FFFF_0000_0001_FFFF_FFFF_FFFF_FFFF, 0x1234_5678_FFFF_FFFF_0000_0000_0000_0001
    words = [[number >> shift & 0xFFFF_FFFF for shift in (0, 32, 64, 96)] for number in (first, second)]
    total, carry = evaluate("add.cc.u32 %r1, %r2, %r3", [words[0][0]], [words[1][0]])
    result = int(total[0])
    for place in (1, 2):
        total, carry = evaluate("addc.cc.u32 %r1, %r2, %r3", [words[0][place]], [words[1][place]], carry)
        result |= int(total[0]) << 32 * place
    last = evaluate("addc.u32 %r1, %r2, %r3", [words[0][3]], [words[1][3]], carry)
    assert result | int(last[0]) << 96 == (first + second) & ((1 << 128) - 1)


def test_divisions_say_that_they_divide() -> None:
    assert bind("div.s32 %r1, %r2, %r3").meaning.divides
    assert bind("rem.u64 %d1, %d2, %d3").meaning.divides
    assert not bind("div.rn.f32 %f1, %f2, %f3").meaning.divides


def split(word: int, width: int, *, signed: bool) -> list[int]:
    parts = [word >> shift & ((1 << width) - 1) for shift in range(0, 32, width)]
    return [as_signed(part, width) for part in parts] if signed else parts


@pytest.mark.parametrize("types", ["u32.u32", "s32.s32", "u32.s32", "s32.u32"])
def test_dot_products(types: str) -> None:
    a, b = pairs(edge_integers(32))
    a_signed, b_signed = (word[0] == "s" for word in types.split("."))
    found = bits_of(evaluate(f"dp4a.{types} %r1, %r2, %r3, %r4", a, b, a))
    expected = [
        sum(p * q for p, q in zip(split(x, 8, signed=a_signed), split(y, 8, signed=b_signed), strict=True)) + x
        for x, y in zip(a, b, strict=True)
    ]
    assert found == [total & 0xFFFF_FFFF for total in expected]
    for half, start in (("lo", 0), ("hi", 2)):
        found = bits_of(evaluate(f"dp2a.{half}.{types} %r1, %r2, %r3, %r4", a, b, b))
        expected = [
            sum(
                p * q for p, q in zip(split(x, 16, signed=a_signed), split(y, 8, signed=b_signed)[start:], strict=False)
            )
            + y
            for x, y in zip(a, b, strict=True)
        ]
        assert found == [total & 0xFFFF_FFFF for total in expected]


@pytest.mark.parametrize("kind", ["u16x2", "s16x2", "u8x4", "s8x4"])
def test_packed_integers(kind: str) -> None:
    a, b = pairs(edge_integers(32))
    signed, width = kind[0] == "s", int(kind[1:-2])
    mask = (1 << width) - 1
    low = -(1 << width - 1) if signed else 0
    functions = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "min": min,
        "max": max,
        "add.sat": lambda x, y: min(max(x + y, low), low + mask),
        "sub.sat": lambda x, y: min(max(x - y, low), low + mask),
        "max.relu": lambda x, y: max(x, y, 0),
    }
    for name, function in functions.items():
        found = bits_of(evaluate(f"{name}.{kind} %r1, %r2, %r3", a, b))
        expected = []
        for x, y in zip(a, b, strict=True):
            parts = zip(split(x, width, signed=signed), split(y, width, signed=signed), strict=True)
            expected.append(sum((function(p, q) & mask) << width * place for place, (p, q) in enumerate(parts)))
        assert found == expected, name


def test_the_lesser_of_integers_clipped_at_zero() -> None:
    found = evaluate("max.relu.s32 %r1, %r2, %r3", [5, -3, -1, -1], [7, -9, 0, -2])
    assert found.tolist() == [7, 0, 0, 0]
