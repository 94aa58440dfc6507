"""The library that stands before CUDA's driver library: :func:`build_recorder` compiles it for the one that is installed."""

import sys
import tempfile
from pathlib import Path

from gpa_lsp.foundation.errors import GpaError, MissingToolError
from gpa_lsp.foundation.native.c_compiler import SHARED_FLAG, SHARED_HEADERS, Library, obtain_library
from gpa_lsp.foundation.processes.python_children import isolate_code
from gpa_lsp.foundation.processes.time_limits import TimeLimits
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, run_command

# What the library reads when it is loaded: where raw records go, the most bytes of data of one, and which launch
FOLDER_VARIABLE, BYTES_VARIABLE, LAUNCH_VARIABLE = (
    "GPA_LSP_RECORD_FOLDER",
    "GPA_LSP_RECORD_BYTES",
    "GPA_LSP_RECORD_LAUNCH",
)
LIBRARY_NAME = "gpa_lsp_recorder.so"
DRIVER_NAME = "libcuda.so.1"
_SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("recorder.c", "textures.c", "textures.h", "variable_names.c", "variable_names.h")
)
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", SHARED_FLAG)
_NEEDED_FOR = "recording launches"
_LIMIT_S = 30.0
_MEMORY_BYTES = 64 << 30  # Of address space: drivers reserve much
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

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        GpaError: the library cannot be written.
    """
    empty = Library(
        title="a library that names the driver",
        needed_for=_NEEDED_FOR,
        arguments=("-fPIC", "-shared", "empty.c", f"-Wl,-soname,{driver}"),
        files={"empty.c": b"int gpa_lsp_nothing;\n"},
    )
    quoted = str(driver).replace("\\", "\\\\").replace('"', '\\"')
    sources = [str(one) for one in _SOURCES if one.suffix == ".c"]
    # An empty library of the driver's path for a name has the driver loaded behind this one, wherever it lies.
    linked = ["-Wl,--no-as-needed", "stub.so", f"-Wl,-soname,{DRIVER_NAME}", "-ldl"]
    library = Library(
        title="the recorder of launches",
        needed_for=_NEEDED_FOR,
        arguments=(*_FLAGS, f'-DREAL_DRIVER="{quoted}"', *sources, *linked),
        files={"stub.so": obtain_library(empty)},
        inputs=(*(one for one in _SOURCES if one.suffix == ".h"), *SHARED_HEADERS),
    )
    path = folder / LIBRARY_NAME
    content = obtain_library(library)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
