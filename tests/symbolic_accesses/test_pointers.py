"""The pointers that an access goes through, known and unknown."""

import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.symbolic_accesses.find import Pointer, find_pointers

_HEAD = """.version 8.0 .target sm_80 .address_size 64 .global .align 4 .u32 table[4];
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2) {
.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.u64 %d0, [k_param_0]; ld.param.u64 %d1, [k_param_1]; ld.param.u32 %r0, [k_param_2];
mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; mul.wide.s32 %d3, %r0, 4; cvt.u64.u32 %d4, %r0; setp.eq.u32 %p1, %r0, 7;"""


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ("add.u64 %d5, %d0, %d2; add.u64 %d5, %d5, %d3; st.global.u32 [%d5], %r1;", (0,)),
        ("ld.global.u32 %r2, [%d1]; mul.wide.s32 %d6, %r2, 4; add.u64 %d5, %d0, %d6; st.global.u32 [%d5], %r1;", (0,)),
        ("sub.u64 %d6, %d1, %d0; add.u64 %d5, %d0, %d2; add.u64 %d5, %d5, %d6; st.global.u32 [%d5], %r1;", (8,)),
        ("add.u64 %d5, %d0, %d4; st.global.u8 [%d5], %r1;", (0, 16)),  # the values tell
        ("mov.u64 %d6, table; add.u64 %d5, %d6, %d2; st.global.u32 [%d5], %r1;", ("table",)),
        ("L: st.global.u32 [%d0], %r1; add.u64 %d0, %d0, 64; add.u32 %r0, %r0, -1; setp.ne.u32 %p2, %r0, 0; @%p2 bra L;", (0,)),
        ("selp.b64 %d5, %d0, %d1, %p1; st.global.u32 [%d5], %r1;", ()),
        ("ld.global.u64 %d5, [%d0]; st.global.u32 [%d5+4], %r1;", ()),
        ("@%p1 bra E; mov.u64 %d0, %d1; E: st.global.u32 [%d0], %r1;", ()),
        ("L: st.global.u32 [%d0], %r1; mov.u64 %d5, %d0; mov.u64 %d0, %d1; mov.u64 %d1, %d5; bra L;", ()),
    ],
)  # fmt: skip
def test_the_pointer_of_an_access_is_what_is_not_scaled(body: str, pointers: tuple[Pointer, ...]) -> None:
    module = parse_ptx(f"{_HEAD} {body} ret; }}", name="k")
    store = max(one.index for one in module.functions["k"].instructions if one.opcode == "st")
    assert find_pointers(module, "k").get(store, ()) == pointers
