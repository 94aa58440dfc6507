"""Calls of device functions: parameters, recursion, pointers, and functions the system brings."""

import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.engine.arena import Region
from gpa_lsp.execution.emulator.engine.launching import Heap
from gpa_lsp.execution.emulator.model import Budget, FaultKind
from tests.emulator.engine.running import GLOBAL_THREAD, run_text, zeros

_FACTORIAL = """.func (.param .b32 result) factorial (.param .b32 n) { .reg .pred %p<2>; .reg .b32 %r<6>; ld.param.u32 %r1, [n];
mov.u32 %r2, 1; setp.lt.u32 %p1, %r1, 2; @%p1 bra DONE; sub.u32 %r3, %r1, 1;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), factorial, (a); ld.param.b32 %r4, [b]; }
mul.lo.u32 %r2, %r1, %r4; DONE: st.param.b32 [result], %r2; ret; }"""


def test_lanes_recurse_as_deep_as_each_wants() -> None:
    body = f"""{GLOBAL_THREAD} and.b32 %r1, %r59, 7; {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), factorial, (a);
    ld.param.b32 %r2, [b]; }} st.global.u32 [%d32], %r2;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, block=64, before=_FACTORIAL)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [1, 1, 2, 6, 24, 120, 720, 5040] * 8


def test_recursion_without_end_is_said_at_the_call() -> None:
    before = """.func endless () { .local .align 4 .b8 frame[64]; .reg .b32 %r<2>; st.local.u32 [frame], %r1; call endless, (); ret; }"""
    emulation = run_text("call endless, ();", {"out": zeros(1)}, before=before, budget=Budget(call_depth=9))
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.CALL_DEPTH
    assert fault.is_fatal
    assert fault.count == 32
    assert emulation.is_complete


def test_parameters_are_put_together_from_parts_of_other_sizes() -> None:
    before = """.func (.param .align 8 .b8 back[16]) turn (.param .align 8 .b8 given[16]) { .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .b16 %h<4>;
    ld.param.u64 %d1, [given]; ld.param.u8 %h1, [given+9]; ld.param.u16 %h2, [given+10]; ld.param.v2.u32 {%r1, %r2}, [given+8];
    st.param.b64 [back], %d1; st.param.b8 [back+8], %h1; st.param.b16 [back+10], %h2; st.param.b32 [back+12], %r2; ret; }"""
    body = f"""{GLOBAL_THREAD} add.u32 %r1, %r59, 1; {{ .param .align 8 .b8 a[16]; .param .align 8 .b8 b[16];
    st.param.b32 [a], %r1; st.param.b32 [a+4], 0xABCD; st.param.b32 [a+8], 0x12345678; st.param.b32 [a+12], 77; call (b), turn, (a);
    ld.param.b32 %r2, [b]; ld.param.b32 %r3, [b+4]; ld.param.b8 %r4, [b+8]; ld.param.b16 %r5, [b+10]; ld.param.b32 %r6, [b+12]; }}
    mul.wide.u32 %d30, %r59, 20; add.u64 %d32, %d1, %d30; st.global.u32 [%d32], %r2; st.global.u32 [%d32+4], %r3; st.global.u32 [%d32+8], %r4;
    st.global.u32 [%d32+12], %r5; st.global.u32 [%d32+16], %r6;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(160)}, before=before)
    assert emulation.faults == ()
    assert emulation.arrays["out"].reshape(32, 5).tolist() == [[k + 1, 0xABCD, 0x56, 0x1234, 77] for k in range(32)]


def test_calls_through_pointers_part_the_lanes_and_pointers_to_nothing_end_them() -> None:
    before = """.func (.param .b32 y) twice (.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1;
    st.param.b32 [y], %r2; ret; }
    .func (.param .b32 y) more (.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, 1000; st.param.b32 [y], %r2; ret; }
    .global .align 8 .u64 table[2] = {twice, more};"""
    body = f"""{GLOBAL_THREAD} and.b32 %r1, %r59, 1; mul.wide.u32 %d5, %r1, 8; mov.u64 %d6, table; add.u64 %d6, %d6, %d5; ld.global.u64 %d7, [%d6];
    setp.eq.u32 %p1, %r59, 6; @%p1 mov.u64 %d7, 12345;
    {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r59; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %d7, (a), P;
    ld.param.b32 %r2, [b]; }}
    st.global.u32 [%d32], %r2;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)}, before=before)
    (fault,) = emulation.faults
    assert fault.is_fatal
    assert fault.count == 1
    assert fault.thread == (6, 0, 0)
    expected = [k + 1000 if k % 2 else 2 * k for k in range(32)]
    expected[6] = 0
    assert emulation.arrays["out"].tolist() == expected


def test_local_frames_of_nested_calls_do_not_overlap() -> None:
    before = """.func (.param .b32 y) deep (.param .b32 x) { .local .align 4 .b8 own[8]; .reg .pred %p<2>; .reg .b32 %r<8>; ld.param.u32 %r1, [x];
    st.local.u32 [own+4], %r1; mov.u32 %r3, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE; sub.u32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), deep, (a); ld.param.b32 %r3, [b]; }
    DONE: ld.local.u32 %r4, [own+4]; mad.lo.u32 %r5, %r3, 10, %r4; st.param.b32 [y], %r5; ret; }"""
    body = f"""{GLOBAL_THREAD} and.b32 %r1, %r59, 3; {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), deep, (a);
    ld.param.b32 %r2, [b]; }}
    st.global.u32 [%d32], %r2;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)}, before=before)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [0, 1, 12, 123] * 8


@pytest.mark.parametrize(
    ("form", "stores", "expected", "count"),
    [
        ("n=%d x=%f %%", "st.local.u32 [b], -5; st.local.f64 [b+8], 0d3FF8000000000000;", "n=-5 x=1.500000 %", 2),
        ("%5u|%-4x|%c", "st.local.u32 [b], 42; st.local.u32 [b+4], 255; st.local.u32 [b+8], 65;", "   42|ff  |A", 3),
        ("%*d", "st.local.u32 [b], 4; st.local.u32 [b+4], 7;", "   7", 2),
        (
            "%s %lld",
            "mov.u64 %d8, name; cvta.global.u64 %d8, %d8; st.local.u64 [b], %d8; st.local.s64 [b+8], -7;",
            "you -7",
            2,
        ),
        ("%999999999d", "st.local.u32 [b], 1;", "1".rjust(999), 1),
        ("%q %", "", "%q %", 0),
    ],
)
def test_printed_text_is_kept_and_its_arguments_counted(form: str, stores: str, expected: str, count: int) -> None:
    bytes_of = ", ".join(str(byte) for byte in (*form.encode(), 0))
    before = f""".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a); .global .align 1 .b8 name[4] = {{121, 111, 117, 0}};
    .global .align 1 .b8 text[{len(form) + 1}] = {{{bytes_of}}};"""
    body = f""".local .align 8 .b8 b[32]; {stores} mov.u64 %d5, text; cvta.global.u64 %d5, %d5; mov.u64 %d6, b; cvta.local.u64 %d6, %d6;
    {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d5; st.param.b64 [a], %d6; call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }}
    st.global.u32 [%d0], %r1;"""
    emulation = run_text(body, {"out": zeros(1)}, before=before, block=2)
    assert emulation.faults == ()
    assert emulation.printed == expected * 2
    assert emulation.arrays["out"].tolist() == [count]


def test_device_code_allocates_and_frees() -> None:
    before = ".extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);"
    body = f"""{GLOBAL_THREAD} {{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %d5, [r]; }}
    st.u32 [%d5+20], %r59; ld.u32 %r1, [%d5+20]; st.global.u32 [%d32], %r1; {{ .param .b64 p; st.param.b64 [p], %d5; call free, (p); }}
    {{ .param .b64 n; .param .b64 r; st.param.b64 [n], -1; call (r), malloc, (n); ld.param.b64 %d6, [r]; }} cvt.u32.u64 %r2, %d6;
    st.global.u32 [%d32+128], %r2;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, before=before)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [*range(32), *[0] * 32]


def test_the_device_heap_joins_what_was_freed() -> None:
    heap = Heap(Region(name="heap", space=Space.GLOBAL, base=1 << 20, size_bytes=256))
    pieces = [heap.allocate(32) for _ in range(8)]
    assert heap.allocate(1) == 0
    for address in pieces[::2] + pieces[1::2]:
        heap.free(address)
    assert heap.list_free() == [(1 << 20, 256)]
    assert heap.allocate(256) == 1 << 20
    assert heap.list_free() == []
