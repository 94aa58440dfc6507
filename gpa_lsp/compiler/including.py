"""The file that a fragment is meant to be read in: :func:`find_including`."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.regular_files import read_bounded
from gpa_lsp.compiler.missing_headers import include_with_search
from gpa_lsp.compiler.model import CompilerFlags
from gpa_lsp.compiler.project import search_flags
from gpa_lsp.compiler.project_folder import find_project_folder

_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c", ".cuh", ".h", ".hpp")
_SOURCES = frozenset(_SUFFIXES[:5])
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?([^<>"/\n]+)[>"]', re.MULTILINE)
_MOST_FILES = 500
_MOST_BYTES = 1 << 20
_DEEPEST = 4
_MOST_ASKED = 40  # sources whose includes are followed for one fragment
_SKIPPED = frozenset({"build", "node_modules", ".git", ".venv", "__pycache__"})


def find_including(path: Path) -> Path | None:
    """A source that includes a file, directly or through headers; None where none is found near it.

    Names in ``#include`` lines only propose sources: one is taken where its includes, followed as a compiler does, lead to this very file.
    Looked for in the file's own folder first, then in its project, in at most 500 files. CUDA sources come before others, near ones before far ones.

    Args:
        path: of the fragment, absolute.
    """
    includes = dict(_list_includes(path))
    wanted, asked = {path}, 0
    for _ in range(_DEEPEST):
        names = {one.name for one in wanted}
        found = [one for one, included in includes.items() if one not in wanted and not names.isdisjoint(included)]
        for source in (one for one in found if one.suffix in _SOURCES):
            asked += 1
            if asked > _MOST_ASKED:
                return None
            if _leads_to(source, path):
                return source
        if not found:
            return None
        wanted.update(found)
    return None


def _leads_to(source: Path, path: Path) -> bool:
    """Whether the include lines of a source, with the flags it is compiled with, lead to a file."""
    flags, _ = search_flags(source)
    try:
        _, included = include_with_search(source, source.read_bytes(), flags or CompilerFlags(directory=source.parent))
    except (OSError, InputError):
        return False
    real = os.path.realpath(path)
    return any(one.name == path.name and os.path.realpath(one) == real for one in included.headers)


def _list_includes(path: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """Files near one, and the names, without folders, of what each includes."""
    count = 0
    for file in _list_near(path):
        try:
            facts = file.stat()
            if facts.st_size > _MOST_BYTES:
                continue
            yield file, _read_includes(file, facts.st_size, facts.st_mtime_ns)
        except OSError:
            continue
        count += 1
        if count >= _MOST_FILES:
            return


@lru_cache(maxsize=2 * _MOST_FILES)
def _read_includes(file: Path, size_bytes: int, changed_ns: int) -> frozenset[str]:
    """Of a file as it is: another size or time is another file."""
    return frozenset(os.fsdecode(found[1]) for found in _INCLUDE.finditer(read_bounded(file, _MOST_BYTES)))


def _list_near(path: Path) -> Iterator[Path]:
    """Sources and headers: those of the folder, then those of the project around it."""
    try:
        own = sorted((one for one in path.parent.iterdir() if one.suffix in _SUFFIXES), key=_rank)
    except OSError:
        return
    yield from own
    seen = 0
    for folder, folders, files in os.walk(find_project_folder(path)):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED and not one.startswith("."))
        for name in sorted(files):
            seen += 1
            if seen > _MOST_FILES * 20:
                return
            file = Path(folder, name)
            if file.suffix in _SUFFIXES and file.parent != path.parent:
                yield file


def _rank(path: Path) -> tuple[int, str]:
    return _SUFFIXES.index(path.suffix), path.name
