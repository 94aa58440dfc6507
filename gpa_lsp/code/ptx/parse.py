"""PTX text → :class:`PtxModule`."""

import re
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from gpa_lsp.code.ptx.bodies import Body, BodyReader, DebugNames, LineReader, list_instruction_spans
from gpa_lsp.code.ptx.declarations import (
    FunctionHead,
    HeadDetails,
    Signature,
    find_function_head,
    lay_out,
    lay_out_shared,
    read_variables,
)
from gpa_lsp.code.ptx.instructions import OpcodeForm
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.operands import incomplete
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError

BODY_FIELDS = frozenset(Body.__struct_fields__)
HEAD_FIELDS = frozenset(HeadDetails.__struct_fields__)


class DeferredFunction(PtxFunction):
    """A function whose head and body are read, each when one of its fields is first looked at.

    Errors in them are raised then, as :class:`~gpa_lsp.foundation.errors.InputError`, and again each time.
    """

    __slots__ = ("_read_body", "_read_head")

    _read_head: "Callable[[], HeadDetails]"
    _read_body: "Callable[[], Body]"

    @classmethod
    def defer(
        cls, head: FunctionHead, read_head: "Callable[[], HeadDetails]", read_body: "Callable[[], Body]"
    ) -> "DeferredFunction":
        """A function with that head."""
        function = object.__new__(cls)
        object.__setattr__(function, "name", head.name)
        object.__setattr__(function, "is_entry", head.is_entry)
        object.__setattr__(function, "_read_head", read_head)
        object.__setattr__(function, "_read_body", read_body)
        return function

    def __getattr__(self, name: str) -> object:
        # Only asked for what is not set: a field of the head or the body, before it was read.
        if name in HEAD_FIELDS:
            self._take(self._read_head(), HEAD_FIELDS)
        elif name in BODY_FIELDS:
            self._take(self._read_body(), BODY_FIELDS)
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _take(self, read: object, names: frozenset[str]) -> None:
        for name in names:
            object.__setattr__(self, name, getattr(read, name))


_NAME = re.compile(r"[A-Za-z_$%][\w$%]*", re.ASCII)
_DECLARES_SHARED = re.compile(r"\.shared\s+\.")
_CALLS_INDIRECTLY = re.compile(r"\.(?:callprototype|calltargets)\b")


_PIECE = re.compile(
    r"\s*+(?:\.version\s+(?P<major>\d{1,3})\.(?P<version>\d{1,3})"
    r"|\.target\s+(?P<target>[\w, \t]+)"
    r"|\.address_size\s+(?P<address_size>\d{1,3})"
    r"|\.file\s+(?P<number>\d{1,9})\s+\"(?P<file>[^\"\n]*+)\"[^\n]*+"
    r"|\.section\s+(?P<section>[\w.$]++)[^{;\"]*+\{"
    r"|(?P<loc>\.loc\b[^\n]*)"
    r"|(?>(?:\.(?:extern|visible|weak|common)\s+)*)\.(?P<function>entry|func)\b"
    r"|\.alias\s+(?P<alias>[\w$%.]++)\s*+,\s*+(?P<aliasee>[\w$%.]++)\s*+;"
    r"|(?P<pragma>\.pragma\b[^;]*;)"
    r"|(?P<variable>\.[a-z][^;\"]*+);"
    r"|(?P<stray>;)|(?P<end>\Z))",
    re.ASCII,
)
_HEAD_END = re.compile(r"[{;]")
_BRACE = re.compile(r"\"[^\"\n]*+\"|[{}]")
_MOST_FUNCTIONS = 100_000


# A function's body in the text, its braces left out: its first character, the place behind its last one, and the line (from 1) of the first
_Span = tuple[int, int, int]


class ModuleReader:
    """Reads the outermost level of a module, and its functions when they are first looked at."""

    def __init__(self, name: str, original: str) -> None:
        self.text = blank_comments(original)  # the same with comments blanked
        # where the functions' bodies are, once it was read; an alias has that of its function
        self.bodies: dict[str, _Span] = {}
        self._name = name
        self._original = original
        self._version: tuple[int, int] | None = None
        self._target = ""
        self._files: dict[int, str] = {}
        self._heads: dict[str, FunctionHead] = {}
        self._variables: dict[str, PtxVariable] = {}
        self._debug_strings = ""
        self._place = 0
        self._line = 1
        self._counted = 0
        # of the functions
        self._functions: dict[str, PtxFunction] = {}
        self._module_names: frozenset[str] = frozenset()
        self._names = DebugNames("")  # of inlined functions
        self._forms: dict[str, OpcodeForm] = {}
        self._possible: dict[Signature, tuple[str, ...]] = {}
        self._declaring: tuple[str, ...] = ()  # Device functions with shared memory of their own
        self._mentions: dict[str, frozenset[str]] = {}

    def read(self) -> PtxModule:
        """Read the outermost level; functions are read when first looked at."""
        try:
            self._read_pieces()
        except InputError as error:
            error.place = error.place or f"line {self._count_lines(self._place)}"
            raise
        if self._version is None or not self._target:
            raise InputError(
                ".version and .target are missing: this is not PTX", remedy="give PTX as a compiler writes it"
            )
        self._variables = _lay_out_module(self._variables)
        self._names = DebugNames(self._debug_strings)
        self._module_names = frozenset(self._heads) | frozenset(self._variables)
        self._declaring = tuple(
            name
            for name, (start, end, _) in self.bodies.items()
            if not self._heads[name].is_entry and _DECLARES_SHARED.search(self.text, start, end)
        )
        for name, head in self._heads.items():
            self._functions[name] = DeferredFunction.defer(
                head, partial(self._read_head, name), partial(self._read_body, name)
            )
        return PtxModule(
            name=self._name,
            version=self._version,
            target=self._target,
            files=self._files,
            functions=self._functions,
            variables=self._variables,
            text=self._original,
        )

    def _count_lines(self, place: int) -> int:
        self._line += self.text.count("\n", self._counted, place)
        self._counted = place
        return self._line

    def _read_pieces(self) -> None:
        text = self.text
        while True:
            match = _PIECE.match(text, self._place)
            if match is None:
                rest = text[self._place : self._place + 4096].lstrip()
                self._place = min(len(text), self._place + 4096) if not rest else text.index(rest[0], self._place)
                raise incomplete(f"{' '.join(rest.split())[:60]!r} is not part of a module")
            kind = match.lastgroup or ""
            self._place = match.start(kind)
            end = match.end()
            if kind == "end":
                return
            if kind == "function":
                end = self._read_function(end, is_entry=match["function"] == "entry")
            elif kind == "section":
                end = self._skip_braces(end)
                if match["section"] == ".debug_str":
                    self._debug_strings += text[match.end() : end - 1]
            else:
                self._read_directive(kind, match)
            self._place = end

    def _read_directive(self, kind: str, match: re.Match[str]) -> None:
        if kind == "version":
            self._version = (int(match["major"]), int(match["version"]))
        elif kind == "target":
            self._target = match["target"].split(",")[0].strip()
        elif kind == "address_size" and match["address_size"] != "64":
            raise UnsupportedInputError(
                f"addresses of {match['address_size']} bits", remedy="compile for a target of 64 bits"
            )
        elif kind == "file":
            self._files[int(match["number"])] = match["file"]
        elif kind == "variable":
            for variable in read_variables(match["variable"]):
                known = self._variables.get(variable.name)
                if known is None or known.is_extern or not variable.is_extern:
                    self._variables[variable.name] = variable
        elif kind == "aliasee":
            self._add_alias(match["alias"], match["aliasee"])

    def _add_alias(self, alias: str, name: str) -> None:
        head = self._heads.get(name)
        if head is None:
            raise incomplete(f"an alias of {name[:80]!r}, which is not declared")
        self._heads[alias] = replace(head, name=alias)
        if name in self.bodies:
            self.bodies[alias] = self.bodies[name]

    def _read_function(self, start: int, *, is_entry: bool) -> int:
        """Read a head and find its body; returns where the text goes on."""
        match = _HEAD_END.search(self.text, start)
        if match is None:
            raise incomplete("a function has neither a body nor a semicolon")
        line = self._count_lines(self._place)
        head = find_function_head(self.text[start : match.start()], is_entry=is_entry, line=line)
        if match[0] == ";":
            self._heads.setdefault(head.name, head)
            return match.end()
        if head.name in self.bodies:
            raise InputError(f"{head.name[:80]!r} has two bodies", remedy="rename one of them")
        if len(self.bodies) >= _MOST_FUNCTIONS:
            raise InputError(f"more than {_MOST_FUNCTIONS} functions", remedy="split the module")
        end = self._skip_braces(match.end())
        self._heads[head.name] = head
        self.bodies[head.name] = match.end(), end - 1, self._count_lines(match.end())
        return end

    def _skip_braces(self, start: int) -> int:
        """The place behind the brace that closes the one before ``start``."""
        depth = 1
        for match in _BRACE.finditer(self.text, start):
            mark = match[0]
            if mark == "{":
                depth += 1
            elif mark == "}":
                depth -= 1
                if depth == 0:
                    return match.end()
        raise incomplete("a brace is not closed")

    def _read_head(self, name: str) -> HeadDetails:
        try:
            return self._heads[name].details
        except InputError as error:
            raise error.at(self._name) from None

    def _read_body(self, name: str) -> Body:
        span = self.bodies.get(name)
        if span is None:
            return Body()
        head, details = self._heads[name], self._read_head(name)
        reader = BodyReader(
            text=self.text,
            first_line=span[2],
            parameters=details.parameters + details.returns,
            lines=LineReader(name, self._files, self._names),
            heads=self._heads,
            module_names=self._module_names,
            forms=self._forms,
            possible=self._possible,
        )
        try:
            body = reader.read(span[0], span[1])
            if head.is_entry:
                body.shared = lay_out_shared((*body.shared, *self._list_shared(name)))
        except InputError as error:
            raise error.at(self._name) from None
        return body

    def _list_shared(self, kernel: str) -> list[PtxVariable]:
        """Shared memory of module level and of device functions that a kernel can reach."""
        of_module = {name: one for name, one in self._variables.items() if one.space == Space.SHARED}
        if not self._declaring and not of_module:
            return []
        reached = self._find_reached(kernel)
        mentioned = frozenset().union(*(self._find_mentions(name) for name in reached))
        found = [one for name, one in of_module.items() if name in mentioned]
        for name in self._declaring:
            if name in reached:
                found.extend(self._functions[name].shared)
        return found

    def _find_reached(self, kernel: str) -> set[str]:
        """The kernel, and the functions it mentions or can call through pointers, directly or not."""
        reached = {kernel}
        waiting = [kernel]
        calls_indirectly = False
        while waiting:
            name = waiting.pop()
            start, end, _ = self.bodies[name]
            found = {one for one in self._find_mentions(name) if one in self.bodies}
            if not calls_indirectly and _CALLS_INDIRECTLY.search(self.text, start, end):
                calls_indirectly = True
                found.update(one for one in self.bodies if not self._heads[one].is_entry)
            waiting.extend(found - reached)
            reached |= found
        return reached

    def _find_mentions(self, name: str) -> frozenset[str]:
        """Names of the module's variables and functions in a body."""
        known = self._mentions.get(name)
        if known is None:
            start, end, _ = self.bodies[name]
            known = self._mentions[name] = self._module_names.intersection(_NAME.findall(self.text, start, end))
        return known


def _lay_out_module(variables: dict[str, PtxVariable]) -> dict[str, PtxVariable]:
    """Offsets by space; shared memory gets its own in each kernel."""
    placed = dict(variables)
    for space in (Space.GLOBAL, Space.CONST):
        found, _ = lay_out(one for one in variables.values() if one.space == space and not one.is_extern)
        placed.update((one.name, one) for one in found)
    for one in variables.values():
        if one.space in (Space.LOCAL, Space.PARAM):
            raise UnsupportedInputError(
                f"{one.name[:80]!r} is declared outside functions", remedy="compile for the ABI"
            )
    return placed


_COMMENTS = re.compile(
    r"\"[^\"\n]*+\"|//[^\n]*+|/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/|^[ \t]*+(?:\#|@@)[^\n]*+|(?P<open>/\*|\")",
    re.MULTILINE,
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
    a module may have thousands of kernels of which one is wanted. Unknown instructions are parsed like all others.

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
        module = ModuleReader(name, text).read()
        if len(text) <= READ_AT_ONCE:
            for function in module.functions.values():
                len(function.parameters)
                len(function.instructions)
    except InputError as error:
        raise error.at(name) from None
    return module


# Where a function with a body stands: the place behind the brace that opens it, and of each instruction, as in
# :attr:`~gpa_lsp.code.ptx.model.PtxFunction.instructions`, its first label or itself, itself with its guard, and the place behind its semicolon.
FunctionText = tuple[int, tuple[tuple[int, int, int], ...]]


def find_statements(module: PtxModule) -> tuple[str, dict[str, FunctionText]]:
    """A module's text without comments, and where the functions with a body stand in it. An alias stands where its function does.

    >>> module = parse_ptx(".version 8.0 .target sm_80 .entry k() { .reg .pred %p<2>; A: @!%p1 bra A; ret; }", name="k")
    >>> text, functions = find_statements(module)
    >>> [text[start:end] for _, start, end in functions["k"][1]]
    ['@!%p1 bra A;', 'ret;']
    """
    reader = ModuleReader(module.name, module.text.rstrip("\0"))
    reader.read()
    return reader.text, {
        name: (start, list_instruction_spans(reader.text, start, end))
        for name, (start, end, _) in reader.bodies.items()
    }
