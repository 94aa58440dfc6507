"""Local files for the paths that the compiler wrote.

A report names sources by the paths of the machine that compiled them. :class:`SourceLocator` finds the same file here, and prefers no answer
to a wrong one: a marker on the wrong file misleads more than a missing marker.
"""

import os
import re
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.ownership import is_library_file
from gpa_lsp.kernel.names import demangle, find_family

DEFAULT_MAX_FILES = 200_000  # Files visited below the roots before the search for sources gives up

_MAX_COMPARED_BYTES = 4 << 20  # Larger files are not read for a comparison with an embedded source

_SIMILAR_RATIO = 0.5  # Lines in common from which on a file counts as a later or earlier edit of an embedded source

# Never searched; neither are folders whose name starts with a dot
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages"})

_MOST_EMPTY_RATIO = (
    0.1  # of the measured lines: a compiler may give code to the line of a comment, but hardly ever does
)
_EMPTY = re.compile(r"(?:\s*(?:|//.*|#(?!\s*(?:pragma|if|el|end|include|define|undef|line|error)).*))\Z")
_FORTRAN = re.compile(r"\.(?:f|for|ftn|f\d\d|cuf)\Z", re.IGNORECASE)
_MOST_KERNELS = 64  # whose code is remembered by file

_WINDOWS_ROOT = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class CompiledPath(Struct, frozen=True, kw_only=True):
    """A path taken apart, whichever system wrote it."""

    anchor: str  # ``""`` for a relative path, ``/``, ``C:/``, or ``//`` for a network share
    parts: tuple[str, ...]  # the components, without ``.`` and with ``..`` folded
    is_windows: bool  # written by a Windows compiler, so letter case does not count


def parse_compiled_path(text: str) -> CompiledPath:
    r"""Take a path apart, whichever system wrote it.

    >>> parse_compiled_path("/home/me/./a/../k.cu").parts
    ('home', 'me', 'k.cu')
    >>> parse_compiled_path("D:\\src\\k.cu").anchor, parse_compiled_path("src/k.cu").anchor
    ('D:/', '')
    """
    is_windows = _WINDOWS_ROOT.match(text) is not None or ("\\" in text and "/" not in text)
    plain = text.replace("\\", "/") if is_windows else text
    anchor = ""
    if is_windows and plain[1:2] == ":":
        anchor, plain = plain[0].upper() + ":/", plain[2:]
    elif plain.startswith("/"):
        anchor = "//" if is_windows and plain.startswith("//") else "/"
    parts: list[str] = []
    for part in plain.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", ".") and not (part == ".." and anchor):
            parts.append(part)
    return CompiledPath(anchor=anchor, parts=tuple(parts), is_windows=is_windows)


class SourceLocator:
    """Finder of local files for compiled paths.

    Asked in this order: the mappings, the path itself, the same relative path below a root, and the file below the roots that shares the
    longest tail with the path. Answers are remembered; make a new locator when files have come or gone. May be used from several threads.

    Args:
        roots: folders to search, most important first; usually the current directory or the workspace folders.
        mappings: prefix as compiled → folder here, tried in order; the user's own word, believed wherever the file exists.
        max_files: files and folders visited below all roots together before the search ends; what lies deeper is not found.
        is_confined: only files below the roots and the mappings' folders are found, links followed: a report can name any file, and who opens
            a folder has not asked for others to be read.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        mappings: Sequence[tuple[str, str]] = (),
        *,
        max_files: int = DEFAULT_MAX_FILES,
        is_confined: bool = False,
    ) -> None:
        self._roots = tuple(Path(os.path.abspath(root)) for root in roots)  # noqa: PTH100 - resolve() would follow links
        self._mappings = tuple((parse_compiled_path(source), Path(target)) for source, target in mappings)
        self._max_files = max_files
        folders = (*self._roots, *(target for _, target in self._mappings))
        self._confines = tuple(os.path.realpath(folder) for folder in folders) if is_confined else None
        self._index: dict[str, list[tuple[int, str]]] | None = None
        self._index_is_whole = True
        self._answers: dict[tuple[str, str | None, _FileCode | None], Path | None] = {}
        self._codes: dict[int, tuple[Sequence[InlineChain], dict[str, _FileCode]]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Another process looks for itself."""
        return {**self.__dict__, "_index": None, "_index_is_whole": True, "_answers": {}, "_codes": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def locate(
        self, compiled_path: str, embedded_text: str | None = None, chains: Sequence[InlineChain] | None = None
    ) -> Path | None:
        """The local file that ``compiled_path`` means.

        Args:
            compiled_path: as in the line table, of any system; ``C:\\…`` works everywhere.
            embedded_text: the source as the profile carries it; decides between files that share an equally long tail.
            chains: of the kernel that was compiled from it. A file that is not the one at the path itself must name the functions whose
                lines these say it holds, and be as long; None where nothing is known of the code, and the name decides.

        Returns:
            An absolute path, or None when there is no such file or no way to tell which of several it is.
        """
        key = (compiled_path, embedded_text)
        with self._lock:
            code = None if chains is None or embedded_text is not None else self._find_code(chains).get(compiled_path)
            if (*key, code) not in self._answers:
                self._answers[*key, code] = self._find(parse_compiled_path(compiled_path), embedded_text, code)
            return self._answers[*key, code]

    def may_hold(self, compiled_path: str, lines: Sequence[str], chains: Sequence[InlineChain]) -> bool:
        """Whether the text at a compiled path can be what a kernel was compiled from: it has the lines and names a function of the code.

        Names that macros paste together stand in no text; where it pastes any, the lines decide.

        Args:
            compiled_path: as for :meth:`locate`.
            lines: of the text.
            chains: of the kernel; code of other files says nothing.
        """
        with self._lock:
            code = self._find_code(chains).get(compiled_path)
        return code is None or _fits_code("\n".join(lines), code, pastes_names=True)

    def _find_code(self, chains: Sequence[InlineChain]) -> "dict[str, _FileCode]":
        known = self._codes.get(id(chains))
        if known is None:
            if len(self._codes) >= _MOST_KERNELS:
                self._codes.clear()
            known = self._codes[id(chains)] = (chains, _list_code(chains))  # held, so that its identity stays its own
        return known[1]

    def name_elsewhere(self, compiled_path: str) -> Path | None:
        """Path of a file by the user's mappings, though it does not exist here: it may on the editor's machine.

        Returns:
            An absolute path; None where no mapping is of that path, or leads to none.
        """
        path = parse_compiled_path(compiled_path)
        if not path.parts or "\0" in compiled_path:
            return None
        for source, target in self._mappings:
            rest = _strip_prefix(path, source)
            if rest and target.is_absolute():
                return target.joinpath(*rest)
        return None

    def locate_outside(self, compiled_path: str) -> Path | None:
        """The file as written that a confined locator does not search because of its place; its content is not read.

        Returns:
            An absolute path to an existing file; None when there is none, or the locator is not confined.
        """
        path = parse_compiled_path(compiled_path)
        if (
            self._confines is None
            or not path.parts
            or path.anchor in ("", "//")
            or path.is_windows != (os.name == "nt")
        ):
            return None
        found = Path(path.anchor).joinpath(*path.parts)
        return found if "\0" not in compiled_path and _is_file(found) and not self._may_read(found) else None

    def _may_read(self, file: Path) -> bool:
        """Whether a file exists and may be read."""
        if not _is_file(file):
            return False
        if self._confines is None:
            return True
        real = os.path.realpath(file)
        return any(real.startswith(os.path.join(folder, "")) for folder in self._confines)  # noqa: PTH118

    def _find(self, path: CompiledPath, embedded_text: str | None, code: "_FileCode | None") -> Path | None:
        if not path.parts or any("\0" in part for part in path.parts):
            return None
        for source, target in self._mappings:
            rest = _strip_prefix(path, source)
            if rest is not None and self._may_read(target.joinpath(*rest)):
                return Path(os.path.abspath(target.joinpath(*rest)))  # noqa: PTH100
        direct = self._find_as_written(path, code)
        return direct if direct is not None else self._find_by_tail(path, embedded_text, code)

    def _find_as_written(self, path: CompiledPath, code: "_FileCode | None") -> Path | None:
        if path.anchor == "//":
            return None  # asking for a share a report names would send this user's credentials to a stranger's server
        if path.anchor == "":
            candidates = [root.joinpath(*path.parts) for root in self._roots]
            candidates = [one for one in candidates if self._may_read(one) and (code is None or _holds(one, code))]
        elif path.is_windows == (os.name == "nt"):
            candidates = [Path(path.anchor).joinpath(*path.parts)]
        else:
            candidates = []
        return next((candidate for candidate in candidates if self._may_read(candidate)), None)

    def _find_by_tail(self, path: CompiledPath, embedded_text: str | None, code: "_FileCode | None") -> Path | None:
        named_alike = self._index_files().get(path.parts[-1].casefold(), [])
        candidates = [found for found in named_alike if self._may_read(self._roots[found[0]] / found[1])]
        if (
            code is not None
        ):  # a whole path below a root, as containers mount it, is no coincidence; an end of one may be
            whole = len(path.parts) if len(path.parts) > 1 and path.anchor else 0
            candidates = [
                one
                for one in candidates
                if _count_common_tail(path, one[1]) == whole or _holds(self._roots[one[0]] / one[1], code)
            ]
        ranked = [(_count_common_tail(path, relative), root, relative) for root, relative in candidates]
        longest = max((common for common, _, _ in ranked), default=0)
        if longest == 0:
            return None
        if embedded_text is None:  # the same tree in several roots: the most important one is meant
            first = min(root for common, root, _ in ranked if common == longest)
            ranked = [one for one in ranked if one[1] == first or one[0] != longest]
        best = [self._roots[root] / relative for common, root, relative in ranked if common == longest]
        if embedded_text is not None:
            return _choose_by_text(best, embedded_text, trusted=longest > 1)
        if len(best) > 1:
            return None
        relative = next(relative for common, _, relative in ranked if common == longest)
        is_certain = longest > 1 or longest == relative.count("/") + 1
        # one that shares no more than its name may be taken where all were seen, and it is nobody's library header
        is_plausible = self._index_is_whole and not is_library_file(path.anchor + "/".join(path.parts))
        return best[0] if is_certain or is_plausible else None

    def _index_files(self) -> dict[str, list[tuple[int, str]]]:
        """Folded file name → (root number, path below that root with ``/``), nearest to the roots first."""
        if self._index is None:
            self._index = {}
            left = self._max_files
            seen: set[str] = set()
            for number, root in enumerate(self._roots):
                left = self._index_root(number, root, left, seen)
        return self._index

    def _index_root(self, number: int, root: Path, left: int, seen: set[str]) -> int:
        assert self._index is not None
        folders = deque([""])
        while folders:
            below = folders.popleft()
            folder = f"{root}/{below}" if below else str(root)  # a Path per folder would double the time
            if folder in seen:
                continue
            seen.add(folder)
            for entry in _list_folder(folder):
                if left == 0:
                    self._index_is_whole = False
                    return 0
                left -= 1
                relative = f"{below}/{entry.name}" if below else entry.name
                if _is_folder(entry):
                    folders.append(relative)
                    continue
                self._index.setdefault(entry.name.casefold(), []).append((number, relative))
        return left


# Names of the functions whose bodies a file holds, as sources spell them, and the lines with code; names are those of kernels where it holds any
_FileCode = tuple[frozenset[str], frozenset[int]]


def _list_code(chains: Sequence[InlineChain]) -> dict[str, _FileCode]:
    """The code of a kernel by file as compiled."""
    lines: dict[str, set[int]] = {}
    names: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
    for chain in chains:
        for depth, frame in enumerate(chain, 1):
            lines.setdefault(frame.file, set()).add(frame.line)
            if frame.function:
                names[depth == len(chain)].setdefault(frame.file, set()).add(frame.function)
    return {
        file: (_spell(names[True].get(file, set()) or names[False].get(file, set()), file), frozenset(found - {0}))
        for file, found in lines.items()
    }


def _spell(functions: Iterable[str], file: str) -> frozenset[str]:
    """Names that a source may give functions; Fortran compilers prefix them with the module."""
    spelled: set[str] = set()
    for function in functions:
        found = re.findall(r"[^\W\d]\w*", find_family(demangle(function), file).name.rpartition("::")[2])
        if not found or found[0] == "operator":
            continue
        spelled.add(found[0].casefold())
        if _FORTRAN.search(file):
            parts = found[0].casefold().strip("_").split("_")
            spelled.update("_".join(parts[start:]) for start in range(len(parts)))
    return frozenset(spelled)


def _holds(path: Path, code: _FileCode) -> bool:
    """Whether a file names a function whose code it is said to hold, and has the lines."""
    try:
        text = read_bounded(path, _MAX_COMPARED_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return _fits_code(text, code)


def _fits_code(text: str, code: _FileCode, *, pastes_names: bool = False) -> bool:
    names, lines = code
    is_named = not names or not names.isdisjoint(re.findall(r"[^\W\d]\w*", text.casefold()))
    return (is_named or (pastes_names and "##" in text)) and fits_lines(text.splitlines(), lines)


def fits_lines(text: Sequence[str], measured: Collection[int]) -> bool:
    """Whether lines that carry code exist and hold more than white space and comments.

    Args:
        text: lines of a source.
        measured: 1-based.
    """
    if not measured or max(measured) > len(text):
        return not measured
    empty = sum(1 for line in measured if _EMPTY.match(text[line - 1]))
    return empty <= _MOST_EMPTY_RATIO * len(measured)


def _list_folder(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                (entry for entry in entries if not (entry.name in _SKIPPED_FOLDERS or entry.name.startswith("."))),
                key=lambda entry: entry.name,
            )
    except OSError:
        return []  # not readable, or gone since: then it holds nothing for us


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _strip_prefix(path: CompiledPath, prefix: CompiledPath) -> tuple[str, ...] | None:
    """Parts of ``path`` after ``prefix``; None where it does not start with it."""
    if path.anchor != prefix.anchor or len(prefix.parts) >= len(path.parts):
        return None
    head = path.parts[: len(prefix.parts)]
    if not all(_is_same(a, b, path.is_windows) for a, b in zip(head, prefix.parts, strict=True)):
        return None
    return path.parts[len(prefix.parts) :]


def _is_same(one: str, other: str, ignore_case: bool) -> bool:
    return one == other or ((ignore_case or os.name == "nt") and one.casefold() == other.casefold())


def _count_common_tail(path: CompiledPath, relative: str) -> int:
    common = 0
    for one, other in zip(reversed(path.parts), reversed(relative.split("/")), strict=False):
        if not _is_same(one, other, path.is_windows):
            break
        common += 1
    return common


def _choose_by_text(candidates: Sequence[Path], embedded_text: str, *, trusted: bool) -> Path | None:
    """The candidate with the embedded text, or clearly an edit of it; None where none or several match."""
    wanted = _list_lines(embedded_text)
    scored = [(_measure_similarity(wanted, _read_lines(path)), path) for path in candidates]
    best_score = max(score for score, _ in scored)
    best = [path for score, path in scored if score == best_score]
    if len(best) > 1:
        return None
    return best[0] if best_score >= _SIMILAR_RATIO or (trusted and len(candidates) == 1) else None


def _list_lines(text: str) -> Counter[str]:
    return Counter(stripped for line in text.splitlines() if (stripped := line.strip()))


def _read_lines(path: Path) -> Counter[str]:
    try:
        return _list_lines(read_bounded(path, _MAX_COMPARED_BYTES).decode("utf-8", "replace"))
    except OSError:
        return Counter()


def _measure_similarity(one: Counter[str], other: Counter[str]) -> float:
    """Lines in common over lines of the longer text, 1.0 for equal texts.

    >>> _measure_similarity(Counter("ab"), Counter("abcd"))
    0.5
    """
    longer = max(one.total(), other.total())
    return (one & other).total() / longer if longer else 1.0
