"""Atomic operations of many lanes are what they are one after the other, and so they are where some lanes may not."""

import numpy as np
import pytest

from gpa_lsp.execution.emulator.semantics.find import find_change
from tests.emulator.compiled.comparing import by_numpy
from tests.emulator.engine.running import run_text
from tests.emulator.operations.evaluating import read_instruction

_FORMS = (
    "add.u32", "add.u64", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b64", "inc.u32", "dec.u32", "exch.b32", "cas.b32", "cas.b16",
    "add.f32", "add.f64", "add.ftz.f32", "add.noftz.f16", "add.noftz.f16x2", "add.noftz.bf16x2", "min.noftz.f16", "min.s64", "max.s64",
    "max.u64", "min.u32", "max.s32", "or.b64", "exch.b64", "cas.b64", "max.noftz.bf16x2",
)  # fmt: skip
# All in memory; some beyond its end; some askew; some in shared memory
_ADDRESSES = (
    "",
    "setp.gt.u32 %p1, %r1, 50; selp.b64 %d9, 1000000, 0, %p1; add.u64 %d5, %d5, %d9;",
    "setp.gt.u32 %p1, %r1, 50; selp.b64 %d9, 1, 0, %p1; add.u64 %d5, %d5, %d9;",
    "setp.lt.u32 %p1, %r1, 9; mov.u64 %d8, words; cvta.shared.u64 %d8, %d8; selp.b64 %d5, %d8, %d5, %p1;",
)


def _run(form: str, address: str) -> tuple[dict[str, bytes], list[str]]:
    bits = 16 if form.endswith(("f16", "b16")) else 64 if "64" in form else 32
    register = {"f32": "%f", "f64": "%g"}.get(form[-3:]) or {16: "%h", 32: "%r", 64: "%d"}[bits]
    values = f"{register}11, {register}10" if "cas" in form else f"{register}10"
    size = bits // 8
    random = np.random.Generator(np.random.PCG64(3))
    kind = {"f32": np.float32, "f64": np.float64}.get(form[-3:], np.dtype(f"u{size}"))
    scale = 0x3C00 if "noftz" in form else 1
    drawn = np.array([0, 1, 2, 3, 4, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1], np.uint64)
    if scale > 1 or np.dtype(kind).kind == "f":
        drawn = np.array([0, 1, 2, 3, 4], np.uint64) * np.uint64(scale)
    arrays = {
        "memory": random.choice(drawn, 16).astype(kind),
        "places": random.integers(0, 9, 64).astype(np.uint32),
        "values": (random.choice(drawn, 64) // np.uint64(3 if scale > 1 else 1)).astype(kind),
        "found": np.zeros(64, kind),
    }
    body = f"""
    .shared .align 8 .b64 words;
    mov.u32 %r1, %tid.x; mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d1, %d4; ld.global.u32 %r2, [%d4];
    mul.wide.u32 %d5, %r2, {size}; add.u64 %d5, %d0, %d5; mul.wide.u32 %d6, %r1, {size}; add.u64 %d7, %d2, %d6;
    ld.global.b{bits} {register}10, [%d7]; ld.global.b{bits} {register}11, [%d0+{2 * size}]; {address}
    setp.ne.u32 %p0, %r1, 7; @%p0 atom.{form} {register}12, [%d5], {values};
    add.u64 %d7, %d3, %d6; st.global.b{bits} [%d7], {register}12;"""
    run = run_text(body, {name: one.view(np.uint8) for name, one in arrays.items()}, block=64)
    return {name: one.tobytes() for name, one in run.arrays.items()}, [str(one) for one in run.faults]


@pytest.mark.parametrize("address", _ADDRESSES, ids=["all", "beyond", "askew", "apart"])
@pytest.mark.parametrize("form", _FORMS)
def test_many_lanes_are_one_lane_after_the_other(form: str, address: str) -> None:
    with by_numpy():
        expected = _run(form, address)
    assert _run(form, address) == expected
    assert bool(expected[1]) == ("p1, %r1, 50" in address)


def test_sums_of_many_lanes_are_rounded_one_after_the_other() -> None:
    values = np.random.Generator(np.random.PCG64(1)).random(512, np.float32)
    body = """mov.u32 %r1, %tid.x; mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d1, %d4; ld.global.f32 %f1, [%d4]; red.global.add.f32 [%d0], %f1;"""
    found = run_text(body, {"sum": np.zeros(2, np.float32), "values": values}, block=512)
    assert found.arrays["sum"].view(np.float32).tolist() == [np.add.accumulate(values)[-1], 0]


def test_each_element_of_a_vector_is_changed() -> None:
    body = """mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
    red.global.add.v4.f32 [%d0], {%f1, %f2, %f1, %f2}; atom.global.add.v2.f32 {%f3, %f4}, [%d0+8], {%f1, %f1}; st.global.f32 [%d0+16], %f4;"""
    found = run_text(body, {"a": np.zeros(8, np.float32)}, block=1)
    assert found.arrays["a"].view(np.float32).tolist() == [1, 2, 2, 3, 2, 0, 0, 0]


@pytest.mark.parametrize("text", ["add.b128 %d1, [%d2], %d3", "mul.u32 %r1, [%d2], %r3", "inc.f32 %f1, [%d2], %f3"])
def test_forms_that_are_not_known(text: str) -> None:
    assert find_change(read_instruction(f"atom.global.{text}")) is None
