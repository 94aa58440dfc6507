"""Disassembled text in the user's cache.

nvdisasm takes 0.2 to 0.3 seconds to start, whatever the size of the code, so its text is kept: one compressed entry per function, named by a
digest of everything the text depends on.
"""

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder

DEFAULT_LIMIT_BYTES = 256 << 20

_FORMAT = 2
_LONGEST_ROW_BYTES = 1024


class DisassemblyCache:
    """A folder of disassembled functions.

    Args:
        folder: created when something is stored.
        limit_bytes: above it, the entries used least recently are removed.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.files = KeptFiles(folder, limit_bytes=limit_bytes)

    def load(self, key: str, count: int) -> list[str] | None:
        """The ``count`` texts stored under a key; None when there is no sound entry."""
        packed = self.files.load(key)
        if packed is None:
            return None
        unpack = zlib.decompressobj()
        try:
            text = unpack.decompress(packed, count * _LONGEST_ROW_BYTES + 1).decode("utf-8")
        except (zlib.error, UnicodeDecodeError):
            return None
        texts = text.split("\n")
        return texts if unpack.eof and len(texts) == count else None

    def store(self, key: str, texts: Sequence[str]) -> None:
        """Keep the texts of a function."""
        self.files.store(key, zlib.compress("\n".join(texts).encode("utf-8"), 1))

    def trim(self) -> None:
        """Remove what was used least recently where there is too much."""
        self.files.trim()


def open_cache() -> DisassemblyCache:
    """The user's own."""
    return DisassemblyCache(find_cache_folder() / "sass")


def make_key(code: bytes, sm: int, tool: Path) -> str:
    """The name of an entry: a digest of the code, the architecture, the tool and our own format."""
    digest = hashlib.sha256(f"{_FORMAT}:{sm}:{identify_tool(tool)}:{len(code)}:".encode())
    digest.update(code)
    return digest.hexdigest()


def identify_tool(tool: Path | None) -> str:
    """A text that changes with a tool: its size and time stamp, because asking it for its version costs as much as disassembling."""
    try:
        facts = tool.stat() if tool is not None else None
    except OSError:
        facts = None
    return f"{facts.st_size}.{facts.st_mtime_ns}" if facts is not None else "none"
