"""Where CUDA's own headers are: those of the wheels beside NVRTC, else of an installed toolkit."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.foundation.processes.search_paths import list_package_folders

_MARK = "cuda_fp16.h"
_LIBRARIES = "cccl"
_TOOLKIT_VARIABLES = ("CUDA_PATH", "CUDA_HOME")
_TOOLKIT_FOLDER = Path("/usr/local/cuda")


@cache
def find_cuda_headers() -> tuple[Path, ...]:
    """The folders a compiler needs for CUDA's headers, in order; empty when none are installed. Looked for once.

    Source: the layout of NVIDIA's wheels of CUDA 12 (``nvidia/cuda_runtime/include``) and 13 (``nvidia/cu13/include``), and of the toolkit.
    """
    for folders in _list_candidates():
        found = tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))
        if any((folder / _MARK).is_file() for folder in found):
            return (*found, *(folder / _LIBRARIES for folder in found if (folder / _LIBRARIES).is_dir()))
    return ()


def _list_candidates() -> Iterator[list[Path]]:
    for root in list_package_folders("nvidia"):
        releases = (path for path in root.glob("cu*/include") if path.parent.name[2:].isdigit())
        for folder in sorted(releases, key=lambda path: int(path.parent.name[2:]), reverse=True):
            yield [folder]
        yield [root / "cuda_runtime" / "include", root / "cuda_cccl" / "include"]
    for variable in _TOOLKIT_VARIABLES:
        if os.environ.get(variable):
            yield [Path(os.environ[variable]) / "include"]
    compiler = find_tool("nvcc")
    if compiler is not None:
        yield [compiler.resolve().parent.parent / "include"]
    yield [_TOOLKIT_FOLDER / "include"]
