"""Records a program from start to end: :func:`record_program`."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.programs.library import SOURCES as RUNTIME_SOURCES
from gpa_lsp.execution.programs.library import compile_host_blocks
from gpa_lsp.execution.record.describe import Recorded, RecordSettings, describe_launches
from gpa_lsp.execution.record.python_programs import add_to_environment, read_held_kernels
from gpa_lsp.foundation.errors import GpaError, InputError, MissingToolError
from gpa_lsp.foundation.native.c_compiler import SHARED_FLAG, SHARED_HEADERS, Library, obtain_library
from gpa_lsp.foundation.processes.python_children import isolate_code
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.foundation.processes.watched_command import (
    TEMPORARY,
    CommandEnd,
    RunLimits,
    TimeLimits,
    WatchedCommand,
    run_command,
)

_PRELOAD = "LD_PRELOAD"
_POLL_S = 0.05


class RecordedProgram(Struct, frozen=True, kw_only=True):
    """Result of recording a program."""

    end: CommandEnd  # how it ended
    launches: tuple[Recorded, ...]  # one of each kernel, as far as they were recorded


def record_program(
    command: Sequence[str],
    into: Path,
    settings: RecordSettings,
    *,
    limit_s: float,
    streams: tuple[int, int, int] | None = None,
    take: Callable[[bytes], object] = lambda piece: None,
) -> RecordedProgram:
    """Run a program on this computer's GPU and record what it launches. Ctrl-C ends it, and what was seen until then is described.

    Args:
        command: program and arguments; no shell parses them.
        into: folder that gets the descriptions, with code and data.
        settings: what is kept.
        limit_s: seconds it may take.
        streams: descriptors that become its standard input, output and error; None for no input, and ``take`` for the others.
        take: gets what it prints, where it has no streams of its own.

    Raises:
        InputError: there is no such program, or the folder cannot be written to.
        MissingToolError: there is no driver, or no C compiler.
        ToolError: the library could not be compiled.
        GpaError: this system is no Linux.
    """
    program = _find(command[0])
    driver = find_driver()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        private = Path(name)
        raw = private / "raw"
        raw.mkdir()
        environment = dict(os.environ)
        environment[FOLDER_VARIABLE] = str(raw)
        environment[BYTES_VARIABLE] = str(settings.limit_bytes)
        environment[LAUNCH_VARIABLE] = str(settings.number)
        preloaded = environment.get(_PRELOAD, "")
        libraries = build_recorder(driver, private), compile_host_blocks(private)
        environment[_PRELOAD] = " ".join(filter(None, (*map(str, libraries), preloaded)))
        add_to_environment(environment, private, raw)
        running = WatchedCommand(
            [str(program), *command[1:]],
            folder=Path.cwd(),
            environment=environment,
            limits=TimeLimits.by_clock(limit_s),
            take=take,
            streams=streams,
            temporary=private,
        )
        try:
            with suppress(KeyboardInterrupt):
                while not wait([running.future], _POLL_S).done:
                    pass
        finally:
            running.cancel()
        end = running.future.result()
        return RecordedProgram(end=end, launches=describe_launches(raw, raw, into, read_held_kernels(raw)))


def _find(word: str) -> Path:
    path = Path.cwd() / word if os.sep in word else find_program(word)
    if path is None or not path.is_file():
        raise InputError(
            "there is no such program", path=Path(word), remedy="give the program and its arguments after two dashes"
        )
    return path.absolute()


# Environment variables that the library reads when it is loaded
FOLDER_VARIABLE = "GPA_LSP_RECORD_FOLDER"  # of raw records
BYTES_VARIABLE = "GPA_LSP_RECORD_BYTES"  # the most data of one launch
LAUNCH_VARIABLE = "GPA_LSP_RECORD_LAUNCH"  # number of the launch to keep
LIBRARY_NAME = "gpa_lsp_recorder.so"
DRIVER_NAME = "libcuda.so.1"
_PARTS = ("memory_sites", "textures", "variable_names")
_SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("recorder.c", *(f"{part}.{ending}" for part in _PARTS for ending in ("c", "h")))
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
    """Path of the driver's library, as the loader finds it; this process does not load it.

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
    """Build the recorder for a driver into a folder.

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
        arguments=(*_FLAGS, f'-DREAL_DRIVER="{quoted}"', f"-I{RUNTIME_SOURCES}", *sources, *linked),
        files={"stub.so": obtain_library(empty)},
        inputs=(*(one for one in _SOURCES if one.suffix == ".h"), RUNTIME_SOURCES / "host_blocks.h", *SHARED_HEADERS),
    )
    path = folder / LIBRARY_NAME
    content = obtain_library(library)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
