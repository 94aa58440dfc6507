"""The outermost level of a module."""

import pickle
from itertools import pairwise

import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.parse import READ_AT_ONCE, DeferredFunction, parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind, list_reachable, list_static_instructions
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.locations import Frame
from tests.ptx.notation import HEAD, parse


def test_heads() -> None:
    module = parse(
        """
        .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b) ;
        .func .noreturn_is_no_name (.param .b32 x) ;
        """.replace(".func .noreturn_is_no_name (.param .b32 x) ;", ".weak .func stop(.param .b32 x) .noreturn ;")
        + """
        .visible .entry k(
            .param .align 8 .b8 k_param_0[24],
            .param .u64 .ptr .global .align 16 k_param_1,
            .param .f32 k_param_2, .param .u8 k_param_3, .param .u16 k_param_4
        ) .maxntid 16, 8, 1 .minnctapersm 2 .maxnreg 64 .reqntid 32
        { ret; }
        .entry plain { exit; }
        """
    )
    assert list(module.functions) == ["vprintf", "stop", "k", "plain"]
    assert [one.name for one in module.entries] == ["k", "plain"]
    assert (module.version, module.target) == ((8, 5), "sm_90")
    kernel = module.functions["k"]
    assert [(one.size_bytes, one.offset_bytes, one.is_pointer) for one in kernel.parameters] == [
        (24, 0, False),
        (8, 24, True),
        (4, 32, False),
        (1, 36, False),
        (2, 38, False),
    ]
    assert (kernel.max_threads, kernel.required_threads) == (128, (32, 1, 1))
    assert module.functions["vprintf"].instructions == ()
    assert module.functions["vprintf"].returns[0].type == ScalarType.B32


def test_variables_and_what_they_begin_with() -> None:
    module = parse(
        """
        .extern .global .align 4 .b8 elsewhere[];
        .global .align 1 .b8 text[5] = {104, 105, 33};
        .visible .const .align 4 .f32 numbers[2][2] = {{1.0}, {0f40000000, 3.0}};
        .global .align 8 .u64 table[3] = {f, generic(text)+2, 7};
        .global .align 8 .b8 bytes[16] = {1, 0,0,0,0,0,0,0, 0xFF(text), 0xFF00(text), 0xFF0000(text), 0xFF000000(text),
            0xFF00000000(text), 0xFF0000000000(text), 0xFF000000000000(text), 0xFF00000000000000(text)};
        .weak .global .v4 .u32 vector = {1, 2, 3, 4};
        .global .s16 negative = -2;
        .global .u32 computed = (1 << 4) | 3;
        .global .u32 zero[4] = {0, 0};
        .global .s32 open[] = {5, 6, 7};
        .global .attribute(.managed) .align 8 .f64 managed;
        .global .texref picture;
        .func f() { ret; }
        """
    )
    found = module.variables
    assert found["elsewhere"].is_extern
    assert found["text"].initial == b"hi!"
    assert found["numbers"].initial == bytes.fromhex("0000803f00000000 0000004000004040")
    assert found["numbers"].space == Space.CONST
    assert found["table"].initial == bytes(16) + b"\7" + bytes(7)
    assert found["table"].initial_symbols == ((0, "f", 0), (8, "text", 2))
    assert found["bytes"].initial_symbols == ((8, "text", 0),)
    assert found["vector"].initial == bytes.fromhex("01000000 02000000 03000000 04000000")
    assert found["vector"].alignment_bytes == 16
    assert found["negative"].initial == b"\xfe\xff"
    assert found["computed"].initial == bytes.fromhex("13000000")
    assert found["zero"].initial is None
    assert (found["open"].count, found["open"].size_bytes) == (3, 12)
    assert found["picture"].is_texture
    assert found["managed"].type == ScalarType.F64
    placed = [one for one in found.values() if one.space == Space.GLOBAL and not one.is_extern]
    for before, after in pairwise(placed):
        assert after.offset_bytes >= before.offset_bytes + before.size_bytes
        assert after.offset_bytes % after.alignment_bytes == 0


def test_shared_memory_of_a_kernel_is_all_it_can_reach() -> None:
    module = parse(
        """
        .extern .shared .align 16 .b8 dynamic[];
        .shared .align 4 .b8 unused[64];
        .shared .align 8 .b8 by_device_function[24];
        .func inner() { .shared .b32 own[3]; .reg .b32 %r<2>; ld.shared.b32 %r1, [by_device_function]; st.shared.b32 [own], %r1; ret; }
        .func outer() { call inner; ret; }
        .entry k() { .shared .align 1 .b8 first[5]; .reg .b32 %r<2>; ld.shared.b32 %r1, [dynamic]; call outer; ret; }
        .entry alone() { ret; }
        """
    )
    assert [(one.name, one.offset_bytes, one.size_bytes) for one in module.functions["k"].shared] == [
        ("first", 0, 5),
        ("by_device_function", 8, 24),
        ("own", 32, 12),
        ("dynamic", 48, 0),
    ]
    assert module.functions["alone"].shared == ()


def test_a_call_through_a_pointer_reaches_all_device_functions() -> None:
    module = parse(
        """
        .shared .align 4 .b8 tile[8];
        .func f(.param .b32 a) { .reg .b32 %r<2>; ld.shared.b32 %r1, [tile]; ret; }
        .func never() { ret; }
        .global .u64 table[1] = {f};
        .entry k() { .reg .b64 %rd<2>; ld.global.u64 %rd1, [table]; { .param .b32 a;
            p: .callprototype _ (.param .b32 _); call %rd1, (a), p; } ret; }
        """
    )
    assert [one.name for one in module.functions["k"].shared] == ["tile"]
    assert [one.name for one in list_reachable(module, "k")] == ["k", "f"]


def test_lines_and_inline_chains() -> None:
    module = parse(
        """
        .func f() { ret; }
        .entry k() { .reg .b32 %r<2>;
        .loc 1 10 0
        mov.u32 %r1, 0;
        .loc 1 12 5
        .loc 2 3 1, function_name $L__s+5, inlined_at 1 12 5
        mov.u32 %r1, 1;
        .loc 3 7 1, function_name $L__t, inlined_at 2 3 1
        mov.u32 %r1, 2;
        .loc 1 0 5
        mov.u32 %r1, 3;
        .loc 2 0 0, function_name $L__t, inlined_at 1 12 5
        mov.u32 %r1, 4;
        ret; }
        .file 1 "/src/a/../k.cu"
        .file 2 "inner.cuh", 12345, 678
        .file 3 "deep.cuh"
        .section .debug_info { .b32 0 }
        .section .debug_str
        {
        $L__s:
        .b8 104,101,108,108,111,95,90,49,0
        $L__t:
        .b8 95
        .b8 90,50,0
        }
        """
    )
    chains = [one.chain for one in module.functions["k"].instructions]
    outer = Frame(file="/src/k.cu", line=12, function="k")
    inner = Frame(file="inner.cuh", line=3, function="_Z1")
    assert chains[0] == (Frame(file="/src/k.cu", line=10, function="k"),)
    assert chains[1] == (inner, outer)
    assert chains[2] == (Frame(file="deep.cuh", line=7, function="_Z2"), inner, outer)
    assert chains[3] is None
    assert chains[4] == (outer,)
    assert [one.column for one in module.functions["k"].instructions] == [0, 1, 1, 0, 5, 5]
    assert module.functions["k"].line == chains[0]
    assert module.functions["f"].line is None
    assert module.files[1] == "/src/a/../k.cu"


def test_an_alias_has_the_body_of_what_it_stands_for() -> None:
    module = parse(".func f() { ret; } .func g() ; .alias g, f; .entry k() { call g; ret; }")
    assert [one.text for one in module.functions["g"].instructions] == ["ret"]
    assert module.functions["g"].name == "g"


def test_long_modules_read_bodies_when_they_are_looked_at() -> None:
    bad = ".entry bad() { mov.u32 %r1, 0; }"
    padding = "// " + "x" * READ_AT_ONCE + "\n"
    module = parse(f"{bad} .entry good() {{ ret; }}\n{padding}")
    good = module.functions["good"]
    assert isinstance(good, DeferredFunction)
    assert good.name == "good"
    assert [one.text for one in good.instructions] == ["ret"]
    assert pickle.loads(pickle.dumps(good)).instructions == good.instructions
    for _ in range(2):
        with pytest.raises(InputError, match="'%r1' is not declared") as caught:
            len(module.functions["bad"].instructions)
        assert (str(caught.value.path), caught.value.place) == ("test.ptx", "line 4")
    with pytest.raises(AttributeError):
        good.nothing  # noqa: B018
    with pytest.raises(InputError, match="'%r1' is not declared"):
        parse(bad)


def test_static_instructions() -> None:
    module = parse(
        """
        .func f() { .reg .b64 %rd<2>; .reg .b32 %r<2>; st.local.v2.b32 [%rd1], {%r1, %r1}; ret; }
        .entry k(.param .u64 a) { .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .f32 %f<5>;
        ld.param.u64 %rd1, [a];
        ld.global.nc.cg.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
        atom.shared.add.u32 %r1, [%r1], 1;
        red.global.add.f32 [%rd1], %f1;
        ld.f32 %f1, [%rd1];
        cp.async.ca.shared.global [%r1], [%rd1], 8;
        call f; ret; }
        """
    )
    found = list_static_instructions(module, "k")
    assert [(one.kind, one.space, one.bytes_per_lane) for one in found] == [
        (None, Space.GENERIC, 0),
        (AccessKind.LOAD, Space.GLOBAL, 16),
        (AccessKind.ATOMIC, Space.SHARED, 4),
        (AccessKind.REDUCTION, Space.GLOBAL, 4),
        (AccessKind.LOAD, Space.GENERIC, 4),
        (AccessKind.LOAD, Space.GLOBAL, 8),
        (None, Space.GENERIC, 0),
        (None, Space.GENERIC, 0),
        (AccessKind.STORE, Space.LOCAL, 8),
        (None, Space.GENERIC, 0),
    ]
    assert found[1].cache_operator == "cg"
    assert [one.function for one in found] == ["k"] * 8 + ["f"] * 2


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", ".version and .target are missing", None),
        ("\0\0", ".version and .target are missing", None),
        ("hello", "'hello' is not part of a module", 1),
        (HEAD + "\n.entry k() {\n ret;", "a brace is not closed", 5),
        (HEAD + ".entry k(", "neither a body nor a semicolon", 4),
        (HEAD + ".global .b32 x = 99999999999999999999;", "more than 64 bits", 4),
        (HEAD + ".global .b32 x[2] = {1, 2, 3};", "3 initial values for 2 elements", 4),
        (HEAD + ".global .b32 x[2] = {1, 2;", "does not end", 4),
        (HEAD + ".global .b32 x[2] = {1} 2;", "initial values", 4),
        (HEAD + ".global .b32 x[2] = {{1}};", "nested deeper", 4),
        (HEAD + ".global .u32 x = f; .func f() { ret; }", "in 4 bytes", 4),
        (HEAD + "\n\n.global .b32 x[2] = {1.5};", "not an integer", 6),
        (HEAD + ".global .b64 x[99999999999999];", "no GPU has that much memory", 4),
        (HEAD + ".entry k() { ret; } .entry k() { ret; }", "has two bodies", 4),
        (HEAD + ".alias a, b;", "not declared", 4),
        (HEAD + ".local .b8 x[4];", "outside functions", None),
        (HEAD + "/* never\nends", "a comment does not end", 4),
        (HEAD + '.file 1 "never\nends', "a string does not end", 4),
        (HEAD.replace("64", "32"), "addresses of 32 bits", 3),
        (HEAD + ".entry k() { .loc 7 1 1\n ret; }", "file 7, which no .file lists", 4),
        (HEAD + ".entry k() .maxntid 0 { ret; }", "blocks of 0", 4),
    ],
)
def test_what_is_no_module_is_refused_with_its_line(text: str, message: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_ptx(text, name="bad.ptx")
    assert message in str(caught.value)
    assert caught.value.place == (None if line is None else f"line {line}")
    assert caught.value.remedy


def test_32_bit_code_is_a_kind_that_is_not_read() -> None:
    with pytest.raises(UnsupportedInputError):
        parse_ptx(HEAD.replace("64", "32"), name="old.ptx")


def test_preprocessor_lines_and_carriage_returns_are_passed_over() -> None:
    text = '# 1 "k.cu"\r\n.version 8.5\r\n.target sm_90, debug\r\n@@DWARF .section x\r\n.entry k()\r\n{ // brace }\r\n  ret; /* } */\r\n}\r\n'
    module = parse_ptx(text, name="k.ptx")
    assert module.target == "sm_90"
    assert module.functions["k"].instructions[0].text_line == 7
