"""The library that stands before CUDA's driver library: :func:`build_recorder` compiles it for the one that is installed."""

import hashlib
import sys
import tempfile
from pathlib import Path

from gpa_lsp.basis.errors import GpaError, MissingToolError
from gpa_lsp.basis.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.native.c_compiler import compile_library, find_c_compiler
from gpa_lsp.processes.python_children import isolate_code
from gpa_lsp.processes.time_limits import TimeLimits
from gpa_lsp.processes.watched_command import TEMPORARY, RunLimits, run_command

FOLDER_VARIABLE, BYTES_VARIABLE, LAUNCH_VARIABLE = (
    "GPA_LSP_RECORD_FOLDER",
    "GPA_LSP_RECORD_BYTES",
    "GPA_LSP_RECORD_LAUNCH",
)
"""What the library reads when it is loaded: where raw records go, the most bytes of data of one, and which launch."""
LIBRARY_NAME = "gpa_lsp_recorder.so"
DRIVER_NAME = "libcuda.so.1"
_SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("recorder.c", "textures.c", "textures.h", "variable_names.c", "variable_names.h")
)
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
_NEEDED_FOR = "recording launches"
_KEPT_BYTES = 1 << 20
_LIMIT_S = 30.0
_MEMORY_BYTES = 64 << 30
"""Of address space: drivers reserve much."""
_FIND = f"""
import ctypes
ctypes.CDLL({DRIVER_NAME!r})
for line in open("/proc/self/maps"):
    path = line.split(None, 5)[-1].strip()
    if "/libcuda.so" in path:
        print(path)
        break
"""


def find_driver() -> Path:
    """The driver's own library, as the loader finds it; this process does not load it.

    Raises:
        MissingToolError: there is none.
        ToolError: it cannot be looked for.
        GpaError: this system is no Linux.
    """
    if not sys.platform.startswith("linux"):
        raise GpaError("launches can be recorded on Linux only")
    child = isolate_code(_FIND)
    limits = RunLimits(time=TimeLimits.for_work(_LIMIT_S), memory_limit_bytes=_MEMORY_BYTES)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        is_well, output = run_command(
            "python", child.words, folder=Path(name), environment=child.environment, limits=limits
        )
    path = output.strip().rpartition("\n")[2]
    if not is_well or not Path(path).is_file():
        install = "run it on a computer with an NVIDIA GPU and its driver; gpa-lsp emulate needs none"
        raise MissingToolError("an NVIDIA driver", needed_for=_NEEDED_FOR, install=install)
    return Path(path)


def build_recorder(driver: Path, folder: Path) -> Path:
    """Put the library for a driver into a folder.

    Args:
        driver: its own library.
        folder: of ours.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        GpaError: the library cannot be written.
    """
    kept = KeptFiles(find_cache_folder() / "recorder", limit_bytes=_KEPT_BYTES)
    texts = b"".join(one.read_bytes() for one in (*_SOURCES, Path(__file__)))
    key = hashlib.sha256(texts + f"{driver} {_FLAGS}".encode()).hexdigest()
    path = folder / LIBRARY_NAME
    content = kept.load(key)
    try:
        if content is None:
            _compile(driver, path)
            kept.store(key, path.read_bytes())
        else:
            path.write_bytes(content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _compile(driver: Path, path: Path) -> None:
    """Link it with an empty library of the driver's path for a name, so that the driver is loaded behind it, wherever it lies."""
    compiler = find_c_compiler()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        empty, stub = Path(name) / "empty.c", Path(name) / "stub.so"
        empty.write_text("int gpa_lsp_nothing;\n")
        compile_library(
            compiler, ["-fPIC", "-shared", str(empty), f"-Wl,-soname,{driver}"], stub, needed_for=_NEEDED_FOR
        )
        quoted = str(driver).replace("\\", "\\\\").replace('"', '\\"')
        sources = [str(one) for one in _SOURCES if one.suffix == ".c"]
        arguments = [*_FLAGS, f'-DREAL_DRIVER="{quoted}"', *sources, "-Wl,--no-as-needed", str(stub)]
        compile_library(compiler, [*arguments, f"-Wl,-soname,{DRIVER_NAME}", "-ldl"], path, needed_for=_NEEDED_FOR)
