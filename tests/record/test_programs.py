"""Programs whose launches are recorded on a GPU that is ours, and emulated again from what was recorded."""

import sys
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import join_pieces
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.trace_files import read_pieces
from tests.instrumentation.comparing import list_different, rebase
from tests.programs.built import run
from tests.record.programs import HEAD, emulate_recorded, find_array, record_script, require_driver

_TWO_LAUNCHES = """
add, into, given = load(), allocate([0] * 64), allocate(range(64))
launch(add, 1, 32, into, given, ctypes.c_uint32(5))
launch(add, 2, 32, into, given, ctypes.c_uint32(7))
launch(add, 2, 32, into, given, ctypes.c_uint32(9))
print(read(into, 64) == list(range(9, 73)))
"""


@pytest.fixture(autouse=True)
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_driver()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


def test_the_first_launch_with_the_most_threads_is_kept_and_emulated_again(tmp_path: Path) -> None:
    printed = record_script(tmp_path, _TWO_LAUNCHES)
    assert "True\n" in printed and "gpa-lsp: recorded" in printed
    (launch,) = read_launches(tmp_path / "out" / "add.launch.toml")
    assert (launch.grid, launch.block) == ((2, 1, 1), (32, 1, 1))
    found = find_array(emulate_recorded(tmp_path / "out", "add"), np.uint32, 64, 0)
    assert found.tolist() == list(range(7, 71))


def test_a_chosen_launch_is_kept_instead(tmp_path: Path) -> None:
    record_script(tmp_path, _TWO_LAUNCHES, options=("--launch", "3"))
    found = find_array(emulate_recorded(tmp_path / "out", "add"), np.uint32, 64, 0)
    assert found.tolist() == list(range(9, 73))


_OTHER_WAYS = """
class Config(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")]
    _fields_ += [("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]
entry, status = ctypes.c_void_p(), ctypes.c_int()
def find(name):
    check(cuda.cuGetProcAddress_v2(name, ctypes.byref(entry), 12000, ctypes.c_uint64(0), ctypes.byref(status)))
    return ctypes.CFUNCTYPE(ctypes.c_int)(entry.value)
library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
load_library = find(b"cuLibraryLoadData")
load_library.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_void_p] * 2 + [ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
image = ctypes.create_string_buffer(PTX)
check(load_library(ctypes.addressof(library), ctypes.addressof(image), None, None, 0, None, None, 0))
get = find(b"cuLibraryGetKernel")
get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
check(get(ctypes.addressof(kernel), library, b"add"))
into, given = allocate([0] * 32), allocate(range(32))
value = ctypes.c_uint32(3)
arguments = point(into, given, value)
start = find(b"cuLaunchKernelEx")
start.argtypes = [ctypes.c_void_p] * 4
config = Config(1, 1, 1, 32, 1, 1, 0, None, None, 0)
check(start(ctypes.addressof(config), kernel, ctypes.addressof(arguments), None))
print(read(into, 32) == list(range(3, 35)))
"""


def test_libraries_and_functions_that_are_asked_for_by_name_are_seen(tmp_path: Path) -> None:
    assert "True\n" in record_script(tmp_path, _OTHER_WAYS)
    found = find_array(emulate_recorded(tmp_path / "out", "add"), np.uint32, 32, 0)
    assert found.tolist() == list(range(3, 35))


def test_arguments_in_one_buffer_are_seen(tmp_path: Path) -> None:
    text = """
add, into, given = load(), allocate([0] * 32), allocate(range(32))
import struct
packed = ctypes.create_string_buffer(struct.pack("<QQI", into.value, given.value, 4), 20)
size = ctypes.c_size_t(20)
extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
check(cuda.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, None, None, extra))
print(read(into, 32) == list(range(4, 36)))
"""
    assert "True\n" in record_script(tmp_path, text)
    found = find_array(emulate_recorded(tmp_path / "out", "add"), np.uint32, 32, 0)
    assert found.tolist() == list(range(4, 36))


_VARIABLES = """
PTX = PTX.replace(b".visible .entry", b".const .align 4 .u32 factor; .global .align 8 .u64 table; .global .align 4 .u32 begun = 5;\\n.visible .entry")
PTX = PTX.replace(b"add.s32 %r5, %r5, %r1;", b"ld.const.u32 %r1, [factor]; ld.global.u32 %r4, [begun]; mad.lo.s32 %r5, %r5, %r1, %r4;")
PTX = PTX.replace(b"ld.param.u64 %rd2, [from];", b"ld.global.u64 %rd2, [table];")
add, into, hidden = load(), allocate([0] * 32), allocate(range(32))
def fill(name, value):
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    check(cuda.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, name))
    check(cuda.cuMemcpyHtoD_v2(address, ctypes.byref(value), size))
fill(b"factor", ctypes.c_uint32(7))
fill(b"table", hidden)
launch(add, 1, 32, into, ctypes.c_uint64(0), ctypes.c_uint32(0))
print(read(into, 32) == list(range(5, 229, 7)))
"""


def test_what_variables_hold_and_lead_to_is_kept(tmp_path: Path) -> None:
    assert "True\n" in record_script(tmp_path, _VARIABLES)
    emulation = emulate_recorded(tmp_path / "out", "add")
    assert find_array(emulation, np.uint32, 32, 0).tolist() == list(range(5, 229, 7))


def test_what_variables_lead_to_is_traced_on_a_gpu_as_in_the_emulator(tmp_path: Path) -> None:
    """Arrays lie elsewhere on the GPU than they were recorded, so that addresses differ."""
    pytest.importorskip("cuda.bindings.driver")
    pytest.importorskip("pyarrow")
    record_script(tmp_path, _VARIABLES)
    (code,) = (tmp_path / "out").glob("*.ptx")
    traces = []
    for place in ("emulator", "gpu"):
        folder = tmp_path / place
        words = [
            "predict",
            "trace",
            str(code),
            "--launches",
            str(tmp_path / "out" / "add.launch.toml"),
            "--on",
            place,
            "-o",
            str(folder),
        ]
        found, printed = run(Path(sys.executable), "-m", "gpa_lsp", *words, folder=tmp_path)
        assert found.end.status == 0, printed
        traces.append(rebase(join_pieces(list(read_pieces(folder)))))
    assert list_different(*traces) == []
    assert {len(one.accesses) for one in traces} == {5}


def test_what_a_killed_program_launched_is_there(tmp_path: Path) -> None:
    text = _TWO_LAUNCHES + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    record_script(tmp_path, text, status=137)
    found = find_array(emulate_recorded(tmp_path / "out", "add"), np.uint32, 64, 0)
    assert found.tolist() == list(range(7, 71))


def test_too_much_data_is_not_kept_and_said(tmp_path: Path) -> None:
    printed = record_script(tmp_path, _TWO_LAUNCHES, options=("--size", "511"), status=3)
    assert "gpa-lsp: not recorded: add: its arrays have 512 B, more than are kept" in printed
    assert not list((tmp_path / "out").glob("*.toml"))


def test_a_program_that_launches_nothing_says_so(tmp_path: Path) -> None:
    assert "nothing was recorded: no kernel was launched through CUDA's driver" in record_script(
        tmp_path, "print(1)\n", status=3
    )


_IN_PROCESS = """
import gpa_lsp.execution.record
gpa_lsp.execution.record.prepare()
{head}
add, into, given = load(), allocate([0] * 64), allocate(range(64))
launch(add, 2, 32, into, given, ctypes.c_uint32(5))
with gpa_lsp.execution.record.launches({out!r}) as recording:
    launch(add, 1, 32, into, given, ctypes.c_uint32(7))
launch(add, 2, 32, into, given, ctypes.c_uint32(9))
(one,) = recording.launches
print(one.kernel, one.number, one.grid, one.has_ptx, recording.left_out)
"""


def test_a_process_records_a_block_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    out = tmp_path / "out"
    script.write_text(_IN_PROCESS.format(head=HEAD, out=str(out)))
    # Our driver is preloaded into what is emulated; without that it is found as a driver is that is installed.
    found, printed = run(Path("/usr/bin/env"), "-u", "LD_PRELOAD", sys.executable, "-P", str(script), folder=tmp_path)
    assert found.end.status == 0, printed
    assert printed.splitlines()[-1] == "add 1 (1, 1, 1) True 0"
    array = find_array(emulate_recorded(out, "add"), np.uint32, 64, 0)
    assert array[:32].tolist() == list(range(7, 39)) and array[32:].tolist() == list(range(37, 69))


def test_a_driver_that_is_in_use_cannot_be_stood_before(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import gpa_lsp.execution.record\ngpa_lsp.execution.record.prepare()\n")
    _, printed = run(Path(sys.executable), "-P", str(script), folder=tmp_path)
    assert (
        "CUDA's driver library is in use already; call gpa_lsp.execution.record.prepare() before anything uses the GPU"
        in printed
    )
