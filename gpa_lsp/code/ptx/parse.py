"""PTX text → :class:`PtxModule`."""

import re

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.module_text import ModuleReader
from gpa_lsp.foundation.errors import InputError

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


MOST_CHARACTERS = 64 << 20
# Characters of a text whose functions are all read at once; those of longer ones are read when they are first looked at
READ_AT_ONCE = 128 << 10


def parse_ptx(text: str, *, name: str) -> PtxModule:
    """Parse a PTX text.

    Functions of a text longer than :data:`READ_AT_ONCE` are read when they are first looked at, and what is wrong with them is raised there:
    a module may have thousands of kernels of which one is wanted. Instructions that nobody knows are parsed like all others.

    Args:
        text: the PTX.
        name: of the source or file, for messages.

    Raises:
        InputError: it is not PTX, is cut off, or is beyond all reason (see the limits of the modules beside this one). Says the line.

    Source:
        PTX ISA 9.0.

    >>> module = parse_ptx(".version 8.0 .target sm_80 .address_size 64 .entry k() { exit; }", name="k.ptx")
    >>> module.target, [instruction.text for instruction in module.functions["k"].instructions]
    ('sm_80', ['exit'])
    """
    try:
        if len(text) > MOST_CHARACTERS:
            raise InputError(f"PTX of {len(text)} characters", remedy="split the module; no compiler writes that much")
        text = text.rstrip("\0")
        module = ModuleReader(name=name, original=text, text=blank_comments(text)).read()
        if len(text) <= READ_AT_ONCE:
            for function in module.functions.values():
                len(function.parameters)
                len(function.instructions)
    except InputError as error:
        raise error.at(name) from None
    return module
