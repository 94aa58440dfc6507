"""``build.ninja``, as CMake, Meson and PyTorch's extension builder write it.

Read here and not by ``ninja -t compdb``: that needs the program, and what a build's file says is not to be given to a program that could run it.

Source: the Ninja manual, "Ninja file reference" (lexical syntax, variables and their scopes, ``include`` and ``subninja``, ``rspfile``).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.execution.compiler.commands import (
    LARGEST_RECORD_BYTES,
    LONGEST_COMMAND,
    MOST_COMMANDS,
    CommandSource,
    CompileCommand,
    find_compile_commands,
    read_record,
    split_words,
)
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes

_VARIABLE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+)|(\n\s*)|(.))", re.DOTALL)
_BINDING = re.compile(r"([\w.-]+)\s*=\s?(.*)", re.DOTALL)
_DEEPEST = 16
_MOST_FILES = 64
# Of all values together: each of 100,000 short lines may stand for a command as long as any may be
_MOST_EXPANDED_CHARACTERS = 2 * LARGEST_RECORD_BYTES
_CUDA_SUFFIXES = (".cu", ".cuh")


class _Scope(Struct):
    """Variables and rules of a file; lookups continue in the file that includes it."""

    variables: dict[str, str] = field(default_factory=dict)
    rules: dict[str, dict[str, str]] = field(default_factory=dict)
    outer: "_Scope | None" = None

    def find_variable(self, name: str) -> str:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.outer
        return ""

    def find_rule(self, name: str) -> Mapping[str, str]:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.rules:
                return scope.rules[name]
            scope = scope.outer
        return {}


def read_ninja(path: Path) -> Iterator[CompileCommand]:
    """The commands that compile CUDA sources.

    Raises:
        InputError: a file cannot be read, the files read each other without end, or their variables stand for too much.
    """
    yield from _Reader(path.parent).read(path, _Scope(), 0)


class _Reader:
    """One reading of a build file and those that it includes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = 0
        self._commands = 0
        self._characters = 0

    def read(self, path: Path, scope: _Scope, depth: int) -> Iterator[CompileCommand]:
        self._files += 1
        if depth > _DEEPEST or self._files > _MOST_FILES:
            raise InputError(
                "build files include each other endlessly", path=path, remedy="have the build write them again"
            )
        for head, bindings in _list_statements(read_record(path)):
            keyword, _, rest = head.partition(" ")
            if keyword == "rule":
                scope.rules[rest.strip()] = dict(bindings)
            elif keyword == "build":
                yield from self._read_build(rest, bindings, scope)
            elif keyword in ("include", "subninja"):
                inner = scope if keyword == "include" else _Scope(outer=scope)
                name = self._expand(rest.strip(), scope)
                yield from self.read(self._directory / name, inner, depth + 1)
            elif (binding := _BINDING.fullmatch(head)) and not bindings:
                scope.variables[binding[1]] = self._expand(binding[2], scope)
            if self._commands >= MOST_COMMANDS:
                return

    def _read_build(self, text: str, bindings: Mapping[str, str], scope: _Scope) -> Iterator[CompileCommand]:
        outputs, found, rest = _split_at_colon(text)
        words = _split_paths(rest)
        if not found or not words:
            return
        inputs = []
        for word in words[1:]:
            if word in ("|", "||", "|@"):
                break
            inputs.append(self._expand(word, scope))
        sources = [name for name in inputs if name.endswith(_CUDA_SUFFIXES)]
        if not sources:
            return
        rule = scope.find_rule(words[0])
        edge = _Scope(outer=scope)
        edge.variables = {name: self._expand(value, scope) for name, value in bindings.items()}
        edge.variables["in"] = " ".join(inputs)
        edge.variables["out"] = " ".join(self._expand(one, scope) for one in _split_paths(outputs) if one != "|")
        for name, value in rule.items():
            if name not in ("command", *edge.variables):
                edge.variables[name] = self._expand(value, edge)
        command = self._expand(rule.get("command", ""), edge)
        response = edge.variables.get("rspfile", "")
        if response:
            content = edge.variables.get("rspfile_content", "")
            command = command.replace(f"@{response}", content, 1)[:LONGEST_COMMAND]
        for one in find_compile_commands(split_words(command), self._directory):
            if one.is_cuda:
                self._commands += 1
                yield CompileCommand(directory=one.directory, words=one.words, file=self._directory / sources[0])

    def _expand(self, text: str, scope: _Scope) -> str:
        value = _expand(text, scope)
        self._characters += len(value)
        if self._characters > _MOST_EXPANDED_CHARACTERS:
            raise InputError(
                f"the variables of build.ninja expand to more than {format_bytes(_MOST_EXPANDED_CHARACTERS)}",
                path=self._directory / "build.ninja",
                remedy="have the build write it again",
            )
        return value


def _list_statements(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Unindented lines, each with the bindings on the indented lines below it."""
    head: str | None = None
    bindings: dict[str, str] = {}
    for line in _join_lines(text):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t":
            binding = _BINDING.fullmatch(line.strip())
            if binding is not None:
                bindings[binding[1]] = binding[2]
            continue
        if head is not None:
            yield head, bindings
        head, bindings = line, {}
    if head is not None:
        yield head, bindings


def _join_lines(text: str) -> Iterator[str]:
    """Lines, with continuations (a single ``$`` at the end, not ``$$``) joined."""
    kept = ""
    for line in text.splitlines():
        whole = kept + (line.lstrip() if kept else line)
        ends = len(whole) - len(whole.rstrip("$"))
        if ends % 2 == 1 and len(whole) < LONGEST_COMMAND:
            kept = whole[:-1]
            continue
        kept = ""
        yield whole
    if kept:
        yield kept


def _expand(text: str, scope: _Scope) -> str:
    """Value with its variables substituted, cut at the longest command: each of a few lines may double the one before."""
    left = LONGEST_COMMAND

    def replace(found: re.Match[str]) -> str:
        nonlocal left
        name = found[1] or found[2]
        value = scope.find_variable(name) if name else "" if found[3] is not None else found[4]
        left -= len(value)
        return value if left > 0 else ""

    return _VARIABLE.sub(replace, text[:LONGEST_COMMAND])[:LONGEST_COMMAND]


def _split_at_colon(text: str) -> tuple[str, bool, str]:
    found = re.search(r"(?<!\$)(?:\$\$)*:(?:\s|$)", text)
    if found is None:
        return text, False, ""
    return text[: found.end() - 1].rstrip().removesuffix(":"), True, text[found.end() :]


def _split_paths(text: str) -> list[str]:
    """Paths, split at blanks without a ``$`` in front; escapes stay."""
    return re.findall(r"(?:\$.|[^\s$])+", text)


COMMAND_SOURCES = (CommandSource(names=("build.ninja",), read=read_ninja, rank=1),)
