"""Half precision, bit for bit, against fractions."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.emulator.operations.evaluating import bits_of, evaluate, pairs, triples
from tests.emulator.operations.exact_floats import (
    BF16,
    F16,
    Layout,
    decode,
    edge_floats,
    encode,
    flush,
    is_finite,
    is_nan,
)
from tests.emulator.operations.test_floats import add, extreme, fuse, multiply, subtract

LAYOUTS = {"f16": F16, "bf16": BF16}
NAN = 0x7FFF
BINARY: dict[str, Callable[[int, int, Layout, str], int | None]] = {"add": add, "sub": subtract, "mul": multiply}


def known(bits: int | None) -> int:
    return NAN if bits is None else bits


def pack(patterns: list[int]) -> np.ndarray:
    """Neighbours as pairs."""
    return np.array(patterns[: len(patterns) // 2 * 2], np.uint16).view(np.uint32)


def run(name: str, kind: str, *sources: list[int]) -> list[int]:
    """Results as single halves and as pairs, which must agree."""
    operands = range(2, 2 + len(sources))
    found = bits_of(evaluate(f"{name}.{kind} %h1, " + ", ".join(f"%h{place}" for place in operands), *sources))
    packed = evaluate(f"{name}.{kind}x2 %r1, " + ", ".join(f"%r{place}" for place in operands), *map(pack, sources))
    assert bits_of(packed.view(np.uint16)) == found[: len(found) // 2 * 2]
    return found


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, kind: str) -> None:
    layout = LAYOUTS[kind]
    a, b = pairs(edge_floats(layout, more=6))
    expected = [known(BINARY[name](x, y, layout, "rn")) for x, y in zip(a, b, strict=True)]
    assert run(f"{name}.rn", kind, a, b) == expected


@pytest.mark.parametrize("kind", LAYOUTS)
def test_fused_multiply_add(kind: str) -> None:
    layout = LAYOUTS[kind]
    a, b, c = triples(edge_floats(layout, more=3)[::2])
    expected = [known(fuse(*lane, layout, "rn")) for lane in zip(a, b, c, strict=True)]
    assert run("fma.rn", kind, a, b, c) == expected
    clipped = [0 if bits & layout.sign and bits != NAN else bits for bits in expected]
    assert run("fma.rn.relu", kind, a, b, c) == clipped


def test_saturation_and_flushing() -> None:
    a, b = pairs(edge_floats(F16, more=6))
    one = encode(Fraction(1), F16)
    expected = []
    for x, y in zip(a, b, strict=True):
        bits = add(x, y, F16, "rn")
        expected.append(0 if bits is None or bits & F16.sign else min(bits, one))
    assert run("add.sat", "f16", a, b) == expected
    flushed = [multiply(flush(x, F16), flush(y, F16), F16, "rn") for x, y in zip(a, b, strict=True)]
    assert run("mul.ftz", "f16", a, b) == [known(bits) if bits is None else flush(bits, F16) for bits in flushed]


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_the_least_and_the_greatest(name: str, kind: str) -> None:
    layout = LAYOUTS[kind]
    a, b = pairs(edge_floats(layout, more=4))
    for word, keeps in (("", False), (".NaN", True)):
        expected = [
            known(extreme(x, y, layout, greatest=name == "max", keeps_nan=keeps)) for x, y in zip(a, b, strict=True)
        ]
        assert run(f"{name}{word}", kind, a, b) == expected
    assert (
        run(name, kind, [0x4000, 0x3C00], [0x3C00, 0x4200], [0x4200, 0x4000])
        == [0x3C00 if name == "min" else 0x4200] * 2
    )


@pytest.mark.parametrize("kind", LAYOUTS)
def test_signs(kind: str) -> None:
    layout = LAYOUTS[kind]
    a = edge_floats(layout, more=4)
    assert run("neg", kind, a) == [bits ^ layout.sign for bits in a]
    assert run("abs", kind, a) == [bits & ~layout.sign for bits in a]
    if kind == "f16":
        assert run("abs.ftz", kind, a) == [flush(bits, layout) & ~layout.sign for bits in a]


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize(("name", "function"), [("ex2.approx", lambda x: 2.0**x), ("tanh.approx", math.tanh)])
def test_functions_are_rounded_from_double_precision(name: str, function: Callable[[float], float], kind: str) -> None:
    layout = LAYOUTS[kind]
    name = f"{name}.ftz" if kind == "bf16" and name.startswith("ex2") else name
    a = [bits for bits in edge_floats(layout, more=40) if is_finite(bits, layout) and abs(decode(bits, layout)) < 100]
    if "ftz" in name:
        a = [bits for bits in a if bits & layout.infinity]
    for got, bits in zip(run(name, kind, a), a, strict=True):
        wanted = encode(Fraction(function(float(decode(bits, layout)))), layout, negative_zero=bool(bits & layout.sign))
        assert abs(got - wanted) <= 1, (hex(bits), hex(got), hex(wanted))


def test_functions_at_the_edges() -> None:
    assert run("ex2.approx", "f16", [0x7C00, 0xFC00, 0x7E01, 0x0001]) == [0x7C00, 0, NAN, 0x3C00]
    assert run("tanh.approx", "f16", [0x7C00, 0xFC00, 0x7E01, 0x8000]) == [0x3C00, 0xBC00, NAN, 0x8000]
    assert not is_nan(run("ex2.approx.ftz", "bf16", [0x7F80, 0x0001])[0], BF16)
