"""Comparisons and selections."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.operations.evaluating import as_signed, bits_of, edge_integers, evaluate, pairs

INTEGER: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": INTEGER["lt"], "ls": INTEGER["le"], "hi": INTEGER["gt"], "hs": INTEGER["ge"]}
NUMBERS = [0.0, -0.0, 1.0, 1.5, -2.0, math.inf, -math.inf, math.nan]
REGISTERS = {16: "%h", 32: "%r", 64: "%d"}


@pytest.mark.parametrize("kind", ["u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64"])
def test_integers(kind: str) -> None:
    bits = int(kind[1:])
    reg = REGISTERS[bits]
    a, b = pairs(edge_integers(bits))
    names = {"b": {"eq", "ne"}, "s": set(INTEGER), "u": {*INTEGER, *UNSIGNED}}[kind[0]]
    for name in names:
        function = {**INTEGER, **UNSIGNED}[name]
        numbers = [
            (as_signed(x, bits), as_signed(y, bits)) if kind[0] == "s" else (x, y) for x, y in zip(a, b, strict=True)
        ]
        found = evaluate(f"setp.{name}.{kind} %p1, {reg}1, {reg}2", a, b)
        assert found.tolist() == [function(*lane) for lane in numbers]


def compare(name: str, a: float, b: float) -> bool:
    unordered = math.isnan(a) or math.isnan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if name.endswith("u"):
        return unordered or INTEGER[name[:-1]](a, b)  # type: ignore[arg-type]
    return not unordered and INTEGER[name](a, b)  # type: ignore[arg-type]


FLOAT_NAMES = [*INTEGER, *(f"{name}u" for name in INTEGER), "num", "nan"]
FLOATS = {"f32": ("%f", np.float32), "f64": ("%e", np.float64), "f16": ("%h", np.float16)}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_floats(name: str, kind: str) -> None:
    reg, dtype = FLOATS[kind]
    a, b = pairs(NUMBERS)
    arrays = [np.array(part, dtype) for part in (a, b)]
    if kind == "f16":
        arrays = [array.view(np.uint16) for array in arrays]
    found = evaluate(f"setp.{name}.{kind} %p1, {reg}1, {reg}2", *arrays)
    assert found.tolist() == [compare(name, x, y) for x, y in zip(a, b, strict=True)]


def test_brain_floats_and_flushing() -> None:
    bits = [0x3F80, 0xC000, 0x7FC0, 0x0001]
    a, b = pairs(bits)
    numbers = {0x3F80: 1.0, 0xC000: -2.0, 0x7FC0: math.nan, 0x0001: 2.0**-133}
    found = evaluate("setp.gtu.bf16 %p1, %h1, %h2", a, b)
    assert found.tolist() == [compare("gtu", numbers[x], numbers[y]) for x, y in zip(a, b, strict=True)]
    assert evaluate("setp.gt.f32 %p1, %f1, %f2", np.float32([1e-40]), np.float32([0])).tolist() == [True]
    assert evaluate("setp.gt.ftz.f32 %p1, %f1, %f2", np.float32([1e-40]), np.float32([0])).tolist() == [False]
    assert evaluate("setp.gt.ftz.f16 %p1, %h1, %h2", [1], [0]).tolist() == [False]


COMBINE = {"and": lambda x, y: x and y, "or": lambda x, y: x or y, "xor": lambda x, y: x != y}


@pytest.mark.parametrize("name", COMBINE)
def test_combinations_and_second_results(name: str) -> None:
    a, b, c = (list(part) for part in zip(*itertools.product([1, 2], [1, 2], [False, True]), strict=True))
    holds = [x < y for x, y in zip(a, b, strict=True)]
    combine = COMBINE[name]
    one = evaluate(f"setp.lt.{name}.s32 %p1, %r1, %r2, %p2", a, b, c)
    both = evaluate(f"setp.lt.{name}.s32 %p1|%p3, %r1, %r2, %p2", a, b, c)
    assert one.tolist() == both[0].tolist() == [combine(x, y) for x, y in zip(holds, c, strict=True)]
    assert both[1].tolist() == [combine(not x, y) for x, y in zip(holds, c, strict=True)]


def test_both_results_of_an_unordered_comparison() -> None:
    first, second = evaluate("setp.lt.f32 %p1|%p2, %f1, %f2", np.float32([1, np.nan]), np.float32([2, 0]))
    assert [first.tolist(), second.tolist()] == [[True, False], [False, True]]


def test_set_gives_ones_or_one() -> None:
    a, b = np.float32([1, 3, np.nan]), np.float32([2, 2, 2])
    assert bits_of(evaluate("set.lt.u32.f32 %r1, %f1, %f2", a, b)) == [0xFFFF_FFFF, 0, 0]
    assert bits_of(evaluate("set.geu.s32.f32 %r1, %f1, %f2", a, b)) == [0, 0xFFFF_FFFF, 0xFFFF_FFFF]
    assert evaluate("set.ne.f32.s32 %f1, %r1, %r2", [1, 2, 3], [1, 1, 1]).tolist() == [0, 1, 1]
    assert bits_of(evaluate("set.eq.xor.u32.s32 %r1, %r2, %r3, %p1", [1, 2], [1, 1], [True, True])) == [0, 0xFFFF_FFFF]
    assert bits_of(evaluate("set.lt.f16.f16 %h1, %h2, %h3", [0, 0x3C00], [0x3C00, 0])) == [0x3C00, 0]


def test_pairs_of_halves() -> None:
    a = np.array([[1, 5], [math.nan, -1]], np.float16).view(np.uint32).reshape(-1)
    b = np.array([[2, 5], [0, 0]], np.float16).view(np.uint32).reshape(-1)
    low, high = evaluate("setp.lt.f16x2 %p1|%p2, %r1, %r2", a, b)
    assert [low.tolist(), high.tolist()] == [[True, False], [False, True]]
    low, high = evaluate("setp.geu.or.f16x2 %p1|%p2, %r1, %r2, %p3", a, b, [False, True])
    assert [low.tolist(), high.tolist()] == [[False, True], [True, True]]
    assert bits_of(evaluate("set.lt.f16x2.f16x2 %r1, %r2, %r3", a, b)) == [0x0000_3C00, 0x3C00_0000]
    assert bits_of(evaluate("set.lt.u32.f16x2 %r1, %r2, %r3", a, b)) == [0x0000_FFFF, 0xFFFF_0000]
    low, high = evaluate("setp.eq.bf16x2 %p1|%p2, %r1, %r2", [0x3F80_7FC0], [0x3F80_7FC0])
    assert [low.tolist(), high.tolist()] == [[False], [True]]


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "s32", "u64"])
def test_selection_of_integers(kind: str) -> None:
    bits = int(kind[1:])
    reg = REGISTERS[bits]
    a, b = pairs(edge_integers(bits))
    for predicate in ([place % 3 == 0 for place in range(len(a))], [True] * len(a), [False] * len(a)):
        found = bits_of(evaluate(f"selp.{kind} {reg}1, {reg}2, {reg}3, %p1", a, b, predicate))
        assert found == [x if p else y for x, y, p in zip(a, b, predicate, strict=True)]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_selection_of_floats_keeps_bits(kind: str) -> None:
    reg, dtype = FLOATS[kind]
    a, b = (np.array(part, dtype) for part in pairs(NUMBERS))
    predicate = [place % 2 == 0 for place in range(len(a))]
    found = bits_of(evaluate(f"selp.{kind} {reg}1, {reg}2, {reg}3, %p1", a, b, predicate))
    assert found == [x if p else y for x, y, p in zip(bits_of(a), bits_of(b), predicate, strict=True)]


def test_selection_by_sign() -> None:
    a, b = [10, 20, 30, 40, 50], [1, 2, 3, 4, 5]
    assert evaluate("slct.u32.s32 %r1, %r2, %r3, %r4", a, b, [0, -1, 5, -(2**31), 2**31 - 1]).tolist() == [
        10,
        2,
        30,
        4,
        50,
    ]
    by = np.float32([-0.0, -1, np.nan, 1e-40, -1e-40])
    assert evaluate("slct.b64.f32 %d1, %d2, %d3, %f1", a, b, by).tolist() == [10, 2, 3, 40, 5]
    assert evaluate("slct.ftz.b64.f32 %d1, %d2, %d3, %f1", a, b, by).tolist() == [10, 2, 3, 40, 50]
