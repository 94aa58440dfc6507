"""Atomic operations against Python: each lane changes a place of its own."""

from collections.abc import Callable

import numpy as np
import pytest

from gpa_lsp.execution.emulator.semantics.changes import find_change
from tests.emulator.engine.running import run_text
from tests.emulator.operations.evaluating import as_signed, edge_integers, pairs, read_instruction

_REGISTERS = {"16": "%h", "32": "%r", "64": "%d", "f32": "%f", "f64": "%g", "f16x2": "%r", "bf16x2": "%r"}


def apply(operation: str, kind: str, *operands: list[int]) -> list[int]:
    """Memory afterwards; each lane must be given the value before."""
    register = _REGISTERS.get(kind) or _REGISTERS[kind.lstrip("ubsf")]
    size = 2 if register == "%h" else 8 if register in ("%d", "%g") else 4
    arrays = {f"a{place}": np.array(one, f"u{size}").view(np.uint8) for place, one in enumerate(operands)}
    count = len(operands[0])
    arrays["found"] = np.zeros(count * size, np.uint8)
    loads = "".join(
        f"add.u64 %d20, %d{place}, %d10; ld.global.b{8 * size} {register}{10 + place}, [%d20];"
        for place in range(1, len(operands))
    )
    values = ", ".join(f"{register}{10 + place}" for place in range(1, len(operands)))
    body = f"""
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 64, %r1;
    setp.ge.u32 %p0, %r1, {count}; @%p0 exit; mul.wide.u32 %d10, %r1, {size}; {loads}
    add.u64 %d20, %d0, %d10; atom.global.{operation}.{kind} {register}19, [%d20], {values};
    add.u64 %d20, %d{len(operands)}, %d10; st.global.b{8 * size} [%d20], {register}19;"""
    found = run_text(body, arrays, block=64, grid=-(-count // 64))
    assert found.arrays["found"].tobytes() == arrays["a0"].tobytes()
    return found.arrays["a0"].view(f"u{size}").tolist()  # type: ignore[no-any-return]


_INTEGER: dict[str, Callable[[int, int], int]] = {
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
_FORMS = (
    "add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.s64", "max.u64", "and.b32", "or.b64", "xor.b32", "exch.b32", "exch.b64",
    "inc.u32", "dec.u32",
)  # fmt: skip


@pytest.mark.parametrize("form", _FORMS)
def test_integers(form: str) -> None:
    operation, kind = form.split(".")
    bits = int(kind[1:])
    old, b = pairs(edge_integers(bits))

    def compute(x: int, y: int) -> int:
        if kind[0] == "s" and operation in ("min", "max"):
            x, y = as_signed(x, bits), as_signed(y, bits)
        return _INTEGER[operation](x, y) & ((1 << bits) - 1)

    assert apply(operation, kind, old, b) == [compute(x, y) for x, y in zip(old, b, strict=True)]


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap(bits: int) -> None:
    assert apply("cas", f"b{bits}", [1, 2, 3], [1, 5, 3], [7, 8, 9]) == [7, 2, 9]


def test_floats() -> None:
    single = np.array([1, np.inf], np.float32), np.array([2**-24, -np.inf], np.float32)
    assert apply("add", "f32", *(one.view(np.uint32).tolist() for one in single)) == [0x3F80_0000, 0x7FFF_FFFF]
    assert apply("add.ftz", "f32", [1, 0x3F80_0000], [1, 1]) == [0, 0x3F80_0000]
    double = [np.array([one], np.float64).view(np.uint64).tolist() for one in (1, 2, 3)]
    assert apply("add", "f64", *double[:2]) == double[2]
    assert apply("add.noftz", "f16", [0x3C00, 0x0001], [0x3C00, 0x8001]) == [0x4000, 0]
    assert apply("add.noftz", "f16x2", [0x3C00_4000, 0x3C00_0001], [0x3C00_3C00, 0xBC00_0001]) == [0x4000_4200, 2]
    assert apply("max.noftz", "bf16x2", [0x3F80_C000, 0], [0x4000_BF80, 0x8000_8000]) == [0x4000_BF80, 0]


def test_each_element_of_a_vector_is_changed() -> None:
    body = """mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
    red.global.add.v4.f32 [%d0], {%f1, %f2, %f1, %f2}; atom.global.add.v2.f32 {%f3, %f4}, [%d0+8], {%f1, %f1}; st.global.f32 [%d0+16], %f4;"""
    found = run_text(body, {"a": np.zeros(8, np.float32)}, block=1)
    assert found.arrays["a"].view(np.float32).tolist() == [1, 2, 2, 3, 2, 0, 0, 0]


_UNKNOWN = ["add.b128 %d1, [%d2], %d3", "mul.u32 %r1, [%d2], %r3", "inc.f32 %f1, [%d2], %f3"]


@pytest.mark.parametrize("text", _UNKNOWN)
def test_forms_that_are_not_known(text: str) -> None:
    assert find_change(read_instruction(f"atom.global.{text}")) is None
