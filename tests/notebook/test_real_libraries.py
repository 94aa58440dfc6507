"""Cells of Numba, Triton and CuPy as the real libraries compile them, where they are installed; none of it needs a GPU.

What a profiler would have recorded is written for the code that came of it: the same number of samples at each of its instructions.
"""

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.tool_location import find_tool
from tests.notebook.test_in_jupyter import Notebook
from tests.patience import LIMIT_S

NUMBA = """\
from pathlib import Path
from numba import cuda, float32, int32

def smooth(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i * 8] * 0.7

signature = (float32[:], float32[:], int32)
ptx, _ = cuda.compile(smooth, signature, device=False, abi="numba", lineinfo=True, cc=(8, 0), output="ptx")
Path("code.ptx").write_bytes(ptx if isinstance(ptx, bytes) else ptx.encode())
"""
TRITON = """\
from pathlib import Path
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at * 8, mask=at < n)
    tl.store(y + at, value * 2, mask=at < n)

types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
kernel = triton.compiler.ASTSource(fn=double, signature=types, constexprs={"BLOCK": 256})
Path("code.cubin").write_bytes(triton.compile(kernel, target=GPUTarget("cuda", 80, 32)).asm["cubin"])
"""
CUPY = '''\
from pathlib import Path
from cupy.cuda import compiler
source = r"""
extern "C" __global__ void widen(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i * 8] * 0.7;
}
"""
compiler._get_arch_for_options_for_nvrtc = lambda arch=None: ("-arch=sm_80", "cubin")  # it would ask the device
code = compiler.compile_using_nvrtc(source, options=("-lineinfo",), filename="kernel.cu")
Path("code.cubin").write_bytes(code[0] if isinstance(code, tuple) else code)
'''


def require(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    """Compilers of the libraries keep what they compiled in folders of the test."""
    libraries = Path(__import__("nvidia").__path__[0]) / "cu13" / "lib" if importlib.util.find_spec("nvidia") else None
    return Notebook(
        tmp_path,
        TRITON_CACHE_DIR=str(tmp_path / "triton"),
        CUPY_CACHE_DIR=str(tmp_path / "cupy"),
        LD_LIBRARY_PATH=str(libraries or ""),
    )


def write_profile(folder: Path) -> None:
    """Write a profile of ``code.cubin``, or of ``code.ptx``, to ``run.gpa-profile.json``."""
    if (folder / "code.ptx").exists():
        command = [str(find_tool("ptxas")), "-lineinfo", "-arch=sm_80", "-o", "code.cubin", "code.ptx"]
        subprocess.run(command, cwd=folder, check=True, timeout=LIMIT_S)
    (function,) = (one for one in read_cubin((folder / "code.cubin").read_bytes()).functions.values() if one.is_entry)
    samples = [
        {
            "function": function.name,
            "pc_offset": offset,
            "by_reason": {"long_scoreboard": {"all": 10, "latency": 5}, "selected": {"all": 1, "latency": 0}},
        }
        for offset in range(0, function.size_bytes, 16)
    ]
    launch = {
        "kernel": function.name,
        "grid": [64, 1, 1],
        "block": [128, 1, 1],
        "duration_ns": 12_300,
        "device": {"compute_capability": "8.0"},
        "samples": samples,
    }
    document = {
        "format": "gpa-lsp/profile/1",
        "modules": [{"id": 1, "compute_capability": "8.0", "cubin": {"path": "code.cubin"}}],
        "launches": [launch],
    }
    (folder / "run.gpa-profile.json").write_text(json.dumps(document), encoding="utf-8")


REPORT = "import written_profile\n%gpa_report run.gpa-profile.json"
HELPER = """\
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.notebook.test_real_libraries import write_profile
write_profile(Path.cwd())
"""


@pytest.mark.parametrize(
    ("library", "cell", "name", "code"),
    [
        ("numba", NUMBA, "smooth", "y[i] = x[i * 8] * 0.7"),
        ("triton", TRITON, "double", "value = tl.load(x + at * 8, mask=at < n)"),
        ("cupy", CUPY, "widen", "out[i] = in[i * 8] * 0.7;"),
    ],
)
def test_lines_of_the_cell_are_marked(notebook: Notebook, library: str, cell: str, name: str, code: str) -> None:
    require(library)
    (notebook.folder / "written_profile.py").write_text(HELPER.format(root=str(Path(__file__).parents[2])))
    _, said = notebook.run(cell, REPORT)
    line = 1 + next(number for number, text in enumerate(cell.split("\n")) if code in text)
    assert f"In [2]:{line}: {code}" in said, said
    assert f"{name}; of these 91 % long_scoreboard (waiting for data" in said, said


def test_code_that_triton_kept_is_found_in_the_cell_as_it_is_now(notebook: Notebook) -> None:
    """Another text behind the function is another name for the cell, but the code is not compiled again, and keeps the old one."""
    require("triton")
    (notebook.folder / "written_profile.py").write_text(HELPER.format(root=str(Path(__file__).parents[2])))
    notebook.run(TRITON)
    _, said = notebook.run(TRITON + "print('compiled')\n", REPORT)
    assert "In [2]:8: value = tl.load(x + at * 8, mask=at < n)" in said, said
    assert "the cell was found by the kernel's name" in said, said
