"""The user's cache: files that can be made again, found by a digest of everything they depend on.

One folder per kind, one file per entry. An entry is a SHA-256 of what follows, and then that. Entries never change, and appear whole or not at
all, so that two writers of one entry write the same, a writer that is killed leaves a part that is swept away later, and a reader needs no lock. A
damaged entry is no entry. What others may have written (another owner's file, a file that others can write to, a link) is not read either.

A plain folder of files is enough: opening one costs less than opening a database. A full disk or a folder that cannot be written is never an
error; the cache is then merely of no use.
"""

import hashlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gpa_lsp.foundation.catalogue import list_outside_packages
from gpa_lsp.foundation.files import atomic_write

_LOG = logging.getLogger(__name__)

# The folder for everything that can be made again, where the platform's is not wanted
FOLDER_VARIABLE = "GPA_LSP_CACHE_DIR"

_SUFFIX = ".kept"
_UNFINISHED_SUFFIX = ".part"
_UNFINISHED_S = 3600.0
_DIGEST_BYTES = 32
_KEEP_RATIO = 0.8  # What is left after old entries were removed, so that not every new one removes another


def find_cache_folder() -> Path:
    """The user's cache: the folder the environment names, else where the platform keeps caches; it may not exist."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # only where it is needed: it costs start-up time

    return user_cache_path("gpa-lsp", appauthor=False)


class KeptFiles:
    """The entries of one kind.

    Args:
        folder: created, readable by its owner alone, when something is stored.
        limit_bytes: above it, the entries used least recently are removed.
    """

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes

    def load(self, key: str) -> bytes | None:
        """The content that was stored under a key; None when there is no sound entry."""
        path = self._find(key)
        try:
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
            with os.fdopen(handle, "rb") as stream:
                if not _is_ours(os.fstat(handle)):
                    _LOG.warning("%s is not used: others can write to it", path)
                    return None
                entry = stream.read()
            content = entry[_DIGEST_BYTES:]
            if hashlib.sha256(content).digest() != entry[:_DIGEST_BYTES]:
                _remove(path)
                return None
            os.utime(path)
        except OSError:
            return None
        return content

    def store(self, key: str, content: bytes) -> None:
        """Keep something. Call :meth:`trim` when done storing."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with atomic_write(self._find(key), encoding=None, mode=0o600) as stream:
                stream.write(hashlib.sha256(content).digest())
                stream.write(content)
        except OSError as error:
            _LOG.debug("not kept in %s: %s", self.folder, error)

    def identify(self, key: str) -> tuple[int, int] | None:
        """The identity of an entry: it changes when something else is stored under the key, not when it is loaded; None when there is no entry."""
        try:
            found = self._find(key).stat()
        except OSError:
            return None
        return found.st_ino, found.st_size

    def remove(self, key: str) -> None:
        """Remove the entry of a key."""
        _remove(self._find(key))

    def trim(self) -> None:
        """Remove the entries used least recently until the folder is well below its limit, and what ended writers left."""
        entries = sorted((facts.st_mtime, facts.st_size, path) for path, facts in self._list_entries())
        oldest_unfinished = time.time() - _UNFINISHED_S
        total = sum(size for _, size, path in entries if path.suffix != _UNFINISHED_SUFFIX)
        goal = self.limit_bytes * _KEEP_RATIO if total > self.limit_bytes else total
        for modified, size, path in entries:
            if path.suffix == _UNFINISHED_SUFFIX:
                if modified < oldest_unfinished:
                    _remove(path)
            elif total > goal:
                _remove(path)
                total -= size

    def clear(self) -> tuple[str, ...]:
        """Remove all entries but those that are being written; returns why some could not be removed."""
        found = (_remove(path) for path, _ in self._list_entries() if path.suffix != _UNFINISHED_SUFFIX)
        return tuple(reason for reason in found if reason)

    def measure(self) -> tuple[int, int]:
        """The number of entries, and their bytes."""
        sizes = [facts.st_size for _, facts in self._list_entries()]
        return len(sizes), sum(sizes)

    def _find(self, key: str) -> Path:
        return self.folder / (key + _SUFFIX)

    def _list_entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """The files that were written here; other files in a folder that the user chose are passed over."""
        try:
            with os.scandir(self.folder) as listing:
                for item in listing:
                    facts = item.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode) and item.name.endswith((_SUFFIX, _UNFINISHED_SUFFIX)):
                        yield Path(item.path), facts
        except OSError:
            return


@cache
def identify_program() -> str | None:
    """A digest of our own files' names, sizes and times: a version number does not change with every edit of a developer.

    The files of packages that add to our catalogues count, too. Found out once: a process goes on with the files it began with, whatever becomes
    of them. None where they cannot be looked at; nothing can be kept for such a program.
    """
    digest = hashlib.sha256()
    try:
        for place in (Path(__file__).parent.parent, *_list_outside_code()):
            folders = [str(place)] if place.is_dir() else []
            found = place.stat()
            facts = [] if folders else [(place.name, found.st_size, found.st_mtime_ns)]
            for folder in folders:  # grows on the way
                with os.scandir(folder) as listing:
                    for entry in listing:
                        if not entry.is_dir(follow_symlinks=False):
                            found = entry.stat()
                            facts.append((entry.path, found.st_size, found.st_mtime_ns))
                        elif entry.name != "__pycache__":
                            folders.append(entry.path)
            digest.update(repr(sorted(facts)).encode())
    except OSError:
        return None
    return digest.hexdigest()


def _list_outside_code() -> Iterator[Path]:
    """Folders and files of packages that add to our catalogues.

    Raises:
        OSError: one of them cannot be found.
    """
    for package in list_outside_packages():
        yield package.file
        for name in package.list_modules():
            from importlib.util import find_spec  # few people have such packages

            spec = find_spec(name)
            if spec is None or (spec.origin is None and not spec.submodule_search_locations):
                raise FileNotFoundError(name)
            yield from map(Path, spec.submodule_search_locations or [str(spec.origin)])


def _is_ours(facts: os.stat_result) -> bool:
    """Whether only this user can have written a file; systems without owners are trusted to keep the user's folders apart."""
    if not hasattr(os, "getuid"):
        return True
    return stat.S_ISREG(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o022


def _remove(path: Path) -> str:
    """Remove a file that may be gone already; returns why it cannot be removed, or nothing."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _LOG.debug("not removed: %s", error)
        return error.strerror or str(error)
    return ""
