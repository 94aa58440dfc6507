"""The shared libraries a program gets in place of NVIDIA's, compiled once per release of CUDA and cached."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.included_files import find_cuda_headers
from gpa_lsp.execution.compiler.stand_in_headers import FOLDER as ABSENT_HEADERS
from gpa_lsp.execution.compiler.stand_in_headers import JUMPS, write_jumps
from gpa_lsp.execution.programs.host_blas import ROUTINES
from gpa_lsp.execution.programs.library_calls import write_declarations, write_functions, write_legacy_functions
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.native.c_compiler import SHARED_FLAG, SHARED_HEADERS, Library, Tell, obtain_library

DRIVER_NAME = "libcuda.so.1"
SOURCES = Path(__file__).parent / "runtime"
_HOST_BLOCKS = SOURCES / "preloaded" / "host_blocks.c"
_RUN_TIME_COMPILER = SOURCES / "preloaded" / "run_time_compiler.c"
_REDIRECTION = Path(__file__).parent / "building" / "redirect.c"
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", "-Wl,-z,now", SHARED_FLAG)
_FUNCTION = re.compile(r"PUBLIC cudaError_t ((?:__)?cuda\w+)\(")
_CONDITION = re.compile(r"#if CUDART_VERSION (<|>=) (\d+)$")
_VERSION = re.compile(r"^#define\s+CUDART_VERSION\s+(\d+)", re.MULTILINE)
_DECLARED = re.compile(
    r"^\s*(?:(?:extern|__\w+) )*(?:CUresult|cudaError_t) (?:CUDAAPI |CUDARTAPI )?(cu\w+)\(", re.MULTILINE
)
_RENAMED = re.compile(r"^\s*#\s*define\s+(cu[A-Z]\w+)\s+(?:__CUDA_API_PT[DS][SZ]\()?(cu[A-Z]\w+)\)?\s*$", re.MULTILINE)
_PER_THREAD = re.compile(r"^\s*#\s*define\s+cuda\w+\s+__CUDART_API_PT(DS|SZ)\((cuda\w+)\)", re.MULTILINE)
_REGISTERED = ("__cudaRegisterHostVar", "__cudaRegisterSurface", "__cudaRegisterTexture")  # By code that nvcc writes
_REFUSAL = """extern __attribute__((visibility("hidden"))) int refuse_call(const char *name);
#define REFUSE(name) \\
    __attribute__((visibility("default"), weak, section("refusals"))) int name(void) { return refuse_call(#name); }"""
_USUAL_S = 4  # of processor time, for each library
_DRIVER_HEADER = "cuda.h"
_RUNTIME_HEADER = "cuda_runtime_api.h"
_INTEROP_HEADER = "cuda_gl_interop.h"
_OLD_SONAME = 11  # Releases of CUDA 11 share one name


class CudaHeaders(Struct, frozen=True, kw_only=True):
    """Headers of one release of CUDA."""

    folder: Path  # with ``cuda_runtime_api.h``
    version: int  # as ``CUDART_VERSION`` has it, such as 13000

    @property
    def soname(self) -> str:
        """Name of the runtime library of this release, as programs ask for it.

        >>> CudaHeaders(folder=Path("."), version=13000).soname, CudaHeaders(folder=Path("."), version=11080).soname
        ('libcudart.so.13', 'libcudart.so.11.0')
        """
        major = self.version // 1000
        return f"libcudart.so.{major}.0" if major == _OLD_SONAME else f"libcudart.so.{major}"


def read_headers(folder: Path) -> CudaHeaders | None:
    """The headers in a folder; None where it has none."""
    try:
        text = (folder / _RUNTIME_HEADER).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _VERSION.search(text)
    return None if found is None else CudaHeaders(folder=folder, version=int(found[1]))


def find_headers(program: Path, soname: str | None) -> CudaHeaders:
    """Headers of the release that a program was built for.

    Args:
        soname: the runtime library it asks for; None where any will do.

    Raises:
        InputError: there are none.
    """
    found = list_headers()
    if not found:
        raise InputError(
            "needs CUDA's headers, and there are none",
            path=program,
            remedy="pip install nvidia-cuda-runtime, or install the CUDA toolkit",
        )
    fitting = found[0] if soname is None else next((one for one in found if one.soname == soname), None)
    if fitting is None:
        have = ", ".join(dict.fromkeys(one.soname for one in found))
        raise InputError(
            f"was built for {soname}, and the headers here are those of {have}",
            path=program,
            remedy="build it with the CUDA toolkit that is installed, or install the headers of its own (CUDA_PATH names their toolkit)",
        )
    return fitting


def list_headers() -> list[CudaHeaders]:
    """Headers of all installed releases of CUDA, in search order."""
    return [headers for folder in _list_header_folders() if (headers := read_headers(folder)) is not None]


def _list_header_folders() -> list[Path]:
    named = [Path(os.environ[name]) / "include" for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    installed = sorted(Path("/usr/local").glob("cuda-*/include"))
    return [*named, *find_cuda_headers(), Path("/usr/local/cuda/include"), *installed]


def build_libraries(headers: CudaHeaders, into: Path, *, tell: Tell | None = None) -> tuple[Path, ...]:
    """Put the libraries for a release of CUDA into a folder, under the names that programs ask for.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        GpaError: the libraries cannot be written.
    """
    runtime = _place(headers, into / headers.soname, SOURCES, tell)
    if not (headers.folder / _DRIVER_HEADER).is_file():
        return (runtime,)
    return runtime, _place(headers, into / DRIVER_NAME, SOURCES / "driver", tell)


def _place(headers: CudaHeaders, path: Path, sources: Path, tell: Tell | None) -> Path:
    """Compile the runtime library or, over it, the driver's."""
    arguments = [*FLAGS, f"-I{headers.folder}", *(str(one) for one in sorted(sources.glob("*.c"))), "refusals.c"]
    if sources == SOURCES:
        refused = {*_list_declared(headers.folder, _RUNTIME_HEADER, _INTEROP_HEADER), *_REGISTERED}
        versions = f"{headers.soname} {{ global: cuda*; __cuda*; gpa_lsp_runtime; local: *; }};\n"
        files = {"versions.map": versions.encode()}
        arguments += ["-Wl,--version-script=versions.map", *_alias_functions(sources, headers.version)]
    else:
        refused = _list_declared(headers.folder, _DRIVER_HEADER)
        runtime = path.with_name(headers.soname)
        files = {runtime.name: runtime.read_bytes()}
        arguments += [f"-I{sources}", runtime.name]
    files["refusals.c"] = write_refusals(refused).encode()
    return place_compiled(
        headers, path, tuple(arguments), files, needed_for="running programs without a GPU", tell=tell
    )


def place_compiled(
    headers: CudaHeaders,
    path: Path,
    arguments: tuple[str, ...],
    files: Mapping[str, bytes],
    *,
    needed_for: str,
    tell: Tell | None = None,
) -> Path:
    """Put a library into a folder, compiled where it was not before.

    Args:
        files: made for it; see :class:`Library`.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it could not be compiled.
        GpaError: it cannot be written.
    """
    library = Library(
        title=f"{path.name} for programs without a GPU",
        needed_for=needed_for,
        arguments=(*arguments, f"-Wl,-soname,{path.name}"),
        files=files,
        inputs=(*sorted(SOURCES.rglob("*.h")), *SHARED_HEADERS, headers.folder / "cuda_runtime_api.h"),
        usual_s=_USUAL_S,
    )
    content = obtain_library(library, tell=tell)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def compile_redirection(folder: Path) -> Path:
    """Put the library that is preloaded into builds into a folder; it finds nvcc whatever path the build names.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
    """
    return _place_preloaded(folder, _REDIRECTION, "the library that leads builds", "building programs without a GPU")


def compile_host_blocks(folder: Path) -> Path:
    """Put the library that is preloaded into programs, to follow ``malloc``, into a folder; see :func:`compile_redirection`."""
    return _place_preloaded(folder, _HOST_BLOCKS, "the library that follows malloc", "running programs without a GPU")


def compile_ptx_request(folder: Path) -> Path:
    """Put the library that is preloaded into programs that use NVRTC, so that it gives them PTX, into a folder."""
    return _place_preloaded(folder, _RUN_TIME_COMPILER, "the library before NVRTC", "running programs without a GPU")


def _place_preloaded(folder: Path, source: Path, title: str, needed_for: str) -> Path:
    path = folder / f"{source.stem}.so"
    # what stands before the allocator runs before a sanitizer's own library does
    arguments = (*FLAGS, "-fno-sanitize=all", f"-I{SOURCES}", str(source), "-ldl")
    inputs = tuple(sorted(SOURCES.glob("*.h")))
    path.write_bytes(obtain_library(Library(title=title, needed_for=needed_for, arguments=arguments, inputs=inputs)))
    return path


def _list_declared(folder: Path, *names: str) -> set[str]:
    """The functions that headers declare; none of a header that is not there."""
    found = [path.read_text(errors="replace") for name in names if (path := folder / name).is_file()]
    return {name for header in found for name in _find_declared(header)}


def _find_declared(header: str) -> set[str]:
    """The functions that a header declares, by the names that programs link.

    >>> sorted(_find_declared("#define cuMap cuMap_v2\\nCUresult CUDAAPI cuMap(int x);\\nextern __host__ cudaError_t CUDARTAPI cudaUse("))
    ['cuMap_v2', 'cudaUse']
    """
    renamed = dict(_RENAMED.findall(header))
    per_thread = {f"{name}_pt{kind.lower()}" for kind, name in _PER_THREAD.findall(header)}
    return {renamed.get(name, name) for name in _DECLARED.findall(header)} | per_thread


def write_refusals(names: Iterable[str]) -> str:
    """C functions, weaker than real ones, that report their name as not supported.

    >>> write_refusals(["cuMap_v2"]).splitlines()[-1]
    'REFUSE(cuMap_v2)'
    """
    return "\n".join([_REFUSAL, *(f"REFUSE({name})" for name in sorted(names)), ""])


def _alias_functions(sources: Path, version: int) -> list[str]:
    """Linker options for the names with per-thread default streams: all work is done at once and in order, whatever its stream."""
    names = {name for source in sources.glob("*.c") for name in _find_functions(source.read_text(), version)}
    return [f"-Wl,--defsym={name}_{kind}={name}" for name in sorted(names) for kind in ("ptds", "ptsz")]


def _find_functions(source: str, version: int) -> list[str]:
    """Functions that a source defines, given a release's headers.

    >>> text = "#if CUDART_VERSION >= 12000\\nPUBLIC cudaError_t cudaNew(int x)\\n#else\\nPUBLIC cudaError_t cudaOld(int x)\\n#endif"
    >>> _find_functions(text, 13000), _find_functions(text, 11000)
    (['cudaNew'], ['cudaOld'])
    """
    found, holds = [], []
    for line in source.splitlines():
        if line.startswith("#if"):
            asked = _CONDITION.match(line)
            holds.append(asked is None or (version < int(asked[2])) == (asked[1] == "<"))
        elif line.startswith("#else"):
            holds[-1] = not holds[-1]
        elif line.startswith("#endif"):
            holds.pop()
        elif all(holds) and (function := _FUNCTION.match(line)) is not None:
            found.append(function[1])
    return found


_SOURCES = SOURCES / "libraries"
_BLAS_DECLARATIONS = "cublas_declarations.h"


class HostLibrary(Struct, frozen=True, kw_only=True):
    """A library of NVIDIA's that is computed on the CPU."""

    name: str  # that people know it by
    stem: str  # of its file, ``cublas`` of ``libcublas.so.13``, with which its functions' names begin
    header: str  # that sources include
    headers: Path  # the folder with what stands in place of the header
    remark: str = ""  # how its results differ from those of a GPU; empty where they do not, but for the order of sums

    def describe(self) -> str:
        """A sentence for those who run a program with it."""
        said = f"what {self.name} does is computed on the CPU: its kernels are neither emulated nor counted"
        return f"{said}; {self.remark}" if self.remark else said


HOST_LIBRARIES = (
    HostLibrary(name="cuBLAS", stem="cublas", header="cublas_v2.h", headers=ABSENT_HEADERS / "cublas"),
    HostLibrary(name="cuFFT", stem="cufft", header="cufft.h", headers=ABSENT_HEADERS / "cufft"),
    HostLibrary(
        name="cuRAND", stem="curand", header="curand.h", headers=ABSENT_HEADERS / "random",
        remark="its random numbers are other ones than on a GPU",
    ),
)  # fmt: skip


def find_host_library(soname: str) -> HostLibrary | None:
    """The library that a file stands for; None where it is none of these.

    >>> find_host_library("libcublas.so.13").name, find_host_library("libcublasLt.so.13")
    ('cuBLAS', None)
    """
    stem = soname.partition(".so")[0]
    return next((one for one in HOST_LIBRARIES if stem == f"lib{one.stem}"), None)


def place_host_headers(library: HostLibrary, into: Path) -> tuple[Path, ...]:
    """Folders with the headers that stand in for a library's own; generated ones are written to *into*.

    Raises:
        GpaError: they cannot be written.
    """
    if library.stem == "cublas":
        path, content = into / _BLAS_DECLARATIONS, write_declarations(ROUTINES.values())
    elif library.stem == "curand":
        path, content = into / JUMPS, write_jumps()
    else:
        return (library.headers,)
    try:
        into.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.is_file() or path.read_text() != content:  # builds look when it was written
            with atomic_write(path) as stream:
                stream.write(content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return library.headers, into


def build_host_library(
    library: HostLibrary, headers: CudaHeaders, path: Path, *, wanted: Sequence[str] = (), tell: Tell | None = None
) -> Path:
    """Build a library that is computed on the CPU into a folder that already holds the runtime library.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        GpaError: the library cannot be written.
    """
    missing = [name for name in wanted if name.startswith(library.stem) and name.isidentifier()]
    runtime = path.with_name(headers.soname)
    files = {"refusals.c": write_refusals(missing).encode(), runtime.name: runtime.read_bytes()}
    folders = [f"-I{folder}" for folder in (library.headers, headers.folder, ".")]
    sources = map(str, sorted(_SOURCES.glob(f"{library.stem}*.c")))
    arguments = (*FLAGS, *folders, *sources, *files, "-lm")
    if library.stem == "cublas":
        files[_BLAS_DECLARATIONS] = write_declarations(ROUTINES.values()).encode()
        files["cublas_functions.h"] = write_functions(ROUTINES.values()).encode()
        files["cublas_legacy_functions.h"] = write_legacy_functions(ROUTINES.values()).encode()
    return place_compiled(headers, path, arguments, files, needed_for=f"{library.name} on the CPU", tell=tell)


def find_runtime_compiler() -> Path | None:
    """NVRTC of a pip package, which has no file name that linkers look for."""
    found = (one for folder in find_cuda_headers() for one in sorted((folder.parent / "lib").glob("libnvrtc.so.*")))
    return next(found, None)
