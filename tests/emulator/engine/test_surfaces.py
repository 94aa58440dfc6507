"""Surfaces that are read and written by coordinates."""

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import FaultKind, TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription, TextureArgument


def _run(mode: str):
    text = f""".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 surface) {{ .reg .b32 %r<9>; .reg .b64 %d<2>;
    ld.param.u64 %d1, [surface]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, %tid.y;
    suld.b.2d.b32.{mode} %r4, [%d1, {{%r2, %r3}}]; add.u32 %r4, %r4, 100; sust.b.2d.b32.{mode} [%d1, {{%r2, %r3}}], %r4;
    suq.width.b32 %r5, [%d1]; suq.height.b32 %r6, [%d1]; mad.lo.u32 %r5, %r5, 1000, %r6; mov.u32 %r7, 0; mov.u32 %r8, 1;
    sust.b.2d.b32.zero [%d1, {{%r7, %r8}}], %r5; ret; }}"""
    array = ArrayArgument(name="texels", type=ScalarType.U32, count=12, generator=Generator.SEQUENCE)
    surface = TextureArgument(name="surface", array=array, channels=1, width=4, height=3)
    launch = LaunchDescription(kernel="k", block=(5, 3, 1), grid=(1, 1, 1), arguments=(surface,))
    return emulate(parse_ptx(text, name="k.ptx"), launch, trace=TraceSettings())


def test_surfaces_are_read_and_written_by_bytes_of_a_row() -> None:
    emulation = _run("zero")
    assert emulation.faults == ()
    texels = emulation.arrays["texels"].tolist()
    assert texels[4] == 4003
    assert texels[:4] + texels[5:] == [100, 101, 102, 103, 105, 106, 107, 108, 109, 110, 111]
    assert emulation.trace is not None
    assert set(emulation.trace.accesses.space.tolist()) == {int(Space.TEXTURE)}


def test_coordinates_outside_are_found_or_brought_inside() -> None:
    found = {fault.kind: fault.count for fault in _run("trap").faults}
    assert found == {FaultKind.OUT_OF_BOUNDS: 3}
    clamped = _run("clamp")
    assert clamped.faults == ()
    assert clamped.arrays["texels"].tolist()[3] == 103


def test_a_texture_is_found_by_the_handle_that_a_constant_holds() -> None:
    text = """.version 8.0 .target sm_80 .address_size 64 .const .align 8 .b8 held[8]; .visible .entry k(.param .u64 out) {
    .reg .b32 %r<3>; .reg .f32 %f<5>; .reg .b64 %d<5>; ld.param.u64 %d1, [out]; ld.const.u64 %d2, [held]; mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d2, {%r1}]; mul.wide.u32 %d3, %r1, 4; add.s64 %d4, %d1, %d3; st.global.f32 [%d4], %f1; ret; }"""
    texels = ArrayArgument(name="texels", type=ScalarType.F32, count=8, generator=Generator.SEQUENCE)
    out = ArrayArgument(name="out", type=ScalarType.F32, count=8)
    launch = LaunchDescription(
        kernel="k",
        block=(8, 1, 1),
        grid=(1, 1, 1),
        arguments=(out, TextureArgument(name="held", array=texels, channels=1, width=8)),
    )
    emulation = emulate(parse_ptx(text, name="k.ptx"), launch)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == list(range(8))
