"""Atomic functions against Python."""

from collections.abc import Callable

import numpy as np
import pytest

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.atomics import AtomicFunction, atomic_function
from tests.emulator.operations.evaluating import as_dtype, as_signed, bits_of, edge_integers, pairs, read_instruction

REGISTERS = {"16": "%h", "32": "%r", "64": "%d"}


def find(operation: str, kind: str) -> AtomicFunction:
    reg = {"f32": "%f", "f64": "%e", "f16x2": "%r", "bf16x2": "%r"}.get(kind) or REGISTERS[kind.lstrip("ubsf")]
    operands = f"{reg}2, {reg}3" if operation == "cas" else f"{reg}2"
    found = atomic_function(read_instruction(f"atom.global.{operation}.{kind} {reg}1, [%d9], {operands}"))
    assert found is not None
    return found


def apply(function: AtomicFunction, *operands: list[int]) -> list[int]:
    """New values of lanes and, which must be the same, of scalars."""
    arrays = [as_dtype(part, function.type.natural_dtype) for part in operands]
    with np.errstate(all="ignore"):
        found = bits_of(function.evaluate(*arrays))
        for lane in (0, len(found) - 1):
            assert bits_of(np.reshape(function.evaluate(*(array[lane] for array in arrays)), 1)) == [found[lane]]
    return found


INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, b: old + b,
    "min": min,
    "max": max,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda _old, b: b,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
}
FORMS = [("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "u32"), ("min", "s32"), ("max", "s64"), ("max", "u64")]
FORMS += [
    ("and", "b32"),
    ("or", "b64"),
    ("xor", "b32"),
    ("exch", "b32"),
    ("exch", "b64"),
    ("inc", "u32"),
    ("dec", "u32"),
]


@pytest.mark.parametrize(("operation", "kind"), FORMS)
def test_integers(operation: str, kind: str) -> None:
    bits = int(kind[1:])
    function = find(operation, kind)
    old, b = pairs(edge_integers(bits))

    def compute(x: int, y: int) -> int:
        if kind[0] == "s" and operation in ("min", "max"):
            x, y = as_signed(x, bits), as_signed(y, bits)
        return INTEGER[operation](x, y) & ((1 << bits) - 1)

    assert apply(function, old, b) == [compute(x, y) for x, y in zip(old, b, strict=True)]
    assert function.operands == 1
    assert function.is_associative == (operation not in ("exch", "inc", "dec"))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap(bits: int) -> None:
    function = find("cas", f"b{bits}")
    assert function.operands == 2
    assert apply(function, [1, 2, 3], [1, 5, 3], [7, 8, 9]) == [7, 2, 9]


def test_floats() -> None:
    single = find("add", "f32")
    assert not single.is_associative
    with np.errstate(all="ignore"):
        assert bits_of(single.evaluate(np.float32([1, np.inf]), np.float32([2**-24, -np.inf]))) == [
            0x3F80_0000,
            0x7FFF_FFFF,
        ]
    assert find("add", "f64").evaluate(np.float64(1), np.float64(2)) == 3
    pair = find("add.noftz", "f16x2")
    assert pair.type is ScalarType.F16X2
    assert apply(pair, [0x3C00_4000, 0x3C00_0001], [0x3C00_3C00, 0xBC00_0001]) == [0x4000_4200, 0x0000_0002]
    assert apply(find("max.noftz", "bf16x2"), [0x3F80_C000, 0], [0x4000_BF80, 0x8000_8000]) == [0x4000_BF80, 0]


def test_vectors_and_reductions_are_known_by_their_elements() -> None:
    found = atomic_function(read_instruction("red.global.add.v4.f32 [%d1], {%f1, %f2, %f3, %f4}"))
    assert found is not None
    assert (found.name, found.type) == ("add", ScalarType.F32)


UNKNOWN = ["add.b128 %d1, [%d2], %d3", "mul.u32 %r1, [%d2], %r3", "inc.f32 %f1, [%d2], %f3"]


@pytest.mark.parametrize("text", UNKNOWN)
def test_forms_that_are_not_known(text: str) -> None:
    assert atomic_function(read_instruction(f"atom.global.{text}")) is None
