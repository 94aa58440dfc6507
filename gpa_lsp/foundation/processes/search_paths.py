"""The folders in which programs, libraries and modules are looked for: those that were named in full.

An entry that is empty or relative (``PYTHONPATH=$PYTHONPATH:/opt/lib`` where it was not set) stands for the folder we are in. That is a workspace,
which may hold a program or a module of any name, and opening a workspace must not run it.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_PATH_LISTS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
_SINGLE_FOLDERS = ("PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
_DEFAULT_SUFFIXES = ".COM;.EXE;.BAT;.CMD"


def keep_absolute(folders: str) -> str:
    """A list of folders as environment variables hold it, without those that depend on where we are.

    >>> keep_absolute(os.pathsep.join(["", ".", "bin", os.path.abspath(os.sep)])) == os.path.abspath(os.sep)
    True
    """
    return os.pathsep.join(folder for folder in folders.split(os.pathsep) if Path(folder).is_absolute())


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which no search path depends on where a process is."""
    cleaned = dict(environment)
    for name in (*_PATH_LISTS, *_SINGLE_FOLDERS):
        if name not in cleaned:
            continue
        kept = keep_absolute(cleaned[name]) if name in _PATH_LISTS else cleaned[name]
        if kept and Path(kept.split(os.pathsep)[0]).is_absolute():
            cleaned[name] = kept
        else:
            del cleaned[name]
    return cleaned


def find_program(name: str, folders: str | None = None) -> Path | None:
    """Find a program by its name.

    Not :func:`shutil.which`: until Python 3.12 that one looks in the current folder first of all on Windows, whatever it is told.

    Args:
        name: without folder; on Windows also without suffix.
        folders: to look in, as ``PATH`` has them; None for ``PATH``. Those that depend on where we are are passed over.
    """
    listed = os.environ.get("PATH", os.defpath) if folders is None else folders
    suffixes = os.environ.get("PATHEXT", _DEFAULT_SUFFIXES).split(";") if os.name == "nt" else [""]
    for folder in keep_absolute(listed).split(os.pathsep):
        for suffix in suffixes if folder else ():
            program = Path(folder, name + suffix)
            if is_program(program):
                return program
    return None


def is_program(path: Path) -> bool:
    """Whether it is a file that may be run."""
    return path.is_file() and os.access(path, os.X_OK)


def list_package_folders(package: str) -> Iterator[Path]:
    """The folders in which parts of a namespace package may be installed: below the folders of the import path, but not below the current one.

    Args:
        package: its name, such as ``nvidia``; nothing is imported.
    """
    for folder in map(Path, sys.path):
        if folder.is_absolute() and not _is_current(folder):
            yield folder / package
    import sysconfig  # seldom needed, and it costs start-up time

    yield from (Path(sysconfig.get_path(kind), package) for kind in ("platlib", "purelib"))


def _is_current(folder: Path) -> bool:
    try:
        return folder.samefile(os.curdir)
    except OSError:  # one of the two is gone
        return False
