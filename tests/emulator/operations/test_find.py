"""Finding meanings: what is known, what is not, and that nothing written wrongly raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.model import Immediate, Pair, PtxInstruction, Register, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.lane_operations import list_steps
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.model import flatten
from tests.conftest import examples
from tests.emulator.operations.evaluating import bind, read_instruction

OPCODES = """
    add sub mul mad fma div rem abs neg min max sad mul24 mad24 addc subc madc popc clz bfind brev fns bfe bfi bmsk szext
    and or xor not cnot lop3 shl shr shf setp set selp slct prmt mov cvt rcp sqrt rsqrt sin cos lg2 ex2 tanh testp copysign
    dp4a dp2a vadd vadd2 vset4 vmad vshl shfl vote match redux movmatrix mma wmma bra ld st tex nonsense
"""
WORDS = """
    lo hi wide sat ftz rn rz rm rp rna rni rzi approx full cc lt eq gtu and or xor NaN xorsign abs relu sync aligned down idx ballot
    any all uni m16n8k16 m8n8k4 m16n16k16 row col trans x1 x4 f4e rc16 pack satfinite clamp wrap shiftamt finite normal l r u4 s4 popc
"""
NAMES = {kind.value: kind for kind in ScalarType}
OPERANDS = st.one_of(
    st.builds(Register, st.integers(0, 3), st.booleans(), st.sampled_from(["", "b0", "h1"])),
    st.builds(Immediate, st.integers(-(2**40), 2**40)),
    st.builds(Immediate, st.floats()),
    st.builds(Pair, st.just(Register(0)), st.one_of(st.none(), st.just(Register(1)))),
    st.builds(lambda count: Vector((Register(0),) * count), st.integers(0, 9)),
)


@st.composite
def instructions(draw: st.DrawFn) -> PtxInstruction:
    opcode = draw(st.sampled_from(OPCODES.split()))
    words = draw(st.lists(st.sampled_from([*WORDS.split(), *NAMES, *NAMES]), max_size=6))
    return PtxInstruction(
        index=0,
        opcode=opcode,
        suffixes=tuple(words),
        types=tuple(NAMES[word] for word in words if word in NAMES),
        destinations=tuple(draw(st.lists(OPERANDS, max_size=2))),
        sources=tuple(draw(st.lists(OPERANDS, max_size=5))),
        guard=None,
        text=f"{opcode}.{'.'.join(words)}",
        text_line=1,
        chain=None,
    )


@given(instructions())
@examples(200)
def test_nothing_that_can_be_written_raises(instruction: PtxInstruction) -> None:
    meaning = find_meaning(instruction)
    if meaning is None:
        return
    assert len(meaning.sources) == len(flatten(instruction.sources))
    assert len(meaning.results) == len(flatten(instruction.destinations))
    assert len(meaning.values) == len(meaning.results)
    steps = list_steps(meaning)
    assert all(set(step.operands) <= set("abcdekxyz") and len(step.operands) <= 3 for step in steps)


@pytest.mark.parametrize(
    "text",
    [
        "add.s32 %r1, %r2",
        "add.s32 %r1, %r2, %r3, %r4",
        "setp.eq.s32 %p1|%p2, %r1",
        "mul.wide.s64 %d1, %d2, %d3",
        "div.approx.f64 %e1, %e2, %e3",
        "lop3.b32 %r1, %r2, %r3, %r4, %r5",
        "wgmma.fence.sync.aligned",
        "mov.b128 {%d1, %d2}, %d3",
        "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2",
        "cvt.s32.f32 %r1, %f1",
        "cvt.rn.f32.pred %f1, %p1",
    ],
)
def test_what_is_not_known_is_none(text: str) -> None:
    assert find_meaning(read_instruction(text)) is None


def test_signs_do_not_matter_where_they_do_not_matter() -> None:
    assert bind("add.s32 %r1, %r2, %r3").meaning.sources == (ScalarType.U32, ScalarType.U32)
    assert bind("max.s32 %r1, %r2, %r3").meaning.sources == (ScalarType.S32, ScalarType.S32)
