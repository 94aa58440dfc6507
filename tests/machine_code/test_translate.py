"""Typed Python does as machine code what it says: numbers wrap, lanes choose, structs lie as C has them; what is none is refused with its place."""

import ctypes
import random
from typing import Any, Literal

import numpy as np
import pytest

from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.build import Code, compile_module
from gpa_lsp.foundation.machine_code.translate import read_functions, translate
from gpa_lsp.foundation.machine_code.types import Struct
from gpa_lsp.foundation.machine_code.values import TranslationError

_NAMES: dict[str, Any] = {**vars(types), "MOST": 7}


def build(text: str, *roots: str, **names: Any) -> Code:
    """Functions of a text."""
    written = read_functions(text, {**_NAMES, **names}, "made.py")
    return Code(compile_module(translate([written[one] for one in roots], name="made")), "made", roots)


def run(body: str, *arguments: Any, parameters: str = "") -> int:
    """The 64-bit result of a function with a body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return build(f"def f({parameters}) -> s64:\n{lines}\n", "f").call("f", *arguments)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return s64(u8(255) + u8(1))", 0),
        ("return s64(s8(127) + s8(1))", -128),
        ("return s64(u32(1) << 31 >> 31)", 1),
        ("return s64(s32(1) << 31 >> 31)", -1),
        ("return s64(-7) // 2", -3),
        ("return s64(-7) % 2", -1),
        ("return s64(u32(7) // u32(2))", 3),
        ("return s64(f64(7) / 2.0 * 2.0)", 7),
        ("return s64(u64(s32(-1)) >> 32)", 0xFFFFFFFF),
        ("return s64(s32(u8(200)))", 200),
        ("return s64(popcount(u32(0xF0F0)))", 8),
        ("return s64(leading_zeros(u32(0))) * 100 + s64(trailing_zeros(u32(8)))", 3203),
        ("return s64(u64(u128(1) << 64 >> 60))", 16),
        ("return s64(as_bits(f32(1.0)))", 0x3F800000),
        ("return MOST * 2", 14),
        (
            "total = 0\nfor number in range(10):\n    if number == 3:\n        continue\n    if number > MOST:\n        break\n    total += number\n"
            "return total",
            25,
        ),
        ("total = 0\nfor number in range(5, -1, -2):\n    total = total * 10 + number\nreturn total", 531),
        ("total = 0\nfor bit in bits_of(u32(0x8000_0005)):\n    total += bit\nreturn total", 33),
        ("total = 0\nwhile total < 40:\n    total += 9\nreturn total", 45),
        ("a, b = 1, 2\na, b = b, a\nreturn a * 10 + b", 21),
        ("for i in range(3):\n    pass\nreturn i", 2),
        ("total = 0\nfor i in range(3):\n    while i < 5:\n        i += 1\n    total += i\nreturn total", 15),
        ("a, b = s64(7), s64(0)\nreturn a // b if b != 0 else s64(3)", 3),
        ("found = s64(5)\nreturn found if found in (3, 5) and not found == 3 else -found", 5),
        ("values = local(u16, 4)\nvalues[2] = 9\nfill(values + 3, 0xFF, 2)\nreturn s64(values[2]) * 100000 + s64(values[3])", 965535),
        ("return s64(mask_of(lane_numbers() > 29))", 0xC0000000),
        ("v = s32(lane_numbers())\nreturn s64(total(v if lanes_of(u32(6)) else -v))", 3 - (496 - 3)),
        ("v = lane_numbers()\nreturn s64(union(v) * 100 + highest(v) + lowest(v | 4))", 3135),
        ("v = u32(lane_numbers())\nreturn s64(pick(v, v ^ 1)[6])", 7),
        ("v = f32(lane_numbers()) * 0.5\nreturn s64(round_even(v)[5]) * 10 + s64(floor(v)[5]) + s64(ceil(v)[5]) * 100", 322),
    ],
)  # fmt: skip
def test_a_function_gives(body: str, expected: int) -> None:
    assert run(body) == expected


def test_what_comes_behind_and_or_or_is_looked_at_where_it_decides() -> None:
    body = "if pointer is None or pointer[0] == 0:\n    return 1\nif pointer is not None and pointer[0] > 5:\n    return 2\nreturn 3"
    code = build("def f(pointer: Pointer[s64]) -> s64:\n" + "\n".join(f"    {line}" for line in body.splitlines()), "f")
    assert code.call("f", None) == 1
    assert [code.call("f", np.array([value])) for value in (0, 9, 3)] == [1, 2, 3]


class Inner(Struct):
    """Some fields that are not aligned one behind the other."""

    a: types.u8
    b: types.s64
    c: types.u16
    d: types.Array[types.u16, Literal[3]]


class Outer(Struct):
    """A struct within another."""

    first: types.u8
    inner: Inner
    place: types.Pointer[types.s32]


def test_structs_lie_as_c_has_them() -> None:
    outer, values = Outer.c_type(), np.arange(4, dtype=np.int32)
    outer.place = values.ctypes.data
    assert (Outer.fields["inner"][0], ctypes.sizeof(Outer.c_type)) == (8, 40)
    code = build(
        "def f(outer: Outer) -> s64:\n    outer.first = 3\n    inner = outer.inner\n    inner.b = -5\n"
        "    outer.inner.c += 4\n    outer.place[1] = 77\n    inner.d[2] = 6\n    return s64(outer.place[3])\n",
        "f",
        Outer=Outer,
    )
    assert code.call("f", np.frombuffer(memoryview(outer).cast("B"), np.uint8)) == 3
    assert (outer.first, outer.inner.b, outer.inner.c, list(outer.inner.d)) == (3, -5, 4, [0, 0, 6])
    assert values.tolist() == [0, 77, 2, 3]


def test_functions_without_types_are_written_out_for_what_they_are_called_with() -> None:
    text = """
def read(pointer, kind, step):
    if step == 0:
        return s64(7)
    return s64(view(pointer, kind)[step])

def f(pointer: Pointer[u8]) -> s64:
    return read(pointer, u8, 1) + read(pointer, s16, 1) * 1000 + read(None, u8, 0)
"""
    assert build(text, "f").call("f", np.array([1, 2, 0xFE, 0xFF], np.uint8)) == 2 - 2000 + 7


def test_gathers_and_scatters_reach_the_lanes_of_a_mask() -> None:
    text = """
def f(values: Pointer[{kind}], offsets: Pointer[u64], to: Pointer[{kind}], mask: u64) -> s64:
    found = gather(values, lanes(offsets), u32(mask))
    put(to, found)
    scatter(values, lanes(offsets), u32(mask), found + {one})
    return 0
"""
    for kind, dtype in (("u8", np.uint8), ("s16", np.int16), ("u32", np.uint32), ("f64", np.float64)):
        code = build(text.format(kind=kind, one="1.0" if kind == "f64" else "1"), "f")
        for mask in (0xFFFFFFFF, 0x80000001, 0):
            values, to = np.arange(64).astype(dtype), np.full(32, 9).astype(dtype)
            places = np.random.Generator(np.random.PCG64(1)).permutation(64)[:32]
            code.call("f", values, (places * values.itemsize).astype(np.uint64), to, mask)
            held = np.array([mask >> lane & 1 for lane in range(32)], bool)
            assert to.tolist() == np.where(held, places, 0).tolist()
            expected = np.arange(64)
            expected[places[held]] += 1
            assert values.tolist() == expected.tolist()


_OPERATORS = ("+", "-", "*", "&", "|", "^")


def make_expression(random_: random.Random, depth: int) -> str:
    """An expression of a, b, c and literals."""
    if depth == 0:
        return random_.choice(("a", "b", "c", str(random_.randint(0, 1 << 31))))
    one, other = (make_expression(random_, depth - 1) for _ in range(2))
    kind = random_.randint(0, 9)
    if kind == 0:
        return f"(~(a ^ {one}) if {other} < a else -{other})"
    if kind == 1:
        return f"({one} >> {random_.randint(0, 31)})"
    if kind == 2:
        return f"(({one}) << {random_.randint(0, 31)})"
    return f"({one} {random_.choice(_OPERATORS)} {other})"


class Wrapped(int):
    """An integer of 32 bits, as Python computes it."""

    bits, is_signed = 32, False

    def _wrap(self, value: int) -> "Wrapped":
        value &= 0xFFFFFFFF
        return type(self)(value - (1 << 32) if self.is_signed and value >> 31 else value)


def _wrapping(name: str) -> Any:
    return lambda self, *others: self._wrap(getattr(int, name)(int(self), *(int(one) for one in others)))


for _name in (
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "invert",
    "neg",
    "radd",
    "rsub",
    "rmul",
    "rand",
    "ror",
    "rxor",
):
    setattr(Wrapped, f"__{_name}__", _wrapping(f"__{_name}__"))


class Signed(Wrapped):
    """A signed one."""

    is_signed = True


@pytest.mark.parametrize("seed", range(40))
def test_expressions_are_those_of_integers_that_wrap(seed: int) -> None:
    random_ = random.Random(seed)
    kind, wrapped = random_.choice((("u32", Wrapped), ("s32", Signed)))
    text = make_expression(random_, 4)
    given = [random_.randint(-(1 << 31), (1 << 31) - 1) for _ in range(3)]
    a, b, c = (wrapped(0)._wrap(one) for one in given)
    expected = wrapped(0)._wrap(eval(text, {}, {"a": a, "b": b, "c": c}) + wrapped(0))
    body = f"a, b, c = {', '.join(f'{kind}(x{place})' for place in range(3))}\nreturn s64({kind}(0) + ({text}))"
    assert run(body, *given, parameters="x0: s64, x1: s64, x2: s64") == int(expected)
    wide = f"a, b, c = {', '.join(f'all_lanes({kind}(x{place}))' for place in range(3))}\nreturn s64(({kind}(0) + ({text}) + a - a)[17])"
    assert run(wide, *given, parameters="x0: s64, x1: s64, x2: s64") == int(expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return u32(1) + f32(2)", "u32"),
        ("x = u32(1)\nx = f32(2)\nreturn 0", "f32 is no u32"),
        ("return nothing", "nothing is unknown"),
        ("with x:\n    pass\nreturn 0", "there is no With in typed Python"),
        ("return [1]", "there is no List in typed Python"),
        ("return s64(1).real", "has no real"),
        ("x = u64(1)\nreturn x", "u64 is no s64"),
        ("for i in unrolled(2):\n    break\nreturn 0", "has no break and no continue"),
        ("for i in range(2):\n    pass\nelse:\n    return 1\nreturn 0", "a loop has no else"),
        ("return s64(local(u8, 4) // 2)", "pointer to u8 is no number"),
        ("if local(u8, 4):\n    return 1\nreturn 0", "pointers are compared with None"),
    ],
)
def test_what_is_no_typed_python_is_refused_with_its_place(body: str, message: str) -> None:
    with pytest.raises(TranslationError, match=r"made\.py:\d+: ") as caught:
        run(body)
    assert message in str(caught.value)
