"""PTX text → :class:`PtxModule`."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.ptx.bodies import Body, BodyReader, DebugNames, LineReader, list_instruction_spans
from gpa_lsp.code.ptx.declarations import lay_out, lay_out_shared, read_variables
from gpa_lsp.code.ptx.instructions import OpcodeForm, Signature
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.operands import evaluate_constant
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError

_HEAD = re.compile(
    r"\s*+(?:\.attribute\s*+\((?:[^()]++|\([^()]*+\))*+\)\s*+)?(?:\(([^()]*+)\)\s*+)?([A-Za-z_$%][\w$%.@]*+)\s*+(?:\(([^()]*+)\))?"
    r"([^()]*+(?:\([^()]*+\)[^()]*+)*+)\Z",
    re.ASCII,
)
_THREADS = re.compile(r"\.(maxntid|reqntid|reqnctapercluster)\s+(\w+)\s*(?:,\s*(\w+)\s*)?(?:,\s*(\w+)\s*)?", re.ASCII)
_MOST_PARAMETERS = 4096
_MOST_DIMENSION = 1 << 32


class HeadDetails(Struct, frozen=True, kw_only=True):
    """What stands in a function's head; fields as in :class:`~gpa_lsp.code.ptx.model.PtxFunction`."""

    parameters: tuple[PtxVariable, ...]
    returns: tuple[PtxVariable, ...]
    max_threads: int | None
    required_threads: tuple[int, int, int] | None
    cluster_blocks: int | None


class FunctionHead(Struct, frozen=True, kw_only=True, dict=True):
    """What stands before a function's body."""

    name: str  # as written
    is_entry: bool  # a kernel
    text: str  # from behind ``.entry`` or ``.func`` to the body or semicolon
    line: int  # 1-based, where it begins

    @cached_property
    def details(self) -> HeadDetails:
        """Its parameters and limits, read when they are first looked at.

        Raises:
            InputError: they are not PTX; the place is filled in.
        """
        try:
            return read_head_details(self.text)
        except InputError as error:
            error.place = error.place or f"line {self.line}"
            raise

    @property
    def signature(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bytes of what it returns and takes."""
        details = self.details
        returns, parameters = (tuple(one.size_bytes for one in some) for some in (details.returns, details.parameters))
        return returns, parameters


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


def find_function_head(text: str, *, is_entry: bool, line: int) -> FunctionHead:
    """The head that stands between ``.entry`` or ``.func`` and the body or semicolon, of which the name alone is read.

    Args:
        line: 1-based, where it begins.

    Raises:
        InputError: it is no head.

    >>> head = find_function_head("(.param .b32 out) half(.param .b32 a, .param .b64 b) .maxntid 128, 2", is_entry=False, line=1)
    >>> head.name, head.signature, [one.offset_bytes for one in head.details.parameters], head.details.max_threads
    ('half', ((4,), (4, 8)), [0, 8], 256)
    """
    return FunctionHead(name=_match_head(text)[2], is_entry=is_entry, text=text, line=line)


def read_head_details(text: str) -> HeadDetails:
    """Read the parameters and limits in a head.

    Raises:
        InputError: it is no head.

    >>> read_head_details("pair() .explicitcluster .reqnctapercluster 2, 2, 1").cluster_blocks
    4
    """
    match = _match_head(text)
    threads = {kind: sizes for kind, *sizes in _THREADS.findall(match[4])}
    most = _read_threads(threads.get("maxntid"))
    cluster = _read_threads(threads.get("reqnctapercluster"))
    return HeadDetails(
        parameters=_read_parameters(match[3]),
        returns=_read_parameters(match[1]),
        max_threads=None if most is None else most[0] * most[1] * most[2],
        required_threads=_read_threads(threads.get("reqntid")),
        cluster_blocks=None if cluster is None else cluster[0] * cluster[1] * cluster[2],
    )


def _match_head(text: str) -> re.Match[str]:
    match = _HEAD.match(text)
    if match is None:
        raise InputError(
            f"{' '.join(text.split())[:80]!r} is not a function header", remedy="check that the PTX is complete"
        )
    return match


def _read_parameters(text: str | None) -> tuple[PtxVariable, ...]:
    parts = (text or "").split(",", _MOST_PARAMETERS)
    if len(parts) > _MOST_PARAMETERS:
        raise InputError(f"more than {_MOST_PARAMETERS} parameters", remedy="no kernel takes that many")
    found: list[PtxVariable] = []
    for part in parts:
        if part.strip():
            found.extend(read_variables(part))
    if any(variable.space != Space.PARAM for variable in found):
        raise InputError("a parameter is not in .param", remedy="compile for the ABI (PTX 3.0 and later)")
    return lay_out(found)[0]


def _read_threads(sizes: list[str] | None) -> tuple[int, int, int] | None:
    if sizes is None:
        return None
    found = [evaluate_constant(size) if size else 1 for size in sizes]
    if any(isinstance(size, float) or not 1 <= size < _MOST_DIMENSION for size in found):
        raise InputError(f"blocks of {', '.join(sizes)} threads", remedy="give positive numbers")
    return int(found[0]), int(found[1]), int(found[2])


_NAME = re.compile(r"[A-Za-z_$%][\w$%]*", re.ASCII)
_DECLARES_SHARED = re.compile(r"\.shared\s+\.")
_CALLS_INDIRECTLY = re.compile(r"\.(?:callprototype|calltargets)\b")


class Span(Struct, frozen=True):
    """A function's body in the text, its braces left out."""

    start: int  # first character
    end: int  # behind the last one
    line: int  # 1-based line of ``start``


class Signatures(Mapping[str, Signature]):
    """Signatures of functions, by name, each read from its head when it is first asked for."""

    __slots__ = ("_heads",)

    def __init__(self, heads: Mapping[str, FunctionHead]) -> None:
        self._heads = heads

    def __getitem__(self, name: str) -> Signature:
        return self._heads[name].signature

    def __contains__(self, name: object) -> bool:
        return name in self._heads

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


class ModuleFunctions(Struct, kw_only=True):
    """Builds the functions of a module."""

    name: str  # of the module, for messages
    text: str  # comments blanked
    files: Mapping[int, str]  # number → path
    names: DebugNames  # of inlined functions
    heads: Mapping[str, FunctionHead]  # of all functions, by name, in order
    bodies: Mapping[str, Span]  # of those that have one
    variables: Mapping[str, PtxVariable]  # of module level
    _functions: dict[str, PtxFunction] = field(default_factory=dict)
    _module_names: frozenset[str] = frozenset()
    _forms: dict[str, OpcodeForm] = field(default_factory=dict)
    _possible: dict[Signature, tuple[str, ...]] = field(default_factory=dict)
    _declaring: tuple[str, ...] = ()  # Device functions with shared memory of their own
    _mentions: dict[str, frozenset[str]] = field(default_factory=dict)

    def build(self) -> dict[str, PtxFunction]:
        """All functions, by name, in order of the text."""
        self._module_names = frozenset(self.heads) | frozenset(self.variables)
        self._declaring = tuple(
            name
            for name, span in self.bodies.items()
            if not self.heads[name].is_entry and _DECLARES_SHARED.search(self.text, span.start, span.end)
        )
        for name, head in self.heads.items():
            self._functions[name] = DeferredFunction.defer(
                head, partial(self._read_head, name), partial(self._read_body, name)
            )
        return self._functions

    def _read_head(self, name: str) -> HeadDetails:
        try:
            return self.heads[name].details
        except InputError as error:
            raise error.at(self.name) from None

    def _read_body(self, name: str) -> Body:
        span = self.bodies.get(name)
        if span is None:
            return Body()
        head, details = self.heads[name], self._read_head(name)
        reader = BodyReader(
            text=self.text,
            first_line=span.line,
            parameters=details.parameters + details.returns,
            lines=LineReader(name, self.files, self.names),
            signatures=Signatures(self.heads),
            module_names=self._module_names,
            forms=self._forms,
            possible=self._possible,
        )
        try:
            body = reader.read(span.start, span.end)
            if head.is_entry:
                body.shared = lay_out_shared((*body.shared, *self._list_shared(name)))
        except InputError as error:
            raise error.at(self.name) from None
        return body

    def _list_shared(self, kernel: str) -> list[PtxVariable]:
        """Shared memory of module level and of device functions that a kernel can reach."""
        of_module = {name: one for name, one in self.variables.items() if one.space == Space.SHARED}
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
            span = self.bodies[name]
            found = {one for one in self._find_mentions(name) if one in self.bodies}
            if not calls_indirectly and _CALLS_INDIRECTLY.search(self.text, span.start, span.end):
                calls_indirectly = True
                found.update(one for one in self.bodies if not self.heads[one].is_entry)
            waiting.extend(found - reached)
            reached |= found
        return reached

    def _find_mentions(self, name: str) -> frozenset[str]:
        """Names of the module's variables and functions in a body."""
        known = self._mentions.get(name)
        if known is None:
            span = self.bodies[name]
            known = self._module_names.intersection(_NAME.findall(self.text, span.start, span.end))
            self._mentions[name] = known
        return known


_PIECE = re.compile(
    r"\s*+(?:\.version\s+(?P<major>\d{1,3})\.(?P<version>\d{1,3})"
    r"|\.target\s+(?P<target>[\w, \t]+)"
    r"|\.address_size\s+(?P<address_size>\d{1,3})"
    r"|\.file\s+(?P<number>\d{1,9})\s+\"(?P<file>[^\"\n]*+)\"[^\n]*+"
    r"|\.section\s+(?P<section>[\w.$]++)[^{;\"]*+\{"
    r"|(?P<loc>\.loc\b[^\n]*)"
    r"|(?:\.(?:extern|visible|weak|common)\s+)*+\.(?P<function>entry|func)\b"
    r"|\.alias\s+(?P<alias>[\w$%.]++)\s*+,\s*+(?P<aliasee>[\w$%.]++)\s*+;"
    r"|(?P<pragma>\.pragma\b[^;]*;)"
    r"|(?P<variable>\.[a-z][^;\"]*+);"
    r"|(?P<stray>;)|(?P<end>\Z))",
    re.ASCII,
)
_HEAD_END = re.compile(r"[{;]")
_BRACE = re.compile(r"\"[^\"\n]*+\"|[{}]")
_MOST_FUNCTIONS = 100_000
_REMEDY = "check that the PTX is complete"


class ModuleReader(Struct, kw_only=True):
    """Reads the outermost level of a module."""

    name: str  # for messages
    original: str  # the whole text
    text: str  # the same with comments blanked
    _version: tuple[int, int] | None = None
    _target: str = ""
    _files: dict[int, str] = field(default_factory=dict)
    _heads: dict[str, FunctionHead] = field(default_factory=dict)
    _bodies: dict[str, Span] = field(default_factory=dict)
    _variables: dict[str, PtxVariable] = field(default_factory=dict)
    _debug_strings: str = ""
    _place: int = 0
    _line: int = 1
    _counted: int = 0

    def read(self) -> PtxModule:
        """Read it.

        Raises:
            InputError: it is not PTX; the place is filled in.
        """
        try:
            self._read_pieces()
        except InputError as error:
            error.place = error.place or f"line {self._count_lines(self._place)}"
            raise
        if self._version is None or not self._target:
            raise InputError(
                ".version and .target are missing: this is not PTX", remedy="give PTX as a compiler writes it"
            )
        variables = _lay_out_module(self._variables)
        functions = ModuleFunctions(
            name=self.name,
            text=self.text,
            files=self._files,
            names=DebugNames(self._debug_strings),
            heads=self._heads,
            bodies=self._bodies,
            variables=variables,
        )
        return PtxModule(
            name=self.name,
            version=self._version,
            target=self._target,
            files=self._files,
            functions=functions.build(),
            variables=variables,
            text=self.original,
        )

    @property
    def bodies(self) -> Mapping[str, Span]:
        """Where the functions' bodies are, once it was read; an alias has that of its function."""
        return self._bodies

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
                raise InputError(f"{' '.join(rest.split())[:60]!r} is not part of a module", remedy=_REMEDY)
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
            raise InputError(f"an alias of {name[:80]!r}, which is not declared", remedy=_REMEDY)
        self._heads[alias] = replace(head, name=alias)
        if name in self._bodies:
            self._bodies[alias] = self._bodies[name]

    def _read_function(self, start: int, *, is_entry: bool) -> int:
        """Read a head and find its body; returns where the text goes on."""
        match = _HEAD_END.search(self.text, start)
        if match is None:
            raise InputError("a function has neither a body nor a semicolon", remedy=_REMEDY)
        line = self._count_lines(self._place)
        head = find_function_head(self.text[start : match.start()], is_entry=is_entry, line=line)
        if match[0] == ";":
            self._heads.setdefault(head.name, head)
            return match.end()
        if head.name in self._bodies:
            raise InputError(f"{head.name[:80]!r} has two bodies", remedy="rename one of them")
        if len(self._bodies) >= _MOST_FUNCTIONS:
            raise InputError(f"more than {_MOST_FUNCTIONS} functions", remedy="split the module")
        end = self._skip_braces(match.end())
        self._heads[head.name] = head
        self._bodies[head.name] = Span(match.end(), end - 1, self._count_lines(match.end()))
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
        raise InputError("a brace is not closed", remedy=_REMEDY)


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


class FunctionText(Struct, frozen=True, kw_only=True):
    """Where a function with a body stands."""

    start: int  # behind the brace that opens its body
    # of each instruction, as in :attr:`~gpa_lsp.code.ptx.model.PtxFunction.instructions`: its first label or itself, itself with its guard, and the
    # place behind its semicolon
    spans: tuple[tuple[int, int, int], ...]


class ModuleStatements(Struct, frozen=True, kw_only=True):
    """A module's text with the places in it."""

    text: str  # without comments
    functions: dict[str, FunctionText]  # those with a body, by name. An alias stands where its function does.


def find_statements(module: PtxModule) -> ModuleStatements:
    """Find them.

    >>> from gpa_lsp.code.ptx.parse import parse_ptx
    >>> module = parse_ptx(".version 8.0 .target sm_80 .entry k() { .reg .pred %p<2>; A: @!%p1 bra A; ret; }", name="k")
    >>> found = find_statements(module)
    >>> [found.text[start:end] for _, start, end in found.functions["k"].spans]
    ['@!%p1 bra A;', 'ret;']
    """
    text = blank_comments(module.text.rstrip("\0"))
    reader = ModuleReader(name=module.name, original=module.text, text=text)
    reader.read()
    return ModuleStatements(
        text=text,
        functions={
            name: FunctionText(start=span.start, spans=list_instruction_spans(text, span.start, span.end))
            for name, span in reader.bodies.items()
        },
    )
