"""Kernels of Triton, Numba, CuPy and CuTe DSL: recorded from programs that use them, emulated and simulated from that, and equal to numpy.

Each is left out where the library is not installed. CuPy's and CuTe DSL's own launches need NVIDIA's driver, since NVIDIA's runtime is linked into
them, and asks the driver for tables that nobody else knows. Of CuPy the part below it is its own here: the functions by which its kernels are loaded
and launched. For CuTe DSL a program launches what it holds.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.record import held_kernels
from gpa_lsp.execution.record.python_programs import add_to_environment, read_held_kernels
from tests.interpreters import find_interpreter
from tests.patience import LIMIT_S
from tests.programs.built import SOURCES
from tests.record.programs import HEAD, emulate_recorded, find_array, record, require_driver


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Skips where the library of a name, or what our driver is built with, is missing."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))

    def require(library: str) -> None:
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
        require_driver()

    return require


def _read(folder: Path, stem: str) -> tuple[LaunchDescription, str]:
    path = folder / "out" / f"{stem}.launch.toml"
    (launch,) = read_launches(path)
    return launch, path.read_text()


def _simulate(folder: Path, stem: str) -> int:
    """Samples of all reasons, simulated with the code and the data that were recorded."""
    if find_tool("nvdisasm") is None or find_tool("ptxas") is None:
        pytest.skip("nvdisasm or ptxas is not installed")
    out = folder / "out"
    (code,) = [path for path in out.iterdir() if path.suffix in (".ptx", ".cubin")]
    profile = folder / "simulated.gpa-profile.json"
    assert (
        main(["predict", "stalls", str(code), "--launches", str(out / f"{stem}.launch.toml"), "-o", str(profile)]) == 0
    )
    (launch,) = json.loads(profile.read_text())["launches"]
    return sum(number["all"] for sample in launch["samples"] for number in sample["by_reason"].values())


_NUMBA = """
import numpy as np
from numba import cuda
@cuda.jit(lineinfo=True)
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]
x = np.arange(1000, dtype=np.float32)
out = cuda.device_array_like(x)
saxpy[8, 128](np.float32(2), cuda.to_device(x), cuda.to_device(np.ones(1000, np.float32)), out)
print("numba:", "right" if (out.copy_to_host() == 2 * x + 1).all() else "WRONG")
"""


def test_a_kernel_of_numba(tmp_path: Path, driver: Callable[[str], None]) -> None:
    driver("numba_cuda")
    script = tmp_path / "program.py"
    script.write_text(_NUMBA)
    assert "numba: right" in record(tmp_path, sys.executable, str(script))
    launch, text = _read(tmp_path, "saxpy")
    names = [one.name for one in launch.arguments]
    assert names[:8] == ["a", "x_owner", "x_parent", "x_items", "x_item_bytes", "x", "x_shape_0", "x_stride_0"]
    assert f"(Numba, {script}:4)" in text
    found = emulate_recorded(tmp_path / "out", "saxpy").arrays["out"].view(np.float32)
    assert found.tolist() == (2 * np.arange(1000, dtype=np.float32) + 1).tolist()
    assert _simulate(tmp_path, "saxpy") > 0


def test_a_kernel_of_triton(tmp_path: Path, driver: Callable[[str], None]) -> None:
    driver("triton")
    script = SOURCES / "python" / "triton_softmax.py"
    printed = record(tmp_path, sys.executable, str(script))
    assert "triton_softmax: right" in printed, printed
    launch, text = _read(tmp_path, "softmax")
    assert [one.name for one in launch.arguments][:3] == ["x", "out", "columns"]
    line = script.read_text().splitlines().index("@triton.jit") + 1
    assert f"(Triton, {script}:{line}, block = 256)" in text
    x = np.sin(np.arange(8 * 200, dtype=np.float32)).reshape(8, 200)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    found = emulate_recorded(tmp_path / "out", "softmax").arrays["out"].view(np.float32).reshape(8, 200)
    assert np.abs(found - powers / powers.sum(axis=1, keepdims=True)).max() <= 1e-6
    assert _simulate(tmp_path, "softmax") > 0


_LAUNCH_ADD = """
add, into, given = load(), allocate([0] * 32), allocate(range(32))
launch(add, 1, 32, into, given, ctypes.c_uint32(5))
"""
_CUPY = """
import cupy
source = 'extern "C" __global__ void add(unsigned* into, const unsigned* given, unsigned value) { into[threadIdx.x] = given[threadIdx.x] + value; }'
kernel = cupy.RawKernel(source, "add", options=("-DWIDTH=4",))
"""
_LAUNCH_BY_CUPY = """
from cupy_backends.cuda.api import driver
into, given, value = allocate([0] * 32), allocate(range(32)), ctypes.c_uint32(5)
add = driver.moduleGetFunction(driver.moduleLoadData(PTX), "add")
arguments = point(into, given, value)
driver.launchKernel(add, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(arguments), 0)
print("cupy:", "right" if read(into, 32) == list(range(5, 37)) else "WRONG")
"""


def test_a_raw_kernel_of_cupy(tmp_path: Path, driver: Callable[[str], None]) -> None:
    driver("cupy")
    script = tmp_path / "program.py"
    script.write_text(_CUPY + HEAD + _LAUNCH_BY_CUPY)
    assert "cupy: right" in record(tmp_path, sys.executable, str(script))
    launch, text = _read(tmp_path, "add")
    assert "(CuPy, -DWIDTH=4)" in text
    assert [one.name for one in launch.arguments] == ["into", "given", "value"]
    assert 'extern "C" __global__ void add(' in (tmp_path / "out" / "add.cu").read_text()
    found = emulate_recorded(tmp_path / "out", "add").arrays["into"].view(np.uint32)
    assert found.tolist() == list(range(5, 37))


_CUTE = """
import os
os.environ |= {"CUTE_DSL_KEEP_PTX": "1", "CUTE_DSL_DUMP_DIR": "dumped", "CUTE_DSL_ARCH": "sm_80"}
os.mkdir("dumped")
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_ptr

@cute.kernel
def double(p: cute.Pointer, n: cutlass.Int32):
    values = cute.make_tensor(p, cute.make_layout(n))
    thread, _, _ = cute.arch.thread_idx()
    if thread < n:
        values[thread] = values[thread] * 2.0

@cute.jit
def run(p: cute.Pointer, n: cutlass.Int32):
    double(p, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

compiled = cute.compile(run, make_ptr(cutlass.Float32, 1 << 20, cute.AddressSpace.gmem, assumed_align=16), cutlass.Int32(32))
"""
_CUTE_LAUNCH = """
PTX = compiled.artifacts.PTX.encode()
(name,) = compiled.kernel_info
data = allocate([0x3F800000] * 32)
launch(load(name.encode()), 1, 32, data, ctypes.c_int32(32))
print("cute:", read(data, 32) == [0x40000000] * 32)
"""


def test_a_kernel_of_cute_dsl(tmp_path: Path, driver: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    driver("cutlass")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "program.py"
    script.write_text(_CUTE + HEAD + _CUTE_LAUNCH)
    assert "cute: True" in record(tmp_path, sys.executable, str(script))
    (path,) = (tmp_path / "out").glob("*.launch.toml")
    assert "(CuTe DSL)" in path.read_text()
    found = find_array(emulate_recorded(tmp_path / "out", path.name.removesuffix(".launch.toml")), np.float32, 32, 0)
    assert found.tolist() == [2.0] * 32


class _Held:
    """A stand-in for what a library holds."""

    def __init__(self, **values: object) -> None:
        self.__dict__ |= values


def _place_launch(folder: Path, kernel: str, image: bytes) -> None:
    (folder / "launch-1-000001.raw").write_text(f"gpa-lsp-launch 1\nimage 00aa\nkernel {kernel}\n")
    (folder / "image-00aa.bin").write_bytes(image)


def _hold(monkeypatch: pytest.MonkeyPatch, module: str, kind: str) -> None:
    monkeypatch.setitem(sys.modules, module, _Held(**{kind: _Held}))  # type: ignore[arg-type]


def test_of_several_kernels_of_a_name_the_one_that_was_loaded_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place_launch(tmp_path, "k", b"second")
    _hold(monkeypatch, "triton.compiler.compiler", "CompiledKernel")
    source = _Held(signature={"x": "*bf16", "n": "i64", "width": "constexpr"}, constants={(2,): 8, (0, 1): 3}, fn=None)
    held = [
        _Held(metadata=_Held(name="k"), asm={"ptx": text, "cubin": code}, src=source)
        for text, code in (("one", b"first"), ("two", b"second, with some more"))
    ]
    rows = held_kernels.list_held_kernels(tmp_path, tmp_path)
    assert [(row["ptx"], row["image"]) for row in rows] == [("one", ""), ("two", "00aa")]
    assert rows[0]["parameters"] == [("x", "bf16", True), ("n", "i64", False)]
    assert rows[0]["constants"] == {"width": "8"}
    assert len(held) == 2


def test_what_a_library_holds_otherwise_than_is_known_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place_launch(tmp_path, "k", b"code")
    for module, kind, _ in held_kernels._KINDS:
        _hold(monkeypatch, module, kind)
    kept = _Held(metadata=None, entry_name=3)
    assert held_kernels.list_held_kernels(tmp_path, tmp_path) == []
    assert kept.__dict__["entry_name"] == 3


@pytest.mark.parametrize(
    ("minor", "has_own"), [(11, False), (11, True), (9, False), (10, False), (12, False), (13, False), (14, False)]
)
def test_a_program_starts_and_ends_as_it_would_have(tmp_path: Path, minor: int, has_own: bool) -> None:
    """The recorder's ``sitecustomize`` runs the program's own."""
    raw, own = tmp_path / "raw", tmp_path / "own"
    raw.mkdir()
    own.mkdir()
    _place_launch(raw, "add", b"code")
    if has_own:
        (own / "sitecustomize.py").write_text("import sys\nsys.started = True\n")
    text = (
        "import sys, types\nmodule = types.ModuleType('cupy')\n"
        "class RawKernel:\n    code, file_path, options = '__global__ void add(int* x) {}', None, ()\n"
        "module.RawKernel = RawKernel\nsys.modules['cupy'] = module\nkept = RawKernel()\n"
        "print(getattr(sys, 'started', False), any('python' == one.rsplit('/', 1)[-1] for one in sys.path))\nsys.exit(3)\n"
    )
    environment = dict(os.environ) | {"PYTHONPATH": str(own)}
    add_to_environment(environment, tmp_path, raw)
    command = [find_interpreter(minor), "-c", text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (3, [str(has_own), "False"], "")
    assert (
        not list(Path(held_kernels.__file__).parent.rglob(f"*held_kernels.cpython-3{minor}.pyc"))
        or minor == sys.version_info[1]
    )
    (held,) = read_held_kernels(raw)
    assert (held.framework, held.source) == ("CuPy", "__global__ void add(int* x) {}")
