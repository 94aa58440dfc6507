"""A text with the headers it includes, preprocessed for host code as far as its conditions are known: :class:`HostText`.

Lines that a condition leaves out are blank; where a condition is unknown, all its branches stay.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.host_syntax import parse_expression
from gpa_lsp.code.sources.host_values import Number, combine, read_literal
from gpa_lsp.code.sources.trees import part, read_text
from gpa_lsp.foundation.locations import is_path_end

if TYPE_CHECKING:
    from tree_sitter import Node

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_OPERATOR = re.compile(r"[-+*/%<>&|^?]")
_DEEPEST_MACRO = 6
_MOST_CHARACTERS = 200_000  # That a text may grow by
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


MacroFunction = tuple[tuple[str, ...], str]  # The parameters of a macro, and its replacement text


def expand_launching(text: str, macros: Mapping[str, MacroFunction]) -> str:
    r"""Expand the macros of a text that launch something; following text keeps its line.

    >>> expand_launching("RUN(k,\n 2);\nx;", {"RUN": (("f", "n"), "f<<<n, 32>>>()")})
    'k<<<2, 32>>>()\n;\nx;'
    """
    launching: set[str] = set()
    for _ in range(_DEEPEST_MACRO):
        launching |= {
            name for name, (_, body) in macros.items() if "<<<" in body or not launching.isdisjoint(_WORD.findall(body))
        }
    chosen = {name: macros[name] for name in launching if not re.search(r"(?<!#)#(?!#)", macros[name][1])}
    return _expand(text, chosen, _DEEPEST_MACRO, [_MOST_CHARACTERS]) if chosen else text


def expand_loose(text: str, macros: Mapping[str, str]) -> str:
    """Expand the macros of a text that are an expression without brackets, whose operators bind to the text around them.

    >>> expand_loose("(N+1) * 4; // N", {"N": "2048>>2"}), expand_loose("N + 1", {"N": "(2048>>2)"})
    ('(2048>>2+1) * 4; // N', 'N + 1')
    """
    loose = {name: body for name, body in macros.items() if _is_loose(body)}
    if not loose:
        return text
    used = re.compile(rf"{_QUOTED.pattern}|(?<![\w.])({'|'.join(map(re.escape, loose))})\b", re.DOTALL)
    for _ in range(_DEEPEST_MACRO):
        longer = used.sub(lambda one: one.group() if one[1] is None else loose[one[1]], text)
        if longer == text or len(longer) > len(text) + _MOST_CHARACTERS:
            break
        text = longer
    return text


def _is_loose(body: str) -> bool:
    found = parse_expression(body) if _OPERATOR.search(body) else None  # in the brackets that it is parsed in
    inner = found.named_children[0] if found is not None and len(found.named_children) == 1 else None
    return inner is not None and inner.type in ("binary_expression", "conditional_expression") and not inner.has_error


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
    """The end of a macro's argument list, and the arguments."""
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


def _put_in(macro: MacroFunction, arguments: list[str]) -> str | None:
    """Replacement text of a macro with its arguments put in; None where their number does not match."""
    parameters, text = macro
    given = dict(zip(parameters, arguments, strict=False))
    if parameters[-1:] == ("...",):
        given["__VA_ARGS__"] = ", ".join(arguments[len(parameters) - 1 :])
    elif len(arguments) != len(parameters) and (parameters or arguments != [""]):
        return None
    body = re.sub(r"\s*##\s*", "\x00", text)
    return _WORD.sub(lambda word: given.get(word.group(), word.group()), body.replace("\x00", " \x00 ")).replace(
        " \x00 ", ""
    )


_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)(.*)", re.DOTALL)
_MACRO = re.compile(r"[ \t]*(\w+)(\([^()]*\))?(.*)", re.DOTALL)
_INCLUDE = re.compile(r'[ \t]*[<"]([^>"]+)[>"]')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_DEFINED = re.compile(r"\bdefined[ \t]+(\w+)")
# Names that commands and headers of systems may define
_OF_SYSTEMS = frozenset(
    {"_OPENMP", "_DEBUG", "NDEBUG", "_GNU_SOURCE", "M_PI", "CUDART_VERSION", "CUDA_VERSION", "EXIT_SUCCESS", "NULL"}
)
_GUARD = re.compile(r"(?:_H|_HPP|_HXX|_CUH|_CU|INCLUDED)_*$", re.IGNORECASE)
_SPACED = re.compile(r"<<(\s+)<([^;{}]{1,600}?)>>(\s+)>(?=\s*\()")  # A launch as some editors lay it out
_DEEPEST = 40
_MOST_LINES = 200_000
_OF_COMPILERS: Mapping[str, str] = {"__CUDACC__": "1", "__NVCC__": "1", "__cplusplus": "201703", "__linux__": "1"}
# Names that are not defined where host code of CUDA is compiled on Linux
_ELSEWHERE = frozenset(
    {"_WIN32", "WIN32", "_WIN64", "_MSC_VER", "__APPLE__", "__CUDA_ARCH__", "__HIPCC__", "__OPENCL_VERSION__"}
)


class HostText(Struct, frozen=True, kw_only=True):
    """A source joined with its headers and preprocessed."""

    text: str  # the source, and behind it the headers that it includes; each line stays on its own
    macros: Mapping[str, str]  # name → replacement text, of macros with a single definition
    functions: Mapping[str, MacroFunction]  # macros with parameters, in the same form
    files: tuple[tuple[int, str], ...]  # (first line, 1-based, path) of each header in ``text``

    def locate(self, line: int) -> tuple[int, str]:
        """Line and path that a line of ``text`` is of; an empty path for the source itself."""
        found = [(first, path) for first, path in self.files if first <= line]
        return (line - found[-1][0] + 1, found[-1][1]) if found else (line, "")


def join_brackets(text: str) -> str:
    """``k << <g, b >> > (x)`` as ``k<<<g, b>>>(x)``, with the spaces behind the brackets.

    >>> join_brackets("k << <g, b >> >(x);")
    'k <<< g, b >>> (x);'
    """
    return _SPACED.sub(r"<<<\1\2>>>\3", text) if "<< " in text else text


def join_texts(
    text: str, included: Sequence[tuple[str, str]] = (), defined: Sequence[str] = (), *, path: str = ""
) -> HostText:
    r"""A source with its headers.

    Args:
        defined: macros as after ``-D``: ``NAME``, ``NAME=VALUE``.

    >>> joined = join_texts('#include "a.h"\n#ifdef BIG\n#define N 9\n#else\n#define N 3\n#endif\n', [("/p/a.h", "#define BIG\n")])
    >>> joined.macros["N"], joined.text.count("\n"), joined.locate(8)
    ('9', 8, (1, '/p/a.h'))
    """
    joining = _Joining({file: join_brackets(one) for file, one in included}, defined, path)
    parts = [joining.read(join_brackets(text))]
    files = []
    line = parts[0].count("\n") + 2
    for file, kept in joining.kept.items():
        files.append((line, file))
        parts.append(kept)
        line += kept.count("\n") + 1
    macros = {name: value for name, value in joining.macros.items() if value is not None}
    functions = {
        name: (one[0], expand_loose(one[1], macros)) for name, one in joining.functions.items() if one is not None
    }
    return HostText(
        text=expand_loose(expand_launching("\n".join(parts), functions), macros),
        macros={name: expand_loose(value, macros) for name, value in macros.items()},
        functions=functions,
        files=tuple(files),
    )


class _Joining:
    def __init__(self, included: dict[str, str], defined: Sequence[str], path: str) -> None:
        self.included = included
        self._path = path
        self.macros: dict[str, str | None] = dict(_OF_COMPILERS)
        self.functions: dict[str, MacroFunction | None] = {}
        self.kept: dict[str, str] = {}
        self._open: set[str] = set()
        self._lines = 0
        for one in defined:
            name, _, value = one.partition("=")
            if name.isidentifier():
                self.macros[name] = value or "1"

    def read(self, text: str, depth: int = 0) -> str:
        """The text with left-out lines blank."""
        kept: list[str] = []
        taken: list[_Condition] = []
        lines = text.split("\n")
        number = 0
        while number < len(lines):
            count = 1
            while lines[number + count - 1].rstrip("\r").endswith("\\") and number + count < len(lines):
                count += 1
            whole = " ".join(one.rstrip("\r").removesuffix("\\") for one in lines[number : number + count])
            number += count
            self._lines += count
            found = _DIRECTIVE.match(whole) if "#" in whole else None
            if found is None:
                is_kept = all(one.is_open for one in taken)
                kept += lines[number - count : number] if is_kept else [""] * count
                continue
            kept += [""] * count
            if self._lines < _MOST_LINES:
                self._follow(found[1], _COMMENT.sub(" ", found[2]), taken, depth)
        return "\n".join(kept)

    def _follow(self, word: str, rest: str, taken: "list[_Condition]", depth: int) -> None:
        if word in ("if", "ifdef", "ifndef"):
            taken.append(_Condition(self._decide(word, rest) if all(one.is_open for one in taken) else False))
        elif word in ("elif", "else") and taken:
            is_reached = all(one.is_open for one in taken[:-1])
            taken[-1].turn(self._decide("if", rest) if word == "elif" and is_reached else True)
        elif word == "endif" and taken:
            taken.pop()
        elif all(one.is_open for one in taken):
            is_certain = all(one.is_certain for one in taken)
            if word == "define":
                self._define(rest, is_certain=is_certain)
            elif word == "undef":
                self._forget(rest.strip())
            elif word == "include":
                self._include(rest, depth)

    def _define(self, rest: str, *, is_certain: bool) -> None:
        found = _MACRO.match(rest)
        if found is None:
            return
        name, parameters, body = found[1], found[2], found[3].strip()
        if parameters is not None:
            names = tuple(one.strip() for one in parameters[1:-1].split(",") if one.strip())
            made = names, body
            self.functions[name] = made if is_certain and self.functions.get(name, made) == made else None
        else:
            self.macros[name] = body if is_certain and self.macros.get(name, body) == body else None

    def _forget(self, name: str) -> None:
        for known in (self.macros, self.functions):
            if name in known:
                known[name] = None

    def _include(self, rest: str, depth: int) -> None:
        found = _INCLUDE.match(rest)
        path = self._find(found[1].replace("\\", "/")) if found is not None else None
        if path is None or path in self._open or depth > _DEEPEST:
            return
        self._open.add(path)
        outer, self._path = self._path, path
        kept = self.read(self.included[path], depth + 1)
        self._path = outer
        self.kept.setdefault(path, kept)

    def _find(self, name: str) -> str | None:
        """The header that an include line means: in the folder of the including text, else one whose path ends so."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(self._path.replace("\\", "/")), name))
        end = name.rpartition("../")[2].removeprefix("./")
        ending = [one for one in self.included if end and is_path_end(one, end)]
        return next((one for one in ending if one.replace("\\", "/") == beside), ending[0] if ending else None)

    def _decide(self, word: str, rest: str) -> bool | None:
        """Whether a condition holds; None where unknown."""
        if word != "if":
            found = self._is_defined(rest.strip())
            return found if found is None or word == "ifdef" else not found
        value = self._evaluate(parse_expression(_DEFINED.sub(r"defined(\1)", rest).strip()), 0)
        return None if value is None else bool(value)

    def _is_defined(self, name: str) -> bool | None:
        if name in self.macros or name in self.functions:
            known = self.macros.get(name, self.functions.get(name))
            return None if known is None else True
        is_of_systems = name.startswith("__") or name in _OF_SYSTEMS
        return None if is_of_systems and name not in _ELSEWHERE and not _GUARD.search(name) else False

    def _evaluate(self, node: "Node | None", depth: int) -> Number | None:
        if node is None or depth > _DEEPEST:
            return None
        kind = node.type
        if kind == "number_literal":
            return read_literal(read_text(node))
        if kind == "parenthesized_expression" and node.named_children:
            return self._evaluate(node.named_children[0], depth + 1)
        if kind in ("unary_expression", "binary_expression"):
            return self._calculate(node, depth)
        if kind == "call_expression" and read_text(part(node, "function")) == "defined":
            known = self._is_defined(read_text(part(node, "arguments")).strip("() \t"))
            return None if known is None else int(known)
        if kind == "identifier":
            text = self.macros.get(read_text(node))
            if text is not None:
                return self._evaluate(parse_expression(text), depth + 1)
            return 0 if self._is_defined(read_text(node)) is False else None
        return None

    def _calculate(self, node: "Node", depth: int) -> Number | None:
        operator = read_text(part(node, "operator"))
        if node.type == "unary_expression":
            value = self._evaluate(part(node, "argument"), depth + 1)
            return None if value is None else {"!": int(not value), "-": -value}.get(operator)
        left = self._evaluate(part(node, "left"), depth + 1)
        right = self._evaluate(part(node, "right"), depth + 1)
        if operator == "||" and (left or right):
            return 1
        found = combine(operator, left, right)
        return found if isinstance(found, (int, float)) else None


class _Condition(Struct):
    """One ``#if`` up to its ``#endif``: whether the branch being read is taken, None where unknown."""

    value: bool | None
    was_taken: bool = False
    was_doubtful: bool = False

    @property
    def is_open(self) -> bool:
        return self.value is not False

    @property
    def is_certain(self) -> bool:
        return self.value is True and not self.was_doubtful

    def turn(self, value: bool | None) -> None:
        """Go to the next branch, with its own condition."""
        self.was_taken |= self.value is True and not self.was_doubtful
        self.was_doubtful |= self.value is None
        self.value = False if self.was_taken else value
