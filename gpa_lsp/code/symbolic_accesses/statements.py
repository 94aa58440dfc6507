"""PTX instructions written from machine code, and the slice of it that addresses and jumps depend on."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, reduce
from operator import or_

from msgspec import Struct

from gpa_lsp.code.binary.model import Flow, Instructions, ResourceKind, encode_resource
from gpa_lsp.code.binary.sass import take_apart
from gpa_lsp.code.control_flow.graph import solve_backwards
from gpa_lsp.code.ptx.model import (
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    PtxModule,
    PtxVariable,
    Register,
    Space,
    Symbol,
)
from gpa_lsp.code.ptx.scalar_types import TYPES, ScalarType
from gpa_lsp.foundation.locations import InlineChain

ZERO = Immediate(0)
PARAMETERS = Symbol("parameters")
PARAMETER_BYTES = 4096 + 512
UNKNOWN = "unknown"  # An opcode that PTX does not have: an unknown function of the sources
_NOTHING = "nop"

_REGISTERS = encode_resource(ResourceKind.CONVERGENCE_BARRIER, 0)
_OF_KIND = (ScalarType.B64, ScalarType.B64, ScalarType.PRED, ScalarType.PRED)
_PARAMETER = PtxVariable(
    name=PARAMETERS.name, space=Space.PARAM, type=ScalarType.B8, count=PARAMETER_BYTES, alignment_bytes=8
)


@cache
def name_register(number: int) -> Register:
    """The register that stands for one of the machine's; see :func:`~gpa_lsp.code.binary.model.encode_resource`."""
    return Register(number)


NONE = name_register(_REGISTERS)  # Holds an unknown value
UNKNOWN_CONDITION = _REGISTERS + 1
_FIXED: tuple[ScalarType, ...] = (
    *(kind for kind in _OF_KIND for _ in range(_REGISTERS // len(_OF_KIND))),
    ScalarType.B64,
    ScalarType.PRED,
)


@cache
def _read_form(name: str) -> tuple[str, tuple[str, ...], tuple[ScalarType, ...]]:
    """Opcode, suffixes and those of them that are types."""
    opcode, *suffixes = name.split(".")
    return opcode, tuple(suffixes), tuple(TYPES[word] for word in suffixes if word in TYPES)


# An instruction whose target is not numbered yet: its name, what it writes and reads, its guard, its row in the machine code, the block it jumps to
_Statement = tuple[str, tuple[Operand, ...], tuple[Operand, ...], Register | None, int, int | None]


class Statements:
    """The instructions of one kernel, being written.

    Attributes:
    row: row of the machine code that the next instruction stands for.
    guard: guard of the next instruction.
    """

    def __init__(self) -> None:
        self._all: list[_Statement] = []
        self._starts: list[int] = []
        self._temporaries = 0
        self.row = 0
        self.guard: Register | None = None

    def begin_block(self, first: int) -> None:
        """Begin a block, at row ``first``."""
        self.row, self.guard = first, None
        self._starts.append(len(self._all))

    def end_block(self) -> None:
        """End a block; one without instructions gets one that does nothing."""
        if len(self._all) == self._starts[-1]:
            self.write(_NOTHING)

    def write(self, form: str, *sources: Operand, to: Sequence[Operand] = (), block: int | None = None) -> None:
        """Write one instruction."""
        self._all.append((form, tuple(to), sources, self.guard, self.row, block))

    def compute(self, form: str, *sources: Operand) -> Register:
        """Write one instruction with a new register as its result."""
        found = Register(len(_FIXED) + self._temporaries)
        self._temporaries += 1
        self.write(form, *sources, to=(found,))
        return found

    @property
    def mark(self) -> int:
        """Number of instructions written, for :meth:`take_back`."""
        return len(self._all)

    def take_back(self, mark: int) -> None:
        """Drop the instructions written since a mark."""
        del self._all[mark:]

    def finish(self, name: str, texts: Sequence[str], find_chain: Callable[[int], InlineChain | None]) -> PtxModule:
        """The module."""
        instructions = tuple(
            PtxInstruction(
                index=index,
                opcode=opcode,
                suffixes=suffixes,
                types=types,
                destinations=destinations,
                sources=sources,
                guard=guard,
                target=None if block is None else self._starts[block],
                text=texts[row],
                text_line=0,
                chain=find_chain(row),
            )
            for index, (form, destinations, sources, guard, row, block) in enumerate(self._all)
            for opcode, suffixes, types in (_read_form(form),)
        )
        function = PtxFunction(
            name=name,
            is_entry=True,
            parameters=(_PARAMETER,),
            returns=(),
            registers=(*_FIXED, *(ScalarType.B64 for _ in range(self._temporaries))),
            register_names=(),
            instructions=instructions,
        )
        return PtxModule(
            name=name, version=(8, 0), target="", files={}, functions={name: function}, variables={}, text=""
        )


LOADS = frozenset({"LD", "LDG", "LDL", "LDS"})
STORES = frozenset({"ST", "STG", "STL", "STS"})
_ACCESSES = LOADS | STORES
_ENDS = frozenset({Flow.BRANCH, Flow.EXIT, Flow.RETURN, Flow.TRAP})
_NEVER = ("@!PT", "@!UPT")
_ADDRESS = re.compile(r"(?:desc\[UR\d+\])?\[([^\]]*)\]")
_REGISTER = re.compile(r"\b(U?R)(\d+)\b")


# The slice of machine code that addresses and jumps depend on: most of a kernel computes values that neither needs, which leaves a few rows. Sets of
# registers are bits of a number, at the places that :func:`~gpa_lsp.code.binary.model.encode_resource` gives.


class MachineBlock(Struct, frozen=True, kw_only=True):
    """A basic block."""

    first: int  # row
    last: int  # row, included
    # rows on which an address or a jump depends, accesses and jumps included → registers and predicates that they write for those
    kept: dict[int, int]


def slice_machine_code(instructions: Instructions) -> tuple[MachineBlock, ...]:
    """The basic blocks, in order of the code, with the rows needed: liveness in which only addresses and jumps are uses."""
    flows = instructions.flow.tolist()
    targets = (instructions.target // 16).tolist()
    starts = _find_starts(flows, targets)
    lasts = [start - 1 for start in starts[1:]] + [len(flows) - 1]
    rows = _read_rows(instructions, flows)
    block_at = {start: block for block, start in enumerate(starts)}
    successors = [
        _list_successors(flows[last], targets[last], instructions.texts[last], block, block_at)
        for block, last in enumerate(lasts)
    ]
    kept: list[dict[int, int]] = [{} for _ in starts]

    def go_back(block: int, after: Sequence[int]) -> int:
        alive, kept[block] = _go_back(rows, starts[block], lasts[block], reduce(or_, after, 0))
        return alive

    solve_backwards(successors, go_back, 0)
    return tuple(
        MachineBlock(first=first, last=last, kept=one) for first, last, one in zip(starts, lasts, kept, strict=True)
    )


class _Row(Struct, frozen=True):
    """One row: resources it writes, those it reads to compute them, and those it reads even if no result is needed."""

    writes: int
    reads: int
    always: int
    is_kept: bool
    is_guarded: bool


def _read_rows(instructions: Instructions, flows: Sequence[int]) -> list[_Row | None]:
    """The rows; None for those that are never executed."""
    opcodes = [mnemonic.partition(".")[0] for mnemonic in instructions.mnemonics]
    guards = instructions.guard.tolist()
    found: list[_Row | None] = []
    for text, number, flow, guard, reads, writes in zip(
        instructions.texts,
        instructions.mnemonic_index.tolist(),
        flows,
        guards,
        instructions.reads.split(),
        instructions.writes.split(),
        strict=True,
    ):
        if text.startswith(_NEVER):
            found.append(None)
            continue
        written, read = _mark(writes), _mark(reads)
        is_guarded = guard >= 0
        if opcodes[number] in _ACCESSES:
            address = _mark_address(text) | (1 << guard if is_guarded else 0)
            found.append(_Row(written, address, address, True, is_guarded))
        elif flow in _ENDS:
            found.append(_Row(0, 0, read, True, is_guarded))
        else:
            found.append(_Row(written, read, 0, False, is_guarded))
    return found


@lru_cache(maxsize=1 << 12)
def _mark(numbers: tuple[int, ...]) -> int:
    return sum(1 << number for number in numbers)


@lru_cache(maxsize=1 << 12)
def _mark_address(text: str) -> int:
    """The registers of an address, low halves alone."""
    kinds = {"R": ResourceKind.REGISTER, "UR": ResourceKind.UNIFORM_REGISTER}
    return _mark(
        tuple(
            {
                encode_resource(kinds[kind], int(number))
                for operand in take_apart(text).operands
                for kind, number in _REGISTER.findall(find_address(operand) or "")
            }
        )
    )


def find_address(operand: str) -> str | None:
    """The text in the brackets of an address; None for any other operand.

    >>> find_address("desc[UR4][R2.64+0x10]"), find_address("[R3.X4+UR5]"), find_address("c[0x0][0x160]")
    ('R2.64+0x10', 'R3.X4+UR5', None)
    """
    match = _ADDRESS.fullmatch(operand)
    return None if match is None else match[1]


def _find_starts(flows: Sequence[int], targets: Sequence[int]) -> list[int]:
    starts = {0}
    for row, flow in enumerate(flows):
        if flow in _ENDS:
            starts.add(row + 1)
            if flow == Flow.BRANCH and targets[row] >= 0:
                starts.add(targets[row])
    starts.discard(len(flows))
    return sorted(starts)


def _list_successors(flow: int, target: int, text: str, block: int, block_at: dict[int, int]) -> list[int]:
    is_jump = flow == Flow.BRANCH and target >= 0 and not text.startswith(_NEVER)
    found = [block_at[target]] if is_jump else []
    # A branch may have a second condition among its operands: it falls through more often than it says.
    if flow not in _ENDS or flow == Flow.BRANCH or text.startswith("@"):
        found.append(block + 1)
    return [one for one in found if one < len(block_at)]


def _go_back(rows: Sequence[_Row | None], first: int, last: int, alive: int) -> tuple[int, dict[int, int]]:
    """Registers needed at a block's beginning, from those needed behind it; and the rows that are kept."""
    found: dict[int, int] = {}
    for number in range(last, first - 1, -1):
        row = rows[number]
        if row is None:
            continue
        written = alive & row.writes
        if written or row.is_kept:
            found[number] = written
        if written:
            alive = (alive if row.is_guarded else alive & ~row.writes) | row.reads
        alive |= row.always
    return alive, dict(sorted(found.items()))
