"""Arithmetic of single and double precision, bit for bit, against fractions."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.emulator.operations.evaluating import bits_of, evaluate, pairs, triples
from tests.emulator.operations.exact_floats import (
    F32,
    F64,
    Layout,
    decode,
    edge_floats,
    encode,
    flush,
    is_finite,
    is_nan,
    to_float,
)

LAYOUTS = {"f32": F32, "f64": F64}
REGISTERS = {"f32": "%f", "f64": "%e"}
NAN = {"f32": 0x7FFF_FFFF}
MODES = ("rn", "rz", "rm", "rp")


def exact_sum(terms: list[tuple[Fraction, bool]], layout: Layout, mode: str) -> int:
    """Round a sum; an exact zero of equal signs keeps the sign, of unlike signs it is −0 when rounding down."""
    signs = {negative for _, negative in terms}
    negative_zero = signs == {True} or (len(signs) == 2 and mode == "rm")
    return encode(sum((value for value, _ in terms), Fraction(0)), layout, mode, negative_zero=negative_zero)


def add(x: int, y: int, layout: Layout, mode: str) -> int | None:
    if not (is_finite(x, layout) and is_finite(y, layout)):
        return special(to_float(x, layout) + to_float(y, layout), layout)
    return exact_sum([(decode(p, layout), bool(p & layout.sign)) for p in (x, y)], layout, mode)


def subtract(x: int, y: int, layout: Layout, mode: str) -> int | None:
    return add(x, y ^ layout.sign, layout, mode)


def multiply(x: int, y: int, layout: Layout, mode: str) -> int | None:
    negative = bool((x ^ y) & layout.sign)
    if not (is_finite(x, layout) and is_finite(y, layout)):
        return special(to_float(x, layout) * to_float(y, layout), layout)
    return encode(decode(x, layout) * decode(y, layout), layout, mode, negative_zero=negative)


def divide(x: int, y: int, layout: Layout, mode: str) -> int | None:
    negative = bool((x ^ y) & layout.sign)
    if is_nan(x, layout) or is_nan(y, layout):
        return None
    infinite = not is_finite(x, layout), not is_finite(y, layout)
    zero = tuple(not infinite[place] and decode(p, layout) == 0 for place, p in enumerate((x, y)))
    if all(infinite) or all(zero):
        return None
    if infinite[0] or zero[1]:
        return layout.infinity | (layout.sign if negative else 0)
    if infinite[1] or zero[0]:
        return layout.sign if negative else 0
    return encode(decode(x, layout) / decode(y, layout), layout, mode)


def fuse(x: int, y: int, z: int, layout: Layout, mode: str) -> int | None:
    if not all(is_finite(p, layout) for p in (x, y, z)):
        return special(to_float(x, layout) * to_float(y, layout) + to_float(z, layout), layout)
    product = decode(x, layout) * decode(y, layout), bool((x ^ y) & layout.sign)
    return exact_sum([product, (decode(z, layout), bool(z & layout.sign))], layout, mode)


def root(x: int, layout: Layout, mode: str) -> int | None:
    """The largest number of the format whose square is not above x, then rounded by squares of its neighbours."""
    if is_nan(x, layout) or (x & layout.sign and x != layout.sign):
        return None
    if not is_finite(x, layout) or x in (0, layout.sign):
        return x
    value = decode(x, layout)
    low, high = 0, layout.infinity
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if decode(middle, layout) ** 2 <= value else (low, middle)
    if decode(low, layout) ** 2 == value or mode in ("rz", "rm"):
        return low
    if mode == "rp":
        return high
    return low if ((decode(low, layout) + decode(high, layout)) / 2) ** 2 > value else high


def special(value: float, layout: Layout) -> int | None:
    if math.isnan(value):
        return None
    return layout.infinity | (layout.sign if value < 0 else 0)


def check(found: list[int], expected: list[int | None], kind: str, operands: list[tuple[int, ...]]) -> None:
    layout = LAYOUTS[kind]
    for got, wanted, source in zip(found, expected, operands, strict=True):
        if wanted is None:
            assert is_nan(got, layout), [hex(p) for p in (got, *source)]
            if kind == "f32":
                assert got == NAN[kind]
        else:
            assert got == wanted, [hex(p) for p in (got, wanted, *source)]


BINARY: dict[str, Callable[[int, int, Layout, str], int | None]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": divide,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, kind: str, mode: str) -> None:
    register, layout = REGISTERS[kind], LAYOUTS[kind]
    a, b = pairs(edge_floats(layout, more=4))
    found = bits_of(
        evaluate(f"{name}.{mode}.{kind} {register}1, {register}2, {register}3", as_floats(a, kind), as_floats(b, kind))
    )
    expected = [BINARY[name](x, y, layout, mode) for x, y in zip(a, b, strict=True)]
    check(found, expected, kind, list(zip(a, b, strict=True)))


def as_floats(patterns: list[int], kind: str) -> np.ndarray:
    return np.array(patterns, f"u{int(kind[1:]) // 8}").view(f"f{int(kind[1:]) // 8}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_fused_multiply_add(kind: str, mode: str) -> None:
    register, layout = REGISTERS[kind], LAYOUTS[kind]
    a, b, c = triples(edge_floats(layout, more=2)[:: 2 if kind == "f32" else 3])
    text = f"fma.{mode}.{kind} {register}1, {register}2, {register}3, {register}4"
    found = bits_of(evaluate(text, *(as_floats(part, kind) for part in (a, b, c))))
    expected = [fuse(*source, layout, mode) for source in zip(a, b, c, strict=True)]
    check(found, expected, kind, list(zip(a, b, c, strict=True)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_roots_and_reciprocals(kind: str, mode: str) -> None:
    register, layout = REGISTERS[kind], LAYOUTS[kind]
    a = edge_floats(layout, more=30)
    found = bits_of(evaluate(f"sqrt.{mode}.{kind} {register}1, {register}2", as_floats(a, kind)))
    check(found, [root(x, layout, mode) for x in a], kind, [(x,) for x in a])
    one = encode(Fraction(1), layout)
    found = bits_of(evaluate(f"rcp.{mode}.{kind} {register}1, {register}2", as_floats(a, kind)))
    check(found, [divide(one, x, layout, mode) for x in a], kind, [(x,) for x in a])


@examples(40)
@given(st.lists(st.tuples(*[st.floats(width=32)] * 3), min_size=2, max_size=9), st.sampled_from(MODES))
def test_single_fused_multiply_add_of_anything(lanes: list[tuple[float, float, float]], mode: str) -> None:
    arrays = np.array(lanes, np.float32).T.copy()
    found = bits_of(evaluate(f"fma.{mode}.f32 %f1, %f2, %f3, %f4", *arrays))
    sources = list(zip(*(bits_of(part) for part in arrays), strict=True))
    check(found, [fuse(*source, F32, mode) for source in sources], "f32", sources)


@examples(40)
@given(st.lists(st.tuples(*[st.floats()] * 3), min_size=2, max_size=9), st.sampled_from(MODES))
def test_double_fused_multiply_add_of_anything(lanes: list[tuple[float, float, float]], mode: str) -> None:
    arrays = np.array(lanes, np.float64).T.copy()
    found = bits_of(evaluate(f"fma.{mode}.f64 %e1, %e2, %e3, %e4", *arrays))
    sources = list(zip(*(bits_of(part) for part in arrays), strict=True))
    check(found, [fuse(*source, F64, mode) for source in sources], "f64", sources)


def test_single_sums_that_fall_on_the_middle() -> None:
    # The product lies just beside the middle between two numbers; a double cannot tell, the fused operation can.
    middle = np.float32(1 + 2**-12) * np.ones(4, np.float32)
    other = np.array([1 + 2**-12, 1 + 2**-12, 1 - 2**-12, 1 - 2**-12], np.float32)
    tiny = np.array([2.0**-80, -(2.0**-80), 2.0**-80, -(2.0**-80)], np.float32)
    found = bits_of(evaluate("fma.rn.f32 %f1, %f2, %f3, %f4", middle, other, tiny))
    sources = list(zip(*(bits_of(part) for part in (middle, other, tiny)), strict=True))
    expected = [fuse(*source, F32, "rn") for source in sources]
    assert found == expected
    assert expected[0] != expected[1]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "fma"])
def test_the_first_nan_stays_in_double_precision(name: str) -> None:
    patterns = [0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0001, 0x7FF0_ABCD_EF01_2345, 0x3FF0_0000_0000_0000]
    sources = triples(patterns)[: 3 if name == "fma" else 2]
    operands = ", ".join(f"%e{place + 2}" for place in range(len(sources)))
    found = bits_of(evaluate(f"{name}.rn.f64 %e1, {operands}", *(as_floats(part, "f64") for part in sources)))
    for got, lane in zip(found, zip(*sources, strict=True), strict=True):
        nan = next((bits | 1 << 51 for bits in lane if is_nan(bits, F64)), got)
        assert got == nan, [hex(bits) for bits in (got, *lane)]


@pytest.mark.parametrize("name", ["add", "mul", "div", "min", "fma"])
def test_flushing_subnormal_numbers(name: str) -> None:
    patterns = edge_floats(F32, more=4)
    if name == "fma":
        sources = triples(patterns[::3])
        expected = [
            flush_result(fuse(*(flush(x, F32) for x in source), F32, "rn")) for source in zip(*sources, strict=True)
        ]
        text = "fma.rn.ftz.f32 %f1, %f2, %f3, %f4"
    else:
        sources = pairs(patterns)
        function = BINARY.get(name, lambda *lane: extreme(*lane[:3], greatest=False, keeps_nan=False))
        expected = [
            flush_result(function(flush(x, F32), flush(y, F32), F32, "rn")) for x, y in zip(*sources, strict=True)
        ]
        text = f"{name}{'' if name == 'min' else '.rn'}.ftz.f32 %f1, %f2, %f3"
    found = bits_of(evaluate(text, *(as_floats(part, "f32") for part in sources)))
    check(found, expected, "f32", list(zip(*sources, strict=True)))


def flush_result(bits: int | None) -> int | None:
    return None if bits is None else flush(bits, F32)


def test_saturation_clamps_and_makes_nan_zero() -> None:
    a = np.array([0.25, 0.75, -0.5, np.nan, np.inf, -np.inf, -0.0, 0.5], np.float32)
    found = evaluate("add.sat.f32 %f1, %f2, %f3", a, a)
    assert bits_of(found) == bits_of(np.array([0.5, 1, 0, 0, 1, 0, 0, 1], np.float32))
    found = evaluate("fma.rn.ftz.sat.f32 %f1, %f2, %f3, %f4", a, a, a)
    assert found.tolist() == [0.3125, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.75]


def test_division_that_is_approximate_vanishes_under_large_divisors() -> None:
    a = np.array([1, 6, np.inf, -1, 8, 1, 1], np.float32)
    b = np.array([3, 2, 2.0**127, 2.0**127, np.inf, 1.0625 * 2.0**126, 2.0**126], np.float32)
    found = evaluate("div.approx.f32 %f1, %f2, %f3", a, b)
    assert found[0] == np.float32(1 / 3) and found[1] == 3
    assert np.isnan(found[2]) and found[3] == 0 and found[4:].tolist() == [0, 0, 2.0**-126]
    full = evaluate("div.full.f32 %f1, %f2, %f3", a, b)
    assert np.isinf(full[2]) and full[3] == np.float32(-(2.0**-127))


def test_signs() -> None:
    a = np.array([1.5, -2, 0.0, -0.0, np.inf, 1e-40, -1e-40], np.float32)
    assert bits_of(evaluate("neg.f32 %f1, %f2", a)) == [bits ^ F32.sign for bits in bits_of(a)]
    assert bits_of(evaluate("abs.f32 %f1, %f2", a)) == [bits & ~F32.sign for bits in bits_of(a)]
    assert bits_of(evaluate("abs.ftz.f32 %f1, %f2", a))[-2:] == [0, 0]
    assert bits_of(evaluate("neg.ftz.f32 %f1, %f2", a))[-2:] == [F32.sign, 0]
    assert bits_of(evaluate("copysign.f32 %f1, %f2, %f3", -a, a)) == [
        x & F32.sign ^ F32.sign | x & ~F32.sign for x in bits_of(a)
    ]


@pytest.mark.parametrize("kind", LAYOUTS)
def test_classes_of_numbers(kind: str) -> None:
    layout, register = LAYOUTS[kind], REGISTERS[kind]
    patterns = edge_floats(layout, more=2)

    def is_subnormal(bits: int) -> bool:
        return bits & layout.infinity == 0 and bits & ~layout.sign != 0

    expected = {
        "finite": lambda bits: is_finite(bits, layout),
        "infinite": lambda bits: bits & ~layout.sign == layout.infinity,
        "number": lambda bits: not is_nan(bits, layout),
        "notanumber": lambda bits: is_nan(bits, layout),
        "subnormal": is_subnormal,
        "normal": lambda bits: is_finite(bits, layout) and not is_subnormal(bits),
    }
    for name, function in expected.items():
        found = evaluate(f"testp.{name}.{kind} %p1, {register}1", as_floats(patterns, kind))
        assert found.tolist() == [function(bits) for bits in patterns], name


def extreme(x: int, y: int, layout: Layout, *, greatest: bool, keeps_nan: bool) -> int | None:
    nan = is_nan(x, layout), is_nan(y, layout)
    if all(nan) or (any(nan) and keeps_nan):
        return None
    if any(nan):
        return y if nan[0] else x

    def key(bits: int) -> int:  # the order of signed magnitudes, −0 below +0
        return -(bits & ~layout.sign) - 1 if bits & layout.sign else bits

    return (max if greatest else min)(x, y, key=key)


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_the_least_and_the_greatest(name: str, kind: str) -> None:
    layout, register = LAYOUTS[kind], REGISTERS[kind]
    a, b = pairs(edge_floats(layout, more=2))
    arrays = as_floats(a, kind), as_floats(b, kind)
    sources = list(zip(a, b, strict=True))
    for word, keeps_nan in (("", False), (".NaN", True)):
        if word and kind == "f64":
            continue
        found = bits_of(evaluate(f"{name}{word}.{kind} {register}1, {register}2, {register}3", *arrays))
        expected = [extreme(x, y, layout, greatest=name == "max", keeps_nan=keeps_nan) for x, y in sources]
        check(found, expected, kind, sources)
    if kind == "f32":
        found = bits_of(evaluate(f"{name}.xorsign.abs.f32 %f1, %f2, %f3", *arrays))
        for got, (x, y) in zip(found, sources, strict=True):
            wanted = extreme(x & ~layout.sign, y & ~layout.sign, layout, greatest=name == "max", keeps_nan=False)
            if wanted is not None:
                wanted |= (x ^ y) & layout.sign
            check([got], [wanted], kind, [(x, y)])


def test_the_greatest_of_three() -> None:
    a = np.array([1, -4, np.nan, np.nan], np.float32)
    b = np.array([2, -5, 3, np.nan], np.float32)
    c = np.array([3, -6, np.nan, 7], np.float32)
    assert evaluate("max.f32 %f1, %f2, %f3, %f4", a, b, c).tolist() == [3, -4, 3, 7]
    assert np.isnan(evaluate("max.NaN.f32 %f1, %f2, %f3, %f4", a, b, c)[2:]).all()
    assert evaluate("min.xorsign.abs.f32 %f1, %f2, %f3, %f4", a, b, c)[:2].tolist() == [1, -4]


APPROXIMATE: dict[str, tuple[Callable[[float], float], float, float]] = {
    "ex2": (lambda x: 2.0**x, 2.0**-22, 0.0),
    "lg2": (math.log2, 2.0**-22, 2.0**-22),
    "sin": (math.sin, 0.0, 2.0**-20.5),
    "cos": (math.cos, 0.0, 2.0**-20.5),
    "tanh": (math.tanh, 2.0**-11, 0.0),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 2.0**-22.9, 0.0),
    "sqrt": (math.sqrt, 2.0**-23, 0.0),
    "rcp": (lambda x: 1 / x, 2.0**-23, 0.0),
}
"""The function, and the relative and absolute errors the PTX ISA allows."""


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations_are_within_the_documented_error(name: str) -> None:
    function, relative, absolute = APPROXIMATE[name]
    random = np.random.Generator(np.random.PCG64(11))
    a = np.concatenate([random.uniform(0.01, 3.14, 300), random.uniform(0.5, 2.0, 100)]).astype(np.float32)
    if name in ("ex2", "sin", "cos", "tanh"):
        a[::2] *= -1
    for word in ("approx", "approx.ftz"):
        found = evaluate(f"{name}.{word}.f32 %f1, %f2", a)
        for x, got in zip(a.tolist(), found.tolist(), strict=True):
            assert abs(got - function(x)) <= relative * abs(function(x)) + absolute


def test_approximations_at_the_edges() -> None:
    edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)

    def bits(name: str) -> list[int]:
        return bits_of(evaluate(f"{name}.f32 %f1, %f2", edges))

    infinity, nan, one, minus = F32.infinity, 0x7FFF_FFFF, 0x3F80_0000, F32.sign
    assert bits("ex2.approx") == [one, one, infinity, 0, nan, one]
    assert bits("lg2.approx.ftz") == [minus | infinity, minus | infinity, infinity, nan, nan, minus | infinity]
    assert bits("rcp.approx.ftz") == [infinity, minus | infinity, 0, minus, nan, infinity]
    assert bits("rsqrt.approx.ftz") == [infinity, minus | infinity, 0, nan, nan, infinity]
    assert bits("sqrt.approx.ftz") == [0, minus, infinity, nan, nan, 0]
    assert bits("sin.approx.ftz") == [0, minus, nan, nan, nan, 0]
    assert bits("cos.approx") == [one, one, nan, nan, nan, one]
    assert bits("tanh.approx")[:5] == [0, minus, one, minus | one, nan]


def test_double_approximations_use_the_upper_word() -> None:
    a = np.array([3.0, -0.1, 1e300, 1e-310, np.inf, np.nan, 0.0])
    for name, function in (("rcp", lambda x: 1 / x), ("rsqrt", lambda x: 1 / math.sqrt(x))):
        sources = np.abs(a) if name == "rsqrt" else a
        found = evaluate(f"{name}.approx.ftz.f64 %e1, %e2", sources)
        for x, got in zip(sources[:3].tolist(), found[:3].tolist(), strict=True):
            assert abs(got / function(x) - 1) < 2.0**-19
        assert all(bits & 0xFFFF_FFFF == 0 for bits in bits_of(found[:5]))
        assert np.isinf(found[3]) and found[4] == 0 and np.isnan(found[5]) and np.isinf(found[6])


def test_singles_with_an_operand_of_half_precision() -> None:
    halves = np.array([1.5, -65504, 2**-24, np.inf], np.float16)
    singles = np.array([2**-20, 0.5, 1, 1], np.float32)
    wide = halves.astype(np.float32)
    assert evaluate("add.f32.f16 %f1, %h1, %f2", halves.view(np.uint16), singles).tolist() == (wide + singles).tolist()
    assert evaluate("sub.f32.f16 %f1, %h1, %f2", halves.view(np.uint16), singles).tolist() == (wide - singles).tolist()
    fused = evaluate("fma.rn.f32.f16 %f1, %h1, %h2, %f2", halves.view(np.uint16), halves.view(np.uint16), singles)
    assert fused.tolist()[:3] == [np.float32(2.25 + 2**-20), np.float32(65504.0**2 + 0.5), 1]


def test_pairs_of_singles() -> None:
    random = np.random.Generator(np.random.PCG64(2))
    a, b, c = random.standard_normal((3, 8)).astype(np.float32)
    packed = [part.view(np.uint64) for part in (a, b, c)]
    for name in ("add", "sub", "mul"):
        single = evaluate(f"{name}.rn.f32 %f1, %f2, %f3", a, b)
        assert bits_of(evaluate(f"{name}.rn.f32x2 %d1, %d2, %d3", *packed[:2]).view(np.float32)) == bits_of(single)
    for mode in MODES:
        single = evaluate(f"fma.{mode}.ftz.f32 %f1, %f2, %f3, %f4", a, b, c)
        assert bits_of(evaluate(f"fma.{mode}.ftz.f32x2 %d1, %d2, %d3, %d4", *packed).view(np.float32)) == bits_of(
            single
        )
