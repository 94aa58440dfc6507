"""Arguments against a kernel's parameters."""

import struct
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, StructArgument, TextureArgument
from gpa_lsp.execution.launches.model import LaunchInputs
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.foundation.errors import InputError

MODULE = parse_ptx(
    """.version 8.5 .target sm_90 .address_size 64
    .const .align 4 .b8 table[16];
    .extern .global .align 4 .b8 outside[16];
    .global .texref picture;
    .const .align 8 .b8 held[8];
    .entry k(.param .u32 n, .param .u64 .ptr .align 1 x, .param .u8 flag, .param .align 8 .b8 box[24], .param .f32 a) { ret; }
    .entry textured(.param .u64 handle, .param .u64 out) { ret; }
    .entry none() { ret; }""",
    name="m.ptx",
)
GOOD = """{ name = "n", type = "int", value = -2 },
{ name = "x", type = "short", count = 100, fill = "sequence", offset = 3 },
{ name = "flag", type = "bool", value = true },
{ name = "box", members = [ { type = "char", value = 7 }, { name = "inner", type = "float", count = 8 }, { name = "same", alias_of = "x" } ] },
{ name = "a", type = "float", value = 1.5 },"""


def describe(arguments: str, kernel: str = "k", more: str = "") -> LaunchDescription:
    text = f'\n[[launch]]\nkernel = "{kernel}"\nblock = 32\ngrid = 1\narguments = [ {arguments} ]\n{more}'
    return read_launches(Path("k.launch.toml"), text=text)[0]


def build(
    arguments: str, kernel: str = "k", more: str = "", limit: int = 1 << 20, module: PtxModule = MODULE
) -> LaunchInputs:
    return build_inputs(module, module.functions[kernel], describe(arguments, kernel, more), memory_limit_bytes=limit)


def test_parameters_buffers_and_pointers() -> None:
    inputs = build(GOOD)
    assert inputs.parameters == struct.pack("<i4xQBxxxxxxxb7xQQf", -2, 0, 1, 7, 0, 0, 1.5)
    assert [(one.name, one.space, one.argument, one.is_zero) for one in inputs.buffers] == [
        ("x", Space.GLOBAL, 1, False),
        ("inner", Space.GLOBAL, 3, True),
    ]
    assert inputs.buffers[0].data.tolist() == list(range(100))
    assert inputs.buffers[0].element == ScalarType.S16
    assert [(one.parameter_offset_bytes, one.buffer, one.offset_bytes) for one in inputs.pointers] == [
        (8, 0, 6),
        (32, 1, 0),
        (40, 0, 0),
    ]


def test_every_build_has_arrays_of_its_own() -> None:
    first, second = build(GOOD), build(GOOD)
    first.buffers[0].data[0] = 99
    assert second.buffers[0].data[0] == 0


def test_textures_in_parameters_and_of_the_module() -> None:
    picture = '{ name = "picture", type = "uint8", width = 4, height = 2, channels = 4, fill = "sequence" }'
    inputs = build(
        f'{picture}, {{ name = "t", type = "float", width = 5 }}, {{ name = "out", type = "float", count = 1 }}',
        "textured",
    )
    by_name = {one.name: one for one in inputs.textures}
    assert by_name["picture"].parameter_offset_bytes is None
    assert by_name["picture"].texels.shape == (1, 2, 4, 4)
    assert by_name["picture"].texels[0, 1, 0].tolist() == [16, 17, 18, 19]
    assert (by_name["picture"].dimensions, by_name["t"].dimensions) == (2, 1)
    assert by_name["t"].parameter_offset_bytes == 0
    assert [one.parameter_offset_bytes for one in inputs.pointers] == [8]
    assert np.shares_memory(by_name["t"].texels, inputs.buffers[by_name["t"].buffer].data)
    assert all(one.space == Space.TEXTURE for one in inputs.buffers if one.name != "out")


def test_a_texture_whose_handle_a_variable_holds() -> None:
    inputs = build('{ name = "held", type = "float", width = 5 }', "none")
    assert [(one.name, one.parameter_offset_bytes) for one in inputs.textures] == [("held", None)]
    with pytest.raises(InputError, match="takes 0 arguments"):
        build('{ name = "table", type = "float", width = 5 }', "none")


def test_variables() -> None:
    inputs = build("", "none", 'variables = [ { name = "table", type = "float", values = [1, 2, 3] } ]')
    assert inputs.parameters == b""
    assert inputs.variables["table"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (
            "",
            "takes 5 arguments, and 0 are given: parameter 0 (4 bytes, u32) has none",
            'add { name = "argument0", type = "u32", value = … }',
        ),
        ('{ name = "n", type = "int", value = 1 },', "parameter 1 (8 bytes, a pointer) has none", "for an array"),
        (GOOD + '{ name = "more", type = "int", value = 1 }', "takes 5 arguments, but 6 are given", "remove 'more'"),
        (
            GOOD.replace('"int"', '"int64"'),
            "argument 0 ('n') is s64 of 8 bytes, but the parameter has 4 bytes, u32",
            'type = "u32"',
        ),
        (
            GOOD.replace('"short", count = 100, fill = "sequence", offset = 3', '"int", value = 1').replace(
                'alias_of = "x"', 'type = "int64", value = 1'
            ),
            "is s32 of 4 bytes",
            "for an array",
        ),
        (GOOD.replace('"bool", value = true', '"bool", count = 1'), "is an address of 8 bytes", 'type = "u8"'),
        (GOOD.replace('{ name = "same", alias_of = "x" }', ""), "is a structure of 16 bytes", "size = 24"),
    ],
)
def test_arguments_that_do_not_fit(arguments: str, message: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        build(arguments)
    assert message in caught.value.message
    assert remedy in (caught.value.remedy or "")
    assert (str(caught.value.path), caught.value.place) == ("k.launch.toml", "line 2")


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ('{ name = "absent", type = "float", count = 1 }', "no variable 'absent'"),
        ('{ name = "outside", type = "float", count = 1 }', "no variable 'outside'"),
        ('{ name = "table", type = "float", count = 5 }', "has 16 bytes, but 20 are given"),
    ],
)
def test_variables_that_are_not_there_or_too_small(variable: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        build("", "none", f"variables = [ {variable} ]")
    assert message in caught.value.message


def test_memory_is_counted_before_it_is_taken() -> None:
    huge = GOOD.replace("count = 100", "count = 1 << 39").replace("1 << 39", '"1 << 39"')
    with pytest.raises(InputError, match=r"need 2 TiB, but only 1 MiB may be used; 'x' alone needs 2 TiB"):
        build(huge)
    build(GOOD, limit=432)  # x is filled from a copy; inner is zeros
    with pytest.raises(InputError, match="'x' alone needs 400"):
        build(GOOD, limit=431)


def test_descriptions_that_did_not_come_from_a_file_are_checked_as_well() -> None:
    launch = describe(GOOD)
    box = launch.arguments[3]
    assert isinstance(box, StructArgument)
    kernel = MODULE.functions["k"]
    far = replace(box, members=((20, ArrayArgument(name="far", type=ScalarType.F32, count=1)),))
    late = replace(box, members=((0, ArrayArgument(name="late", type=ScalarType.F32, count=1, alias_of="absent")),))
    for bad, message in ((far, "ends at byte 28"), (late, "is not declared before it")):
        arguments = (*launch.arguments[:3], bad, launch.arguments[4])
        with pytest.raises(InputError, match=message):
            build_inputs(MODULE, kernel, replace(launch, arguments=arguments, path=None), memory_limit_bytes=1 << 20)
    texture = TextureArgument(
        name="t", array=ArrayArgument(name="t", type=ScalarType.F32, count=3), channels=1, width=4
    )
    out = ArrayArgument(name="out", type=ScalarType.F32, count=1)
    with pytest.raises(InputError, match="has 4 numbers, but its array 3"):
        build_inputs(
            MODULE, MODULE.functions["textured"], replace(launch, arguments=(texture, out)), memory_limit_bytes=1 << 20
        )
