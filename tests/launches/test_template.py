"""Descriptions to begin with."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_ptx_text
from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.source_parameters import read_source_parameters
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import (
    ArrayArgument,
    Generator,
    LaunchDescription,
    ScalarArgument,
    StructArgument,
    TextureArgument,
)
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.launches.template import write_template
from gpa_lsp.foundation.errors import InputError
from tests.conftest import ROOT

CUBINS = sorted((ROOT / "fixtures" / "cubins" / "sm_90").glob("*.cubin"))


def read_module(path: Path) -> PtxModule:
    return parse_ptx("\n".join(read_ptx_text(read_cubin(path.read_bytes(), path=path))), name=path.name)


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
def test_a_template_can_be_used_as_it_stands(path: Path) -> None:
    module = read_module(path)
    folder, _, twin = path.stem.rpartition("_")
    source = ROOT / "fixtures" / "kernels" / folder / f"{twin}.cu"
    for kernel in module.entries:
        for texts in ([(source.name, source.read_text())], []):
            known = read_source_parameters(*texts[0], kernel.name) if texts else ()
            text = write_template(kernel, [one.name for one in module.entries], texts=texts)
            (launch,) = read_launches(Path("t.launch.toml"), text=text)
            inputs = build_inputs(module, kernel, launch, memory_limit_bytes=1 << 28)
            assert len(launch.arguments) == len(kernel.parameters)
            assert launch.kernel == find_bare_name(kernel.name)
            assert all(one.name == name.name for one, name in zip(launch.arguments, known, strict=False) if name.name)
            marked = [one.offset_bytes for one in kernel.parameters if one.is_pointer]
            assert set(marked) <= {one.parameter_offset_bytes for one in inputs.pointers}


def test_types_and_names_come_from_the_source_where_there_is_one() -> None:
    module = read_module(next(path for path in CUBINS if path.stem == "narrow_loads_original"))
    (kernel,) = module.entries
    head = f"__global__ void {find_bare_name(kernel.name)}(Particle *in, float4 *out"
    texts = [("k.cu", f"{head}, int n, float step) {{}}")]
    launch = read_launches(Path("t.launch.toml"), text=write_template(kernel, [kernel.name], texts=texts))[0]
    source, out, n, step = launch.arguments
    assert isinstance(source, ArrayArgument)
    assert (source.name, source.count, source.generator) == ("in", 4 * 1048576, Generator.UNIFORM)
    assert isinstance(out, ArrayArgument)
    assert (out.count, out.generator) == (4 * 1048576, Generator.ZEROS)
    assert isinstance(n, ScalarArgument)
    assert (n.name, n.value) == ("n", 1048576)
    assert isinstance(step, ScalarArgument)
    assert step.value == 1.0
    others = [("k.cu", f"{head}) {{}}")]
    assert write_template(kernel, [kernel.name], texts=others).count('name = "argument') == 4


def test_textures_and_blocks_the_kernel_asks_for() -> None:
    text = """.version 8.5 .target sm_90 .address_size 64
    .extern .shared .align 4 .b8 s[];
    .entry k(.param .u64 t, .param .align 4 .b8 box[12]) .reqntid 16, 4
    { .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .b32 %r<4>; ld.param.u64 %rd1, [t]; mov.u32 %r1, s;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r2, %r3}]; ret; }"""
    module = parse_ptx(text, name="t.ptx")
    template = write_template(module.functions["k"], ["k"])
    (launch,) = read_launches(
        Path("t.launch.toml"), text=template.replace("members = []", 'members = [ { type = "int", value = 1 } ]')
    )
    assert launch.block == (16, 4, 1)
    assert "shared_bytes = 0" in template
    texture, box = launch.arguments
    assert isinstance(texture, TextureArgument)
    assert (texture.width, texture.height) == (256, 256)
    assert "size = 12" in template
    assert box.name == "argument1"


def test_parameters_of_a_source() -> None:
    text = """
    template <class T> __global__ void k(const T *__restrict__ in, float4 *out, unsigned int n, struct Box box, float (*grid)[4]) {}
    namespace a { __global__ void twice(int a) {} } namespace b { __global__ void twice(float a) {} }
    """
    found = read_source_parameters("k.cu", text, "_Z1kIfEvPKT_P6float4j3BoxPA4_f")
    assert [(one.name, one.type, one.is_pointer) for one in found] == [
        ("in", "T", True),
        ("out", "float4", True),
        ("n", "unsigned int", False),
        ("box", "struct Box", False),
        ("grid", "float", True),
    ]
    assert read_source_parameters("k.cu", text, "twice") == ()
    assert read_source_parameters("k.cu", text, "absent") == ()
    assert read_source_parameters("k.cu", "garbage )(", "k") == ()


@pytest.mark.parametrize(
    ("declared", "leads"),
    [
        ("float** rows", True),
        ("const float* const* __restrict__ rows", True),
        ("float* rows[]", True),
        ("float* rows", False),
        ("float rows[][4]", False),
        ("float (*rows)[4]", False),
        ("float*** rows", False),
    ],
)
def test_arrays_of_pointers_are_told_from_arrays_of_rows(declared: str, leads: bool) -> None:
    (found,) = read_source_parameters("k.cu", f"__global__ void k({declared}) {{}}", "k")
    assert (found.name, found.type, found.is_pointer, found.leads_to_pointers) == ("rows", "float", True, leads)


@pytest.mark.parametrize(
    "declared",
    [
        ".param .b128 p",
        ".param .b8 p[0]",
        ".param .f16x2 p",
        ".param .align 4 .b8 p[12]",
        ".param .f16 p",
        ".param .pred p",
    ],
)
@pytest.mark.parametrize("body", ["ret;", "ld.param.u8 %r1, [p]; ret;"], ids=["unread", "read"])
def test_parameters_of_any_kind_give_a_description_that_can_be_read(declared: str, body: str) -> None:
    text = f".version 8.3 .target sm_80 .address_size 64 .visible .entry k({declared}) {{ .reg .b32 %r<2>; {body} }}"
    try:
        module = parse_ptx(text, name="k.ptx")
    except InputError:
        return  # it is no parameter of a kernel
    template = write_template(module.functions["k"], ["k"])
    (launch,) = read_launches(Path("t.launch.toml"), text=template)
    assert len(launch.arguments) == 1
    if module.functions["k"].parameters[0].size_bytes:  # nothing can be given for a parameter of no bytes
        build_inputs(module, module.functions["k"], launch, memory_limit_bytes=1 << 20)


def test_a_member_of_sixteen_bytes_gives_a_description_that_can_be_read() -> None:
    text = """.version 8.3 .target sm_80 .address_size 64
    .entry k(.param .align 16 .b8 p[32]) { .reg .b128 %rq<2>; ld.param.b128 %rq1, [p]; ret; }"""
    module = parse_ptx(text, name="k.ptx")
    (launch,) = read_launches(Path("t.launch.toml"), text=write_template(module.functions["k"], ["k"]))
    assert isinstance(launch.arguments[0], StructArgument) and launch.arguments[0].size_bytes == 32


def test_block_and_grid_of_a_measured_launch() -> None:
    text = """.version 8.5 .target sm_80 .address_size 64
    .entry k(.param .u64 out, .param .u32 n) { .reg .b64 %rd<3>; .reg .b32 %r<4>; ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n];
    st.global.u32 [%rd1], %r1; ret; }"""
    kernel = parse_ptx(text, name="t.ptx").functions["k"]
    measured = LaunchDescription(kernel="k", block=(32, 24, 1), grid=(7, 3, 2), shared_bytes=512)
    template = write_template(kernel, ["k"], measured=measured)
    assert "as measured" in template
    (launch,) = read_launches(Path("t.launch.toml"), text=template)
    assert (launch.block, launch.grid, launch.shared_bytes) == ((32, 24, 1), (7, 3, 2), 512)


def test_a_structure_has_the_members_that_are_loaded() -> None:
    """Includes loads by the address of another member."""
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 8 .b8 k_param_0[48])
{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [k_param_0];
    ld.param.v2.u32 {%r1, %r2}, [k_param_0+8];
    mov.b64 %rd2, k_param_0;
    add.s64 %rd3, %rd2, 32;
    ld.param.u64 %rd4, [%rd3+-8];
    ld.param.f32 %f1, [%rd3+8];
    cvta.to.global.u64 %rd5, %rd1;
    cvta.to.global.u64 %rd6, %rd4;
    mul.wide.s32 %rd7, %r1, 8;
    add.s64 %rd5, %rd5, %rd7;
    ld.global.f64 %rd7, [%rd5];
    st.global.f32 [%rd6], %f1;
    ret;
}
"""
    module = parse_ptx(text.replace("ld.global.f64 %rd7", "ld.global.b64 %rd7"), name="k")
    (kernel,) = module.entries
    written = write_template(kernel, ["k"])
    (launch,) = read_launches(Path("t.launch.toml"), text=written)
    inputs = build_inputs(module, kernel, launch, memory_limit_bytes=1 << 28)
    assert {one.parameter_offset_bytes for one in inputs.pointers} == {0, 24}
    (structure,) = launch.arguments
    assert isinstance(structure, StructArgument) and structure.size_bytes == 48
    assert [(offset, type(one)) for offset, one in structure.members] == [
        (0, ArrayArgument), (8, ScalarArgument), (12, ScalarArgument), (24, ArrayArgument), (40, ScalarArgument),
    ]  # fmt: skip
