r"""Markdown in which names of strangers are text and nothing else.

Kernels, files, devices and rules are named by whoever made the profile, and editors follow what Markdown says: an image is fetched from where a name
says, a link runs a command. So whatever we say goes through :func:`defuse` at the end, in one place, however it was put together: outside of code
there are no links, not even from a bare address, no images but our own pictures, each on a line of its own, no HTML, no fences but ours. What is
code is decided so that a reader of Markdown never sees text where we see code: a code span does not leave its line or its table cell, and a
backtick without a partner is escaped. Where a name stands, its line ends have been written out before, or it would begin a paragraph here.
"""

import re
from collections.abc import Iterator, Sequence

from gpa_lsp.document.markdown_text import ADDRESS, PICTURE
from gpa_lsp.foundation.visible_text import make_visible

_LONGEST_CHARS = 200_000  # Of a page. Nobody reads on, and a name can have a million characters.

_LONGEST_LINE_CHARS = 8_000
_FENCE = re.compile(r"```[a-z]*\Z")
_FENCE_END = re.compile(r" {0,3}`{3,}[ \t]*\Z")
_PICTURE = re.compile(PICTURE)
_CODE = r"(?<!`)`(?!`)[^`\n]*(?<!`)`(?!`)|(?<!`)``(?!`)(?:[^`\n]|(?<!`)`(?!`))*(?<!`)``(?!`)"
_ESCAPED = r"\\[!-/:-@\[-`{-~]"
_PIECE = re.compile(rf"(?P<kept>{_ESCAPED}|{_CODE})|(?P<risky>`+|\](?=[(\[:])|<(?=[A-Za-z/!?])|\\\Z|{ADDRESS})")
_TILDES = re.compile(r"(?<![\\~])~~~")
_RULE = re.compile(r"[-=:|+~ \t]+\Z")  # Dashes and the like alone on a line make a heading or a table of the line above

_CELL_END = re.compile(r"(?<!\\)((?:\\\\)*\|)")


def defuse(markdown: str) -> str:
    r"""The same Markdown with nothing in it that leads away or loads something.

    >>> defuse("**41 %** of `scale<float>`: see [here](command:x), ![](https://x), <img src=x>")
    '**41 %** of `scale<float>`: see [here\\](command:x), ![\\](https\\://x), \\<img src=x>'
    """
    return "\n".join(_defuse_lines([_shorten(line) for line in markdown[:_LONGEST_CHARS].split("\n")]))


def _shorten(line: str) -> str:
    is_whole = len(line) <= _LONGEST_LINE_CHARS or _PICTURE.fullmatch(line) is not None
    return make_visible(line if is_whole else line[:_LONGEST_LINE_CHARS] + "…")


def _defuse_lines(lines: Sequence[str]) -> Iterator[str]:
    is_code = is_table = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if is_code:
            is_code = _FENCE_END.match(line) is None
            yield line
        elif _FENCE.match(line):
            is_code = True
            yield line
        elif _PICTURE.fullmatch(line):
            yield line
        else:
            is_row = line.lstrip().startswith("|")
            is_table = bool(line.strip()) and (is_table or is_row or below.lstrip().startswith("|"))
            yield _defuse_row(line) if is_table else _defuse_line(line)


def _defuse_row(line: str) -> str:
    """A code span ends with its cell; a row of dashes without a bar in front is none of ours, and only without one can a fence begin."""
    has_bar = line.lstrip().startswith("|")
    if not has_bar and _RULE.match(line):
        return _defuse_line(line)
    escaped = "".join(_escape(part) for part in _CELL_END.split(line))
    return escaped if has_bar else _TILDES.sub(r"\\~~~", escaped)


def _defuse_line(line: str) -> str:
    if line.strip() and _RULE.match(line):
        indentation = len(line) - len(line.lstrip())
        line = f"{line[:indentation]}\\{line[indentation:]}"
    return _TILDES.sub(r"\\~~~", _escape(line))


def _escape(text: str) -> str:
    return _PIECE.sub(lambda match: match["kept"] or "".join(f"\\{one}" for one in match["risky"]), text)
