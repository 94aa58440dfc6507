"""Pragmas, and macros that stand for them, in front of loops: grammars of C++ do not foresee them, so they are found and hidden."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

_NAME = b"pragma"
_SIGNS = (b"UNROLL", b"LOOP")  # In names of macros that stand for a pragma

_FARTHEST = 1024  # Bytes of blanks between a macro and its loop; what was hidden there is blank, too

_LOOP_WORDS = (b"for", b"while", b"do")


class Pragma(Struct, frozen=True, kw_only=True):
    """A ``#pragma`` line, or one with nothing but a macro that stands for one."""

    start_byte: int  # of its ``#``, or of the macro
    end_byte: int  # behind its last character; the line end is not part of it
    row: int  # of its first line, 0-based
    words_byte: int  # where its words begin
    words: str  # behind ``#pragma``, without comments, lines that are continued put together; the macro
    is_macro: bool = False  # it is one, and what it stands for is not known


def find_pragmas(content: bytes) -> Iterator[Pragma]:
    r"""The pragma lines of a text, those in block comments and raw strings included; one that opens a block comment is passed over.

    >>> [(one.row, one.words) for one in find_pragmas(b"#pragma once\n  # pragma unroll \\\n 4 // four\n// #pragma no\n")]
    [(0, 'once'), (1, 'unroll 4')]
    """
    row, counted = 0, 0
    position = content.find(_NAME)
    while position >= 0:
        start = content.rfind(b"\n", 0, position) + 1
        before = content[start:position]
        row += content.count(b"\n", counted, start)
        counted = start
        end = _find_end(content, position)
        words = content[position + len(_NAME) : end]
        if before.strip() == b"#" and words[:1] in (b"", b" ", b"\t", b"(", b"\\") and b"/*" not in words:
            plain = words.partition(b"//")[0].replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").decode("utf-8", "replace")
            yield Pragma(
                start_byte=position - len(before.lstrip()),
                end_byte=end,
                row=row,
                words_byte=end - len(words.lstrip()),
                words=" ".join(plain.split()),
            )
        position = content.find(_NAME, end)


def find_loop_macros(content: bytes) -> tuple[Pragma, ...]:
    r"""Lines of a text that are nothing but a name in capitals that speaks of unrolling or loops, directly above a loop, or above another such line.

    Nothing but a macro can stand there: a name in front of a loop is no C++.

    >>> [(one.row, one.words) for one in find_loop_macros(b"  LIB_PRAGMA_UNROLL\n\n  for (;;) {\nUNROLLED\na();}")]
    [(0, 'LIB_PRAGMA_UNROLL')]
    """
    found: list[tuple[int, bytes]] = []
    starts = {start for sign in _SIGNS for start in _find_lines(content, sign)}
    below = -1
    for start in sorted(starts, reverse=True):
        end = content.find(b"\n", start)
        name = content[start:end].strip() if end >= 0 else b""
        if not name.replace(b"_", b"A").isalnum() or not name.isupper():
            continue
        near = content[end : end + _FARTHEST]
        following = end + len(near) - len(near.lstrip())
        if following != below and not _begins_loop(content, following):
            continue
        below = content.find(name, start)
        found.append((below, name))
    row, counted = 0, 0
    macros = []
    for start, name in reversed(found):
        row, counted = row + content.count(b"\n", counted, start), start
        words = name.decode("utf-8", "replace")
        macros.append(
            Pragma(start_byte=start, end_byte=start + len(name), row=row, words_byte=start, words=words, is_macro=True)
        )
    return tuple(macros)


def _begins_loop(content: bytes, position: int) -> bool:
    words = (word for word in _LOOP_WORDS if content.startswith(word, position))
    return any(
        content[position + len(word) : position + len(word) + 1] in (b"", b" ", b"(", b"{", b"\t", b"\r", b"\n")
        for word in words
    )


def _find_lines(content: bytes, sign: bytes) -> Iterator[int]:
    """Start of each line that contains ``sign``."""
    position = content.find(sign)
    while position >= 0:
        yield content.rfind(b"\n", 0, position) + 1
        end = content.find(b"\n", position)
        position = content.find(sign, end) if end >= 0 else -1


def find_directives(content: bytes) -> tuple[Pragma, ...]:
    """Pragmas and macros that stand for one, in the order of the text."""
    pragmas = tuple(find_pragmas(content))
    macros = find_loop_macros(_blank_out(content, pragmas))
    return tuple(sorted((*pragmas, *macros), key=lambda one: one.start_byte))


def hide_directives(content: bytes) -> bytes:
    r"""The text with blanks in place of its pragmas and of the macros for them; every other character stays where it was.

    >>> hide_directives(b"if (n)\n#pragma unroll 2\n  for (;;);\nUNROLL\nfor (;;);")
    b'if (n)\n                \n  for (;;);\n      \nfor (;;);'
    """
    return _blank_out(content, find_directives(content))


def _blank_out(content: bytes, directives: Sequence[Pragma]) -> bytes:
    parts, position = [], 0
    for directive in directives:
        hidden = content[directive.start_byte : directive.end_byte]
        parts += [content[position : directive.start_byte], bytes(one if one in b"\r\n" else 32 for one in hidden)]
        position = directive.end_byte
    return b"".join([*parts, content[position:]]) if parts else content


def _find_end(content: bytes, position: int) -> int:
    """End of the line at a byte, continuation lines included; without the line end."""
    while True:
        end = content.find(b"\n", position)
        end = len(content) if end < 0 else end
        last = end - 1 if content[end - 1 : end] == b"\r" else end
        if end == len(content) or content[last - 1 : last] != b"\\":
            return max(last, position)
        position = end + 1
