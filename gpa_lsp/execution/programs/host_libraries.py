"""NVIDIA's libraries whose functions are computed on the CPU: their kernels come as machine code, and cannot be emulated."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.absent_headers import FOLDER as ABSENT_HEADERS
from gpa_lsp.execution.programs.library import FLAGS, SOURCES, CudaHeaders, place_compiled, write_refusals
from gpa_lsp.foundation.native.c_compiler import Tell

_SOURCES = SOURCES / "libraries"
_COMPLEX = "-fcx-limited-range"  # Products of complex numbers without a look for infinite ones, as on GPUs


class HostLibrary(Struct, frozen=True, kw_only=True):
    """One library."""

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


def build_host_library(
    library: HostLibrary,
    headers: CudaHeaders,
    path: Path,
    *,
    wanted: Sequence[str] = (),
    tell: Tell | None = None,
) -> Path:
    """Put a library into a folder where the runtime library is already.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        GpaError: the library cannot be written.
    """
    missing = [name for name in wanted if name.startswith(library.stem) and name.isidentifier()]
    runtime = path.with_name(headers.soname)
    files = {"refusals.c": write_refusals(missing).encode(), runtime.name: runtime.read_bytes()}
    folders = [f"-I{folder}" for folder in (library.headers, headers.folder)]
    sources = map(str, sorted(_SOURCES.glob(f"{library.stem}*.c")))
    arguments = (*FLAGS, _COMPLEX, *folders, *sources, *files, "-lm")
    return place_compiled(headers, path, arguments, files, needed_for=f"{library.name} on the CPU", tell=tell)
