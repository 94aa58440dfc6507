"""Processor time that the operations of the emulator cost per lane.

Usage: ``python -m tests.bench.operations [--lanes N] [--times N]``. Sources are arrays of all lanes, but for literals.
"""

import argparse
import time
import timeit
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.find import bind_operation
from gpa_lsp.execution.emulator.operations.model import WarpOperation
from tests.emulator.operations.evaluating import read_instruction

INSTRUCTIONS = """
mov.u32 %r1, %r2
add.s32 %r1, %r2, %r3
sub.s32 %r1, %r2, %r3
mul.lo.s32 %r1, %r2, %r3
mad.lo.s32 %r1, %r2, %r3, %r4
mul.wide.s32 %d1, %r2, 4
mul.wide.u32 %d1, %r2, %r3
mul.hi.u32 %r1, %r2, %r3
add.s64 %d1, %d2, %d3
shl.b32 %r1, %r2, 2
shr.u32 %r1, %r2, 5
and.b32 %r1, %r2, 31
xor.b32 %r1, %r2, %r3
lop3.b32 %r1, %r2, %r3, %r4, 0xf8
shf.l.wrap.b32 %r1, %r2, %r3, 7
prmt.b32 %r1, %r2, %r3, 0x5410
bfe.u32 %r1, %r2, 8, 8
popc.b32 %r1, %r2
clz.b32 %r1, %r2
min.s32 %r1, %r2, %r3
div.s32 %r1, %r2, %r3
div.u32 %r1, %r2, 7
rem.u32 %r1, %r2, 7
setp.lt.s32 %p1, %r2, %r3
setp.gt.f32 %p1, %f2, %f3
setp.ne.and.s32 %p1, %r2, %r3, %p2
selp.b32 %r1, %r2, %r3, %p1
selp.f32 %f1, %f2, %f3, %p1
add.f32 %f1, %f2, %f3
add.ftz.f32 %f1, %f2, %f3
mul.f32 %f1, %f2, %f3
fma.rn.f32 %f1, %f2, %f3, %f4
fma.rn.ftz.f32 %f1, %f2, %f3, %f4
min.f32 %f1, %f2, %f3
div.rn.f32 %f1, %f2, %f3
sqrt.rn.f32 %f1, %f2
ex2.approx.f32 %f1, %f2
lg2.approx.f32 %f1, %f2
sin.approx.f32 %f1, %f2
add.f64 %e1, %e2, %e3
fma.rn.f64 %e1, %e2, %e3, %e4
div.rn.f64 %e1, %e2, %e3
add.rz.f32 %f1, %f2, %f3
cvt.s64.s32 %d1, %r2
cvt.u64.u32 %d1, %r2
cvt.rn.f32.s32 %f1, %r2
cvt.rzi.s32.f32 %r1, %f2
cvt.f64.f32 %e1, %f2
cvt.rn.f32.f64 %f1, %e2
cvt.f32.f16 %f1, %h2
cvt.rn.f16.f32 %h1, %f2
add.f16x2 %r1, %r2, %r3
fma.rn.f16x2 %r1, %r2, %r3, %r4
fma.rn.bf16x2 %r1, %r2, %r3, %r4
dp4a.s32.s32 %r1, %r2, %r3, %r4
shfl.sync.down.b32 %r1, %r2, 16, 31, -1
shfl.sync.idx.b32 %r1, %r2, %r3, 31, -1
vote.sync.ballot.b32 %r1, %p1, -1
redux.sync.add.s32 %r1, %r2, -1
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f4,%f5,%f6,%f7}
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f4,%f5,%f6,%f7}
mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r10,%r11,%r12,%r13}
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e0,%e1}, {%e2}, {%e3}, {%e4,%e5}
"""


def make_source(kind: ScalarType, literal: int | None, lanes: int, random: np.random.Generator) -> Any:
    """What a program would have there: numbers of ordinary size."""
    dtype = kind.natural_dtype
    if literal is not None:
        return np.array(literal & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype)[()]
    if dtype.kind == "f":
        return (random.standard_normal(lanes) + 3.0).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, lanes).astype(dtype)
    if kind in (ScalarType.F16, ScalarType.F16X2):
        return random.standard_normal(lanes * dtype.itemsize // 2).astype(np.float16).view(dtype)
    if kind is ScalarType.BF16X2:
        return random.integers(0x3F003F00, 0x3F803F80, lanes).astype(dtype)
    return random.integers(1, 1 << 30, lanes).astype(dtype)


def main() -> None:
    """Print one row per instruction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=32768)
    parser.add_argument("--times", type=int, default=50)
    options = parser.parse_args()
    random = np.random.Generator(np.random.PCG64(1))
    lanes = options.lanes // 32 * 32
    np.empty(30 << 20, np.uint8)  # glibc then takes arrays of this size from the heap, and no longer maps each one
    print(f"{lanes} lanes\n{'instruction':52} {'us':>9} {'ns per lane':>12}")
    with np.errstate(all="ignore"):
        for text in INSTRUCTIONS.strip().splitlines():
            _print_row(text, lanes, options.times, random)


def _print_row(text: str, lanes: int, times: int, random: np.random.Generator) -> None:
    instruction = read_instruction(text)
    operation = bind_operation(instruction)
    assert operation is not None, text
    literals = [getattr(operand, "value", None) for operand in instruction.sources]
    literals += [None] * (len(operation.source_types) - len(literals))
    sources = [
        make_source(kind, literal, lanes, random)
        for kind, literal in zip(operation.source_types, literals, strict=True)
    ]
    if isinstance(operation, WarpOperation):
        shape = (lanes // 32, 32)
        sources = [source.reshape(shape) if source.ndim else np.broadcast_to(source, shape) for source in sources]
        sources.insert(0, np.ones(shape, np.bool_))
    repeats = timeit.repeat(lambda: operation.evaluate(*sources), number=times, repeat=5, timer=time.process_time)
    seconds = min(repeats) / times
    print(f"{text[:52]:52} {seconds * 1e6:9.1f} {seconds / lanes * 1e9:12.2f}")


if __name__ == "__main__":
    main()
