"""Disassembled text on disk, found again by content.

nvdisasm takes 0.2 to 0.3 seconds to start, whatever the size of the code, so its text is kept: one compressed file per function, named by a
digest of everything the text depends on. A plain folder of files is enough: entries never change, two processes that write one write the
same, and reading one costs less than opening a database. (diskcache pickles, which would run code from the cache folder, and SQLite takes
longer to open than an entry to read.)

A damaged entry, a full disk or a folder that cannot be written is never an error; the cache is then merely of no use.
"""

import hashlib
import logging
import os
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

_LOG = logging.getLogger(__name__)
FOLDER_VARIABLE = "GPA_LSP_CACHE_DIR"
DEFAULT_LIMIT_BYTES = 256 << 20

_FORMAT = 1
_SUFFIX = ".sass"
_UNFINISHED_SUFFIX = ".tmp"
_UNFINISHED_SECONDS = 3600.0
_LONGEST_ROW_BYTES = 1024
_KEEP_SHARE = 0.8
"""What is left after old entries were removed, so that not every new one removes another."""


class DisassemblyCache:
    """A folder of disassembled functions.

    Args:
        folder: created when something is stored.
        limit_bytes: above it, the entries used least recently are removed.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder = folder
        self._limit_bytes = limit_bytes

    def load(self, key: str, count: int) -> list[str] | None:
        """The ``count`` texts stored under a key; None when there is no sound entry."""
        path = self._find(key)
        try:
            packed = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        limit = count * _LONGEST_ROW_BYTES
        unpack = zlib.decompressobj()
        try:
            text = unpack.decompress(packed, limit + 1).decode("utf-8")
        except (zlib.error, UnicodeDecodeError):
            return None
        texts = text.split("\n")
        return texts if unpack.eof and len(texts) == count else None

    def store(self, key: str, texts: Sequence[str]) -> None:
        """Keep the texts of a function."""
        packed = zlib.compress("\n".join(texts).encode("utf-8"), 1)
        unfinished: str | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, unfinished = tempfile.mkstemp(dir=self.folder, suffix=_UNFINISHED_SUFFIX)
            with os.fdopen(handle, "wb") as stream:
                stream.write(packed)
            Path(unfinished).replace(self._find(key))
        except OSError as error:
            _LOG.debug("not kept in %s: %s", self.folder, error)
            if unfinished is not None:
                _remove(Path(unfinished))

    def trim(self) -> None:
        """Remove the entries used least recently until the folder is well below its limit, and what crashed writers left."""
        entries: list[tuple[float, int, str]] = []
        try:
            with os.scandir(self.folder) as listing:
                for item in listing:
                    facts = item.stat(follow_symlinks=False)
                    entries.append((facts.st_mtime, facts.st_size, item.path))
        except OSError:
            return
        oldest_unfinished = time.time() - _UNFINISHED_SECONDS
        total = sum(size for _, size, path in entries if path.endswith(_SUFFIX))
        goal = self._limit_bytes * _KEEP_SHARE if total > self._limit_bytes else total
        for modified, size, path in sorted(entries):
            if path.endswith(_UNFINISHED_SUFFIX) and modified < oldest_unfinished:
                _remove(Path(path))
            elif path.endswith(_SUFFIX) and total > goal:
                _remove(Path(path))
                total -= size

    def _find(self, key: str) -> Path:
        return self.folder / (key + _SUFFIX)


def open_cache() -> DisassemblyCache:
    """The user's cache: in the folder the environment names, else where the platform keeps caches."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return DisassemblyCache(Path(chosen).expanduser() / "sass")
    from platformdirs import user_cache_path  # only where it is needed: it costs start-up time

    return DisassemblyCache(user_cache_path("gpa-lsp", appauthor=False) / "sass")


def make_key(code: bytes, sm: int, tool: Path) -> str:
    """The name of an entry: a digest of the code, the architecture, the tool and our own format.

    The tool is told by its size and time stamp, because asking it for its version costs as much as disassembling.
    """
    try:
        facts = tool.stat()
        identity = f"{facts.st_size}.{facts.st_mtime_ns}"
    except OSError:
        identity = "none"
    digest = hashlib.sha256(f"{_FORMAT}:{sm}:{identity}:{len(code)}:".encode())
    digest.update(code)
    return digest.hexdigest()


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        _LOG.debug("not removed: %s", error)
