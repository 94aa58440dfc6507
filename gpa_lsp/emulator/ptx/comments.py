"""Comments of PTX, blanked so that every line keeps its number."""

import re

from gpa_lsp.errors import InputError

_COMMENTS = re.compile(
    r"\"[^\"\n]*+\"|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/|^[ \t]*+(?:\#|@@)[^\n]*+|(?P<open>/\*|\")", re.MULTILINE
)


def blank_comments(text: str) -> str:
    r"""The text without comments and without the lines of preprocessors (``#``) and old debuggers (``@@``).

    Raises:
        InputError: a comment or a string does not end.

    >>> blank_comments('add // one\n/* two\nthree */ sub ".//"')
    'add \n\n sub ".//"'
    """
    return _COMMENTS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if match["open"] is not None:
        what = "a comment" if found == "/*" else "a string"
        line = match.string.count("\n", 0, match.start()) + 1
        raise InputError(f"{what} does not end", place=f"line {line}", remedy="check that the PTX is complete")
    if found[0] == '"':
        return found
    return "\n" * found.count("\n") if found[:2] == "/*" and "\n" in found else " " if found[:2] == "/*" else ""
