"""Directives that may stand between any two tokens, which grammars of C++ do not foresee: found by line, and hidden from the grammar."""

from collections.abc import Iterator
from dataclasses import dataclass

_NAME = b"pragma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pragma:
    """A ``#pragma`` line.

    Attributes:
        start_byte: of its ``#``.
        end_byte: behind its last character; the line end is not part of it.
        row: of its first line, 0-based.
        words_byte: where its words begin.
        words: behind ``#pragma``, without comments, lines that are continued put together.
    """

    start_byte: int
    end_byte: int
    row: int
    words_byte: int
    words: str


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


def hide_pragmas(content: bytes) -> bytes:
    r"""The text with blanks in place of its pragmas; every other character stays where it was.

    >>> hide_pragmas(b"if (n)\n#pragma unroll 2\n  for (;;);")
    b'if (n)\n                \n  for (;;);'
    """
    parts, position = [], 0
    for pragma in find_pragmas(content):
        hidden = content[pragma.start_byte : pragma.end_byte]
        parts += [content[position : pragma.start_byte], bytes(one if one in b"\r\n" else 32 for one in hidden)]
        position = pragma.end_byte
    return b"".join([*parts, content[position:]]) if parts else content


def _find_end(content: bytes, position: int) -> int:
    """Behind the last character of the line at a byte and of those it is continued on."""
    while True:
        end = content.find(b"\n", position)
        end = len(content) if end < 0 else end
        last = end - 1 if content[end - 1 : end] == b"\r" else end
        if end == len(content) or content[last - 1 : last] != b"\\":
            return max(last, position)
        position = end + 1
