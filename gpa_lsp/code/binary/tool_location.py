"""Search for NVIDIA's command-line tools on this machine.

The wheels do not put their programs on ``PATH``, and a toolkit found there may be years older than the wheel, so the search goes from the
most deliberate choice to the least: an environment variable, the wheels of the running interpreter, ``PATH``, the toolkit's usual folder.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.foundation.processes.search_paths import find_program, is_program, list_package_folders

_PROGRAM_SUFFIX = ".exe" if os.name == "nt" else ""
_TOOLKIT_VARIABLES = ("CUDA_PATH", "CUDA_HOME")
_TOOLKIT_FOLDER = Path("/usr/local/cuda")


def name_override(name: str) -> str:
    """The environment variable that says which program to take for a tool.

    >>> name_override("nvdisasm")
    'GPA_LSP_NVDISASM'
    """
    return "GPA_LSP_" + name.upper().replace("-", "_")


def find_tool(name: str) -> Path | None:
    """Find one of NVIDIA's tools.

    Args:
        name: without suffix, e.g. ``nvdisasm``.

    Returns:
        The program, or None when there is none. Where the override variable is set, only what it names counts: a wrong setting is not
        papered over with another version of the tool.
    """
    override = os.environ.get(name_override(name))
    if override:
        chosen = Path(override).expanduser()
        return chosen if is_program(chosen) else None
    return _find_in(_wheel_folders(), name) or find_program(name) or _find_in(_toolkit_folders(), name)


def require_tool(name: str, *, needed_for: str) -> Path:
    """Find one of NVIDIA's tools by its name without suffix, or say what to install, and what cannot be done without it, e.g. ``showing SASS``."""
    found = find_tool(name)
    if found is not None:
        return found
    variable = name_override(name)
    if os.environ.get(variable):
        install = f"{variable} is set to {os.environ[variable]}, which is not a program: correct it or unset it"
    else:
        install = f"pip install nvidia-cuda-{name}, or set {variable} to the program of an installed CUDA toolkit"
    raise MissingToolError(name, needed_for=needed_for, install=install)


def identify_tool(tool: Path | None) -> str:
    """A text that changes with a tool: its size and time stamp, because asking it for its version costs as much as disassembling."""
    try:
        facts = tool.stat() if tool is not None else None
    except OSError:
        facts = None
    return f"{facts.st_size}.{facts.st_mtime_ns}" if facts is not None else "none"


def _find_in(folders: Iterable[Path], name: str) -> Path | None:
    programs = (folder / (name + _PROGRAM_SUFFIX) for folder in folders)
    return next(filter(is_program, programs), None)


def _wheel_folders() -> Iterator[Path]:
    """The ``bin`` folders of NVIDIA's wheels on the import path, newest CUDA first; ``nvidia`` is a namespace package and may be in several."""
    for root in list_package_folders("nvidia"):
        releases = (path for path in root.glob("cu*/bin") if path.parent.name[2:].isdigit())
        yield from sorted(releases, key=lambda path: int(path.parent.name[2:]), reverse=True)


def _toolkit_folders() -> Iterator[Path]:
    for variable in _TOOLKIT_VARIABLES:
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin"
    yield _TOOLKIT_FOLDER / "bin"
