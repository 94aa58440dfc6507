"""Every form of operand."""

import math

import pytest

from gpa_lsp.code.ptx.model import Address, Immediate, Pair, Register, SpecialRegister, Symbol, TextureAddress, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError
from tests.ptx.notation import parse_body, parse_one, write_instruction

GLOBALS = ".global .align 4 .b8 table[64]; .global .texref picture;"


@pytest.mark.parametrize(
    ("text", "destinations", "sources"),
    [
        ("add.s32 %r1, %r2, -5;", 1, 2),
        ("st.global.f32 [%rd1+4], %f1;", 0, 2),
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-16];", 1, 1),
        ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", 1, 3),
        ("shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;", 1, 4),
        ("mov.b64 {%r1, _}, %rd1;", 1, 1),
        ("mov.b64 %rd1, {%r1, %r2};", 1, 1),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", 1, 3),
        ("red.global.add.u32 [%rd1], 1;", 0, 2),
        ("bar.sync 0, 128;", 0, 2),
        ("bar.red.popc.u32 %r1, 0, %p1;", 1, 2),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16;", 0, 3),
        ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [picture, {%r1, %r2}];", 1, 1),
        ("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};", 0, 2),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd1,%fd2};", 1, 3),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1,%f2}, %r1;", 0, 3),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2}, [%rd1], %r3;", 1, 2),
        ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;", 1, 2),
        ("mbarrier.init.shared.b64 [%r1], 32;", 0, 2),
        ("prefetch.global.L2 [%rd1];", 0, 1),
        ("membar.gl;", 0, 0),
        ("vadd.u32.u32.u32 %r1, %r2.b0, -%r3.h1;", 1, 2),
        ("ld.shared::cta.u32 %r1, [16];", 1, 1),
        ("mov.u64 %rd1, table;", 1, 1),
        ("prmt.b32 %r1, %r2, 0, 0x3340U;", 1, 3),
        ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", 1, 1),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
            0,
            3,
        ),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;", 1, 7),
        ("elect.sync _|%p1, -1;", 1, 1),
        ("mbarrier.arrive.shared.b64 _, [%r1];", 0, 1),
    ],
)
def test_results_and_operands_are_told_apart(text: str, destinations: int, sources: int) -> None:
    _, instruction = parse_one(text, GLOBALS)
    assert (len(instruction.destinations), len(instruction.sources)) == (destinations, sources)


def test_forms() -> None:
    body = """
    ld.global.u32 %r1, [%rd1+-16];
    ld.param.u32 %r1, [k_param_1];
    ld.global.u32 %r1, [table+8];
    mov.b64 {%r1, _}, %rd1;
    setp.eq.s32 %p1|_, %r1, 0x1F;
    and.pred %p1, %p2, !%p3;
    mov.u32 %r1, %tid.x;
    mov.u64 %rd1, %clock64;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [picture, {%r1, %r2}];
    vset.s32.u32.ge %r1, %r2.b3, -%r3;
    mov.u64 %rd1, table+12;
    mov.u32 %r1, WARP_SZ;
    mov.u32 %r1, (1 << 4) + 2;
    ret;
    """
    function = parse_body(body, GLOBALS)
    first = [one.destinations[0] for one in function.instructions[:-1]]
    read = [one.sources[-1] for one in function.instructions[:-1]]
    assert isinstance(read[0], Address)
    assert read[0].offset_bytes == -16
    assert isinstance(read[0].base, Register)
    assert read[1] == Address(Symbol("k_param_1"), 0)
    assert read[2] == Address(Symbol("table"), 8)
    assert isinstance(first[3], Vector)
    assert first[3].elements[1] is None
    assert isinstance(first[4], Pair)
    assert (first[4].second, read[4]) == (None, Immediate(31))
    assert isinstance(read[5], Register)
    assert read[5].is_negated
    assert (read[6], read[7]) == (SpecialRegister("tid", "x"), SpecialRegister("clock64"))
    assert isinstance(read[8], TextureAddress)
    assert read[8].handle == Symbol("picture")
    assert len(read[8].coordinates) == 2
    assert [
        (one.selector, one.is_negated) for one in function.instructions[9].sources if isinstance(one, Register)
    ] == [
        ("b3", False),
        ("", True),
    ]
    assert read[10] == Symbol("table", 12)
    assert (read[11], read[12]) == (Immediate(32), Immediate(18))


def test_bits_of_floating_point_literals_are_kept() -> None:
    function = parse_body(
        "mov.f32 %f1, 0f7FC00001; mov.f64 %fd1, 0dBFF0000000000000; mov.f32 %f2, 1.5; mov.f32 %f3, 0F3f800000; ret;"
    )
    nan, minus_one, decimal, one = (instruction.sources[0] for instruction in function.instructions[:4])
    assert isinstance(nan, Immediate)
    assert math.isnan(nan.value)
    assert (nan.bits, nan.width_bits) == (0x7FC00001, 32)
    assert minus_one == Immediate(-1.0, 0xBFF0000000000000, 64)
    assert decimal == Immediate(1.5)
    assert one == Immediate(1.0, 0x3F800000, 32)


def test_a_dropped_result_is_no_result() -> None:
    _, instruction = parse_one("atom.global.add.u32 _, [%rd1], 1;")
    assert instruction.destinations == ()
    assert len(instruction.sources) == 2


def test_types_are_those_among_the_suffixes() -> None:
    _, instruction = parse_one("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;")
    assert instruction.types == (ScalarType.E4M3X2, ScalarType.F32)
    assert instruction.suffixes == ("rn", "satfinite", "e4m3x2", "f32")


def test_an_instruction_nobody_knows_is_read_like_the_others() -> None:
    function, instruction = parse_one("frobnicate.wide::now.b32 %r1, {%r2, 7}, [%rd1+4];")
    assert instruction.opcode == "frobnicate"
    assert instruction.suffixes == ("wide::now", "b32")
    assert write_instruction(function, instruction) == "frobnicate.wide::now.b32%r1,{%r2,7},[%rd1+4]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add.s32 %r1, %r200, 1;", "'%r200' is not declared"),
        ("add.s32 %r1, %r02, 1;", "'%r02' is not declared"),
        ("mov.u64 %rd1, absent;", "'absent' is not declared"),
        ("mov.u32 %r1, %tid.q;", "'%tid.q' is not declared"),
        ("mov.u32 %r1, 0xFFFFFFFFFFFFFFFFF;", "more than 64 bits"),
        ("ld.global.u32 %r1, [%rd1;", "not operands"),
        ("mov.b64 %rd1, {%r1, {%r2}};", "not operands"),
        ("ld.global.u32 %r1, [%rd1+1.5];", "not an integer"),
        ("mov.u32 %r1, 5 5;", "neither an operand"),
        ("mov.u32 %r1, 1/0;", "divides by zero"),
        ("@%r9000 mov.u32 %r1, 5;", "not declared"),
        ("bra nowhere;", "no label 'nowhere'"),
        ("brx.idx %r1, nowhere;", "no .branchtargets 'nowhere'"),
        ("call absent, (k_param_0);", "not declared"),
        ("call (a, b;", "is not a call"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_body(f"mov.u32 %r1, 0;\n\n  {text}\nret;")
    assert message in caught.value.message
    assert caught.value.place == "line 9"
    assert str(caught.value.path) == "test.ptx"
    assert caught.value.remedy
