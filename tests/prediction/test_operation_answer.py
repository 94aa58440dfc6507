"""Arithmetic operations by line, as CUDAAdvisor's instrumentation records them: operator, and symbolic operands."""

import numpy as np

from gpa_lsp.execution.prediction.executed_work import answer_operations
from tests.emulator.engine.running import run_text, zeros

_BODY = """
.loc 1 3 0
mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d0, %d5; mov.u32 %r2, 0;
LOOP:
.loc 1 5 0
fma.rn.f32 %f2, %f1, 0f3FC00000, %f2; setp.lt.u32 %p1, %r1, 10;
@%p1 add.f32 %f2, %f2, 0fBF800000;
.loc 1 4 0
add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, 5; @%p2 bra LOOP;
st.global.f32 [%d5], %f2;
"""


def test_operations_are_counted_by_line_operator_and_type() -> None:
    emulation = run_text(_BODY, {"out": np.zeros(64, np.float32)}, block=64, before='.file 1 "/k.cu"')
    answer = answer_operations(emulation)
    (table,) = answer.tables
    assert {row[:3]: row[3:] for row in table.rows} == {
        ("k.cu:3", "mul", "u32"): (2, 64, 1.0, "4"),
        ("k.cu:3", "add", "u64"): (2, 64, 1.0, ""),
        ("k.cu:4", "add", "s32"): (10, 320, 1.0, "1"),
        ("k.cu:5", "fma", "f32"): (10, 320, 1.0, "1.5"),
        ("k.cu:5", "add", "f32"): (10, 50, 50 / 320, "-1"),
    }
    assert str(answer.summary).startswith("818 operations by threads, ")


def test_a_kernel_that_computes_nothing_says_so() -> None:
    answer = answer_operations(run_text("st.global.u32 [%d0], 7;", {"out": zeros(1)}))
    assert not answer.is_known and str(answer.summary) == "No arithmetic operation was executed."
