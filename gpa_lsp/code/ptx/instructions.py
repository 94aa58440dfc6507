"""The text of an instruction → :class:`PtxInstruction`; branches wait until all labels are known."""

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.declarations import FunctionHead, Signature
from gpa_lsp.code.ptx.model import CallDetails, Operand, PtxInstruction, Register, Symbol
from gpa_lsp.code.ptx.operands import OperandReader, Scope, incomplete
from gpa_lsp.code.ptx.scalar_types import TYPES, ScalarType
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import InlineChain


class OpcodeForm(Struct, frozen=True, kw_only=True):
    """An instruction's name taken apart."""

    opcode: str  # the first word
    suffixes: tuple[str, ...]  # the words behind it
    types: tuple[ScalarType, ...]  # those suffixes that are types
    has_result: bool  # the first operand is a result


def read_opcode(text: str) -> OpcodeForm:
    """Take a name apart.

    >>> form = read_opcode("cvt.rn.f32.s32")
    >>> form.opcode, form.suffixes, [kind.name for kind in form.types], form.has_result
    ('cvt', ('rn', 'f32', 's32'), ['F32', 'S32'], True)
    """
    opcode, *suffixes = text.split(".")
    return OpcodeForm(
        opcode=opcode,
        suffixes=tuple(suffixes),
        types=tuple(TYPES[word] for word in suffixes if word in TYPES),
        has_result=_has_result(opcode, suffixes),
    )


_JUMPS = {"bra": 1, "brx": 2}  # Operands of each: a label, or an index and a table of labels
_NO_RESULT = frozenset({
    "applypriority", "bra", "brkpt", "brx", "call", "cp", "discard", "exit", "fence", "griddepcontrol", "membar", "nanosleep",
    "pmevent", "prefetch", "prefetchu", "red", "ret", "setmaxnreg", "st", "stackrestore", "stmatrix", "sured", "sust", "tensormap",
    "trap",
})  # fmt: skip
# Instructions of which only some kinds give a result
_WITH_RESULT = {
    "bar": {"red"},
    "barrier": {"red"},
    "mbarrier": {"arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"},
    "wgmma": {"mma_async"},
    "tcgen05": {"ld"},
    "clusterlaunchcontrol": {"query_cancel"},
    "multimem": {"ld_reduce"},
}


def _has_result(opcode: str, suffixes: list[str]) -> bool:
    if opcode in _WITH_RESULT:
        return bool(_WITH_RESULT[opcode].intersection(suffixes))
    if opcode == "wmma":
        return suffixes[:1] != ["store"]
    return opcode not in _NO_RESULT


MOST_TEXT = 400  # Characters of an instruction that are kept


_BRACKETED = re.compile(r"\s*+((?>(?:[^,\[\]{}()]++|\[[^\[\]]*+\]|\{[^{}]*+\}|\([^()]*+\))*))(?:,|\Z)")
_CALL = re.compile(
    r"\s*+(?:\(([^()]*+)\)\s*+,\s*+)?([\w$%.]++)\s*+(?:,\s*+\(([^()]*+)\)\s*+)?(?:,\s*+([\w$%.]++)\s*+)?", re.ASCII
)


MOST_TARGETS = 5_000_000  # Of all jumps through tables of one function together


class InstructionReader:
    """Reads the instructions of one function. ``heads`` are those of all functions of the module, by name; ``forms`` caches opcodes taken apart,
    ``possible`` the functions that calls of a signature can reach.
    """

    def __init__(
        self,
        operands: OperandReader,
        heads: Mapping[str, FunctionHead],
        forms: dict[str, OpcodeForm],
        possible: dict[Signature, tuple[str, ...]],
    ) -> None:
        self.instructions: list[PtxInstruction] = []
        self._operands = operands
        self._heads = heads
        self._forms = forms
        self._possible = possible
        # instructions whose labels are still to be found: index, scope, label (of the table or prototype, empty for a direct call), line of the text
        self._waiting: list[tuple[int, Scope, str, int]] = []
        # labels of tables that were looked up, with the scope they stand in
        self._tables: dict[tuple[int, str], tuple[int, ...]] = {}
        self._targets_left = MOST_TARGETS

    def read(
        self,
        name: str,
        rest: str,
        scope: Scope,
        *,
        guard: tuple[str, bool] | None,
        line: int,
        chain: InlineChain | None,
        column: int,
    ) -> None:
        """Read one instruction."""
        form = self._forms.get(name)
        if form is None:
            form = self._forms[name] = read_opcode(name)
        destinations: tuple[Operand, ...] = ()
        sources: tuple[Operand, ...] = ()
        call = None
        if form.opcode == "call":
            call = self._read_call(rest, scope, line)
        elif form.opcode in _JUMPS:
            sources = self._read_jump(form.opcode, rest, scope, line)
        else:
            destinations, sources = self._read_operands(form, rest, scope)
        text = " ".join(f"{name} {rest}".split())
        self.instructions.append(
            PtxInstruction(
                index=len(self.instructions),
                opcode=form.opcode,
                suffixes=form.suffixes,
                types=form.types,
                destinations=destinations,
                sources=sources,
                guard=None if guard is None else self._read_guard(guard, scope),
                call=call,
                text=text if len(text) <= MOST_TEXT else text[:MOST_TEXT],
                text_line=line,
                chain=chain,
                column=column if chain else 0,
            )
        )

    def _read_jump(self, opcode: str, rest: str, scope: Scope, line: int) -> tuple[Operand, ...]:
        """The register that a jump reads (the index of ``brx``); its labels are resolved later."""
        parts = [part.strip() for part in rest.split(",")]
        if len(parts) != _JUMPS[opcode]:
            raise incomplete(f"{opcode} {rest.strip()[:60]!r} has no target")
        self._waiting.append((len(self.instructions), scope, parts[-1], line))
        return (self._require(parts[0], scope),) if opcode == "brx" else ()

    def _read_guard(self, guard: tuple[str, bool], scope: Scope) -> Register:
        found = self._require(guard[0], scope)
        return Register(found.slot, guard[1])

    def _require(self, text: str, scope: Scope) -> Register:
        found = self._operands.read(text, scope)
        if not isinstance(found, Register):
            raise InputError(f"{text[:60]!r} is not a register", remedy="declare it with .reg")
        return found

    def _read_operands(
        self, form: OpcodeForm, rest: str, scope: Scope
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        if "[" in rest or "{" in rest or "(" in rest:
            parts = _split_bracketed(rest)
        else:
            parts = rest.split(",") if rest and not rest.isspace() else []
        known = scope.operands
        read: list[Operand | None] = []
        for part in parts:
            operand = known.get(part)
            read.append(operand if operand is not None else self._operands.read(part, scope))
        results = 1 if form.has_result and read else 0
        if results and "|" in parts[0] and parts[0].lstrip()[0] == "{":
            raise InputError(f"{parts[0].strip()[:60]!r} is not a result", remedy="see PTX ISA, operands")
        return (
            tuple(one for one in read[:results] if one is not None),
            tuple(one for one in read[results:] if one is not None),
        )

    def _read_call(self, rest: str, scope: Scope, line: int) -> CallDetails:
        match = _CALL.fullmatch(rest)
        if match is None:
            raise incomplete(f"call {' '.join(rest.split())[:80]!r} is not a call")
        callee = self._operands.read(match[2], scope)
        lists = tuple(
            tuple(self._read_passed(part, scope) for part in (text or "").split(",") if part.strip())
            for text in (match[1], match[3])
        )
        label = match[4] or ""
        if isinstance(callee, Register):
            self._waiting.append((len(self.instructions), scope, label, line))
            return CallDetails(callee=None, pointer=callee, results=lists[0], arguments=lists[1])
        if not isinstance(callee, Symbol) or callee.name not in self._heads:
            raise incomplete(f"{match[2][:80]!r} is not a function")
        return CallDetails(callee=callee.name, pointer=None, results=lists[0], arguments=lists[1])

    def _read_passed(self, text: str, scope: Scope) -> Operand:
        found = self._operands.read(text, scope)
        if found is None:
            raise incomplete("a call passes nothing")
        return found

    def resolve_targets(self) -> None:
        """Fill in the targets of all branches and indirect calls that were read."""
        for place, scope, label, line in self._waiting:
            instruction = self.instructions[place]
            try:
                if instruction.call is not None:
                    call = replace(instruction.call, possible=self._find_possible(scope, label))
                    self.instructions[place] = replace(instruction, call=call)
                elif instruction.opcode == "bra":
                    self.instructions[place] = replace(instruction, target=self._find(label, scope))
                else:
                    self.instructions[place] = replace(instruction, targets=self._find_table(scope, label))
            except InputError as error:
                error.place = error.place or f"line {line}"
                raise

    def _find(self, label: str, scope: Scope) -> int:
        target = scope.find_label(label)
        if target is None:
            raise incomplete(f"there is no label {label[:60]!r} in scope")
        if target >= len(self.instructions):
            self._end_body()
        return target

    def _end_body(self) -> None:
        """Add the return that stands for the end of a body; nvcc leaves it out of functions that it takes never to return."""
        last = self.instructions[-1]
        end = replace(
            last,
            index=last.index + 1,
            opcode="ret",
            suffixes=(),
            types=(),
            destinations=(),
            sources=(),
            guard=None,
            text="ret",
        )
        self.instructions.append(replace(end, target=None, targets=(), call=None))

    def _find_table(self, scope: Scope, label: str) -> tuple[int, ...]:
        table = scope.find_table(label)
        if table is None:
            raise incomplete(f"there is no .branchtargets {label[:60]!r} in scope")
        home, labels = table
        key = (id(home), label)
        if key not in self._tables:
            self._tables[key] = tuple(self._find(one, home) for one in labels)
        targets = self._tables[key]
        self._targets_left -= len(targets)
        if self._targets_left < 0:
            raise InputError(
                f"jumps through tables have more than {MOST_TARGETS} targets", remedy="no compiler writes that many"
            )
        return targets

    def _find_possible(self, scope: Scope, label: str) -> tuple[str, ...]:
        if not label:
            return ()
        table = scope.find_table(label)
        if table is not None:
            return table[1]
        signature = scope.find_prototype(label)
        if signature is None:
            raise incomplete(f"there is no prototype {label[:60]!r} in scope")
        if signature not in self._possible:
            self._possible[signature] = tuple(name for name, head in self._heads.items() if head.signature == signature)
        return self._possible[signature]


def _split_bracketed(text: str) -> list[str]:
    """Operands, at the commas outside all brackets."""
    parts: list[str] = []
    place = 0
    while place < len(text):
        match = _BRACKETED.match(text, place)
        if match is None or match.end() == place:
            raise incomplete(f"{' '.join(text.split())[:80]!r} are not operands")
        parts.append(match[1].strip())
        place = match.end()
    return parts
