"""Textures and surfaces that a launch is given are part of its recording; the driver is a made-up one that only knows where they lie."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.launches.launch import TextureArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.programs.library import list_headers
from gpa_lsp.execution.record.describe import Recorded, describe_launches
from gpa_lsp.execution.record.run import BYTES_VARIABLE, FOLDER_VARIABLE, build_recorder
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.patience import LIMIT_S

_PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry read(.param .u64 into, .param .u64 rows, .param .u64 line, .param .u64 one) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
    ld.param.u64 %rd1, [into];
    ld.param.u64 %rd2, [rows];
    ld.param.u64 %rd3, [line];
    ld.param.u64 %rd5, [one];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 1;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r1, %r2}];
    tex.1d.v4.s32.s32 {%r3, %r4, %r5, %r6}, [%rd3, {%r1}];
    cvt.rn.f32.s32 %f5, %r3;
    cvt.rn.f32.u64 %f6, %rd5;
    add.f32 %f1, %f1, %f5;
    add.f32 %f1, %f1, %f6;
    mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd4, %rd4, %rd1;
    st.global.f32 [%rd4], %f1;
    ret;
}
"""
_PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
class Array(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t), ("format", ctypes.c_uint)]
    _fields_ += [("channels", ctypes.c_uint), ("flags", ctypes.c_uint), ("texels", ctypes.c_void_p)]
class Resource(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint), ("at", ctypes.c_uint64), ("format", ctypes.c_uint), ("channels", ctypes.c_uint)]
    _fields_ += [("width", ctypes.c_size_t), ("rest", ctypes.c_uint64 * 14)]
class Texture(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint * 3), ("filter", ctypes.c_uint), ("flags", ctypes.c_uint), ("rest", ctypes.c_uint * 24)]
def check(error):
    if error:
        sys.exit(f"the driver says {error}")
def make(resource, texture):
    handle = ctypes.c_uint64()
    check(cuda.cuTexObjectCreate(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(texture), None))
    return handle
texels = (ctypes.c_float * 12)(*range(100, 112))
array = Array(4, 3, 0, 0x20, 1, 0, ctypes.addressof(texels))
rows = make(Resource(0, ctypes.addressof(array)), Texture((1, 1, 1), 0, 0))
memory = ctypes.c_uint64()
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)))
ctypes.memmove(memory.value, (ctypes.c_int32 * 4)(10, 20, 30, 40), 16)
line = make(Resource(2, memory.value, 0x0A, 1, 16), Texture((1, 1, 1), 0, 1))
gone = make(Resource(2, memory.value, 0x0A, 1, 16), Texture((1, 1, 1), 0, 1))
check(cuda.cuTexObjectDestroy(gone))
module, function = ctypes.c_void_p(), ctypes.c_void_p()
image = ctypes.create_string_buffer(open(sys.argv[1], "rb").read())
check(cuda.cuModuleLoadData(ctypes.byref(module), image))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"read"))
values = [memory, rows, line, ctypes.c_uint64(int(sys.argv[2]))]
arguments = (ctypes.c_void_p * 4)(*(ctypes.addressof(one) for one in values))
cuda.fake_capture(1)
check(cuda.cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, None, arguments, None))
if cuda.fake_is_spoiled():
    sys.exit("the graph of another stream was spoiled")
"""
_LINKING = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
image, size = ctypes.c_void_p(), ctypes.c_size_t()
def add(text):
    cuda.cuLinkAddData_v2(ctypes.c_void_p(64), 1, text, len(text), None, 0, None, None)
add(b"// given up")
cuda.cuLinkDestroy(ctypes.c_void_p(64))
add(b"// linked")
cuda.cuLinkComplete(ctypes.c_void_p(64), ctypes.byref(image), ctypes.byref(size))
cuda.cuLinkDestroy(ctypes.c_void_p(64))
"""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, before the driver of this file."""
    headers = [one for one in list_headers() if (one.folder / "cuda.h").is_file()]
    compiler = find_c_compiler()
    if not sys.platform.startswith("linux") or not headers or compiler is None:
        pytest.skip("not Linux, or CUDA's headers or a C compiler are not installed")
    folder = tmp_path_factory.mktemp("textures")
    driver = folder / "driver.so"
    source = Path(__file__).parent / "fakes" / "texture_driver.c"
    command = [compiler, "-fPIC", "-shared", f"-I{headers[0].folder}", source, "-o", driver]
    subprocess.run(command, check=True)
    (folder / "recorder").mkdir()
    return build_recorder(driver, folder / "recorder")


def test_what_was_never_linked_is_no_part_of_the_next(recorder: Path, tmp_path: Path) -> None:
    environment = dict(os.environ) | {FOLDER_VARIABLE: str(tmp_path), "LD_PRELOAD": str(recorder)}
    subprocess.run([sys.executable, "-I", "-c", _LINKING], env=environment, check=True, timeout=LIMIT_S)
    assert [path.read_bytes() for path in tmp_path.glob("link-*.ptx")] == [b"// linked"]


def _record(recorder: Path, folder: Path, number: int, limit_bytes: int = 1 << 20) -> Recorded:
    raw, code = folder / "raw", folder / "read.ptx"
    raw.mkdir()
    code.write_text(_PTX)
    environment = dict(os.environ) | {
        FOLDER_VARIABLE: str(raw),
        BYTES_VARIABLE: str(limit_bytes),
        "LD_PRELOAD": str(recorder),
    }
    command = [sys.executable, "-I", "-c", _PROGRAM, str(code), str(number)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (recorded,) = describe_launches(raw, raw, folder / "out")
    return recorded


def test_textures_of_arrays_and_memory_are_kept_with_their_texels(recorder: Path, tmp_path: Path) -> None:
    recorded = _record(recorder, tmp_path, 5)
    assert recorded.description is not None
    (launch,) = read_launches(recorded.description)
    rows, line = [one for one in launch.arguments if isinstance(one, TextureArgument)]
    assert (rows.width, rows.height, rows.channels, rows.address_mode, rows.reads_normalized) == (
        4,
        3,
        1,
        "clamp",
        False,
    )
    assert (line.width, line.height, line.channels) == (4, 0, 1)
    found = emulate(parse_ptx(_PTX, name="read.ptx"), launch).arrays["argument0"].view(np.float32)[:4]
    assert found.tolist() == [104 + 10 + 5, 105 + 20 + 5, 106 + 30 + 5, 107 + 40 + 5]


@pytest.mark.parametrize("number", [3, 0])
def test_a_number_that_no_texture_has_any_more_stays_one(recorder: Path, tmp_path: Path, number: int) -> None:
    recorded = _record(recorder, tmp_path, number)
    assert f'name = "argument3", type = "u64", value = {number}' in recorded.description.read_text()


def test_texels_count_as_data(recorder: Path, tmp_path: Path) -> None:
    assert _record(recorder, tmp_path, 5, limit_bytes=100).problem == "its arrays have 128 B, more than are kept"
