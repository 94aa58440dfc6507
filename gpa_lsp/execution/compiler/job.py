"""One source on its way to a compiler: its text, :class:`CompileJob`; and compiled units, kept while nothing they depend on has changed:
:class:`UnitCache`.
"""

import hashlib
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock

from msgspec import Struct

from gpa_lsp.execution.compiler.included_files import IncludedFiles
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerFlags, CompileSettings, name_target
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes

LARGEST_SOURCE_BYTES = 64 << 20
_LOCAL_INCLUDE = re.compile(rb'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]{1,1000})"', re.MULTILINE)


def read_source(path: Path, text: str | None) -> bytes:
    """Bytes of a source.

    Args:
        text: what an editor holds of it; None to read the file. Files are taken as they are, whatever their encoding.

    Raises:
        InputError: it cannot be read, is no file, is too large, or is no text.
    """
    content = _read_file(path) if text is None else _encode(text)
    if len(content) > LARGEST_SOURCE_BYTES:
        raise InputError(
            f"the source is larger than {format_bytes(LARGEST_SOURCE_BYTES)}", path=path, remedy="split it"
        )
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise InputError(
            "this is not source text: it contains a NUL",
            path=path,
            place=f"line {line}",
            remedy="save the file as UTF-8",
        )
    # NVIDIA's front end takes the byte 0xff, which is in no UTF-8, for the end of the file; a mark of byte order it takes for a word.
    return content.removeprefix(b"\xef\xbb\xbf").replace(b"\xff", b"?")


def _encode(text: str) -> bytes:
    """Bytes of a text; surrogate escapes become the original bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _read_file(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise InputError("this is not a regular file", path=path, remedy="give the path of a source file")
        with path.open("rb") as stream:
            return stream.read(LARGEST_SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"the source cannot be read ({reason})", path=path, remedy="check the path and the permissions"
        ) from error


def find_text_line(content: bytes, number: int) -> str | None:
    """A line (1-based) of a text; None if there is no such line."""
    start = 0
    for _ in range(number - 1):
        end = content.find(b"\n", start)
        if end < 0:
            return None
        start = end + 1
    end = content.find(b"\n", start)
    return content[start : end if end >= 0 else len(content)].decode("utf-8", "replace").rstrip("\r")


def write_shadow(content: bytes, path: Path, macros: tuple[str, ...] = (), *, first: bytes = b"") -> bytes:
    r"""Text that means the same from any folder.

    Headers that lie beside the source are named by their whole path, because a compiler looks for them beside the file that it is given. The
    first line says whose text this is, so that line tables, messages and ``__FILE__`` name the source.

    >>> write_shadow(b"int a;", Path("/src/k.cu"), ("N=4", "-M"))
    b'#define N 4\n#undef M\n#line 1 "/src/k.cu"\nint a;'
    """

    def name_whole(found: re.Match[bytes]) -> bytes:
        try:
            beside = path.parent / Path(found[2].decode())
            is_there = beside.is_file()
        except (OSError, ValueError):
            return found[0]
        name = name_in_include(beside) if is_there else None
        return found[0] if name is None else found[1] + b'"' + name + b'"'

    head = "".join(f"{write_definition(macro)}\n" for macro in macros).encode("utf-8", "surrogateescape")
    return head + first + b'#line 1 "' + name_in_line(path) + b'"\n' + _LOCAL_INCLUDE.sub(name_whole, content)


def write_definition(macro: str) -> str:
    """Preprocessor directive for one macro of the flags.

    >>> write_definition("N"), write_definition("F(x)=x + 1"), write_definition("-N")
    ('#define N 1', '#define F(x) x + 1', '#undef N')
    """
    if macro.startswith("-"):
        return f"#undef {macro[1:]}"
    name, has_value, value = macro.partition("=")
    return f"#define {name} {value if has_value else 1}"


def name_in_line(path: Path) -> bytes:
    """Path as written in ``#line``; quotes become question marks, as ptxas does not unescape them."""
    name = path.as_posix() if os.name == "nt" else str(path)
    escaped = name.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\")
    return escaped.replace(b'"', b"?").replace(b"\n", b"?").replace(b"\r", b"?")


def name_in_include(path: Path) -> bytes | None:
    """Path as written in ``#include``, where nothing can be escaped; None if it cannot be written."""
    name = (path.as_posix() if os.name == "nt" else str(path)).encode("utf-8", "surrogateescape")
    return None if any(letter in name for letter in b'"\n\r') else name


class CompileJob(Struct, frozen=True, kw_only=True):
    """Source, target, flags and limits of one compilation."""

    path: Path  # of the source, absolute
    content: bytes  # its text
    compute_capability: tuple[int, int]  # to compile for
    flags: CompilerFlags  # that decide what the text means
    settings: CompileSettings  # limits
    included: IncludedFiles  # the project's headers that the source includes, as far as can be told
    is_cancelled: Callable[[], bool] | None = None  # asked again and again; True ends the compiler

    @property
    def target(self) -> str:
        """The architecture's name, e.g. ``sm_90a``."""
        return name_target(self.compute_capability, self.flags.architectures)

    def find_line(self, path: Path, line: int) -> str | None:
        """A line (1-based) of the source; None for other files, and if there is no such line."""
        return find_text_line(self.content, line) if path == self.path else None


# Compiled units, kept in memory while nothing that they depend on has changed.
#
# A unit depends on the source's text, the flags, the architecture, the compiler and the headers. Headers are followed
# without a preprocessor (:mod:`gpa_lsp.execution.compiler.included_files`), which finds more than a compiler reads and
# never less, but for those that a macro names: then nothing is kept. A header that is not there counts as well, since
# it would be taken if it appeared. Headers of CUDA and of the system belong to the compiler.

_MOST_BYTES = 128 << 20
_MOST_UNITS = 64
# A header may change twice within one tick of the file system's clock; what was changed just now is not relied on
_YOUNG_S = 2.0

Stamp = tuple[int, int] | None  # Size and time of a file; None when it is not there


class _Kept(Struct, frozen=True, kw_only=True):
    unit: CompiledUnit
    stamps: tuple[tuple[Path, Stamp], ...]
    size_bytes: int


class UnitCache:
    """Units compiled last.

    Args:
        limit_bytes: of PTX and images together.
    """

    def __init__(self, limit_bytes: int = _MOST_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._lock = Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size_bytes = 0

    def find(self, key: str) -> CompiledUnit | None:
        """The unit under a key; None when there is none, or when a header has changed."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is None:
            return None
        is_sound = all(_read_stamp(path) == stamp for path, stamp in kept.stamps)
        with self._lock:
            if self._kept.get(key) is kept:
                if is_sound:
                    self._kept.move_to_end(key)
                else:
                    self._forget(key)
        return kept.unit if is_sound else None

    def keep(self, key: str, unit: CompiledUnit, included: IncludedFiles) -> None:
        """Keep a unit, unless it depends on what cannot be watched."""
        if not included.is_whole:
            return
        stamps = tuple((path, _read_stamp(path)) for path in (*included.headers, *included.absent))
        if any(stamp is not None and time.time() - stamp[1] / 1e9 < _YOUNG_S for _, stamp in stamps):
            return
        if any(stamp is None for _, stamp in stamps[: len(included.headers)]):
            return  # it vanished meanwhile
        size_bytes = len(unit.ptx or "") + len(unit.cubin or b"") + sum(len(one.text) for one in unit.messages)
        with self._lock:
            if key in self._kept:
                self._forget(key)
            self._kept[key] = _Kept(unit=unit, stamps=stamps, size_bytes=size_bytes)
            self._size_bytes += size_bytes
            while self._kept and (len(self._kept) > _MOST_UNITS or self._size_bytes > self._limit_bytes):
                self._forget(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget all units."""
        with self._lock:
            self._kept.clear()
            self._size_bytes = 0

    def _forget(self, key: str) -> None:
        self._size_bytes -= self._kept.pop(key).size_bytes


def make_key(job: CompileJob, compilers: Iterable[object]) -> str:
    """Digest of all that a unit depends on, apart from the headers' texts."""
    flags = job.flags
    facts = (
        str(job.path), job.target, flags.includes, flags.system_includes, flags.forced_includes, flags.macros, flags.standard, flags.optimisation,
        flags.language, flags.origin, job.settings.choice, str(job.settings.workspace), tuple(map(str, compilers)),
    )  # fmt: skip
    digest = hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape"))
    digest.update(job.content)
    return digest.hexdigest()


def _read_stamp(path: Path) -> Stamp:
    try:
        facts = os.stat(path)  # noqa: PTH116 - asked for every header at every compilation
    except (OSError, ValueError):
        return None
    return facts.st_size, facts.st_mtime_ns


UNITS = UnitCache()  # Those of this process
