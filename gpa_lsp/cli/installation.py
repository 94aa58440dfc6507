"""Inventory of this machine: programs, libraries, tables and the cache."""

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from gpa_lsp import __version__
from gpa_lsp.code.binary.disassembler import open_cache
from gpa_lsp.code.binary.tool_location import find_tool, name_override
from gpa_lsp.execution.compiler.nvcc_location import HOST_COMPILERS
from gpa_lsp.execution.programs.library import list_headers
from gpa_lsp.foundation.catalogue import OutsidePackage, list_outside_packages
from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.native.c_compiler import find_c_compiler, open_failures, open_libraries
from gpa_lsp.foundation.numbers import format_bytes, format_count
from gpa_lsp.foundation.processes.python_children import isolate_code
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.gpu.device.cuda_driver import is_driver_installed
from gpa_lsp.gpu.device.roofs_file import find_roofs_folder
from gpa_lsp.profile.collect.recipe import find_ncu
from gpa_lsp.profile.collector.run import find_cupti
from gpa_lsp.report.history.model import find_database
from gpa_lsp.report.saved.kept_allocations import open_kept_allocations
from gpa_lsp.report.saved.kept_reports import open_kept_reports

_TIMEOUT_S = 10

# ordinary dependencies, by name on the package index: what each is used for
_PACKAGES = {
    "numpy": "arrays of instructions, samples and accesses",
    "pygls": "the language server",
    "lsprotocol": "messages of the language server",
    "protobuf": "Nsight Compute reports",
    "platformdirs": "folders of the cache and of the history",
    "tomli": "architecture tables and launch descriptions",
    "rich": "colours and progress bars in a terminal",
    "jinja2": "HTML pages",
    "msgspec": "records of reports and messages",
    "llvmlite": "the emulator, traces and the simulated SM",
    "networkx": "the graph of causes (gpa-lsp report graph)",
    "pyelftools": "lines of host code (profile --sampler cupti)",
    "pycxxfilt": "readable names of C++ functions",
    "tree-sitter": "parsing sources for advice and launches",
    "tree-sitter-cuda": "the same in CUDA C++",
    "tree-sitter-python": "the same in Python",
    "tree-sitter-fortran": "the same in Fortran",
    "tree-sitter-julia": "the same in Julia",
}
if sys.version_info < (3, 14):
    _PACKAGES["backports.zstd"] = "Zstandard: .ncu-repz and device code"

# packages of extras: name, extra, what each is used for
_OPTIONAL_PACKAGES = (
    ("cuda-bindings", "cuda", "measuring on a GPU of this machine"),
    ("nvidia-cuda-nvrtc", "cuda", "compiling on save; roofline calibrate"),
    ("vl-convert-python", "charts", "roofline -o .svg or .png; predict explore"),
    ("pyarrow", "traces", "traces in files (gpa-lsp predict trace)"),
    ("distributed", "dask", "predict explore --scheduler, on Dask"),
    ("ipykernel", "jupyter", "gpa-lsp in notebooks"),
)

# What we or our extras install that is not free software
NVIDIA_PACKAGES = (
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-cuobjdump",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cuda-cccl",
    "nvidia-cuda-nvcc",
    "nvidia-cuda-cupti",
)

_NVIDIA_LICENCE = "https://docs.nvidia.com/cuda/eula/"

_DRIVER_PROBE = """
import ctypes
try:
    cuda = ctypes.CDLL({library!r})
except OSError:
    raise SystemExit(3)
version, count = ctypes.c_int(), ctypes.c_int()
cuda.cuDriverGetVersion(ctypes.byref(version))
print(f"CUDA {{version.value // 1000}}.{{version.value % 1000 // 10}}", end="")
if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
    for number in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        cuda.cuDeviceGet(ctypes.byref(device), number)
        cuda.cuDeviceGetName(name, 256, device)
        print(", " + name.value.decode(errors="replace"), end="")
"""


class Component(Struct, frozen=True, kw_only=True):
    """A part that gpa-lsp uses if it is installed."""

    name: str
    state: str  # found, missing or broken
    detail: str  # version and place, or what is wrong
    adds: str  # what it is used for
    install: str  # how to install it


def inspect_packages() -> tuple[Component, ...]:
    """Look up the packages of the core and of the extras, and what each is used for."""
    return (
        *(_judge(name, adds, f"pip install {name}", _find_version(name)) for name, adds in _PACKAGES.items()),
        *(
            _judge(name, adds, f"pip install 'gpa-lsp[{extra}]'", _find_version(name))
            for name, extra, adds in _OPTIONAL_PACKAGES
        ),
    )


def inspect_installation() -> tuple[Component, ...]:
    """Look up programs, files and hardware, in the order worth reading. A missing one is no error."""
    return (
        _found("gpa-lsp", __version__, "itself"),
        _inspect_licences(),
        _inspect_python(),
        _inspect_tool("nvdisasm", "instruction texts, def-use and control flow", "pip install nvidia-cuda-nvdisasm"),
        _inspect_tool("cuobjdump", "device code in compressed fat binaries", "pip install nvidia-cuda-cuobjdump"),
        _inspect_ncu(),
        _inspect_tool(
            "nvcc",
            "compiling sources with host code as they are edited",
            "pip install nvidia-cuda-nvcc nvidia-cuda-cccl",
        ),
        _inspect_host_compiler(),
        _inspect_program_runtime(),
        _inspect_collector(),
        _inspect_timing(),
        _inspect_core(),
        *map(_inspect_outside_package, list_outside_packages()),
        _inspect_driver(),
        _inspect_architectures(),
        _inspect_roofs(),
        _inspect_cache(),
        _inspect_history(),
    )


def _judge(name: str, adds: str, install: str, detail: str | None, lack: str = "not installed") -> Component:
    """A component that is found where there is a detail, its version or place, else missing."""
    if detail is None:
        return Component(name=name, state="missing", detail=lack, adds=adds, install=install)
    return Component(name=name, state="found", detail=detail, adds=adds, install="")


def _found(name: str, detail: str, adds: str) -> Component:
    return _judge(name, adds, "", detail)


def _break(name: str, adds: str, install: str, detail: str) -> Component:
    """A component that is installed but does not work."""
    return Component(name=name, state="broken", detail=detail, adds=adds, install=install)


def _inspect_licences() -> Component:
    """Licences of gpa-lsp and of NVIDIA's packages; installing those accepts their terms, so they are named."""
    present = [package for package in NVIDIA_PACKAGES if _find_version(package) is not None]
    theirs = f"; under NVIDIA's own licence ({_NVIDIA_LICENCE}): {', '.join(present)}" if present else ""
    return _found("licence", f"Apache-2.0{theirs}", "using it")


def _find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _inspect_python() -> Component:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"  # platform.platform() runs the uname of the search path
    return _found("Python", f"{platform.python_version()} on {system}, {sys.executable}", "everything")


def _inspect_outside_package(package: OutsidePackage) -> Component:
    """A third-party package that adds to our catalogues."""
    adds = "; ".join(
        f"{group.removeprefix('gpa_lsp.')}: {', '.join(sorted(points))}" for group, points in package.members.items()
    )
    for point in (point for points in package.members.values() for point in points.values()):
        try:
            point.load()
        except Exception as error:  # the code of others may fail in any way
            detail = f"{package.version}; {point.value} cannot be imported: {error}"
            return _break(package.name, adds, "ask its authors", detail)
    return _found(package.name, f"{package.version}, adds {adds}", adds)


def _inspect_ncu() -> Component:
    """Find Nsight Compute, also in folders that are not on ``PATH``."""
    try:
        path = find_ncu()
    except MissingToolError:
        path = None
    return _inspect_tool("ncu", "recording profiles on this machine", "install NVIDIA Nsight Compute", path)


def _inspect_tool(name: str, adds: str, install: str, found: Path | None = None) -> Component:
    path = found or find_tool(name)
    if path is None:
        variable = name_override(name)
        override = os.environ.get(variable)
        lack = f"{variable} is set to {override}, which is not a program" if override else "not installed"
        return _judge(name, adds, install, None, lack)
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return _break(name, adds, install, f"{path}: {error}")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    version = next((line for line in lines if "release" in line or "Version" in line), None)
    return _found(name, f"{version or next(iter(lines), 'unknown version')}, {path}", adds)


def _inspect_host_compiler() -> Component:
    """The first host compiler found of those that nvcc works with."""
    adds, install = "compiling sources with host code, by nvcc", "install a C++ compiler that nvcc knows"
    for name in HOST_COMPILERS:
        path = find_program(name)
        if path is not None:
            return _inspect_tool(name, adds, install, path) if os.name != "nt" else _found(name, str(path), adds)
    return _judge(HOST_COMPILERS[0], adds, install, None)


def _inspect_program_runtime() -> Component:
    """Headers and C compiler for the runtime library that emulated programs use."""
    headers, compiler = list_headers(), find_c_compiler()
    versions = ", ".join(dict.fromkeys(f"{one.version // 1000}.{one.version % 1000 // 10}" for one in headers))
    return _judge(
        "CUDA headers and cc",
        "running whole programs without a GPU (gpa-lsp emulate)",
        "pip install nvidia-cuda-runtime; install gcc or clang",
        f"CUDA {versions}, {compiler}" if versions and compiler is not None else None,
        _list_lacking({"no headers": bool(versions), "no C compiler": compiler is not None}),
    )


def _list_lacking(parts: Mapping[str, bool]) -> str:
    """The missing parts, separated by commas."""
    return ", ".join(words for words, is_there in parts.items() if not is_there)


def _inspect_collector() -> Component:
    """CUPTI and C compiler for measuring without Nsight Compute."""
    name, adds = "CUPTI and cc", "measuring without Nsight Compute (gpa-lsp profile --sampler cupti)"
    if os.name != "posix":
        return _judge(name, adds, "measure on Linux", None, "only on Linux")
    install, compiler = "pip install 'gpa-lsp[cupti]'; install gcc or clang", find_c_compiler()
    try:
        cupti = find_cupti()
    except MissingToolError:
        return _judge(name, adds, install, None, "no headers")
    detail = None if compiler is None else f"{cupti.library or cupti.headers[0]}, {compiler}"
    return _judge(name, adds, install, detail, "no C compiler")


def _inspect_core() -> Component:
    """The emulator of kernels."""
    detail = f"compiles kernels with llvmlite {importlib.metadata.version('llvmlite')}"
    return _found("emulator", detail, "executing kernels without a GPU")


def _inspect_driver() -> Component:
    name, adds = "NVIDIA driver", "running kernels and measuring them on this machine"
    install = "install the driver of an NVIDIA GPU"
    library = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    # In a process of its own: a broken driver may hang or crash whoever loads it.
    child = isolate_code(_DRIVER_PROBE.format(library=library))
    try:
        done = subprocess.run(
            child.words,
            env=child.environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, subprocess.CalledProcessError) and error.returncode == 3:
            return _judge(name, adds, install, None, f"no {library}")
        return _break(name, adds, install, f"{library} does not answer")
    return _found(name, done.stdout.strip(), adds)


def _inspect_timing() -> Component:
    """Driver and bindings that time described launches, in a shell and in editors on save."""
    has_package = _find_version("cuda-bindings") is not None
    lacking = _list_lacking({"no NVIDIA driver": is_driver_installed(), "no cuda-bindings": has_package})
    return _judge(
        "timing of launches",
        "timing described launches on a GPU of this machine: gpa-lsp profile --launches, and on save in editors",
        "use a computer with an NVIDIA GPU and its driver, and pip install 'gpa-lsp[cuda]'",
        None if lacking else "by cuda-bindings",
        lacking,
    )


def _inspect_architectures() -> Component:
    from gpa_lsp.gpu.arch.lookup import list_architectures  # reads the tables' folder

    known = ", ".join(f"{major}.{minor}" for major, minor in list_architectures())
    return _found("architecture tables", f"compute capability {known}", "latencies, limits and throughputs")


def _inspect_roofs() -> Component:
    folder = find_roofs_folder()
    names = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    detail = f"{', '.join(names)} in {folder}" if names else None
    install = "run gpa-lsp roofline calibrate on a computer with an NVIDIA GPU"
    adds = "rooflines under the measured ceilings of a GPU"
    return _judge("measured ceilings", adds, install, detail, f"none in {folder}")


def list_kept() -> Mapping[str, KeptFiles]:
    """Caches that can be rebuilt; reports measured from an editor are in the same folder, but are not among them."""
    return {
        "analysed reports": open_kept_reports(),
        "findings about allocations": open_kept_allocations(),
        "disassembled functions": open_cache().files,
        "compiled libraries": open_libraries(),
        "libraries that could not be compiled": open_failures(),
    }


def _inspect_cache() -> Component:
    found = {name: files.measure() for name, files in list_kept().items()}
    parts = [f"{name}: {format_count(count)}" for name, (count, _) in found.items() if count]
    size = format_bytes(sum(size_bytes for _, size_bytes in found.values()))
    detail = f"{', '.join(parts)}, {size} (gpa-lsp doctor cache --clear)" if parts else "empty"
    return _found("cache", f"{find_cache_folder()}, {detail}", "instant answers for what was analysed before")


def _inspect_history() -> Component:
    path = find_database()
    detail = f"{path}, {format_bytes(path.stat().st_size)}" if path.is_file() else f"{path}, not created yet"
    return _found("history of measurements", detail, "changes since the last run and since a baseline")
