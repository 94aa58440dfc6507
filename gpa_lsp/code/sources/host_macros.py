"""Macros with parameters that launch kernels, put in where they are used, so that they are read like any other text: :func:`expand_launching`."""

import re
from collections.abc import Mapping

from msgspec import Struct

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_DEEPEST = 6
_MOST_CHARACTERS = 200_000  # That a text may grow by
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


class MacroFunction(Struct, frozen=True, kw_only=True):
    """A macro with parameters."""

    parameters: tuple[str, ...]  # their names
    body: str  # what it stands for


def expand_launching(text: str, macros: Mapping[str, MacroFunction]) -> str:
    r"""A text with the macros put in that launch something; what follows stays on its line.

    >>> expand_launching("RUN(k,\n 2);\nx;", {"RUN": MacroFunction(parameters=("f", "n"), body="f<<<n, 32>>>()")})
    'k<<<2, 32>>>()\n;\nx;'
    """
    launching: set[str] = set()
    for _ in range(_DEEPEST):
        launching |= {
            name
            for name, one in macros.items()
            if "<<<" in one.body or not launching.isdisjoint(_WORD.findall(one.body))
        }
    chosen = {name: macros[name] for name in launching if not re.search(r"(?<!#)#(?!#)", macros[name].body)}
    return _expand(text, chosen, _DEEPEST, [_MOST_CHARACTERS]) if chosen else text


def _expand(text: str, macros: Mapping[str, MacroFunction], depth: int, room: list[int]) -> str:
    used = re.compile(rf"{_QUOTED.pattern}|\b({'|'.join(map(re.escape, macros))})\s*\(", re.DOTALL)
    parts: list[str] = []
    place = 0
    while (found := used.search(text, place)) is not None:
        if found[1] is None:
            parts.append(text[place : found.end()])
            place = found.end()
            continue
        end, arguments = _split(text, found.end())
        body = _put_in(macros[found[1]], arguments)
        room[0] -= 0 if body is None else len(body)
        if body is None or room[0] < 0:
            parts.append(text[place : found.end()])
            place = found.end()
            continue
        inner = {name: one for name, one in macros.items() if name != found[1]}
        whole = _expand(body, inner, depth - 1, room) if depth and inner else body
        parts += [text[place : found.start()], whole, "\n" * text.count("\n", found.start(), end)]
        place = end
    return "".join((*parts, text[place:]))


def _split(text: str, start: int) -> tuple[int, list[str]]:
    """The place behind the arguments of a macro, and what they are."""
    depth, begin, arguments = 0, start, []
    for place in range(start, len(text)):
        letter = text[place]
        if letter in "([{":
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
        elif letter == ")" or (letter == "," and not depth):
            arguments.append(" ".join(text[begin:place].split()))
            begin = place + 1
            if letter == ")":
                return place + 1, arguments
    return len(text), arguments


def _put_in(macro: "MacroFunction", arguments: list[str]) -> str | None:
    """What a macro stands for; None where it is given another number of arguments than it has."""
    parameters = macro.parameters
    given = dict(zip(parameters, arguments, strict=False))
    if parameters[-1:] == ("...",):
        given["__VA_ARGS__"] = ", ".join(arguments[len(parameters) - 1 :])
    elif len(arguments) != len(parameters) and (parameters or arguments != [""]):
        return None
    body = re.sub(r"\s*##\s*", "\x00", macro.body)
    return _WORD.sub(lambda word: given.get(word.group(), word.group()), body.replace("\x00", " \x00 ")).replace(
        " \x00 ", ""
    )
