"""Which profiles lie in the workspace.

The server looks by itself: Neovim on Linux does not watch files for its servers, and profiles often arrive over NFS, sshfs or from a
container, where inotify is silent. A look is cheap because a folder is listed again only when its own modification time moved: an untouched
workspace costs one ``stat`` per folder and one per profile. A library built on inotify would need a dependency and a watch per folder of
``build/``, and would still need this code on the file systems that send no events.
"""

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path

from gpa_lsp.basis.file_stamps import Stamp, read_stamp
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.lsp.globs import compile_globs, split_glob

PASSED_OVER = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox",
     ".cache", ".history", ".idea", ".vscode", ".cargo", "site-packages"}
)  # fmt: skip
"""Folders no profile of the user's is in, and that can hold a hundred thousand files."""

MAX_FOLDERS = 20_000
"""Folders looked at per root; beyond it the rest is not searched and the user is told."""

_RACY_NS = 2_000_000_000
"""A folder listed within this time after its last change is listed again: file systems stamp times as coarsely as that (FAT 2 s, NFS 1 s)."""


@dataclass(slots=True)
class _Folder:
    modified_ns: int
    listed_ns: int
    profiles: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(slots=True)
class _Root:
    real_path: str
    pattern: re.Pattern[str]
    max_depth: int
    folders: dict[str, _Folder] = field(default_factory=dict)
    full: bool = False


class ProfileFinder:
    """Finds the files that match the globs under some folders, again and again.

    Args:
        roots: workspace folders.
        globs: patterns as in :class:`~gpa_lsp.editor.settings.Settings`.
        max_depth: folders below a root that are entered.
    """

    def __init__(self, roots: Iterable[Path], globs: Sequence[str], *, max_depth: int = 32) -> None:
        self._roots: dict[str, _Root] = {}
        relative = [glob for glob in globs if not glob.startswith(("/", "~")) and not Path(glob).is_absolute()]
        for root in roots:
            self._roots[os.fspath(root)] = _Root(
                real_path=os.path.realpath(root), pattern=compile_globs(relative), max_depth=max_depth
            )
        for glob in globs:
            if glob not in relative:
                folder, rest = split_glob(os.path.expanduser(glob))  # noqa: PTH111 - Path's raises for a user there is not
                pattern = compile_globs([rest])
                self._roots.setdefault(
                    folder, _Root(real_path=os.path.realpath(folder), pattern=pattern, max_depth=max_depth)
                )

    def look(self) -> dict[Path, Stamp]:
        """The profiles there are now. Blocks on the file system: call it off the event loop."""
        found: dict[Path, Stamp] = {}
        for root_path, root in self._roots.items():
            for profile in self._walk(root_path, root):
                stamp = read_stamp(profile)
                if stamp is not None:
                    found[Path(profile)] = stamp
        return found

    @property
    def unsearched(self) -> tuple[str, ...]:
        """Roots with more than :data:`MAX_FOLDERS` folders: some were not looked at."""
        return tuple(path for path, root in self._roots.items() if root.full)

    def _walk(self, root_path: str, root: _Root) -> Iterable[str]:
        pending = [(root_path, "", 0)]
        seen: dict[str, _Folder] = {}
        root.full = False
        while pending:
            path, relative, depth = pending.pop()
            if len(seen) >= MAX_FOLDERS:
                root.full = True
                break
            folder = _list_folder(path, relative, root)
            if folder is None:
                continue
            seen[path] = folder
            yield from (f"{path}/{name}" for name in folder.profiles)
            if depth < root.max_depth:
                pending.extend((f"{path}/{name}", f"{relative}{name}/", depth + 1) for name in reversed(folder.folders))
        root.folders = seen


def _list_folder(path: str, relative: str, root: _Root) -> _Folder | None:
    """A folder's profiles and sub-folders: from memory when it did not change; None when it cannot be read."""
    try:
        modified_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 - this line is what a look costs
        known = root.folders.get(path)
        if known is not None and known.modified_ns == modified_ns and known.listed_ns - modified_ns > _RACY_NS:
            return known
        profiles: list[str] = []
        folders: list[str] = []
        listed_ns = time.time_ns()
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in PASSED_OVER:
                        folders.append(entry.name)
                elif root.pattern.fullmatch(relative + entry.name) and not _leads_out(entry, root):
                    profiles.append(entry.name)
    except OSError:
        return None
    return _Folder(
        modified_ns=modified_ns, listed_ns=listed_ns, profiles=tuple(sorted(profiles)), folders=tuple(sorted(folders))
    )


def _leads_out(entry: "os.DirEntry[str]", root: _Root) -> bool:
    """A link to a file elsewhere: who opens a folder has not asked for others to be read. A pattern for that other folder finds it."""
    if not entry.is_symlink():
        return False
    return not os.path.realpath(entry.path).startswith(os.path.join(root.real_path, ""))  # noqa: PTH118
