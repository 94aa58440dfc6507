"""Places: source lines and inline frames, as types and not as bare integers.

Lines are 1-based, as in DWARF and in every editor's status bar; counting them from 0 is the protocol's way, and the server's business.
"""

import ntpath
import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]|^\\\\|\\")
_ESCAPES = re.compile(r"(?:\\[23][0-7]{2})+")


class SourceLine(Struct, frozen=True, kw_only=True, order=True):
    """One line of one file, as the compiler named it."""

    file: str  # path as written in the line table, normalised (``a/../b`` folded), not resolved on this machine
    line: int  # 1-based; 0 means the compiler gave no line

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Frame(Struct, frozen=True, kw_only=True, order=True):
    """One level of an inline chain."""

    file: str  # path as compiled, as in :class:`SourceLine`
    line: int  # 1-based; 0 means the compiler gave no line
    # mangled name of the function whose *body* holds this line: an inlined function, or for the outermost frame the function that was compiled. None
    # when the line table does not name it.
    function: str | None = None

    @property
    def source_line(self) -> SourceLine:
        """The place without the function."""
        return SourceLine(file=self.file, line=self.line)


# Frames of one instruction, innermost first. Never empty: an instruction without a line has no chain at all (None).
InlineChain = tuple[Frame, ...]


def write_place(file: str, line: int | None, last_line: int | None = None) -> str:
    """A place as terminals and editors open it; without the number where the compiler gave no line.

    Args:
        file: as it is shown.
        line: 1-based; 0 or None where there is none.
        last_line: of several lines.

    >>> write_place("k.cu", 3), write_place("k.cu", 3, 7), write_place("k.cu", 3, 3), write_place("k.cu", 0)
    ('k.cu:3', 'k.cu:3-7', 'k.cu:3', 'k.cu')
    """
    if not line:
        return file
    return f"{file}:{line}" if last_line in (None, line) else f"{file}:{line}-{last_line}"


def is_path_end(path: str, end: str) -> bool:
    """Whether a path, of either system, ends in the whole parts of a name.

    >>> is_path_end("/home/x/src/k.cu", "src/k.cu"), is_path_end("C:\\\\x\\\\k.cu", "k.cu"), is_path_end("/x/mask.cu", "k.cu")
    (True, True, False)
    """
    parts, wanted = ([part for part in re.split(r"[/\\\\]", text) if part not in ("", ".")] for text in (path, end))
    return bool(wanted) and parts[-len(wanted) :] == wanted


def shorten_paths(paths: Iterable[str]) -> dict[str, str]:
    """The shortest tails of paths that still tell them apart.

    >>> shorten_paths(["/a/x/k.cu", "/a/y/k.cu", "/b/m.h"])
    {'/a/x/k.cu': 'x/k.cu', '/a/y/k.cu': 'y/k.cu', '/b/m.h': 'm.h'}
    """
    tails = {path: [part for part in re.split(r"[/\\\\]", path) if part] or [path] for path in paths}
    short: dict[str, str] = {}
    length = 1
    while tails:
        shown = {path: "/".join(parts[-length:]) for path, parts in tails.items()}
        times = Counter(shown.values())
        for path, parts in list(tails.items()):
            if times[shown[path]] == 1 or length >= len(parts):
                short[path] = shown[path] if times[shown[path]] == 1 else path
                del tails[path]
        length += 1
    return {path: short[path] for path in paths}


def join_source_path(directory: str, name: str) -> str:
    """Join a line table's directory and file name and fold ``a/../b`` and ``./``.

    Args:
        directory: as in the table; empty when the file has none.
        name: as in the table; an absolute name stands for itself.

    Returns:
        The path with the separators of the machine it was compiled on; empty when both parts are.

    >>> join_source_path("/usr/cuda/bin/../include", "cuda_fp16.hpp")
    '/usr/cuda/include/cuda_fp16.hpp'
    >>> join_source_path("C:\\\\src\\\\lib\\\\..", "a.cu")
    'C:\\\\src\\\\a.cu'
    >>> join_source_path("", "./kernel.py")
    'kernel.py'
    >>> join_source_path(r"/home/gr\\303\\266\\303", "237e.cu")  # ptxas divides a path at its last backslash, and that of an escape is one
    '/home/größe.cu'
    """
    if not directory and not name:
        return ""
    if "\\" in directory and "\\" not in (divided := read_escapes(f"{directory}\\{name}")):
        return posixpath.normpath(divided)
    directory, name = read_escapes(directory), read_escapes(name)
    if _WINDOWS.search(directory) or _WINDOWS.search(name):
        return ntpath.normpath(ntpath.join(directory, name))
    return posixpath.normpath(posixpath.join(directory, name))


def read_escapes(path: str) -> str:
    r"""A path with the escapes read that NVIDIA's compilers write for everything that is not ASCII: the bytes of its UTF-8, in octal.

    A path with any other backslash is one of Windows, whose folders may have numbers for names; it stays as it is.

    Source: NVRTC and nvcc 13.5 on a source in a folder named in German; PTX and line tables alike.

    >>> read_escapes(r"/home/w\303\266rk/k.cu"), read_escapes(r"C:\303\266\k.cu"), read_escapes(r"/a/\377.cu")
    ('/home/wörk/k.cu', 'C:\\303\\266\\k.cu', '/a/\\377.cu')
    """
    if "\\" not in path:
        return path
    try:
        plain = _ESCAPES.sub(_decode, path)
    except UnicodeDecodeError:
        return path
    return path if "\\" in plain else plain


def _decode(escapes: re.Match[str]) -> str:
    return bytes(int(one, 8) for one in escapes[0].split("\\")[1:]).decode()
