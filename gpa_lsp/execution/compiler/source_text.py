"""Text of a source: read within bounds, and rewritten so that it compiles from another folder."""

import os
import re
from pathlib import Path

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
