"""Search for profiles in the workspace.

The server looks by itself: Neovim on Linux does not watch files for its servers, and profiles often arrive over NFS, sshfs or from a
container, where inotify is silent. A look is cheap because a folder is listed again only when its own modification time moved: an untouched
workspace costs one ``stat`` per folder and one per profile. A library built on inotify would need a dependency and a watch per folder of
``build/``, and would still need this code on the file systems that send no events.
"""

import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.foundation.files import Stamp, read_stamp

# Patterns for files, as the settings have them: ``**/*.ncu-rep``.
#
# They become regular expressions that never try the same thing twice: a pattern can come with a repository, and one like ``*a*a*a*a*b`` must not
# stop
# the server. Whatever stands between two ``**`` is taken where it fits first, which is never wrong, because the second ``**`` takes what is left;
# so
# is what stands between two ``*`` of a part.

_WILDCARD = re.compile(r"(\*+|\?|\[!?[^\]/]+\])")


def split_glob(glob: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the rest.

    >>> split_glob("/scratch/run*/**/*.ncu-rep")
    ('/scratch', 'run*/**/*.ncu-rep')
    """
    parts = Path(glob).parts
    plain = 0
    while plain < len(parts) - 1 and not re.search(r"[*?\[]", parts[plain]):
        plain += 1
    return os.fspath(Path(*parts[:plain])), "/".join(parts[plain:])


def compile_globs(globs: Iterable[str]) -> re.Pattern[str]:
    """A pattern for paths relative to a root, with ``/`` between their parts; ``fullmatch`` takes time quadratic in the path at most.

    >>> pattern = compile_globs(["**/*.ncu-rep", "out/*.json"])
    >>> [bool(pattern.fullmatch(path)) for path in ("a.ncu-rep", "x/y/a.ncu-rep", "out/a.json", "out/x/a.json")]
    [True, True, True, False]
    """
    return re.compile("|".join(f"(?:{_translate_glob(glob)})" for glob in globs) or r"(?!)", re.DOTALL)


def _translate_glob(glob: str) -> str:
    """``**`` stands for any folders, and before other characters for any beginning of a path: ``**.ncu-rep`` is ``**/*.ncu-rep``."""
    stretches: list[list[str]] = [[]]
    parts = glob.removeprefix("./").split("/")
    for part in parts:
        if part.startswith("**"):
            stretches.append([])
        if part.strip("*") or not part.startswith("**"):
            stretches[-1].append(_translate_part(part))
    first, *others = ["/".join(stretch) for stretch in stretches]
    if not others:
        return first
    *inner, last = others
    words = [first + "/" if first else ""]
    words.extend(f"(?>(?:.*?/)??{stretch}/)" for stretch in inner if stretch)
    words.append(f"(?:.*/)?{last}" if last else ".*")
    return "".join(words)


def _translate_part(part: str) -> str:
    """A part of a path: between two stars the earliest fit, which leaves most to the later star."""
    pieces = _WILDCARD.split(part)
    words = [re.escape(pieces[0])]
    run: list[str] = []
    is_open = False
    for wildcard, plain in zip(pieces[1::2], pieces[2::2], strict=True):
        if wildcard.startswith("*"):
            words.append(f"(?>[^/]*?{''.join(run)})" if is_open else "".join(run))
            run, is_open = [], True
        else:
            run.append("[^/]" if wildcard == "?" else _translate_set(wildcard))
        run.append(re.escape(plain))
    words.append(f"[^/]*{''.join(run)}" if is_open else "".join(run))
    return "".join(words)


def _translate_set(text: str) -> str:
    """``[ab]``, ``[!a-c]``; what is no set stands for itself."""
    body = re.sub(r"([\\\[&~|])", r"\\\1", text[1:-1])
    pattern = f"[^/{body[1:]}]" if body.startswith("!") else f"(?!/)[{body}]"
    try:
        re.compile(pattern)
    except re.error:
        return re.escape(text)
    return re.escape(text) if body == "!" else pattern


# Folders no profile of the user's is in, and that can hold a hundred thousand files
PASSED_OVER = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox",
     ".cache", ".history", ".idea", ".vscode", ".cargo", "site-packages"}
)  # fmt: skip

MAX_FOLDERS = 20_000  # Folders looked at per root; beyond it the rest is not searched and the user is told

# A folder listed within this time after its last change is listed again: file systems stamp times as coarsely as that (FAT 2 s, NFS 1 s)
_RACY_NS = 2_000_000_000


class _Folder(Struct):
    modified_ns: int
    listed_ns: int
    profiles: tuple[str, ...]
    folders: tuple[str, ...]


class _Root(Struct):
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
