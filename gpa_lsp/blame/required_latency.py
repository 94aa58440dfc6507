"""How many cycles must lie between an instruction of fixed latency and one that reads its result, by the architecture's hazard tables."""

from typing import NamedTuple

from gpa_lsp.arch.figures import Figure
from gpa_lsp.arch.hazards import CycleBounds, LatencyClass
from gpa_lsp.arch.model import Architecture
from gpa_lsp.binary.model import ResourceKind
from gpa_lsp.binary.opcodes import Pipe
from gpa_lsp.binary.operands import Operand, OperandKind, OperandTable
from gpa_lsp.binary.sass import split_operands
from gpa_lsp.blame.operands import RegisterUses
from gpa_lsp.blame.view import FunctionView

LONGEST_STALL_CYCLES = 15
"""The largest stall count an instruction can encode: how far a cause is looked for where no table says."""

_FACTOR_COUNT = 2
"""IMAD.WIDE's first two sources are factors, the third is added."""


class _Pair(NamedTuple):
    """What the latency between two instructions depends on.

    Attributes:
        writer: index of the def's mnemonic.
        reader: index of the use's.
        kind: of the resource.
        is_special: it is the guard of the use, or the address of a constant bank.
        result_register: which register of the def's result, where that matters.
        source_operand: which source of the use, where that matters.
        source_register: which register of it.
    """

    writer: int
    reader: int
    kind: int
    is_special: bool
    result_register: int = 0
    source_operand: int = 0
    source_register: int = 0


class RequiredLatencies:
    """Required distances between the instructions of one function; what was looked up is remembered.

    Attributes:
        longest_cycles: no pair needs more.
    """

    __slots__ = (
        "_architecture",
        "_guards",
        "_is_wide",
        "_known",
        "_mnemonic_of",
        "_operands",
        "_uses",
        "_view",
        "longest_cycles",
    )

    def __init__(self, view: FunctionView, uses: RegisterUses) -> None:
        self._view, self._uses, self._architecture = view, uses, view.architecture
        self._operands = OperandTable()
        self._guards: list[int] = view.instructions.guard.tolist()
        self._mnemonic_of: list[int] = view.instructions.mnemonic_index.tolist()
        self._is_wide = [_is_wide(view.architecture, mnemonic) for mnemonic in view.instructions.mnemonics]
        self._known: dict[_Pair, CycleBounds | None] = {}
        self.longest_cycles = _find_longest(view.architecture)

    def find(self, def_row: int, use_row: int, resource: int) -> CycleBounds | None:
        """Cycles from the issue of the def to the earliest issue of the use.

        Args:
            def_row: writes the resource.
            use_row: reads it.
            resource: resource number.

        Returns:
            None where the tables have no number, and without a table.
        """
        if self._architecture is None:
            return None
        pair = self._describe(def_row, use_row, resource)
        if pair not in self._known:
            self._known[pair] = self._look_up(self._architecture, pair)
        return self._known[pair]

    def _describe(self, def_row: int, use_row: int, resource: int) -> _Pair:
        writer, reader, kind = self._mnemonic_of[def_row], self._mnemonic_of[use_row], resource >> 8
        if kind == ResourceKind.UNIFORM_REGISTER:
            return _Pair(writer, reader, kind, self._is_bank_address(use_row, resource))
        if kind != ResourceKind.REGISTER:
            return _Pair(writer, reader, kind, resource == self._guards[use_row])
        result = resource - self._uses.writes(def_row)[0] if self._is_wide[writer] else 0
        source = self._place_source(use_row, resource) if self._is_wide[reader] else (0, 0)
        return _Pair(writer, reader, kind, False, result, *source)

    def _look_up(self, architecture: Architecture, pair: _Pair) -> CycleBounds | None:
        mnemonics = self._view.instructions.mnemonics
        writer, reader = mnemonics[pair.writer], mnemonics[pair.reader]
        if pair.kind == ResourceKind.REGISTER:
            return architecture.find_register_latency(
                writer,
                reader,
                result_register=pair.result_register,
                source_operand=pair.source_operand,
                source_register=pair.source_register,
            )
        if pair.kind == ResourceKind.PREDICATE:
            return architecture.find_predicate_latency(writer, reader, is_guard=pair.is_special)
        if pair.kind == ResourceKind.UNIFORM_REGISTER:
            return architecture.find_uniform_latency(writer, reader, is_bindless=pair.is_special)
        if pair.kind == ResourceKind.UNIFORM_PREDICATE:
            return architecture.find_uniform_predicate_latency(writer, reader, is_guard=pair.is_special)
        return None

    def _place_source(self, row: int, register: int) -> tuple[int, int]:
        """Which source operand of an IMAD.WIDE a register is, and which register of that; a factor counts before the addend."""
        values = [one for one in self._read_operands(row) if one.kind != OperandKind.PREDICATE][1:]
        for number, operand in enumerate(values):
            expanded = operand.expand(1 if number < _FACTOR_COUNT else 2)
            if register in expanded:
                return number, expanded.index(register)
        return 0, 0

    def _is_bank_address(self, row: int, register: int) -> bool:
        """Whether a uniform register is in the brackets of a constant operand; matrix units name descriptors that way."""
        if self._view.opcode(row).pipe == Pipe.TENSOR:
            return False
        indirect = (one for one in self._read_operands(row) if one.kind == OperandKind.INDIRECT)
        return any(register in one.expand(1) for one in indirect)

    def _read_operands(self, row: int) -> list[Operand]:
        written = self._view.instructions.texts[row].partition(self._view.mnemonic(row))[2].strip()
        return [self._operands[token] for token in split_operands(written)]


def _is_wide(architecture: Architecture | None, mnemonic: str) -> bool:
    return architecture is not None and architecture.opcodes.find_latency_class(mnemonic) is LatencyClass.IMAD_WIDE


def _find_longest(architecture: Architecture | None) -> int:
    if architecture is None:
        return LONGEST_STALL_CYCLES
    matrices = (
        architecture.register_latency,
        architecture.predicate_latency,
        architecture.uniform_latency,
        architecture.uniform_predicate_latency,
    )
    rows = [row.value for matrix in matrices for row in matrix.rows.values() if isinstance(row, Figure)]
    return max([LONGEST_STALL_CYCLES, *(cycles for row in rows for cycles in row.high_cycles if cycles is not None)])
