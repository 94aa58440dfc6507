"""Files that a source includes, found without a preprocessor: rather too many than too few.

Conditions are not evaluated, so a header counts although it may be skipped; what is named through a macro cannot be followed.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.model import CompilerFlags
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.processes.search_paths import list_package_folders

_INCLUDE = re.compile(
    rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]{1,1000})"|<([^>\n]{1,1000})>|([^\s"<][^\n]{0,200}))',
    re.MULTILINE,
)
_MOST_FILES = 2000
_LARGEST_HEADER_BYTES = 4 << 20
_MOST_BYTES = 64 << 20


class IncludedFiles(Struct, frozen=True, kw_only=True):
    """Headers that a source includes."""

    headers: dict[Path, bytes]  # path → text of each header of the project's that was found
    spellings: dict[Path, tuple[str, ...]]  # path → the names that ``#include`` lines give it
    # paths that were looked at and are not there; a header that appears at one of them would be taken
    absent: tuple[Path, ...]
    is_whole: bool  # everything could be followed; False where a macro names a header, or where there is too much
    # names in ``#include`` lines that lead to no header of the project, in their order; those of systems and of CUDA among them
    unfound: tuple[str, ...] = ()


def find_included_files(path: Path, content: bytes, flags: CompilerFlags) -> IncludedFiles:
    """Follow the ``#include`` lines of a source; CUDA's own headers and those of the system are not followed.

    Raises:
        InputError: a header is a pipe.
    """
    walk = _Walk(path, flags)
    walk.follow(content, path.parent)
    for header in flags.forced_includes:
        walk.enter(header)
    while walk.pending:
        header = walk.pending.pop()
        walk.follow(walk.headers[header], header.parent)
    return IncludedFiles(
        headers=walk.headers,
        spellings={found: tuple(names) for found, names in walk.spellings.items()},
        absent=tuple(walk.absent),
        is_whole=walk.is_whole,
        unfound=tuple(walk.unfound),
    )


class _Walk:
    """One walk over the headers of a source."""

    def __init__(self, source: Path, flags: CompilerFlags) -> None:
        self.headers: dict[Path, bytes] = {}
        self.spellings: dict[Path, dict[str, None]] = {}
        self.absent: dict[Path, None] = {}
        self.unfound: dict[str, None] = {}
        self.pending: list[Path] = []
        self.is_whole = True
        self._folders = tuple(dict.fromkeys((*flags.includes, *flags.system_includes)))
        self._own_source = source
        self._cuda = find_cuda_headers()
        self._known: dict[Path, bool] = {}
        self._bytes = 0

    def follow(self, text: bytes, folder: Path) -> None:
        for found in _INCLUDE.finditer(text):
            quoted, bracketed, computed = found.groups()
            if computed is not None:
                self.is_whole = self.is_whole and computed.lstrip().startswith(b"//")
                continue
            name = os.fsdecode(quoted or bracketed)
            folders = (folder, *self._folders) if quoted is not None else self._folders
            for one in folders:
                header = Path(os.path.normpath(one / name))
                if self.enter(header):
                    self.spellings.setdefault(header, {})[name] = None
                    break
            else:
                self.unfound[name] = None

    def enter(self, path: Path) -> bool:
        """Add a header; False if it does not exist."""
        if path in self._known or path == self._own_source:
            return self._known.get(path, True)
        if len(self._known) >= _MOST_FILES or self._bytes > _MOST_BYTES:
            self.is_whole = False
            return False
        text = self._read(path)
        self._known[path] = text is not None
        if text is None:
            self.absent[path] = None
            return False
        if not any(path.is_relative_to(folder) for folder in self._cuda):
            self.headers[path] = text
            self.pending.append(path)
            self._bytes += len(text)
        return True

    def _read(self, path: Path) -> bytes | None:
        try:
            if not path.is_file():
                if path.is_fifo() or path.is_socket():  # a compiler would block on it
                    raise InputError("a header is not a regular file", path=path, remedy="replace it by a file")
                return None
            with path.open("rb") as stream:
                text = stream.read(_LARGEST_HEADER_BYTES + 1)
        except (OSError, ValueError):
            return None
        if len(text) > _LARGEST_HEADER_BYTES:
            self.is_whole = False
        return text


_MARK = "cuda_fp16.h"
_LIBRARIES = "cccl"
_TOOLKIT_VARIABLES = ("CUDA_PATH", "CUDA_HOME")
_TOOLKIT_FOLDER = Path("/usr/local/cuda")


@cache
def find_cuda_headers() -> tuple[Path, ...]:
    """Include folders of CUDA's headers, in order; empty if none are installed. Cached.

    Source: the layout of NVIDIA's wheels of CUDA 12 (``nvidia/cuda_runtime/include``) and 13 (``nvidia/cu13/include``), and of the toolkit.
    """
    for folders in _list_candidates():
        found = tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))
        if any((folder / _MARK).is_file() for folder in found):
            return (*found, *(folder / _LIBRARIES for folder in found if (folder / _LIBRARIES).is_dir()))
    return ()


def _list_candidates() -> Iterator[list[Path]]:
    for root in list_package_folders("nvidia"):
        releases = (path for path in root.glob("cu*/include") if path.parent.name[2:].isdigit())
        for folder in sorted(releases, key=lambda path: int(path.parent.name[2:]), reverse=True):
            yield [folder]
        yield [root / "cuda_runtime" / "include", root / "cuda_cccl" / "include"]
    for variable in _TOOLKIT_VARIABLES:
        if os.environ.get(variable):
            yield [Path(os.environ[variable]) / "include"]
    compiler = find_tool("nvcc")
    if compiler is not None:
        yield [compiler.resolve().parent.parent / "include"]
    yield [_TOOLKIT_FOLDER / "include"]
