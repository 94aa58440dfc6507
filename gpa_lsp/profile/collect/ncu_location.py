"""Where Nsight Compute is on this machine: more often not on ``PATH`` than on it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.code.binary.tool_location import find_tool, name_override
from gpa_lsp.foundation.errors import MissingToolError

_PATTERNS = (
    ("/", "usr/local/cuda-*/bin/ncu"),
    ("/", "opt/nvidia/nsight-compute/*/ncu"),
    ("/", "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute/ncu"),
    ("/", "opt/cuda/nsight_compute/ncu"),
)
_WINDOWS_PATTERNS = (
    ("ProgramFiles", "NVIDIA Corporation/Nsight Compute */ncu.bat"),
    ("ProgramFiles", "NVIDIA GPU Computing Toolkit/CUDA/v*/bin/ncu.exe"),
)

INSTALL = (
    "it comes with the CUDA toolkit, and by itself from https://developer.nvidia.com/nsight-compute (packages: "
    "nsight-compute-<version> of NVIDIA's repositories; conda: nvidia::nsight-compute)"
)


def find_ncu(chosen: str | None = None) -> Path:
    """Find Nsight Compute's command line: the one chosen, that of the environment variable, on ``PATH``, in the usual folders (newest first).

    Args:
        chosen: a path; None to search.

    Raises:
        MissingToolError: it is not there; says how to get it.
    """
    if chosen is not None:
        path = Path(chosen).expanduser()
        if _is_program(path):
            return path
        raise MissingToolError("ncu", needed_for="measuring", install=f"{chosen} is not a program")
    found = find_tool("ncu")
    variable = name_override("ncu")
    if found is None and os.environ.get(variable):
        install = f"{variable} is set to {os.environ[variable]}, which is not a program: correct it or unset it"
        raise MissingToolError("ncu", needed_for="measuring", install=install)
    if found is None:
        found = next((path for path in list_usual_places() if _is_program(path)), None)
    if found is None:
        raise MissingToolError("ncu", needed_for="measuring", install=f"{INSTALL}, or give its path with --ncu")
    return found


def list_usual_places(root: Path | None = None) -> Iterator[Path]:
    """What lies where installers put it, newest version first.

    Args:
        root: taken for the file system's; None for the real one.
    """
    for base, pattern in _WINDOWS_PATTERNS if os.name == "nt" else _PATTERNS:
        folder = Path(os.environ.get(base, base)) if root is None else root
        yield from sorted(folder.glob(pattern), key=lambda path: read_version(str(path)), reverse=True)


def read_version(text: str) -> tuple[int, ...]:
    """The first version number in a path or in what a program prints; empty when there is none.

    >>> read_version("/opt/nvidia/nsight-compute/2024.3.2/ncu"), read_version("cuda-12.8"), read_version("ncu")
    ((2024, 3, 2), (12, 8), ())
    """
    match = re.search(r"\d+(?:\.\d+)+", text)
    return () if match is None else tuple(int(part) for part in match[0].split("."))


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
