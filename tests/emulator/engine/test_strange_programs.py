"""Programs that nobody writes end with findings: never with an exception, never outside the emulated memory."""

import random
import re

import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription
from gpa_lsp.foundation.errors import InputError
from tests.emulator.engine.running import GLOBAL_THREAD, REGISTERS
from tests.patience import LIMIT_S

_BODY = f"""{GLOBAL_THREAD} .shared .align 16 .b8 tile[256]; .local .align 8 .b8 own[16]; mov.u32 %r1, tile; add.u32 %r2, %r1, %r52;
    ld.global.u32 %r3, [%d31];
st.shared.u32 [%r1], %r3; bar.sync 0; ld.shared.v2.u32 {{%r4, %r5}}, [%r1]; setp.lt.s32 %p1, %r3, 7; @%p1 bra NEXT;
    atom.global.add.u32 %r6, [%d31], 3;
cvt.rn.f32.u32 %f1, %r3; fma.rn.f32 %f2, %f1, %f1, %f1; shfl.sync.bfly.b32 %r7, %r3, 1, 31, 0xffffffff; NEXT: mul.wide.u32 %d5, %r3, 8;
mov.b64 {{%r8, %r9}}, %d5; selp.b32 %r10, %r8, %r9, %p1; vote.sync.ballot.b32 %r11, %p1, 0xffffffff; add.cc.u32 %r12, %r11, %r10;
    addc.u32 %r13, %r12, 1;
st.local.u64 [own], %d5; ld.local.u64 %d6, [own+8]; prmt.b32 %r14, %r3, %r4, 0x3210; cvta.shared.u64 %d7, %d5; st.u32 [%d32], %r14;
    cp.async.ca.shared.global [%r1], [%d31], 4;
red.global.max.u32 [%d32], %r3; bar.red.popc.u32 %r15, 0, %p1; div.u32 %r16, %r3, %r15; @%p1 ret; st.global.v2.u32 [%d1], {{%r15, %r16}};"""
_WORD = re.compile(r"[%\w.]+|[^\s\w]")


def _mutate(text: str, source: random.Random) -> str:
    """Some words are dropped, doubled, or take the place of others."""
    parts = _WORD.findall(text)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(parts))
        match source.randint(0, 3):
            case 0:
                parts[place] = source.choice(parts)
            case 1:
                parts[place] = parts[place].replace("32", source.choice(("8", "16", "64", "128")))
            case 2:
                parts.insert(place, source.choice(parts))
            case 3:
                del parts[place]
    return " ".join(parts).replace("@ !", "@!").replace("@ %", "@%")


@pytest.mark.parametrize("seed", range(60))
def test_changed_programs_end_with_findings(seed: int) -> None:
    body = _mutate(_BODY, random.Random(seed))
    text = f""".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1) {{ {REGISTERS}
    ld.param.u64 %d0, [k_param_0]; ld.param.u64 %d1, [k_param_1]; {body} ret; }}"""
    try:
        module = parse_ptx(text, name="k.ptx")
        len(module.functions["k"].instructions)
    except InputError:
        return
    arrays = tuple(ArrayArgument(name=name, type=ScalarType.U32, count=64) for name in ("in", "out"))
    launch = LaunchDescription(kernel="k", block=(48, 1, 1), grid=(2, 1, 1), arguments=arrays)
    budget = Budget(seconds=LIMIT_S, memory_bytes=64 << 20, warp_instructions=20_000)
    emulation = emulate(module, launch, budget=budget, trace=TraceSettings())
    assert emulation.warp_instructions > 0 or emulation.faults
    assert set(emulation.arrays) >= {"in", "out"}
