"""The core's operations and steps of numpy agree on every bit of memory, every row of a trace and every finding."""

import msgspec.structs
import pytest

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription
from tests.emulator.compiled.comparing import list_different
from tests.emulator.engine.running import GLOBAL_THREAD, SMALL, build_module
from tests.emulator.kernels.running import BUDGET, Case, load_module
from tests.emulator.kernels.test_faults import CASES as FAULTY
from tests.emulator.kernels.test_truth import OWN, UNOPTIMISED

_CASES = [case for case in (*OWN, *UNOPTIMISED, *FAULTY) if case.architecture == 80]
_FEW = 50_000


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_kernels_do_the_same(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    budget = msgspec.structs.replace(BUDGET, warp_instructions=_FEW) if case in FAULTY else BUDGET
    different, found = list_different(module, case.launch, budget)
    if not any(fault.kind in (FaultKind.MEMORY_BUDGET, FaultKind.TRACE_BUDGET) for fault in found.faults):
        assert different == []


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
