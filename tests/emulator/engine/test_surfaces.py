"""Surfaces that are read and written by coordinates."""

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE
from gpa_lsp.execution.emulator.model import Budget, FaultKind, TraceSettings
from gpa_lsp.execution.emulator.resident import ResidentKernel, ResidentMemory, ResidentModule
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription, TextureArgument
from gpa_lsp.execution.launches.model import TextureInput


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


def test_padded_rows_are_read_and_written_where_they_lie_at_each_launch() -> None:
    text = """.version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 image, .param .u64 out) { .reg .b32 %r<5>; .reg .f32 %f<7>;
    .reg .b64 %d<5>; ld.param.u64 %d1, [image]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; shl.b32 %r3, %r1, 2;
    cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2; tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%d1, {%f1, %f2}]; mad.lo.u32 %r4, %r2, 4, %r1;
    mul.wide.u32 %d3, %r4, 4; add.u64 %d4, %d2, %d3; st.global.f32 [%d4], %f3; add.f32 %f3, %f3, %f3;
    sust.b.2d.b32.trap [%d1, {%r3, %r2}], %f3; ret; }"""
    base, row_bytes = ARENA_BASE + (1 << 24), 64
    memory = ResidentMemory(np.zeros((1 << 24) + (1 << 12), np.uint8), 1 << 24)
    memory.allocate([(base, 1 << 11), (base + (1 << 11), 1 << 11)])
    texels = np.zeros((1, 3, 4, 1), np.float32)
    image = TextureInput(
        name="image", buffer=0, texels=texels, element=ScalarType.F32, dimensions=2, is_linear_filter=False, address_mode="clamp",
        is_normalized=False, reads_normalized=False, parameter_offset_bytes=None,
    )  # fmt: skip
    handle = memory.add_texture(image, base, row_bytes)
    assert handle is not None
    rows = memory.bytes_at(base, 3 * row_bytes).view(np.float32).reshape(3, 16)
    module = ResidentModule(parse_ptx(text, name="k.ptx"), memory)
    launch = LaunchDescription(kernel="k", block=(4, 3, 1), grid=(1, 1, 1), arguments=())
    kernel = ResidentKernel(module, module.module.functions["k"], launch, budget=Budget(), checks_races=False)
    for first in (1, 5):
        rows[:] = np.arange(first, first + 48).reshape(3, 16)
        given = rows.copy()
        kernel.run(np.array([handle, base + (1 << 11)], np.uint64).tobytes())
        assert kernel.faults.list_faults() == ()
        assert memory.bytes_at(base + (1 << 11), 48).view(np.float32).reshape(3, 4).tolist() == given[:, :4].tolist()
        assert rows[:, :4].tolist() == (2 * given[:, :4]).tolist()
        assert rows[:, 4:].tolist() == given[:, 4:].tolist()
