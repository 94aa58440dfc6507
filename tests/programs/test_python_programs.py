"""Python programs on the driver library: Numba and Triton, which are not changed."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.execution.programs.library import list_headers
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.programs.built import SOURCES, run

PYTHON = Path(sys.executable)


@pytest.fixture(autouse=True)
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not list_headers() or find_c_compiler() is None:
        pytest.skip("CUDA's headers or a C compiler are not installed")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


@pytest.mark.parametrize(
    ("script", "needs", "kernels"),
    [
        ("numba_saxpy.py", ("numba", "numba_cuda"), {"saxpy", "block_sums"}),
        ("triton_softmax.py", ("triton",), {"softmax"}),
    ],
)
def test_a_python_program_computes_what_it_should(
    script: str, needs: tuple[str, ...], kernels: set[str], tmp_path: Path
) -> None:
    if any(find_spec(name) is None for name in needs):
        pytest.skip(f"{' or '.join(needs)} is not installed")
    program = SOURCES / "python" / script
    found, printed = run(PYTHON, str(program), folder=tmp_path, records=tmp_path / "records")
    assert f"{program.stem}: right" in printed, printed
    assert found.end.status == 0 and not found.has_faults and not found.notes
    assert {find_bare_name(one.mangled_name) for one in found.kernels} == kernels
    assert all(one.emulated == one.launches == 1 and one.recorded is not None for one in found.kernels)


_DRIVER_PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def check(error, wanted=0):
    if error != wanted:
        sys.exit(f"{error} where {wanted} was wanted")
PTX = b'''.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 seen;
.visible .entry fill(.param .u64 out, .param .u32 value) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    st.global.u32 [seen], %r1;
    ret;
}
'''
check(cuda.cuInit(0))
count = ctypes.c_int()
check(cuda.cuDeviceGetCount(ctypes.byref(count)))
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"none"), 500)
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fill"))
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)))
check(cuda.cuMemsetD32_v2(memory, 5, ctypes.c_size_t(32)))
value = ctypes.c_uint32(7)
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(value))
check(cuda.cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, None, arguments, None))
host = (ctypes.c_uint32 * 32)()
check(cuda.cuMemcpyDtoH_v2(host, memory, ctypes.c_size_t(128)))
where, size = ctypes.c_void_p(), ctypes.c_size_t()
check(cuda.cuModuleGetGlobal_v2(ctypes.byref(where), ctypes.byref(size), module, b"seen"))
seen = ctypes.c_uint32()
check(cuda.cuMemcpyDtoH_v2(ctypes.byref(seen), where, ctypes.c_size_t(4)))
base = ctypes.c_void_p()
check(cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_void_p(memory.value + 8)))
entry = ctypes.c_void_p()
check(cuda.cuGetProcAddress_v2(b"cuTexRefCreate", ctypes.byref(entry), 13000, ctypes.c_uint64(0), None), 500)
check(cuda.cuModuleLoadData(ctypes.byref(module), b"no code at all"), 209)
print(list(host) == [7] * 16 + [5] * 16, seen.value, count.value, size.value, base.value == memory.value)
"""


def test_the_drivers_own_functions_do_what_they_say(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(_DRIVER_PROGRAM)
    found, printed = run(PYTHON, "-I", str(script), folder=tmp_path)
    assert printed.splitlines()[-1] == "True 7 1 128 True", printed
    assert found.end.status == 0 and found.kernels[0].launches == 1
