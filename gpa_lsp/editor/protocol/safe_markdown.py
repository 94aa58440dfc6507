r"""Markdown in which names of strangers are text and nothing else.

Kernels, files, devices and rules are named by the author of a profile, and editors follow what Markdown says: an image is fetched from where a
name says, a link runs a command. So whatever we say goes through :func:`defuse` at the end, in one place, however it was put together: outside of
code there are no links, not even from a bare address, but those of hovers, no images, no HTML, no
fences but ours. What is code is decided so that a reader of Markdown never sees text where we see code: a code span does not leave its line or its
table cell, and a backtick without a partner is escaped. Where a name stands, its line ends have been written out before, or it would begin a
paragraph here.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import attrs
from lsprotocol import types

from gpa_lsp.document.markdown import ADDRESS, LINKS
from gpa_lsp.foundation.visible_text import make_lines_visible, make_visible

_LONGEST_CHARS = 200_000  # Of a page. Nobody reads on, and a name can have a million characters.

_LONGEST_LINE_CHARS = 8_000
_FENCE = re.compile(r"```[a-z]*\Z")
_FENCE_END = re.compile(r" {0,3}`{3,}[ \t]*\Z")
_LINKS = re.compile(LINKS)
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
    return make_visible(line if len(line) <= _LONGEST_LINE_CHARS else line[:_LONGEST_LINE_CHARS] + "…")


def _defuse_lines(lines: Sequence[str]) -> Iterator[str]:
    is_code = is_table = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if is_code:
            is_code = _FENCE_END.match(line) is None
            yield line
        elif _FENCE.match(line):
            is_code = True
            yield line
        elif _LINKS.fullmatch(line):
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


# What leaves for the client: whatever people read in it is text to their editor, however it was put together.
#
# Every answer, result, notification and question goes through :func:`make_shown` as the last thing, because names come
# from strangers' profiles. What programs read stays as it is: URIs, texts of edits, arguments of commands, and
# ``data``, by which a client names things to us.

# Members that editors show, and programs only compare: one line each
_SHOWN = frozenset(
    (
        "title",
        "label",
        "name",
        "detail",
        "message",
        "tooltip",
        "value",
        "code",
        "container_name",
        "collapsed_text",
        "kernel",
        "text",
    )
)

# Members of our own messages beside which ``text`` is a document, or output, of several lines
_DOCUMENT_MARKS = frozenset(("languageId", "clear"))

# Members that hold nothing to read
_PASSED_OVER = frozenset(
    ("data", "arguments", "new_text", "location", "from_ranges", "range", "selection_range", "position")
)

# Whose message may have several lines: output, and a sentence a line, since lists of problems do not wrap
_WITH_LINES = (types.LogMessageParams, types.Diagnostic)


def make_shown(value: Any) -> Any:
    """The same value; objects of the protocol are changed as they stand, plain JSON is made again."""
    if isinstance(value, list | tuple):
        return type(value)(make_shown(one) for one in value)
    if isinstance(value, dict):
        make = make_visible if _DOCUMENT_MARKS.isdisjoint(value) else make_lines_visible
        return {name: _make_member_shown(name, one, make) for name, one in value.items()}
    if isinstance(value, types.MarkupContent):
        value.value = defuse(value.value)
        return value
    for name in _list_members(type(value)):  # type: ignore[arg-type]  # types are hashable
        member = getattr(value, name)
        make = make_lines_visible if name == "message" and isinstance(value, _WITH_LINES) else make_visible
        shown = _make_member_shown(name, member, make)
        if shown is not member:
            setattr(value, name, shown)
    return value


def _make_member_shown(name: str, member: Any, make: Callable[[str], str]) -> Any:
    if isinstance(member, str):
        return make(member) if name in _SHOWN else member
    return member if member is None or name in _PASSED_OVER else make_shown(member)


@cache
def _list_members(kind: type) -> tuple[str, ...]:
    """The members of a type of the protocol that may hold what people read."""
    return tuple(one.name for one in attrs.fields(kind) if one.name not in _PASSED_OVER) if attrs.has(kind) else ()
