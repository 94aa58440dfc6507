"""Raw records → descriptions; and the library that writes the records."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.launches.launch import ArrayArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.programs.library import list_headers
from gpa_lsp.execution.record import run
from gpa_lsp.execution.record.describe import describe_launches, read_raw_launch, relocate
from gpa_lsp.execution.record.python_programs import HeldKernel, read_held_kernels
from gpa_lsp.foundation.errors import InputError, MissingToolError
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.conftest import ROOT
from tests.record.programs import PTX

_ADDRESS = 0x7F0000000000
_HEAD = "gpa-lsp-launch 1\nimage 00000000000000aa\nkernel add\nnumber 3\ngrid 2 1 1\nblock 4 1 1\nshared 0\n"


def write_raw(
    folder: Path, *, array: bytes = bytes(32), image: bytes = PTX.encode(), end: str = "end 1\n", more: bytes = b""
) -> Path:
    """One launch, and the code it is of."""
    content = _ADDRESS.to_bytes(8, "little") * 2 + (5).to_bytes(4, "little")
    parameters = "parameter 0 8\nparameter 8 8\nparameter 16 4\n"
    raw = _HEAD.encode() + parameters.encode() + b"content 20\n" + content + b"\n"
    raw += more + f"array {_ADDRESS} {len(array)}\n".encode() + array + b"\n" + end.encode()
    path = folder / "launch-1-000001.raw"
    path.write_bytes(raw)
    (folder / "image-00000000000000aa.bin").write_bytes(image)
    return path


def test_a_record_becomes_a_description_with_code_and_data(tmp_path: Path) -> None:
    write_raw(tmp_path, array=bytes(range(32)))
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert (one.kernel, one.number, one.grid, one.block, one.has_ptx) == ("add", 3, (2, 1, 1), (4, 1, 1), True)
    assert one.description is not None and one.module.suffix == ".ptx"
    (launch,) = read_launches(one.description)
    assert [argument.name for argument in launch.arguments] == ["argument0", "argument1", "argument2"]
    assert (tmp_path / "out" / "add.1.bin").read_bytes() == bytes(range(32))


def test_machine_code_is_described_by_the_sizes_of_its_parameters(tmp_path: Path) -> None:
    image = next((ROOT / "fixtures" / "cubins").rglob("*.cubin")).read_bytes()
    write_raw(tmp_path, image=image)
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert not one.has_ptx and one.module.suffix == ".cubin" and one.description is not None
    assert len(read_launches(one.description)[0].arguments) == 3


def test_ptx_is_taken_from_who_holds_it(tmp_path: Path) -> None:
    image = next((ROOT / "fixtures" / "cubins").rglob("*.cubin")).read_bytes()
    write_raw(tmp_path, image=image)
    held = (
        HeldKernel(framework="Triton", kernel="add", image="aa", ptx="other"),
        HeldKernel(framework="Numba", kernel="add", ptx=PTX),
    )
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out", held)
    assert (
        one.has_ptx
        and one.origin == "Numba"
        and [path.suffix for path in (tmp_path / "out").iterdir() if path.suffix == ".cubin"] == []
    )


def test_ptx_is_taken_from_what_was_linked(tmp_path: Path) -> None:
    image = next((ROOT / "fixtures" / "cubins").rglob("*.cubin")).read_bytes()
    write_raw(tmp_path, image=image)
    (tmp_path / "link-00000000000000aa-0.ptx").write_text(PTX)
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert one.has_ptx


def _add_variables() -> bytes:
    text = PTX.replace(".visible .entry", ".const .align 4 .u32 factor; .global .u32 unused;\n.visible .entry")
    return text.replace("add.s32 %r5, %r5, %r1;", "ld.const.u32 %r5, [factor];").encode()


def test_variables_that_were_not_kept_are_named(tmp_path: Path) -> None:
    write_raw(tmp_path, image=_add_variables())
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert one.variables == ("factor",)


def test_variables_are_kept_with_what_they_hold_where_the_kernel_uses_them(tmp_path: Path) -> None:
    more = b"variable factor 4096\nvariable unused 8192\narray 4096 4\n\7\0\0\0\narray 8192 4\n\1\0\0\0\n"
    write_raw(tmp_path, image=_add_variables(), more=more)
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert one.variables == () and one.description is not None
    (launch,) = read_launches(one.description)
    ((name, kept),) = [(array.name, array.file) for array in launch.variables]
    assert name == "factor" and kept.read_bytes() == b"\7\0\0\0"
    assert launch.memory == ()


_CHASE = """.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 into, .param .u64 inside, .param .u32 value) {
    .reg .b32 %r<4>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [into];
    ld.param.u64 %rd2, [inside];
    ld.global.u64 %rd3, [%rd1];
    ld.global.u64 %rd4, [%rd1+8];
    ld.global.u32 %r1, [%rd3];
    ld.global.u32 %r2, [%rd4];
    ld.global.u32 %r3, [%rd2+16];
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%rd2+20], %r1;
    ret;
}
"""


def test_arrays_that_hold_addresses_are_moved_with_them(tmp_path: Path) -> None:
    """A GPU has memory where the emulator has none."""
    other = _ADDRESS + 0x1300
    words = [other, other + 4, 3, 0]
    more = f"array {other} 8\n".encode() + (40).to_bytes(4, "little") + (500).to_bytes(4, "little") + b"\n"
    array = b"".join(word.to_bytes(8, "little") for word in words)
    write_raw(tmp_path, array=array, image=_CHASE.encode(), more=more)
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert one.description is not None and one.problem == ""
    (launch,) = read_launches(one.description)
    emulation = emulate(parse_ptx(_CHASE, name="add.ptx"), replace(launch, grid=(1, 1, 1), block=(1, 1, 1)))
    assert emulation.faults == ()
    assert emulation.arrays["argument0"].view(np.uint32)[5] == 543
    assert len({array.base_address for array in launch.memory if isinstance(array, ArrayArgument)}) == 1


def test_arrays_without_addresses_need_no_place(tmp_path: Path) -> None:
    launch = read_raw_launch(write_raw(tmp_path, array=bytes(range(32))))
    assert relocate(launch) is launch


def test_names_and_types_are_those_that_a_library_of_python_holds(tmp_path: Path) -> None:
    write_raw(tmp_path)
    rows = [
        {"framework": "Triton", "kernel": "add", "image": "00000000000000bb", "parameters": [["wrong", "f32", True]]}
    ]
    parameters = [["into", "f32", True], ["given", "f32", True], ["value", "i32", False]]
    rows.append(
        {
            "framework": "Triton",
            "kernel": "add",
            "parameters": parameters,
            "constants": {"block": "32"},
            "file": "k.py",
            "line": 7,
        }
    )
    (tmp_path / "kernels-1.json").write_text(json.dumps([*rows, {"framework": "Triton"}, 3]))
    (tmp_path / "kernels-2.json").write_text("[{")
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out", read_held_kernels(tmp_path))
    assert one.origin == "Triton, k.py:7, block = 32"
    assert one.description.read_text().startswith(
        "# Launch 3 of this kernel, recorded on a GPU (Triton, k.py:7, block = 32).\n"
    )
    (launch,) = read_launches(one.description)
    assert [(one.name, getattr(one, "type", None)) for one in launch.arguments] == [
        ("into", ScalarType.F32),
        ("given", ScalarType.F32),
        ("value", ScalarType.S32),
    ]


def test_source_that_was_compiled_while_the_program_ran_is_written_beside(tmp_path: Path) -> None:
    write_raw(tmp_path, image=next((ROOT / "fixtures" / "cubins").rglob("*.cubin")).read_bytes())
    source = 'extern "C" __global__ void add(float* into, const float* from, unsigned value) {}'
    held = (
        HeldKernel(framework="CuPy", kernel="", source="__global__ void added(int* x) {}"),
        HeldKernel(framework="CuPy", kernel="", source=source),
    )
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out", held)
    assert one.source == tmp_path / "out" / "add.cu" and one.source.read_text() == source
    assert one.description is not None
    assert [argument.name for argument in read_launches(one.description)[0].arguments] == ["into", "from", "value"]


def test_arrays_that_could_not_be_read_are_not_described(tmp_path: Path) -> None:
    write_raw(tmp_path, end="end 0\n")
    (one,) = describe_launches(tmp_path, tmp_path, tmp_path / "out")
    assert one.description is None and one.problem == "its arrays could not be read"


@pytest.mark.parametrize("cut", [1, 5, 40, 90, 170, 200])
def test_a_record_that_ends_early_is_none(cut: int, tmp_path: Path) -> None:
    path = write_raw(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="is no record of a launch"):
        read_raw_launch(path)


def test_a_computer_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_FIND", run._FIND.replace(run.DRIVER_NAME, "libno_such_driver.so.1"))
    with pytest.raises(MissingToolError, match=r"an NVIDIA driver.*recording launches needs it"):
        run.find_driver()


_LAYOUTS = {
    ("launch_config", "CUlaunchConfig"): (
        ("grid", "gridDimX"), ("block", "blockDimX"), ("shared_bytes", "sharedMemBytes"), ("stream", "hStream"),
        ("attributes", "attrs"), ("attribute_count", "numAttrs"),
    ),
    ("resource_description", "CUDA_RESOURCE_DESC"): (
        ("kind", "resType"), ("at", "res.array.hArray"), ("at", "res.linear.devPtr"), ("format", "res.linear.format"),
        ("channels", "res.pitch2D.numChannels"), ("width", "res.linear.sizeInBytes"), ("width", "res.pitch2D.width"),
        ("height", "res.pitch2D.height"), ("pitch", "res.pitch2D.pitchInBytes"), ("flags", "flags"),
    ),
    ("texture_description", "CUDA_TEXTURE_DESC"): (("address", "addressMode"), ("filter", "filterMode"), ("flags", "flags")),
    ("array_description", "CUDA_ARRAY3D_DESCRIPTOR"): (
        ("width", "Width"), ("depth", "Depth"), ("format", "Format"), ("channels", "NumChannels"), ("flags", "Flags"),
    ),
    ("copy_description", "CUDA_MEMCPY3D"): (
        ("from.type", "srcMemoryType"), ("from.array", "srcArray"), ("into.type", "dstMemoryType"), ("into.host", "dstHost"),
        ("into.pitch", "dstPitch"), ("into.height", "dstHeight"), ("width", "WidthInBytes"), ("height", "Height"), ("depth", "Depth"),
    ),
}  # fmt: skip
"""Ours and CUDA's, and members that must lie at the same place."""


def test_our_layouts_are_those_of_cudas_headers(tmp_path: Path) -> None:
    headers = [one for one in list_headers() if (one.folder / "cuda.h").is_file()]
    compiler = find_c_compiler()
    if not headers or compiler is None:
        pytest.skip("CUDA's headers or a C compiler are not installed")
    own = Path(run.__file__).with_name("recorder.c")
    text = own.read_text()
    start = text.index("typedef int result;")
    declared = text[start : text.index("} launch_config;") + len("} launch_config;")]
    lines = []
    for (mine, theirs), members in _LAYOUTS.items():
        lines += [
            f'_Static_assert(offsetof({mine}, {one}) == offsetof({theirs}, {other}), "{one}");'
            for one, other in members
        ]
        lines.append(f'_Static_assert(sizeof({mine}) == sizeof({theirs}), "size");')
    source = tmp_path / "layout.c"
    source.write_text(
        "\n".join(["#include <cuda.h>", "#include <stddef.h>", '#include "textures.h"', declared, *lines])
    )
    command = [str(compiler), "-fsyntax-only", f"-I{headers[0].folder}", f"-I{own.parent}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
