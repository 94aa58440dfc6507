"""Programs that launch through CUDA's driver, as tests start them: the driver is ours, and what it launches is emulated."""

import sys
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.launched_code import read_modules
from gpa_lsp.execution.programs.library import list_headers
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.programs.built import run

PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 into, .param .u64 from, .param .u32 value) {
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [into];
    ld.param.u64 %rd2, [from];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.s32 %r2, %r3, %r4, %r2;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd5];
    add.s32 %r5, %r5, %r1;
    st.global.u32 [%rd4], %r5;
    ret;
}
"""
HEAD = f"""
import ctypes, sys
PTX = {PTX!r}.encode()
cuda = ctypes.CDLL("libcuda.so.1")
def check(error):
    if error:
        sys.exit(f"the driver says {{error}}")
def start():
    check(cuda.cuInit(0))
    context = ctypes.c_void_p()
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
module = ctypes.c_void_p()
def load(name=b"add"):
    function = ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    return function
def allocate(values):
    address = ctypes.c_uint64()
    host = (ctypes.c_uint32 * len(values))(*values)
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * len(values))))
    check(cuda.cuMemcpyHtoD_v2(address, host, ctypes.c_size_t(4 * len(values))))
    return address
def point(*values):
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(one) for one in values))
def launch(function, grid, block, *values):
    check(cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, None, point(*values), None))
def read(address, count):
    host = (ctypes.c_uint32 * count)()
    check(cuda.cuMemcpyDtoH_v2(host, address, ctypes.c_size_t(4 * count)))
    return list(host)
start()
"""


def require_driver() -> None:
    """Skip where our driver library cannot be built."""
    if not sys.platform.startswith("linux") or not list_headers() or find_c_compiler() is None:
        pytest.skip("not Linux, or CUDA's headers or a C compiler are not installed")


def record(folder: Path, *command: str, options: tuple[str, ...] = (), status: int = 0) -> str:
    """Output of ``gpa-lsp record`` and the program it runs; records lie in ``folder / "out"``."""
    words = ["-m", "gpa_lsp", "record", "-o", str(folder / "out"), *options, "--", *command]
    found, printed = run(Path(sys.executable), *words, folder=folder)
    assert found.end.status == status, printed
    return printed


def record_script(folder: Path, text: str, *, options: tuple[str, ...] = (), status: int = 0) -> str:
    """The same of lines of Python behind :data:`HEAD`."""
    script = folder / "program.py"
    script.write_text(HEAD + text)
    return record(folder, sys.executable, "-I", str(script), options=options, status=status)


def emulate_recorded(folder: Path, stem: str) -> Emulation:
    """A recorded launch, emulated with its own code and data."""
    (launch,) = read_launches(folder / f"{stem}.launch.toml")
    for path in sorted(folder.iterdir()):
        if path.suffix in (".ptx", ".cubin", ".fatbin"):
            for _, module in read_modules(path, None, None, [], assembles=False):
                if any(entry.name == launch.kernel for entry in module.entries):
                    emulation = emulate(module, launch)
                    assert emulation.is_complete and emulation.faults == ()
                    return emulation
    raise AssertionError(f"no code for {launch.kernel}")


def find_array(
    emulation: Emulation, dtype: type, size: int, number: int
) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
    """The array of some size, in the order of the parameters."""
    fitting = [one for one in emulation.arrays.values() if one.nbytes == size * np.dtype(dtype).itemsize]
    return fitting[number].view(dtype)
