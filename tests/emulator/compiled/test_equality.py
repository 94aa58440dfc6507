"""The core's operations and steps of numpy agree on every bit of memory, every row of a trace and every finding."""

import msgspec.structs
import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation, FaultKind
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription
from tests.emulator.compiled.comparing import list_different
from tests.emulator.engine.running import GLOBAL_THREAD, SMALL, Array, build_module, run_text, zeros
from tests.emulator.kernels.running import BUDGET, Case, load_module
from tests.emulator.kernels.test_faults import CASES as FAULTY
from tests.emulator.kernels.test_truth import OWN, UNOPTIMISED

_CASES = [case for case in (*OWN, *UNOPTIMISED, *FAULTY) if case.architecture == 80][1::3]
"""Some: numpy takes a second for each, and test_translation compares others."""
_FEW = 50_000


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_kernels_do_the_same(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    budget = msgspec.structs.replace(BUDGET, warp_instructions=_FEW) if case in FAULTY else BUDGET
    different, found = list_different(module, case.launch, budget)
    if not any(fault.kind in (FaultKind.MEMORY_BUDGET, FaultKind.TRACE_BUDGET) for fault in found.faults):
        assert different == []


_LANES = 64
_SPECIAL = np.array(
    [0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x3F800000, 0xBF800000, 0x4B000001,
     0x7F7FFFFF, 0xFF7FFFFF, 0x00800000, 0x007FFFFF, 0x4F000000, 0xCF000000, 0x4F800000, 0x3F000000, 0x3FC00000, 0x40200000, 31, 32, 33,
     0xFFFFFFFF, 0x7FFFFFFF, 0xFFFF, 0x8000, 255, 64, 0xDF000000],
    np.uint32,
)  # fmt: skip
_NANS = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FFABCDEF0123456, 0xFFFFFFFFFFFFFFFF], np.uint64)
_SPECIAL_DOUBLES = np.array(
    [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, 5e-324, 2.0**31, -(2.0**31) - 1, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e308, 0.1, -7.0,
     *_NANS.view(np.float64)],
    np.float64,
).view(np.uint64)  # fmt: skip
_COMPARED = tuple(f"{word}.{kind}" for kind in ("u32", "s32") for word in ("eq", "ne", "lt", "le", "gt", "ge"))
_COMPARED_FLOATS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
INSTRUCTIONS = (
    *(f"{word} %r5, %r1, %r2;" for word in (
        "add.u32", "sub.s32", "mul.lo.u32", "mul.hi.u32", "mul.hi.s32", "and.b32", "or.b32", "xor.b32", "shl.b32", "shr.u32", "shr.s32",
        "min.u32", "max.u32", "min.s32", "max.s32", "div.u32", "div.s32", "rem.u32", "rem.s32", "add.sat.s32",
    )),
    *(f"{word} %r5, %r1;" for word in ("not.b32", "neg.s32", "abs.s32", "popc.b32", "clz.b32", "brev.b32", "cnot.b32")),
    "mad.lo.s32 %r5, %r1, %r2, %r3;", "mad.hi.s32 %r5, %r1, %r2, %r3;", "mad.hi.u32 %r5, %r1, %r2, %r3;",
    "lop3.b32 %r5, %r1, %r2, %r3, 0x6A;", "shf.l.wrap.b32 %r5, %r1, %r2, %r3;", "shf.r.clamp.b32 %r5, %r1, %r2, %r3;",
    "prmt.b32 %r5, %r1, %r2, 0x5410;", "prmt.b32 %r5, %r1, %r2, 0xF83A;", "prmt.b32 %r5, %r1, %r2, %r3;", "prmt.b32.rc16 %r5, %r1, %r2, %r3;",
    "bfe.u32 %r5, %r1, %r2, %r3;", "mov.u32 %r5, %laneid;", "mov.u32 %r5, %lanemask_lt;",
    *(f"setp.{word} %p1, %r1, %r2; selp.u32 %r5, %r1, %r2, %p1;" for word in _COMPARED),
    "setp.lt.and.s32 %p1|%p2, %r1, %r2, %p0; selp.u32 %r5, 1, 2, %p1; selp.u32 %r6, 3, 4, %p2;",
    "@%p0 add.u32 %r5, %r1, 7; @!%p0 sub.u32 %r5, %r1, 9;", "@%p0 shl.b32 %r5, %r1, %r2; @!%p0 rem.u32 %r5, %r1, 3;",
    "mul.wide.s32 %d5, %r1, %r2; mov.b64 {%r5, %r6}, %d5;", "mad.wide.u32 %d5, %r1, %r2, %d6; mov.b64 {%r5, %r6}, %d5;",
    "mov.b64 %d5, {%r1, %r2}; mul.hi.s64 %d7, %d5, %d6; mov.b64 {%r5, %r6}, %d7;",
    "mov.b64 %d5, {%r1, %r2}; div.s64 %d7, %d5, %d6; mov.b64 {%r5, %r6}, %d7;",
    "mov.b64 %d5, {%r1, %r2}; shr.s64 %d7, %d5, %r3; popc.b64 %r6, %d5; mov.b64 {%r5, _}, %d7;",
    "cvt.u16.u32 %h1, %r1; mul.lo.s16 %h2, %h1, 77; shr.s16 %h3, %h2, 3; cvt.s32.s16 %r5, %h3; cvt.u32.u16 %r6, %h3;",
    "cvt.s8.s32 %r5, %r1; cvt.s64.s32 %d5, %r1; mov.b64 {_, %r6}, %d5;",
    *(f"{word} %f5, %f1, %f2; mov.b32 %r5, %f5;" for word in (
        "add.f32", "sub.f32", "mul.f32", "div.rn.f32", "div.full.f32", "div.approx.f32", "min.f32", "max.f32", "add.ftz.f32", "mul.ftz.f32",
        "sub.ftz.f32", "min.ftz.f32", "add.rz.f32", "add.sat.f32", "max.NaN.f32",
    )),
    *(f"{word} %f5, %f1; mov.b32 %r5, %f5;" for word in (
        "neg.f32", "abs.f32", "rcp.rn.f32", "rcp.approx.f32", "sqrt.rn.f32", "sqrt.approx.ftz.f32", "ex2.approx.f32", "lg2.approx.f32",
        "sin.approx.f32", "rsqrt.approx.f32", "cvt.rni.f32.f32", "cvt.rmi.f32.f32",
    )),
    "fma.rn.f32 %f5, %f1, %f2, %f3; mov.b32 %r5, %f5;", "fma.rn.ftz.f32 %f5, %f1, %f2, %f3; mov.b32 %r5, %f5;",
    *(f"setp.{word}.f32 %p1, %f1, %f2; selp.u32 %r5, 1, 0, %p1;" for word in _COMPARED_FLOATS),
    *(f"setp.{word}.ftz.f32 %p1, %f1, %f2; selp.u32 %r5, 1, 0, %p1;" for word in ("lt", "ne", "geu")),
    *(f"cvt.{mode}.{kind}.f32 {register}, %f1; {after}" for mode in ("rzi", "rni", "rmi", "rpi") for kind, register, after in (
        ("s32", "%r5", ""), ("u32", "%r5", ""), ("s64", "%d5", "mov.b64 {%r5, %r6}, %d5;"), ("u64", "%d5", "mov.b64 {%r5, %r6}, %d5;"),
        ("u16", "%h5", "cvt.u32.u16 %r5, %h5;"),
    )),
    "cvt.rn.f32.s32 %f5, %r1; mov.b32 %r5, %f5;", "cvt.rn.f32.u32 %f5, %r1; mov.b32 %r5, %f5;", "cvt.rz.f32.u32 %f5, %r1; mov.b32 %r5, %f5;",
    "cvt.rn.f32.u64 %f5, %d6; mov.b32 %r5, %f5;", "cvt.f64.f32 %g5, %f1; mov.b64 %d5, %g5; mov.b64 {%r5, %r6}, %d5;",
    *(f"{word} %g5, %g1, %g2; mov.b64 %d5, %g5; mov.b64 {{%r5, %r6}}, %d5;" for word in (
        "add.f64", "mul.f64", "div.rn.f64", "min.f64", "max.f64", "sub.f64",
    )),
    "fma.rn.f64 %g5, %g1, %g2, %g1; mov.b64 %d5, %g5; mov.b64 {%r5, %r6}, %d5;", "cvt.rn.f32.f64 %f5, %g1; mov.b32 %r5, %f5;",
    *(f"cvt.rzi.{kind}.f64 %r5, %g1;" for kind in ("s32", "u32")),
    *(f"shfl.sync.{mode}.b32 %r5|%p1, %r1, 3, {clamp}, -1; selp.u32 %r6, 1, 0, %p1;" for mode, clamp in (
        ("up", 0), ("down", 31), ("bfly", 31), ("idx", 31), ("down", 0x181F), ("bfly", 0x1C07),
    )),
    "vote.sync.ballot.b32 %r5, %p0, -1;", "vote.sync.any.pred %p1, !%p0, -1; selp.u32 %r5, 1, 0, %p1;", "activemask.b32 %r5;",
    "redux.sync.add.s32 %r5, %r1, -1;", "match.any.sync.b32 %r5, %r1, -1;",
    # results that are sources, of several operations each
    "add.cc.u32 %r1, %r1, %r2; addc.cc.u32 %r2, %r2, %r3; addc.u32 %r6, %r3, 0; xor.b32 %r5, %r1, %r2;",
    "sub.cc.u32 %r1, %r1, %r2; subc.u32 %r6, %r2, %r3; mov.u32 %r5, %r1;",
    "mad.lo.cc.u32 %r1, %r1, %r2, %r3; madc.hi.u32 %r6, %r1, %r2, %r3; mov.u32 %r5, %r1;",
    "bfi.b32 %r1, %r1, %r2, %r3, 7; mov.u32 %r5, %r1;", "bfi.b64 %d6, %d6, %d20, 12, 21; mov.b64 {%r5, %r6}, %d6;",
    "lop3.or.b32 %r1|%p1, %r1, %r2, %r3, 0x96, %p0; selp.u32 %r6, 1, 0, %p1; mov.u32 %r5, %r1;",
    "setp.lt.or.f32 %p0|%p1, %f1, %f2, %p0; selp.u32 %r5, 1, 0, %p0; selp.u32 %r6, 1, 0, %p1;",
    "mov.v4.u32 {%r1, %r2, %r3, %r4}, {%r2, %r3, %r1, %r2}; xor.b32 %r5, %r1, %r4; sub.u32 %r6, %r2, %r3;",
    "mov.b64 {%h1, %h2, %h3, %h4}, %d6; mov.b64 %d5, {%h4, %h1, %h3, %h2}; mov.b64 {%r5, %r6}, %d5;",
    "@%p0 mov.b64 {%r1, %r2}, %d6; mov.u32 %r5, %r1; mov.u32 %r6, %r2;", "bfind.shiftamt.s32 %r5, %r1; bfind.u32 %r6, %r2;",
    "mul24.hi.s32 %r5, %r1, %r2; mad24.lo.u32 %r6, %r1, %r2, %r3;", "sad.s32 %r5, %r1, %r2, %r3; slct.u32.f32 %r6, %r1, %r2, %f3;",
    "dp4a.s32.u32 %r5, %r1, %r2, %r3; dp2a.hi.u32.s32 %r6, %r1, %r2, %r3;", "vadd4.u32.u32.u32.sat %r5, %r1, %r2, %r3;",
    "set.gt.u32.s32 %r5, %r1, %r2; szext.wrap.s32 %r6, %r1, %r2;", "fns.b32 %r5, %r1, 4, %r2; bmsk.clamp.b32 %r6, %r1, %r2;",
    # narrow numbers
    *(f"{word}.{kind} %r5, %r1, %r2;" for kind in ("f16x2", "bf16x2") for word in (
        "add.rn", "mul.rn", "sub", "min", "max.NaN", "min.xorsign.abs",
    )),
    "fma.rn.f16x2 %r5, %r1, %r2, %r3; fma.rn.relu.bf16x2 %r6, %r1, %r2, %r3;", "add.ftz.sat.f16x2 %r5, %r1, %r2; neg.bf16x2 %r6, %r3;",
    "setp.gtu.f16x2 %p1|%p2, %r1, %r2; selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 1, 0, %p2;", "ex2.approx.f16x2 %r5, %r1; tanh.approx.bf16x2 %r6, %r2;",
    *(f"cvt.{form} %r5, %f1, %f2;" for form in (
        "rn.f16x2.f32", "rz.bf16x2.f32", "rn.relu.f16x2.f32", "rn.satfinite.bf16x2.f32",
    )),
    *(f"cvt.{form} %h1, %f1, %f2; cvt.u32.u16 %r5, %h1;" for form in ("rn.satfinite.e4m3x2.f32", "rn.satfinite.relu.e5m2x2.f32")),
    "cvt.rn.f16.f32 %h1, %f1; cvt.u32.u16 %r5, %h1; cvt.f32.f16 %f5, %h1; mov.b32 %r6, %f5;",
    "cvt.u16.u32 %h1, %r1; cvt.rn.f16x2.e4m3x2 %r5, %h1; cvt.rn.f16x2.e5m2x2 %r6, %h1;", "cvt.rna.tf32.f32 %r5, %f1; cvt.rn.relu.tf32.f32 %r6, %f1;",
    "cvt.rp.f32.f64 %f5, %g1; mov.b32 %r5, %f5; cvt.rm.f16.f64 %h1, %g1; cvt.u32.u16 %r6, %h1;", "cvt.pack.sat.u8.s32.b32 %r5, %r1, %r2, %r3;",
    "cvt.sat.s8.s32 %r5, %r1; cvt.sat.f32.f32 %f5, %f1; mov.b32 %r6, %f5;", "cvt.rz.f32.s64 %f5, %d6; mov.b32 %r5, %f5; cvt.rzi.s16.f64 %r6, %g1;",
    # roundings
    *(f"{word} %f5, %f1, %f2; mov.b32 %r5, %f5;" for word in ("add.rm.f32", "mul.rp.f32", "sub.rz.ftz.f32", "div.rz.f32", "copysign.f32")),
    "fma.rp.sat.f32 %f5, %f1, %f2, %f3; mov.b32 %r5, %f5; sqrt.rm.f32 %f6, %f1; mov.b32 %r6, %f6;",
    "testp.subnormal.f32 %p1, %f1; selp.u32 %r5, 1, 0, %p1;",
    *(f"{word} %g5, %g1, %g2; mov.b64 %d5, %g5; mov.b64 {{%r5, %r6}}, %d5;" for word in ("add.rz.f64", "mul.rm.f64", "div.rp.f64")),
    "rsqrt.approx.ftz.f64 %g5, %g1; mov.b64 %d5, %g5; mov.b64 {%r5, %r6}, %d5;",
    "mov.b64 %d5, {%r1, %r2}; add.rn.f32x2 %d7, %d5, %d6; mov.b64 {%r5, %r6}, %d7;",
    "max.f32 %f5, %f1, %f2, %f3; mov.b32 %r5, %f5; min.NaN.xorsign.abs.f32 %f6, %f1, %f2; mov.b32 %r6, %f6;",
    # members of their own
    "and.b32 %r7, %r59, 1; selp.u32 %r8, 0x55555555, 0xAAAAAAAA, %p0; setp.eq.u32 %p1, %r7, 0; selp.u32 %r8, 0x55555555, 0xAAAAAAAA, %p1;"
    " vote.sync.ballot.b32 %r5, %p0, %r8; redux.sync.max.s32 %r6, %r1, %r8;",
    "match.all.sync.b32 %r5|%p1, %r7, -1; selp.u32 %r6, 1, 0, %p1;", "redux.sync.xor.b32 %r5, %r1, -1; redux.sync.min.u32 %r6, %r1, -1;",
    "vote.sync.uni.pred %p1, %p0, -1; selp.u32 %r5, 1, 0, %p1; movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r1;",
    "elect.sync %r5|%p1, -1; selp.u32 %r6, 1, 0, %p1;",
)  # fmt: skip


def list_values(number: int) -> tuple[Array, Array]:
    """Words and doubles of all kinds."""
    random = np.random.Generator(np.random.PCG64(number))
    values = random.integers(0, 1 << 32, 4 * _LANES, dtype=np.uint32)
    values[: 3 * _LANES : 2] = random.choice(_SPECIAL, 3 * _LANES // 2)
    return values, np.concatenate([random.choice(_SPECIAL_DOUBLES, _LANES), random.choice(_SPECIAL_DOUBLES, _LANES)])


GROUPS = tuple(INSTRUCTIONS[first : first + 16] for first in range(0, len(INSTRUCTIONS), 16))
"""Instructions that share a kernel."""
_GIVEN = f"""
    ld.global.u32 %r1, [%d31]; ld.global.u32 %r2, [%d31+{4 * _LANES}]; ld.global.u32 %r3, [%d31+{8 * _LANES}];
    mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; ld.global.f64 %g1, [%d21]; ld.global.f64 %g2, [%d21+{8 * _LANES}];
    mov.b64 %d6, %g1; setp.gt.u32 %p0, %r3, 1000; mov.u32 %r7, 0;"""


def run_together(texts: tuple[str, ...], number: int, *, leave: bool = False) -> Emulation:
    """Run instructions one after another; ``out`` has two words of every lane for each.

    Args:
        number: of the values.
        leave: whether some lanes leave behind the second; values are then given once, and not again for each instruction.
    """
    values, doubles = list_values(number)
    stored = "".join(
        f"""{"" if leave and place else _GIVEN} mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u64 %d5, 77;
        {text} st.global.v2.u32 [%d22+{8 * _LANES * place}], {{%r5, %r6}}; {"@%p9 bra END;" if leave and place % 3 == 1 else ""}"""
        for place, text in enumerate(texts)
    )
    body = f"""{GLOBAL_THREAD} mul.wide.u32 %d20, %r59, 8; add.u64 %d21, %d1, %d20; add.u64 %d22, %d2, %d20;
    and.b32 %r9, %r59, 5; setp.eq.u32 %p9, %r9, 1; {stored} END:"""
    arrays: dict[str, Array] = {"in": values, "doubles": doubles, "out": zeros(2 * _LANES * len(texts))}
    return run_text(body, arrays, block=_LANES // 2, grid=2)


ACCESSES = (
    "atom.global.add.u32 %r5, [%d23], %r1;", "atom.global.min.s32 %r5, [%d23], %r1;", "atom.global.max.u32 %r5, [%d23], %r1;",
    "atom.global.exch.b32 %r5, [%d23], %r1;", "atom.global.cas.b32 %r5, [%d23], 0, %r1;", "atom.global.inc.u32 %r5, [%d23], 5;",
    "atom.global.cas.b32 %r5, [%d1], 0, %r1; atom.global.cas.b32 %r6, [%d1], %r5, 7; atom.global.cas.b32 %r7, [%d1], 7, %r10; xor.b32 %r5, %r5, %r7;",
    "@%p0 atom.global.cas.b32 %r5, [%d1], %r1, 5;", "@%p0 atom.global.cas.b64 %d26, [%d1], 1, 5; cvt.u32.u64 %r5, %d26;",
    "st.shared.u32 [%r20], %r10; bar.sync 0; atom.shared.cas.b32 %r5, [0], 4, %r1; atom.shared.cas.b32 %r6, [0], 99, 3; add.u32 %r5, %r5, %r6;",
    "atom.global.dec.u32 %r5, [%d23], 5;", "red.global.add.f32 [%d23], %f1;", "atom.global.add.f32 %f5, [%d23], %f1;",
    "red.global.xor.b32 [%d23], %r1;", "@%p0 red.global.add.u32 [%d23], 1;", "atom.add.u32 %r5, [%d23], 1;",
    "st.shared.u32 [%r20], %r1; bar.sync 0; ld.shared.u32 %r5, [%r21];", "atom.shared.add.u32 %r5, [%r22], %r1;",
    "st.shared.v2.u32 [%r24], {%r1, %r1}; ld.shared.u8 %r5, [%r24+1];", "ld.shared.u32 %r5, [%r21+1];", "ld.shared.u32 %r5, [%r21+4000];",
    "st.global.u8 [%d23], %r1;", "ld.global.s8 %r5, [%d23+3];", "ld.global.u32 %r5, [%d23+100000];", "@%p0 st.global.u32 [%d23+2], %r1;",
    "cp.async.ca.shared.global [%r24], [%d31], 4, %r10; ld.shared.u32 %r5, [%r24];",
    "@%p0 cp.async.ca.shared.global [%r24], [%d31+-8], 8, %p0; ld.shared.u32 %r5, [%r24+4];",
    "st.shared.v2.u32 [%r24], {%r1, %r10}; bar.sync 0; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5, %r6}, [%r26]; xor.b32 %r5, %r5, %r6;",
    "cvta.shared.u64 %d24, %d25; st.u32 [%d24], %r1; ld.u32 %r5, [%d24];", "st.shared.u32 [%r22], %r1; ld.shared.u32 %r5, [%r20];",
)  # fmt: skip


def build_access(text: str) -> tuple[PtxModule, LaunchDescription]:
    """A kernel with some accesses, and its launch."""
    body = f"""{GLOBAL_THREAD} ld.global.u32 %r1, [%d31]; and.b32 %r10, %r1, 12; cvt.u64.u32 %d22, %r10; add.u64 %d23, %d1, %d22;
    mov.b32 %f1, %r59; mov.u32 %r11, %tid.x; shl.b32 %r20, %r11, 2; xor.b32 %r21, %r20, 128; and.b32 %r22, %r1, 28; shl.b32 %r24, %r11, 3;
    and.b32 %r26, %r11, 15; shl.b32 %r26, %r26, 4;
    cvt.u64.u32 %d25, %r20; setp.lt.u32 %p0, %r1, 40; mov.u32 %r5, 0; {text} st.global.u32 [%d32+64], %r5;"""
    module = build_module(body, ("d", "d"), before="")
    return module, LaunchDescription(
        kernel="k",
        block=(64, 1, 1),
        grid=(2, 1, 1),
        shared_bytes=512,
        arguments=(
            ArrayArgument(name="in", type=ScalarType.U32, count=128, generator=Generator.UNIFORM, high=100.0),
            ArrayArgument(name="out", type=ScalarType.U32, count=160),
        ),
    )


@pytest.mark.parametrize("text", ACCESSES)
def test_accesses_and_their_findings_are_the_same(text: str) -> None:
    module, launch = build_access(text)
    different, _ = list_different(module, launch, SMALL)
    assert different == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2}, %r3, %r4, {%r1, %r2};", ""),
        ("frobnicate.u32 {%r1, %r2}, %r3, %r4, {%r1, %r2};", ""),
        ("atom.global.add.u32 %d20, [%d32], 1;", " (register of this kind)"),
        ("cp.async.ca.shared.global [%r1], [%d31], 5;", " (copy of this size)"),
    ],
)
def test_what_is_not_emulated_ends_the_lanes_that_come_to_it(text: str, reason: str) -> None:
    body = f"{GLOBAL_THREAD} st.global.u32 [%d32], %r59; {text} st.global.u32 [%d32], %r50;"
    arrays = tuple(ArrayArgument(name=name, type=ScalarType.U32, count=64) for name in ("in", "out"))
    launch = LaunchDescription(kernel="k", block=(64, 1, 1), grid=(1, 1, 1), arguments=arrays)
    found = emulate(build_module(body, ("d", "d")), launch, budget=SMALL)
    (fault,) = found.faults
    assert (fault.kind, fault.count) == (FaultKind.UNSUPPORTED, 64)
    assert fault.message == f"{text.removesuffix(';')} is not emulated{reason}"
    assert found.arrays["out"].tolist() == list(range(64))
