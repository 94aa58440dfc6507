"""Where CUDA's own headers are: those of the wheels beside NVRTC, else of an installed toolkit."""

import importlib.util
import os
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gpa_lsp.binary.tool_location import find_tool

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
    for root in _wheel_roots():
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


def _wheel_roots() -> Iterator[Path]:
    roots: list[str] = []
    spec = importlib.util.find_spec("nvidia")
    if spec is not None and spec.submodule_search_locations is not None:
        roots.extend(spec.submodule_search_locations)
    roots.extend(str(Path(sysconfig.get_path(kind)) / "nvidia") for kind in ("platlib", "purelib"))
    yield from (Path(root) for root in dict.fromkeys(roots))
