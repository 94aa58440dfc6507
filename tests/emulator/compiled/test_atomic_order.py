"""Atomic operations of many lanes are what they are one after the other, and so they are where some lanes may not."""

import numpy as np
import pytest

from tests.emulator.compiled.comparing import by_numpy
from tests.emulator.engine.running import run_text

_FORMS = (
    "add.u32", "add.u64", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b64", "inc.u32", "dec.u32", "exch.b32", "cas.b32", "cas.b16",
    "add.f32", "add.f64", "add.ftz.f32", "add.noftz.f16", "add.noftz.f16x2", "add.noftz.bf16x2", "min.noftz.f16", "min.s64",
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
    arrays = {
        "memory": (random.integers(0, 5, 16) * scale).astype(kind),
        "places": random.integers(0, 9, 64).astype(np.uint32),
        "values": (random.integers(0, 5, 64) * scale // 3).astype(kind),
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
