"""nvcc and its host compiler: those of the machine, never those of the workspace."""

import os
import sys
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.project import find_project_folder
from gpa_lsp.foundation.processes.search_paths import find_program, keep_absolute

TOOL = "nvcc"
INSTALL = "pip install nvidia-cuda-nvcc nvidia-cuda-cccl, or install the CUDA toolkit, and a host compiler (g++)"
HOST_COMPILERS = ("cl",) if os.name == "nt" else ("g++", "gcc", "clang++")
_HOST_VARIABLE = "NVCC_CCBIN"
# What host compilers need. nvcc's own variables with flags in them are left out: they could ask for other outputs than those we wait for.
_KEPT_VARIABLES = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "INCLUDE", "LIB", "LIBPATH", "LD_LIBRARY_PATH", "PROGRAMFILES",
    "PROGRAMFILES(X86)", "COMSPEC", "PATHEXT", "SDKROOT", _HOST_VARIABLE,
)  # fmt: skip


class NvccInstallation(Struct, frozen=True, kw_only=True):
    """A usable nvcc."""

    program: Path  # nvcc
    search_path: str  # what its processes get as ``PATH``

    def identify(self) -> tuple[str, int, int]:
        """Path, size and time of change, which differ for another nvcc or release."""
        try:
            facts = self.program.stat()
        except OSError:
            return str(self.program), 0, 0
        return str(self.program), facts.st_size, facts.st_mtime_ns


def find_nvcc(source: Path, workspace: Path | None = None) -> NvccInstallation | None:
    """Find nvcc, with a host compiler for it.

    Args:
        workspace: folder whose programs are not run; None for the source's project. What is installed in the running interpreter's own environment
            counts as the machine's, wherever that environment is: it runs us, too.

    Returns:
        None where one of the two is missing.
    """
    barred = (workspace or find_project_folder(source)).resolve()
    program = find_tool(TOOL)
    if program is None or not _is_allowed(program, barred):
        return None
    folders = keep_absolute(os.environ.get("PATH", os.defpath)).split(os.pathsep)
    allowed = [folder for folder in folders if _is_allowed(Path(folder), barred)]
    search_path = os.pathsep.join(allowed)
    if not os.environ.get(_HOST_VARIABLE) and not any(find_program(one, search_path) for one in HOST_COMPILERS):
        return None
    return NvccInstallation(program=program, search_path=search_path)


def build_environment(installation: NvccInstallation, folder: Path) -> dict[str, str]:
    """Environment of nvcc: search path, a temporary folder of its own, messages in English."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    temporary = {name: str(folder) for name in ("TMPDIR", "TMP", "TEMP")}
    return {**kept, **temporary, "PATH": installation.search_path, "LC_ALL": "C"}


def _is_allowed(path: Path, barred: Path) -> bool:
    found = path.resolve()
    return not found.is_relative_to(barred) or found.is_relative_to(Path(sys.prefix).resolve())
