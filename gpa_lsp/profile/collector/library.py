"""The library that is injected, and the CUPTI it calls: made on demand, kept in the user's cache."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.foundation.native.c_compiler import SHARED_FLAG, SHARED_HEADERS, Library, obtain_library
from gpa_lsp.foundation.processes.search_paths import list_package_folders

NAME = "gpa_lsp_collector.so"
SOURCES = Path(__file__).parent / "injection"
CUPTI_VARIABLE = "GPA_LSP_CUPTI"  # Names the libcupti to use, where another than the newest is wanted

_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
    "-pthread",
    "-fno-strict-aliasing",
    SHARED_FLAG,
)
_MARK = "cupti_pcsampling.h"
_DRIVER_MARK = "cuda.h"
_LIBRARY = re.compile(r"libcupti\.so\.(\d+)(?:\.\d+)*$")
_TOOLKITS = ("CUDA_PATH", "CUDA_HOME")


class Cupti(Struct, frozen=True, kw_only=True):
    """An installed CUPTI."""

    headers: tuple[Path, ...]  # folders with its headers and CUDA's, in the order a compiler looks
    library: Path | None  # libcupti; None where only headers are installed


def find_cupti() -> Cupti:
    """The newest CUPTI there is: of NVIDIA's wheels, else of a toolkit.

    Raises:
        MissingToolError: none has headers.
    """
    for include, library in _list_candidates():
        driver = include if (include / _DRIVER_MARK).is_file() else _find_driver_headers()
        if (include / _MARK).is_file() and driver is not None:
            named = os.environ.get(CUPTI_VARIABLE)
            found = Path(named) if named else _find_library(library)
            return Cupti(headers=tuple(dict.fromkeys((include, driver))), library=found)
    raise MissingToolError(
        "CUPTI",
        needed_for="sampling without Nsight Compute",
        install="pip install 'gpa-lsp[cupti]', or install the CUDA toolkit",
    )


def _list_candidates() -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Folders of headers, with those that may have the library to them."""
    for root in list_package_folders("nvidia"):
        releases = (path for path in root.glob("cu*") if path.name[2:].isdigit())
        for release in sorted(releases, key=lambda path: int(path.name[2:]), reverse=True):
            yield release / "include", (release / "lib",)
        yield root / "cuda_cupti" / "include", (root / "cuda_cupti" / "lib",)
    for toolkit in _list_toolkits():
        extra = toolkit / "extras" / "CUPTI"
        yield toolkit / "include", (toolkit / "lib64", toolkit / "lib", extra / "lib64")
        yield extra / "include", (extra / "lib64", toolkit / "lib64")


def _list_toolkits() -> Iterator[Path]:
    yield from (Path(os.environ[name]) for name in _TOOLKITS if os.environ.get(name))
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob("cuda-*"), reverse=True)


def _find_driver_headers() -> Path | None:
    folders = [root / "cuda_runtime" / "include" for root in list_package_folders("nvidia")]
    folders += [toolkit / "include" for toolkit in _list_toolkits()]
    return next((folder for folder in folders if (folder / _DRIVER_MARK).is_file()), None)


def _find_library(folders: tuple[Path, ...]) -> Path | None:
    found = [path for folder in folders for path in folder.glob("libcupti.so.*") if _LIBRARY.match(path.name)]
    return min(found, key=lambda path: len(path.name), default=None)


def build_library(cupti: Cupti, into: Path) -> Path:
    """Put the library into a folder, compiled where it was not before.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        OSError: it cannot be written.
    """
    headers = [f"-I{folder}" for folder in cupti.headers]
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    library = Library(
        title="the library that collects samples",
        needed_for="sampling without Nsight Compute",
        arguments=(*_FLAGS, *headers, *sources, "-ldl"),
        inputs=(*sorted(SOURCES.glob("*.h")), *SHARED_HEADERS, *_list_versions(cupti)),
    )
    path = into / NAME
    path.write_bytes(obtain_library(library))
    return path


def _list_versions(cupti: Cupti) -> Iterator[Path]:
    """The headers that say which release the others are of."""
    for folder in cupti.headers:
        for name in ("cupti_version.h", _MARK):
            if (folder / name).is_file():
                yield folder / name
