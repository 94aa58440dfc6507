"""What leaves for the client: whatever people read in it is text to their editor, however it was put together.

Every answer, result, notification and question goes through :func:`make_shown` as the last thing, because names come from strangers' profiles.
What programs read stays as it is: URIs, texts of edits, arguments of commands, and ``data``, by which a client names things to us.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import attrs
from lsprotocol import types

from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.foundation.visible_text import make_lines_visible, make_visible

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
