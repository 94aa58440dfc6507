"""PTX of several units, linked."""

import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.programs.loaded_code import link_parts, link_texts
from gpa_lsp.foundation.errors import InputError

_HEAD = ".version 8.{version}\n.target sm_80\n.address_size 64\n"
_CALLER = (
    _HEAD.format(version=0)
    + """
.extern .func (.param .b32 out) answer (.param .b32 in) ;
.extern .global .align 4 .f32 shift;
.global .align 1 .b8 $str[2] = {65, 0};
.visible .entry kernel(.param .u64 into)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    .loc 1 7 3
    mov.u64 %rd1, $str; mov.u64 %rd2, shift;
    { .param .b32 a; .param .b32 b; call.uni (b), answer, (a); }
    ret;
}
.weak .func both() { ret; }
    .file 1 "caller.cu"
"""
)
_CALLED = (
    _HEAD.format(version=3)
    + """
.visible .global .align 4 .f32 shift = 0f3FC00000;
.global .align 1 .b8 $str[3] = {66, 67, 0};
.visible .func (.param .b32 out) answer (.param .b32 in)
{
    .reg .b64 %rd<2>;
    .loc 1 2 1, function_name $L__info_string0, inlined_at 1 9 4
    mov.u64 %rd1, $str;
    ret;
}
.weak .func both() { ret; }
    .file 1 "called.cu"
    .section .debug_str
    {
$L__info_string0:
.b8 102,0
    }
"""
)


def test_functions_and_variables_of_other_units_are_found() -> None:
    module = parse_ptx(link_texts([_CALLER, _CALLED]), name="linked")
    assert module.version == (8, 3) and set(module.functions) == {"kernel", "answer", "both"}
    assert all(function.instructions for function in module.functions.values())
    assert not module.variables["shift"].is_extern and module.variables["shift"].initial == bytes.fromhex("0000c03f")


def test_what_units_hide_stays_their_own() -> None:
    module = parse_ptx(link_texts([_CALLER, _CALLED]), name="linked")
    assert [module.variables[name].initial for name in ("$str", "$str__unit_2")] == [b"A\0", b"BC\0"]
    texts = {name: [one.text for one in function.instructions] for name, function in module.functions.items()}
    assert "mov.u64 %rd1, $str" in texts["kernel"] and "mov.u64 %rd1, $str__unit_2" in texts["answer"]


def test_lines_keep_their_files() -> None:
    module = parse_ptx(link_texts([_CALLER, _CALLED]), name="linked")
    files = {
        name: {one.chain[0].file for one in module.functions[name].instructions if one.chain}
        for name in ("kernel", "answer")
    }
    assert files == {"kernel": {"caller.cu"}, "answer": {"called.cu"}}


@pytest.mark.parametrize("content", [b"\x50\xed\x55\xba" + b"\xff" * 12, b"x" * 40])
def test_damaged_parts_are_named(content: bytes) -> None:
    with pytest.raises(InputError, match="damaged"):
        link_parts(content, (8, 0))


def test_a_unit_that_is_no_ptx_is_named() -> None:
    with pytest.raises(InputError, match="is not part of a module"):
        link_texts(["kernel { }"])
