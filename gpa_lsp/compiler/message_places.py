"""Where in a line a compiler points, and through which templates it came there."""

import re
from collections.abc import Iterator, Sequence

_INDENT = 2
"""The front end shows a line of source behind two blanks."""
_WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*")
_CONTEXT = re.compile(
    r"(?:detected )?(?:during:?\s+)?(?P<what>(?:(?:implicit|explicit|processing|substitution|instantiation|compilation|based)\b.*?))\s+at line "
    r"(?P<line>\d+)(?: of \"?(?P<path>[^\"]+?)\"?)?(?=$|\s+(?:implicit|explicit|processing|substitution|instantiation|compilation|\[))"
)
_MOST_CONTEXTS = 20


def find_column(shown: str, mark: str, line: str | None) -> int | None:
    """The column (1-based, in characters) that a mark under a line of source points at.

    Args:
        shown: the line as the compiler shows it.
        mark: the line with ``^``.
        line: as it stands in the source; None when it is not known, then what is shown is believed.

    Returns:
        None when the place is not to be found in the source's line, which may have macros where the compiler shows what they stand for.

    >>> find_column("  x = yy;", "      ^", "x = yy;")
    5
    >>> find_column("  __attribute__((global)) void k() { yy; }", " " * 37 + "^", "__global__ void k() { yy; }")
    23
    """
    column = mark.index("^") - _INDENT
    if column < 0:
        return None
    text = shown[_INDENT:]
    # Blanks in front may be tabs there and blanks here; the compiler keeps them.
    if line is None or text.rstrip() == line.rstrip():
        return column + 1
    word = _WORD.match(text, column)
    if word is None:
        return len(line.rstrip()) + 1 if column >= len(text.rstrip()) else None
    place = sum(found.group() == word.group() for found in _WORD.finditer(text, column + 1))
    # Counted from the end: what is replaced stands mostly in front, where declarations begin.
    starts = [found.start() for found in _WORD.finditer(line) if found.group() == word.group()]
    return starts[-1 - place] + 1 if place < len(starts) else None


def read_contexts(lines: Sequence[str]) -> Iterator[tuple[str, str | None, int]]:
    """What was being instantiated, the file (None for that of the message) and the line it was asked for, innermost first.

    >>> list(read_contexts(['          detected during instantiation of "void f(T) [with T=int]" at line 2']))
    [('during instantiation of "void f(T) [with T=int]"', None, 2)]
    """
    text = " ".join(line.strip() for line in lines)
    for count, found in enumerate(_CONTEXT.finditer(text)):
        if count >= _MOST_CONTEXTS:
            return
        yield f"during {found['what']}", found["path"], int(found["line"])
