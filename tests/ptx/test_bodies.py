"""Scopes, registers, labels and calls."""

import pytest

from gpa_lsp.code.ptx.model import Register, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from tests.ptx.notation import parse, parse_body

CALLED = ".func (.param .b32 out) f(.param .b32 a) { .reg .b32 %r<2>; st.param.b32 [out], %r1; ret; }"


def test_registers_have_slots_by_first_use_and_types() -> None:
    function = parse_body("add.f64 %fd1, %fd2, %fd1; setp.eq.f64 %p1, %fd1, %fd2; ret;")
    assert function.register_names == ("%fd1", "%fd2", "%p1")
    assert function.registers == (ScalarType.F64, ScalarType.F64, ScalarType.PRED)


def test_an_inner_register_hides_an_outer_one_until_its_scope_ends() -> None:
    body = """
    mov.u32 %r1, 1;
    { .reg .f32 %r1; mov.f32 %r1, 0f00000000; { mov.f32 %r1, 0f3F800000; } }
    mov.u32 %r1, 2;
    { mov.u32 %r1, 3; .reg .b64 %r<4>; mov.u64 %r1, 4; }
    ret;
    """
    function = parse_body(body)
    slots = [
        one.destinations[0].slot for one in function.instructions[:-1] if isinstance(one.destinations[0], Register)
    ]
    assert slots == [0, 1, 1, 0, 0, 2]
    assert [function.registers[slot] for slot in slots] == [
        ScalarType.B32,
        ScalarType.F32,
        ScalarType.F32,
        ScalarType.B32,
        ScalarType.B32,
        ScalarType.B64,
    ]


def test_vector_registers_are_their_elements() -> None:
    function = parse_body(
        ".reg .v4 .f32 colour; ld.global.v4.f32 colour, [%rd1]; add.f32 %f1, colour.x, colour.a; ret;"
    )
    assert function.register_names == ("colour.x", "colour.y", "colour.z", "colour.w", "%rd1", "%f1")
    names = [function.register_names[one.slot] for one in function.instructions[1].sources if isinstance(one, Register)]
    assert names == ["colour.x", "colour.w"]


def test_labels_belong_to_their_scope() -> None:
    """Inline assembly that is expanded twice names its labels twice."""
    wait = "{ .reg .pred done; AGAIN: setp.eq.s32 done, %r1, 0; @done bra DONE; bra AGAIN; DONE: }"
    function = parse_body(f"{wait}\n{wait}\nret;")
    targets = [one.target for one in function.instructions if one.opcode == "bra"]
    assert targets == [3, 0, 6, 3]
    assert function.instructions[1].guard is not None


def test_an_outer_label_is_seen_from_inside_and_not_the_other_way_round() -> None:
    assert parse_body("{ bra OUT; } OUT: ret;").instructions[0].target == 1
    with pytest.raises(InputError, match="no label 'IN'"):
        parse_body("{ IN: mov.u32 %r1, 0; } bra IN; ret;")


def test_a_table_of_targets() -> None:
    body = "brx.idx %r1, TABLE;\n A: ret;\n B: exit;\n TABLE: .branchtargets A, B, A;"
    function = parse_body(body)
    assert function.instructions[0].targets == (1, 2, 1)
    assert [
        function.register_names[one.slot] for one in function.instructions[0].sources if isinstance(one, Register)
    ] == ["%r1"]


def test_a_direct_call_passes_parameters_of_its_own() -> None:
    body = """
    { // callseq 0, 0
    .reg .b32 temp_param_reg;
    .param .b32 param0;
    st.param.b32 [param0+0], %r1;
    .param .b32 retval0;
    call.uni (retval0),
    f,
    (
    param0
    );
    ld.param.b32 %r2, [retval0+0];
    }
    ret;
    """
    function = parse_body(body, CALLED)
    call = function.instructions[1].call
    assert (call.callee, call.results, call.arguments) == ("f", (Symbol("retval0"),), (Symbol("param0"),))
    assert [(one.name, one.offset_bytes) for one in function.call_parameters] == [("param0", 0), ("retval0", 4)]
    assert function.instructions[1].text == "call.uni (retval0), f, ( param0 )"


def test_call_sequences_share_their_bytes_and_differing_ones_their_names_do_not() -> None:
    sequence = "{{ .param {} param0; st.param.b32 [param0], %r1; }}"
    same, wide = sequence.format(".b32"), sequence.format(".align 8 .b8")
    function = parse_body(f"{same} {same} {wide.replace('param0;', 'param0[24];')} {same} ret;")
    assert [(one.name, one.size_bytes, one.offset_bytes) for one in function.call_parameters] == [
        ("param0", 4, 0),
        ("param0#2", 24, 0),
    ]
    bases = [one.sources[0].base.name for one in function.instructions[:-1]]  # type: ignore[union-attr]
    assert bases == ["param0", "param0", "param0#2", "param0"]


def test_nested_call_sequences_do_not_overlap() -> None:
    function = parse_body(
        "{ .param .b64 param0; { .param .b32 param0; st.param.b32 [param0], %r1; } st.param.b64 [param0], %rd1; } ret;"
    )
    assert [(one.name, one.offset_bytes) for one in function.call_parameters] == [("param0", 0), ("param0#2", 8)]
    assert function.instructions[1].sources[0].base == Symbol("param0")  # type: ignore[union-attr]


def test_indirect_calls_reach_what_their_prototype_or_list_allows() -> None:
    functions = f"{CALLED} {CALLED.replace(' f(', ' g(')} .func other(.param .b64 x) {{ ret; }}"
    body = """
    { .param .b32 a; .param .b32 r;
    by_prototype : .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn;
    call (r), %rd1, (a), by_prototype;
    by_list: .calltargets g;
    call (r), %rd1, (a), by_list;
    call (r), %rd1, (a);
    }
    ret;
    """
    calls = [one.call for one in parse_body(body, functions).instructions if one.call is not None]
    assert [one.possible for one in calls] == [("f", "g"), ("g",), ()]
    assert all(one.callee is None and one.pointer is not None for one in calls)


def test_locals_are_laid_out_and_aligned() -> None:
    function = parse_body(".local .align 1 .b8 a[3]; { .local .align 16 .b8 b[20]; } .local .f64 c; ret;")
    assert [(one.name, one.offset_bytes) for one in function.locals] == [("a", 0), ("b", 16), ("c", 40)]
    assert function.local_bytes == 48


def test_lines_count_through_comments_and_long_instructions() -> None:
    body = "mov.u32 %r1,\n 0; /* two\n lines */ add.u32 %r1, %r1, 1; // more\n\n  ret;"
    first, second, third = parse_body(body).instructions
    assert (second.text_line - first.text_line, third.text_line - second.text_line) == (2, 2)
    assert first.text == "mov.u32 %r1, 0"


def test_long_texts_are_cut() -> None:
    vector = ", ".join(["%r1"] * 300)
    function = parse_body(f"mov.b32 {{{vector}}}, %r2; ret;")
    assert len(function.instructions[0].text) == 400


def test_a_label_at_the_end_of_a_body_is_one_before_a_return() -> None:
    function = parse_body("@%p1 bra END; mov.u32 %r1, 0; END: ")
    assert [one.opcode for one in function.instructions] == ["bra", "mov", "ret"]
    assert function.instructions[0].target == 2
    assert function.instructions[2].index == 2 and function.instructions[2].guard is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{ mov.u32 %r1, 0; ret;", "a brace is not closed"),
        ("mov.u32 %r1, 0", "not a PTX statement"),
        ("L: L: ret;", "given twice"),
        (".reg .b32 %r<-1>; ret;", "not a register"),
        (".reg .nonsense %r; ret;", "unknown type"),
        (".global .b32 x; ret;", "not in its memory"),
        (".frob x; ret;", "declares nothing known"),
        (".local .b8 x[99999999999999999999]; ret;", "more than 64 bits"),
        (".local .align 3 .b8 x[4]; ret;", "alignment of 3"),
        ("T: .calltargets f; call %rd1, (), absent; ret;", "no prototype 'absent'"),
    ],
)
def test_bad_bodies_are_refused(body: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_body(body)
    assert message in str(caught.value)


def test_arguments_in_registers_are_not_read() -> None:
    with pytest.raises(UnsupportedInputError, match="registers"):
        parse(".func (.reg .b32 out) f(.reg .b32 a) { ret; }")
