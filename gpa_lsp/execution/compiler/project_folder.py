"""The folder of a source's project, and the folders around a source in general."""

from collections.abc import Iterator
from pathlib import Path

_MARKS = (
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "compile_commands.json",
    "build.ninja",
    "pyproject.toml",
    "CMakePresets.json",
    "WORKSPACE",
    "meson.build",
)
_MOST_FOLDERS = 40


def find_project_folder(source: Path) -> Path:
    """The outermost folder around a source that is marked as a project's, below the one it would share with everything; else its own folder."""
    found = source.parent
    for folder in list_folders_around(source):
        if any((folder / mark).exists() for mark in _MARKS):
            found = folder
    return found


def list_folders_around(source: Path) -> Iterator[Path]:
    """The folder of a source and those around it, innermost first; the root of the file system and the user's own folder are not among them."""
    try:
        home: Path | None = Path.home()
    except RuntimeError:
        home = None
    for count, folder in enumerate(source.parents):
        if count >= _MOST_FOLDERS or folder in (folder.parent, home):
            return
        yield folder
