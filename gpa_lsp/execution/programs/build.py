"""Builds programs that can be emulated, with the shared runtime library, PTX and line tables:
:func:`build_program` by the user's own build command, :func:`build_source` from one source.
"""

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from itertools import chain
from pathlib import Path

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.included_files import find_cuda_headers
from gpa_lsp.execution.compiler.nvcc_location import INSTALL, TOOL
from gpa_lsp.execution.compiler.project import find_flags
from gpa_lsp.execution.compiler.stand_in_headers import FOLDER as ABSENT_HEADERS
from gpa_lsp.execution.programs.library import (
    HOST_LIBRARIES,
    CudaHeaders,
    HostLibrary,
    build_host_library,
    build_libraries,
    compile_redirection,
    find_runtime_compiler,
    place_host_headers,
    read_headers,
)
from gpa_lsp.foundation.errors import InputError, MissingToolError, ToolError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.kept_files import find_cache_folder
from gpa_lsp.foundation.native.c_compiler import Tell
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, TimeLimits, WatchedCommand, run_command
from gpa_lsp.gpu.device.products import Product, find_product

_SOURCES = Path(__file__).parent / "building"
_POLL_S = 0.05
_LIST_LIMIT_S = 20.0
_MEMORY_BYTES = 4 << 30
_ARCHITECTURES = "GPA_LSP_ARCHITECTURES"
_NVCC = "GPA_LSP_NVCC"
_TEXTURES = "GPA_LSP_TEXTURES"
_HEADERS = "GPA_LSP_HEADERS"
_WANTED_VARIABLE = "GPA_LSP_WANTED"
_LEAST_STANDARD = "GPA_LSP_LEAST_STANDARD"
_WRAPPER = "GPA_LSP_NVCC_WRAPPER"
_SCRIPT = "GPA_LSP_RUNTIME_SCRIPT"
_FLAGS = "NVCC_APPEND_FLAGS"
_ARCHITECTURE_VARIABLE = "CUDAARCHS"  # CMake's
# Libraries that old programs link with although our headers replace them; empty, and found after installed ones
_EMPTY_LIBRARIES = ("cutil", "cutil_x86_64", "cutil_i386", "shrutil", "shrutil_x86_64", "nvToolsExt", "culibos")
_WANTED = 80  # code for compute capability 8.0 runs on everything newer
# Words that are safe with nvcc, which hands command lines to a shell without quoting them
_PLAIN = re.compile(r"[\w./+=:@~,-]+")
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([\w./]{1,200})[>"]', re.MULTILINE)
_TOP = re.compile(r"^#\$ TOP=(.+?)\s*$", re.MULTILINE)
_OPEN_MP = "omp.h"
# Messages that ask for an option, and that option
_ASKED_FOR = (
    (re.compile(rb"requires separate compilation mode"), "-rdc=true"),
    (re.compile(rb"--extended-lambda nvcc flag"), "--extended-lambda"),
    (re.compile(rb"flag '--expt-relaxed-constexpr'"), "--expt-relaxed-constexpr"),
)
_DRIVER = ("cuda.h", "cuda")  # header and library of CUDA's driver
_NVRTC = ("nvrtc.h", "nvrtc")
# Headers of libraries that consist of machine code alone, and their names
_NOT_EMULATED = re.compile(rb"(cusparse|cusolver|cudnn|nccl|cutensor|nvjpeg|npp|nvml)[\w.]*: No such file")
_CLUSTERS = re.compile(rb"__cluster_dims__ is not supported|has no member \"this_cluster\"")
_FOR_CLUSTERS = "-arch=sm_90"
_NAMES = {"cusparse": "cuSPARSE", "cusolver": "cuSOLVER", "cutensor": "cuTENSOR", "cudnn": "cuDNN", "nvjpeg": "nvJPEG"}
_SINCE_C17 = 13000  # The headers of this release of CUDA, and of later ones, are refused by compilers of an older C++


def build_program(
    command: str,
    *,
    machine: str,
    folder: Path,
    limit_s: float,
    take: Callable[[bytes], object],
    tell: Tell | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Run the user's build command, with nvcc's options changed so that the result can be emulated.

    Args:
        command: program and arguments as a shell would split them; no shell runs them.
        machine: name of the GPU that the program will see.
        folder: it runs in.
        limit_s: seconds of processor time it may take.
        take: gets its output.
        tell: gets a sentence per step: compiling libraries, then the command.
        is_cancelled: polled; True ends the build.

    Raises:
        InputError: the command cannot be split or started, or nvcc compiles nothing that the GPU runs; there is no such GPU.
        MissingToolError: there is no nvcc.
        ToolError: it failed.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"the build command cannot be read: {error}", remedy="close its quotes") from error
    if not words:
        raise InputError("the build command is empty", remedy='give one, such as --build "make -B"')
    said = f"building: {command}"
    _build(
        words, said, machine=machine, folder=folder, limit_s=limit_s, take=take, tell=tell, is_cancelled=is_cancelled
    )


def build_source(
    source: Path, into: Path, *, machine: str, limit_s: float, take: Callable[[bytes], object], tell: Tell | None = None
) -> Path:
    """Compile and link one source that is a whole program, with the folders and macros of its compile command if a record has one.

    Args:
        source: CUDA C++ with a ``main``.
        into: folder for the program.
        machine: name of the GPU that the program will see.
        limit_s: seconds of processor time the compiler may take.
        take: gets the compiler's output.
        tell: gets a sentence per step.

    Raises:
        InputError: its name, or that of its folder, is none that nvcc can be given.
        MissingToolError: there is no nvcc.
        ToolError: it does not compile, or is no whole program.
    """
    program = into / source.stem
    if not _PLAIN.fullmatch(str(source)) or not _PLAIN.fullmatch(str(program)):
        remedy = "rename it, or build it yourself: gpa-lsp emulate --build COMMAND -- ./app"
        raise InputError("has a name that nvcc cannot be given", path=source, remedy=remedy)
    options = _list_options(source)
    has_clusters = find_product(machine).compute_capability >= (9, 0)
    known = (*_ASKED_FOR, (_CLUSTERS, _FOR_CLUSTERS)) if has_clusters else _ASKED_FOR
    if has_clusters and b"__cluster_dims__" in source.read_bytes():
        options.append(_FOR_CLUSTERS)  # headers may leave it out of code for older GPUs without a word
    while True:
        printed = bytearray()
        words = [TOOL, "-w", "-o", str(program), *options, str(source)]
        said = " ".join([f"building {source} with {TOOL}", *(one for _, one in known if one in options)])
        computed = [one for one in HOST_LIBRARIES if f"-l{one.stem}" in options]
        try:
            _build(
                words,
                said,
                machine=machine,
                folder=Path.cwd(),
                limit_s=limit_s,
                take=printed.extend,
                tell=tell,
                computed=computed,
            )
        except ToolError as error:
            asked = [one for pattern, one in known if one not in options and pattern.search(printed)]
            if not asked:
                take(bytes(printed))
                raise ToolError(TOOL, f"{source} could not be built; {_find_remedy(printed)}") from error
            options += asked
        else:
            take(bytes(printed))
            return program


def _find_remedy(printed: bytes | bytearray) -> str:
    """Advice for a failed build, from the compiler's messages."""
    library = _NOT_EMULATED.search(printed)
    if library is not None:
        name = library[1].decode()
        return (
            f"{_NAMES.get(name, name.upper())} consists of kernels in machine code, which are not emulated: "
            "only cuBLAS, cuFFT, cuRAND, and what is compiled from source, as Thrust and CUB are, can be used"
        )
    if _CLUSTERS.search(printed):
        return "its blocks form clusters, which GPUs have from compute capability 9.0 on: choose one, as with --machine H100"
    return 'where it is one of several sources, build all of them: gpa-lsp emulate --build "make -B" -- ./app'


def _list_options(source: Path) -> list[str]:
    """Folders, macros and language of the compile command, and libraries for the headers the source includes."""
    flags = find_flags(source)
    options: list[str] = []
    if flags is not None:
        options += [f"-I{flags.directory / one}" for one in (*flags.includes, *flags.system_includes)]
        options += [f"-U{one[1:]}" if one.startswith("-") else f"-D{one}" for one in flags.macros]
        options += [f"-std={flags.standard}"] if flags.standard is not None else []
        options += flags.language
    included = set(_INCLUDED.findall(source.read_text(encoding="utf-8", errors="replace")))
    options += [f"-l{one.stem}" for one in HOST_LIBRARIES if one.header in included]
    options += ["-Xcompiler", "-fopenmp"] if _OPEN_MP in included else []
    options += [f"-l{library}" for header, library in (_DRIVER, _NVRTC) if header in included]
    runtime_compiler = find_runtime_compiler() if _NVRTC[0] in included else None
    if runtime_compiler is not None:
        options += ["-Xlinker", "-rpath", "-Xlinker", str(runtime_compiler.parent)]
    return [one for one in options if _PLAIN.fullmatch(one)]


def _build(
    words: list[str],
    said: str,
    *,
    machine: str,
    folder: Path,
    limit_s: float,
    take: Callable[[bytes], object],
    tell: Tell | None,
    is_cancelled: Callable[[], bool] = lambda: False,
    computed: Sequence[HostLibrary] = HOST_LIBRARIES,
) -> None:
    """Run a command that builds a program.

    Args:
        computed: the libraries that the program may be linked with; a command of the user's may ask for any.
    """
    nvcc = find_program(TOOL) or find_tool(TOOL)  # the user's own first: it is the user's command that is run
    if nvcc is None:
        raise MissingToolError(TOOL, needed_for="building a program", install=INSTALL)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        private = Path(name)
        environment = _make_environment(nvcc.resolve(), private, find_product(machine), computed, tell)
        if tell is not None:
            tell(said)
        running = WatchedCommand(
            words,
            folder=folder,
            environment=environment,
            limits=TimeLimits.for_work(limit_s),
            take=take,
            temporary=private,
        )
        _wait(running, is_cancelled)
    end = running.future.result()
    if end.status != 0:
        why = end.words or (end.ending.value if end.status is None else f"exit status {end.status}")
        raise ToolError(words[0], f"the build failed: {why}")


def _wait(running: WatchedCommand, is_cancelled: Callable[[], bool]) -> None:
    try:
        while not wait([running.future], _POLL_S).done and not is_cancelled():
            pass
    finally:
        running.cancel()
        running.future.result()


def _place_libraries(
    toolkit: Path, headers: CudaHeaders | None, folder: Path, computed: Sequence[HostLibrary], tell: Tell | None
) -> Path | None:
    """Folder in which linkers find the libraries; None if there are no CUDA headers to build them with."""
    if headers is None:
        return None
    runtime = _find_device_runtime(toolkit, headers.folder.parent)
    if runtime is not None:
        (folder / runtime.name).symlink_to(runtime)
    built = (
        build_host_library(one, headers, folder / f"lib{one.stem}.so.{headers.version // 1000}", tell=tell)
        for one in _list_absent(headers)
        if one in computed
    )
    for library in chain(build_libraries(headers, folder, tell=tell), built):
        stem = library.name.partition(".so")[0]
        for name in (stem, f"{stem}_static"):
            (folder / f"{name}.so").symlink_to(library.name)
        _keep_for_cmake(library, f"{stem}.so")
    runtime_compiler = find_runtime_compiler()
    if runtime_compiler is not None:
        (folder / f"lib{_NVRTC[1]}.so").symlink_to(runtime_compiler)
    for name in _EMPTY_LIBRARIES:
        (folder / f"lib{name}.so").write_text("INPUT(-lc)\n")
    return folder


def _list_absent(headers: CudaHeaders) -> list[HostLibrary]:
    """Libraries whose own headers are not installed; ours would be found before NVIDIA's."""
    return [one for one in HOST_LIBRARIES if not (headers.folder / one.header).exists()]


def _find_device_runtime(*toolkits: Path) -> Path | None:
    """Archive for linking relocatable device code and kernels that launch kernels.

    The first of the toolkits that has it gives it.
    """
    places = ("lib64", "lib", "targets/x86_64-linux/lib")
    found = (toolkit / place / "libcudadevrt.a" for toolkit in toolkits for place in places)
    return next((path for path in found if path.exists()), None)


def find_toolkit(nvcc: Path) -> Path:
    """Folder of the toolkit that an nvcc is of, as it says itself: it may be a script that starts one elsewhere."""
    top = _TOP.search(_ask(nvcc, "--dryrun", "-x", "cu", os.devnull))
    return nvcc.parent.parent if top is None else Path(top[1]).resolve()


def _find_headers(toolkit: Path) -> CudaHeaders | None:
    folders = [toolkit / "include", *find_cuda_headers()]
    return next((one for path in folders if (one := read_headers(path)) is not None), None)


def _choose_architecture(architectures: Sequence[int], product: Product) -> int:
    """Compute capability to compile for, as a number: at most that of the GPU.

    Raises:
        InputError: nvcc knows newer ones only.
    """
    major, minor = product.compute_capability
    own = major * 10 + minor
    fitting = [one for one in architectures if one <= own] if architectures else [min(own, _WANTED)]
    if not fitting:
        oldest = f"{architectures[0] // 10}.{architectures[0] % 10}"
        raise InputError(
            f"this nvcc compiles for compute capability {oldest} and newer, and the {product.name} has {major}.{minor}",
            remedy="choose a newer GPU with --machine, or put the nvcc of an older CUDA toolkit first in PATH",
        )
    return next((one for one in fitting if one >= _WANTED), fitting[-1])


def _make_environment(
    nvcc: Path, private: Path, product: Product, computed: Sequence[HostLibrary], tell: Tell | None
) -> dict[str, str]:
    toolkit = find_toolkit(nvcc)
    headers = _find_headers(toolkit)
    library = _place_libraries(toolkit, headers, private, computed, tell)
    wrapper = _place_wrapper()
    architectures = _list_architectures(nvcc)
    wanted = _choose_architecture(architectures, product)
    flags = (
        f"-cudart shared -lineinfo -Xcompiler -g -Wno-deprecated-declarations -gencode arch=compute_{wanted},code=compute_{wanted} "
        f"-include {shlex.quote(str(_SOURCES / 'removed_names.h'))} -I{shlex.quote(str(ABSENT_HEADERS))}"
    )
    written = wrapper / "include"
    lacking = HOST_LIBRARIES if headers is None else _list_absent(headers)
    absent = [folder for one in lacking for folder in place_host_headers(one, written)]
    for folder in absent:
        flags += f" -I{shlex.quote(str(folder))}"
    if library is not None:
        flags += f" -L{shlex.quote(str(library))}"
    return {
        **os.environ,
        _FLAGS: " ".join(filter(None, (os.environ.get(_FLAGS, ""), flags))),
        _NVCC: str(nvcc),
        _ARCHITECTURES: ",".join(map(str, architectures)),
        _ARCHITECTURE_VARIABLE: f"{wanted}-virtual",
        _TEXTURES: str(_SOURCES / "removed_textures.h"),
        _WANTED_VARIABLE: str(wanted),
        _HEADERS: str(_SOURCES / "headers"),
        **({} if headers is None or headers.version < _SINCE_C17 else {_LEAST_STANDARD: "c++17"}),
        _WRAPPER: str(wrapper / TOOL),
        **({} if library is None else {_SCRIPT: str(_write_script(library))}),
        "PATH": _join(wrapper, os.environ.get("PATH", os.defpath)),
        "LIBRARY_PATH": _join(os.environ.get("LIBRARY_PATH"), library),  # of host compilers; behind what the build says
        "LD_LIBRARY_PATH": _join(os.environ.get("LD_LIBRARY_PATH"), library),  # for what a library needs
        "CPATH": _join(_SOURCES / "headers", os.environ.get("CPATH")),
        **{  # behind what the build names, as -isystem, too: that may be another release; what a toolkit lacks comes from packages
            name: _join(
                os.environ.get(name), None if headers is None else headers.folder, *absent, *find_cuda_headers()
            )
            for name in ("C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
        },
        "LD_PRELOAD": " ".join(filter(None, (os.environ.get("LD_PRELOAD"), str(compile_redirection(private))))),
    }


def _write_script(library: Path) -> Path:
    """Linker script in place of the runtime library: the shared one, the C++ library, and the archive for device code."""
    script = library / "runtime.ld"
    target = (library / "libcudart.so").resolve()  # not by the name that leads to this script
    devices = library / "libcudadevrt.a"
    other = f' "{devices.resolve()}"' if devices.exists() else ""
    script.write_text(f'INPUT("{target}"{other} -lstdc++)\n')
    return script


def _join(*folders: str | Path | None) -> str:
    return os.pathsep.join(str(one) for one in folders if one)


def _keep_for_cmake(library: Path, name: str) -> None:
    """Copy a library to where CMake looks last: ``lib`` beside the program's folder; it stays, as CMake caches its path."""
    target = _place_wrapper() / "lib" / name
    target.parent.mkdir(exist_ok=True, mode=0o700)
    _place(library, target)


def _place_wrapper() -> Path:
    """Persistent folder with the wrapper of nvcc, as CMake caches the path of its compiler."""
    folder = find_cache_folder() / "nvcc"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    source, target = _SOURCES / TOOL, folder / TOOL
    if not target.exists() or target.read_bytes() != source.read_bytes():
        _place(source, target)
    return folder


def _place(file: Path, target: Path) -> None:
    """Copy a file, as an executable."""
    with atomic_write(target, encoding=None, mode=0o700) as stream:
        stream.write(file.read_bytes())


def _list_architectures(nvcc: Path) -> list[int]:
    """Compute capabilities that nvcc lists, as ascending numbers; empty if it lists none."""
    words = (line.strip().removeprefix("compute_") for line in _ask(nvcc, "--list-gpu-arch").splitlines())
    return sorted(int(word) for word in words if word.isdecimal())


def _ask(nvcc: Path, *options: str) -> str:
    """Text that nvcc prints; empty if it fails."""
    limits = RunLimits(time=TimeLimits.for_work(_LIST_LIMIT_S), memory_limit_bytes=_MEMORY_BYTES)
    command = [str(nvcc), *options]
    try:
        is_well, printed = run_command(TOOL, command, folder=nvcc.parent, environment=os.environ, limits=limits)
    except ToolError:
        return ""
    return printed if is_well else ""
