"""Where NVIDIA's command-line tools are on this machine.

The wheels do not put their programs on ``PATH``, and a toolkit found there may be years older than the wheel, so the search goes from the
most deliberate choice to the least: an environment variable, the wheels of the running interpreter, ``PATH``, the toolkit's usual folder.
"""

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.errors import MissingToolError

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
        return chosen if _is_program(chosen) else None
    for folder in _wheel_folders():
        if _is_program(folder / (name + _PROGRAM_SUFFIX)):
            return folder / (name + _PROGRAM_SUFFIX)
    on_path = shutil.which(name, path=_list_absolute_folders())
    if on_path is not None:
        return Path(on_path)
    for folder in _toolkit_folders():
        if _is_program(folder / (name + _PROGRAM_SUFFIX)):
            return folder / (name + _PROGRAM_SUFFIX)
    return None


def require_tool(name: str, *, needed_for: str) -> Path:
    """Find one of NVIDIA's tools, or say what to install.

    Args:
        name: without suffix, e.g. ``nvdisasm``.
        needed_for: what cannot be done without it, e.g. ``showing SASS``.

    Raises:
        MissingToolError: it is not there.
    """
    found = find_tool(name)
    if found is not None:
        return found
    variable = name_override(name)
    if os.environ.get(variable):
        install = f"{variable} is set to {os.environ[variable]}, which is no program: correct it or unset it"
    else:
        install = f"pip install nvidia-cuda-{name}, or set {variable} to the program of an installed CUDA toolkit"
    raise MissingToolError(name, needed_for=needed_for, install=install)


def _list_absolute_folders() -> str:
    """``PATH`` without folders that depend on where we are: that is a workspace, which may hold a program of any name.

    Windows looks in the current folder first of all, unless it is told not to.
    """
    os.environ.setdefault("NoDefaultCurrentDirectoryInExePath", "1")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _wheel_folders() -> Iterator[Path]:
    """The ``bin`` folders of NVIDIA's wheels on the import path, newest CUDA first; ``nvidia`` is a namespace package and may be in several."""
    roots: list[str] = []
    spec = importlib.util.find_spec("nvidia")
    if spec is not None and spec.submodule_search_locations is not None:
        roots.extend(spec.submodule_search_locations)
    roots.extend(str(Path(sysconfig.get_path(kind)) / "nvidia") for kind in ("platlib", "purelib"))
    for root in dict.fromkeys(roots):
        releases = (path for path in Path(root).glob("cu*/bin") if path.parent.name[2:].isdigit())
        yield from sorted(releases, key=lambda path: int(path.parent.name[2:]), reverse=True)


def _toolkit_folders() -> Iterator[Path]:
    for variable in _TOOLKIT_VARIABLES:
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin"
    yield _TOOLKIT_FOLDER / "bin"
