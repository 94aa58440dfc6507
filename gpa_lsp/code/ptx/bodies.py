"""The text between a function's braces → registers, variables and instructions, and their places: chains of frames.

A ``.loc`` with ``inlined_at`` names a place that an earlier ``.loc`` of the same function gave, so chains are built from what is known of that
place; the latest ``.loc`` of a place counts. Source: PTX ISA 9.0, sections 11.5.3 and 11.5.4.
"""

import re
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.ptx.declarations import FunctionHead, Signature, lay_out, read_registers, read_variables
from gpa_lsp.code.ptx.instructions import InstructionReader, OpcodeForm
from gpa_lsp.code.ptx.model import PtxInstruction, PtxVariable, Space
from gpa_lsp.code.ptx.operands import OperandReader, Scope, incomplete
from gpa_lsp.code.ptx.scalar_types import ScalarType, align_up
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.locations import Frame, InlineChain, join_source_path

MOST_FRAMES = 64  # Inline levels that are kept, the innermost ones; no compiler inlines so deeply

_LOC = re.compile(
    r"\.loc\s++(\d{1,9})\s++(\d{1,9})\s++(\d{1,9})(?!\d)"
    r"(?:\s*+(?:,\s*+)?function_name\s++([\w$.]++)\s*+(?:\+\s*+(\d{1,9})\s*+)?,\s*+inlined_at\s++(\d{1,9})\s++(\d{1,9})\s++(\d{1,9})(?!\d))?",
    re.ASCII,
)
_LABEL = re.compile(r"^[ \t]*+([A-Za-z_$%.][\w$.]*+)[ \t]*+:", re.MULTILINE | re.ASCII)
_BYTES = re.compile(r"\.b8\s+([\d,\sxXa-fA-F]+)", re.ASCII)


class DebugNames:
    """The strings between the braces of ``.section .debug_str``, by label."""

    def __init__(self, section: str) -> None:
        self._section = section
        self._bytes: bytes | None = None
        self._offsets: dict[str, int] = {}

    def find(self, label: str, offset: int) -> str | None:
        """The string at a label; None where there is none."""
        if self._bytes is None:
            self._bytes = self._read()
        start = self._offsets.get(label)
        if start is None or start + offset >= len(self._bytes):
            return None
        end = self._bytes.find(b"\0", start + offset)
        name = self._bytes[start + offset : end if end >= 0 else len(self._bytes)]
        return name.decode("utf-8", errors="backslashreplace") or None

    def _read(self) -> bytes:
        pieces = bytearray()
        parts = _LABEL.split(self._section)
        for part in range(len(parts)):
            if part % 2:
                self._offsets[parts[part]] = len(pieces)
                continue
            for listed in _BYTES.findall(parts[part]):
                values = (number.strip() for number in listed.split(","))
                pieces.extend(_read_byte(value) for value in values if value)
        return bytes(pieces)


def _read_byte(text: str) -> int:
    try:
        return int(text, 0) & 0xFF if len(text) <= 18 else 0
    except (
        ValueError
    ):  # such as 017, or two numbers without a comma: names are for people, a damaged one is no reason to stop
        return 0


class LineReader:
    """Follows the ``.loc`` directives of one function, by the paths of the module's files and the names of inlined functions."""

    def __init__(self, function: str, files: Mapping[int, str], names: DebugNames) -> None:
        self.column = 0  # 1-based, of the innermost place that was read last; 0 where it has none
        self._function = function
        self._files = files
        self._names = names
        self._paths: dict[int, str] = {}
        self._at: dict[tuple[int, int, int], InlineChain] = {}
        self._known: dict[tuple[str, int], InlineChain] = {}

    def read(self, directive: str) -> InlineChain | None:
        """The chain that a ``.loc`` gives what follows; None where it gives no line.

        Where it gives line 0 for inlined code, the place it was inlined at is what is left.
        """
        match = _LOC.match(directive)
        if match is None:
            raise InputError(f"{directive.strip()[:80]!r} names no line", remedy="write .loc FILE LINE COLUMN")
        place = (int(match[1]), int(match[2]), int(match[3]))
        outer: InlineChain = ()
        self.column = place[2] if place[1] else 0
        if match[4] is not None:
            outer_place = (int(match[6]), int(match[7]), int(match[8]))
            self.column = self.column if place[1] else outer_place[2]
            known = self._at.get(outer_place)
            outer = self._begin(outer_place, self._function, ()) if known is None else known
        # Chains are shared: ``outer`` is kept alive by the chains built on it, so that its id tells it.
        key = (directive, id(outer))
        chain = self._known.get(key)
        if chain is None:
            name = self._function if match[4] is None else self._names.find(match[4], int(match[5] or 0))
            chain = self._begin(place, name, outer)
            self._known[key] = chain
        self._at[place] = chain
        return chain or None

    def _begin(self, place: tuple[int, int, int], function: str | None, outer: InlineChain) -> InlineChain:
        number, line, _ = place
        if line == 0:
            return outer
        path = self._paths.get(number)
        if path is None:
            if number not in self._files:
                raise incomplete(f".loc names file {number}, which no .file lists")
            path = self._paths[number] = join_source_path("", self._files[number])
        return (Frame(file=path, line=line, function=function), *outer)[:MOST_FRAMES]


MOST_INSTRUCTIONS = 500_000  # Of one function; the largest kernels in use have a tenth

_PIECE = re.compile(
    r"\s*+(?:(?P<directive>\.(?:loc|file)\b[^\n]*+)"
    r"|(?P<open>\{)|(?P<close>\})"
    r"|(?P<label>[A-Za-z_$%][\w$]*+)\s*+:(?!:)"
    r"|(?:@(?P<negated>!?)\s*+(?P<guard>[\w$%.]++)\s++)?(?P<name>\.?[A-Za-z][\w.:]*+)(?P<rest>[^;\"]*+(?>(?:\"[^\"]*+\"[^;\"]*+)*));"
    r"|(?P<stray>;)|(?P<end>\Z))",
    re.ASCII,
)
_PROTOTYPE = re.compile(
    r"\s*+(?:\(([^()]*+)\)\s*+)?[\w$%.]++\s*+(?:\(([^()]*+)\)\s*+)?(?>(?:\.\w++[\d\s]*+)*)", re.ASCII
)


class Body(Struct, kw_only=True):
    """Content of a function's body; fields as in :class:`~gpa_lsp.code.ptx.model.PtxFunction`."""

    registers: tuple[ScalarType, ...] = ()
    register_names: tuple[str, ...] = ()
    instructions: tuple[PtxInstruction, ...] = ()
    locals: tuple[PtxVariable, ...] = ()
    shared: tuple[PtxVariable, ...] = ()
    call_parameters: tuple[PtxVariable, ...] = ()
    local_bytes: int = 0
    line: InlineChain | None = None


class BodyReader(Struct, kw_only=True):
    """Reads one body."""

    text: str  # of the module, comments blanked
    first_line: int  # of the body, 1-based
    parameters: tuple[PtxVariable, ...]  # of the function, and what it returns
    lines: LineReader  # follows its ``.loc``
    heads: Mapping[str, FunctionHead]  # of the module's functions
    module_names: frozenset[str]  # names of the module's variables and functions
    forms: dict[str, OpcodeForm]  # instruction names that were taken apart before
    possible: dict[Signature, tuple[str, ...]]  # what calls of a signature can reach, as far as that was asked for
    _line: int = 0
    _chain: InlineChain | None = None
    _first_chain: InlineChain | None = None
    _scope: Scope = field(default_factory=lambda: Scope(parent=None))
    _locals: list[PtxVariable] = field(default_factory=list)
    _shared: list[PtxVariable] = field(default_factory=list)
    # Variables of calls as written, with their place → as they are called
    _calls: dict[PtxVariable, PtxVariable] = field(default_factory=dict)
    _call_names: Counter[str] = field(default_factory=Counter)
    _label: str = ""

    def read(self, start: int, end: int) -> Body:
        """Read the text from ``start`` to ``end``, the body's braces left out."""
        self._line = self.first_line
        self._scope.variables.update((variable.name, variable) for variable in self.parameters)
        registers: list[tuple[str, ScalarType]] = []
        operands = OperandReader(registers, self.module_names)
        reader = InstructionReader(operands, self.heads, self.forms, self.possible)
        try:
            self._read_pieces(reader, self.text[start:end])
        except InputError as error:
            error.place = error.place or f"line {self._line}"
            raise
        reader.resolve_targets()
        local_variables, local_bytes = lay_out(self._locals)
        return Body(
            registers=tuple(kind for _, kind in registers),
            register_names=tuple(name for name, _ in registers),
            instructions=tuple(reader.instructions),
            locals=local_variables,
            shared=tuple(self._shared),
            call_parameters=tuple(self._calls.values()),
            local_bytes=align_up(local_bytes, 16),
            line=self._first_chain,
        )

    def _read_pieces(self, reader: InstructionReader, text: str) -> None:
        place = counted = 0
        match_piece = _PIECE.match
        while True:
            match = match_piece(text, place)
            if match is None:
                self._line += text.count("\n", counted, place) + _count_blank_lines(text, place)
                raise _refuse(text, place)
            kind = match.lastgroup
            begin = match.start(match.lastindex or 0)
            if kind == "rest":
                begin = match.start("guard") if match["guard"] is not None else match.start("name")
            self._line += text.count("\n", counted, begin)
            counted = begin
            place = match.end()
            if kind == "rest":
                if match["name"][0] == ".":
                    self._read_declaration(match["name"], match["rest"])
                    continue
                if len(reader.instructions) >= MOST_INSTRUCTIONS:
                    raise InputError(
                        f"a function of more than {MOST_INSTRUCTIONS} instructions",
                        remedy="split it; no kernel is that large",
                    )
                guard = None if match["guard"] is None else (match["guard"], match["negated"] == "!")
                reader.read(
                    match["name"],
                    match["rest"],
                    self._scope,
                    guard=guard,
                    line=self._line,
                    chain=self._chain,
                    column=self.lines.column,
                )
            elif kind == "end":
                break
            else:
                self._read_mark(kind or "", match, len(reader.instructions))
        if self._scope.parent is not None:
            raise incomplete("a brace is not closed")

    def _read_mark(self, kind: str, match: re.Match[str], next_instruction: int) -> None:
        if kind == "label":
            self._label = match["label"]
            if self._label in self._scope.labels:
                raise InputError(f"the label {self._label[:60]!r} is given twice", remedy="rename one of them")
            self._scope.labels[self._label] = next_instruction
        elif kind == "directive":
            if match["directive"].startswith(".loc"):
                self._chain = self.lines.read(match["directive"])
                self._first_chain = self._first_chain or self._chain
        elif kind == "open":
            self._scope = self._scope.open()
        elif kind == "close":
            if self._scope.parent is None:
                raise incomplete("a brace closes nothing")
            self._scope = self._scope.parent

    def _read_declaration(self, name: str, rest: str) -> None:
        word = name.split(".")[1]
        if word == "reg":
            kind, elements, names = read_registers(name + rest)
            for register, count in names:
                self._scope.declare_registers(register, kind, elements=elements, count=count)
        elif word in ("branchtargets", "calltargets"):
            self._scope.tables[self._label] = tuple(part.strip() for part in rest.split(",") if part.strip())
        elif word == "callprototype":
            self._scope.prototypes[self._label] = read_prototype(rest)
        elif word not in ("pragma", "noreturn"):
            for variable in read_variables(name + rest):
                self._declare(variable)

    def _declare(self, variable: PtxVariable) -> None:
        self._scope.operands.clear()
        if variable.space == Space.PARAM:
            variable = self._declare_call_parameter(variable)
        elif variable.space == Space.SHARED:
            self._shared.append(variable)
        elif variable.space == Space.LOCAL:
            self._locals.append(variable)
        else:
            raise UnsupportedInputError(
                f"{variable.name[:60]!r} is declared in a function, but not in its memory", remedy="declare it outside"
            )
        self._scope.variables[variable.name.partition("#")[0]] = variable

    def _declare_call_parameter(self, variable: PtxVariable) -> PtxVariable:
        scope = self._scope
        offset = align_up(scope.parameter_bytes, variable.alignment_bytes)
        scope.parameter_bytes = offset + variable.size_bytes
        placed = replace(variable, offset_bytes=offset)
        known = self._calls.get(placed)
        if known is None:
            self._call_names[variable.name] += 1
            number = self._call_names[variable.name]
            known = placed if number == 1 else replace(placed, name=f"{variable.name}#{number}")
            self._calls[placed] = known
        return known


def list_instruction_spans(text: str, start: int, end: int) -> tuple[tuple[int, int, int], ...]:
    """Places of each instruction of a body in the text: its first label (or itself), itself with its guard, and behind its semicolon."""
    spans: list[tuple[int, int, int]] = []
    place, labelled = start, -1
    while True:
        match = _PIECE.match(text, place, end)
        if match is None or match.lastgroup == "end":
            return tuple(spans)
        if match.lastgroup == "label":
            labelled = match.start("label") if labelled < 0 else labelled
        elif match.lastgroup == "rest" and match["name"][0] != ".":
            begin = match.start("name") if match["guard"] is None else text.rindex("@", place, match.start("guard"))
            spans.append((labelled if labelled >= 0 else begin, begin, match.end()))
            labelled = -1
        place = match.end()


def read_prototype(text: str) -> Signature:
    """Sizes of what an indirect call returns and takes, from ``(.param .b32 _) _ (.param .b32 _)``.

    >>> read_prototype("(.param .b32 _) _ (.param .b64 _, .param .align 4 .b8 _[12])")
    ((4,), (8, 12))
    """
    match = _PROTOTYPE.fullmatch(text)
    if match is None:
        raise incomplete(f"{' '.join(text.split())[:60]!r} is not a prototype")
    sizes = []
    for group in (1, 2):
        parts = (match[group] or "").split(",")
        sizes.append(tuple(read_variables(part)[0].size_bytes for part in parts if part.strip()))
    return sizes[0], sizes[1]


def _count_blank_lines(text: str, place: int) -> int:
    rest = text[place : place + 4096]
    return rest[: len(rest) - len(rest.lstrip())].count("\n")


def _refuse(text: str, place: int) -> InputError:
    shown = " ".join(text[place : place + 200].split())[:60]
    return incomplete(f"{shown!r} is not a PTX statement")
