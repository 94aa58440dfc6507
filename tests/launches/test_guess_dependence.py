"""Dependence of instructions on the guesses of a launch."""

from pathlib import Path

import pytest

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.launches.pointer_uses import GuessDependence
from gpa_lsp.execution.launches.read_launches import read_launches

PTX = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 m)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [m];
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r4, [%rd4];
    add.s32 %r5, %r3, %r1;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd2, %rd5;
    st.global.u32 [%rd6], %r3;
    mul.wide.u32 %rd7, %r4, 4;
    add.s64 %rd8, %rd2, %rd7;
    st.global.u16 [%rd8], %r3;
    st.global.v2.f32 [%rd4], {%r4, %r3};
    setp.ge.u32 %p1, %r3, %r2;
    @%p1 bra END;
    st.global.u8 [%rd2], %r3;
END:
    ret;
}
"""
LAUNCH = """\
[[launch]]
kernel = "k"
block = 32
grid = 2
guesses = GUESSES
arguments = [
  { name = "x", type = "int", count = 64, fill = "uniform", high = 9 },
  { name = "y", type = "int", count = 64 },
  { name = "n", type = "int", value = 4 },
  { name = "m", type = "int", value = 4 },
]
"""
PLACES = ("ld.global.u32", "st.global.u32", "st.global.u16", "st.global.u8", "st.global.f32")
"""By what it is shifted by n, by what x holds, and whether it is executed at all by m; what a store writes (``st.global.f32``) matters nowhere."""


def find_place(function: PtxFunction, name: str) -> int:
    opcode, *suffixes = name.split(".")
    (found,) = [
        one.index for one in function.instructions if one.opcode == opcode and all(x in one.suffixes for x in suffixes)
    ]
    return found


@pytest.mark.parametrize(
    ("guesses", "depending"),
    [
        ("[]", ()),
        ('["n"]', ("st.global.u32",)),
        ('["m"]', ("st.global.u8",)),
        ('["x"]', ("st.global.u16",)),
        ('["some_variable"]', ("st.global.u16",)),  # memory holds something that nobody knows
        ('["n", "x"]', ("st.global.u32", "st.global.u16")),
        ('["block"]', PLACES),
        ('["threads", "m"]', PLACES),
    ],
)
def test_only_what_comes_from_a_guess_depends_on_it(guesses: str, depending: tuple[str, ...]) -> None:
    (function,) = parse_ptx(PTX, name="k.ptx").entries
    (launch,) = read_launches(Path("k.launch.toml"), text=LAUNCH.replace("GUESSES", guesses))
    dependence = GuessDependence(function, launch)
    assert [name for name in PLACES if dependence.depends(find_place(function, name))] == list(depending)
    assert dependence.depends(None) is bool(launch.guesses)


def test_results_of_calls_depend_on_guesses() -> None:
    text = PTX.replace(".visible", ".extern .func (.param .b32 r) f(.param .b32 a);\n.visible")
    call = ".param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), f, (a); ld.param.b32 %r5, [b];"
    (function,) = parse_ptx(text.replace("add.s32 %r5, %r3, %r1;", call), name="k.ptx").entries
    (launch,) = read_launches(Path("k.launch.toml"), text=LAUNCH.replace("GUESSES", '["n"]'))
    dependence = GuessDependence(function, launch)
    assert [name for name in PLACES if dependence.depends(find_place(function, name))] == ["st.global.u32"]
