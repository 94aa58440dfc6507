"""What two versions of a kernel are compared by: :class:`CodeFacts`, from the code of each."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind, find_kind
from gpa_lsp.kernel.dataflow.loads_in_flight import count_loads_in_flight
from gpa_lsp.kernel.dataflow.unrolling import find_unrolling
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import ScopeTree, find_scopes

_SPACES = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED, MemorySpace.LOCAL})
_MOVES = frozenset({Access.LOAD, Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY})
# Instructions of low throughput that edits of the source add and take away
COSTLY_KINDS = (InstructionKind.FP64, InstructionKind.CONVERSION, InstructionKind.SPECIAL_FUNCTION)

_PADDING = "NOP"


class CodeFacts(Struct, frozen=True, kw_only=True):
    """A kernel as compiled, and the part of it that is looked at closely: a loop without the loops in it, or all of it."""

    statics: KernelStatics  # registers, spills, occupancy
    code: tuple[str, ...]  # of all instructions, as text; two kernels with the same do the same
    is_loop: bool  # the part is a loop
    instructions: int  # of the part, without padding
    copies: int | None  # iterations of the source's loop in one pass; 1 for a whole kernel, None where nothing tells
    loads_in_flight: int  # most loads from global memory at once, in the part
    accesses: Mapping[str, int]  # mnemonic → number of the part's instructions that move data to and from memory
    costly: Mapping[InstructionKind, int]  # kind → number of the part's instructions of low throughput


def find_code_facts(rows: KernelRows, statics: KernelStatics, *, file: str, lines: Sequence[int]) -> CodeFacts:
    """The facts of a kernel.

    Args:
        rows: of it.
        statics: of it.
        file: as compiled, which the lines are of.
        lines: where to look for the loop, the best one first; the whole kernel is looked at where none of them is in a loop.
    """
    scopes = find_scopes(rows)
    loop = _find_loop(rows, scopes, file, lines)
    part = np.arange(len(rows)) if loop is None else np.flatnonzero(scopes.innermost == loop)
    mnemonics = [(row, rows.mnemonic(row)) for row in part.tolist() if rows.mnemonic(row) != _PADDING]
    accesses = Counter(name for row, name in mnemonics if _is_access(rows, row))
    costly = Counter(kind for _, name in mnemonics if (kind := find_kind(name)) in COSTLY_KINDS)
    return CodeFacts(
        statics=statics,
        code=rows.texts,
        is_loop=loop is not None,
        instructions=len(mnemonics),
        copies=1 if loop is None else _count_copies(rows, loop),
        loads_in_flight=count_loads_in_flight(rows, part.tolist()),
        accesses=accesses,
        costly=costly,
    )


def _count_copies(rows: KernelRows, loop: int) -> int | None:
    found = find_unrolling(rows, loop)
    return found.copies if found.copies > 1 or found.repeats == 1 or found.counter_step is not None else None


def _is_access(rows: KernelRows, row: int) -> bool:
    opcode = rows.opcode(row)
    return opcode.memory in _SPACES and opcode.access in _MOVES


def _find_loop(rows: KernelRows, scopes: ScopeTree, file: str, lines: Sequence[int]) -> int | None:
    """The loop of the first line that has one; the largest where the compiler made several of it, as for a remainder."""
    for line in lines:
        own = {
            number
            for number in np.flatnonzero(scopes.is_loop).tolist()
            if (scopes.scopes[number].file, scopes.scopes[number].line) == (file, line)
        }
        inner = {scopes.loop_of(row) for row in range(len(rows)) if _is_of_line(rows, row, file, line)} - {-1}
        found = own or inner
        if found:
            sizes = {number: int((scopes.innermost == number).sum()) for number in found}
            return max(sizes, key=lambda number: (sizes[number], -number))
    return None


def _is_of_line(rows: KernelRows, row: int, file: str, line: int) -> bool:
    chain = rows.chain(row)
    return chain is not None and any(frame.file == file and frame.line == line for frame in chain)
