"""Purpose of each access to local memory: a spilled register, a register saved for a caller, or an array.

Local memory is addressed from the stack pointer (R1). Registers that do not fit, and those a function has to preserve, go to fixed places there;
arrays whose index is computed are reached through another register.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import CompiledLimits
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.code.binary.uses import OperandKind, parse_operand
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.dataflow.expansions import Chain, is_in_chain
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes

_STACK_POINTER = 1  # Resource number of R1, which compiled code uses as the stack pointer

# Modifier of a load that is not repeated: the place may be dropped from the cache. ptxas gives it to reloads of spilled registers only. Source: all
# spills of the fixtures, sm_75 to sm_120, and none of their arrays and saved registers.
_LAST_USE = "LU"

_OFFSET = re.compile(r"([+-]?)(-?)0x([0-9a-f]+)\]$")
_WORD_BYTES = 4
_WIDTH_BYTES = {"128": 16, "64": 8}
_ADDITIONS = ("IADD3", "IADD", "VIADD", "IADD2", "LEA")


class LocalUse(Enum):
    """Purpose of an access to local memory."""

    SPILL = "spill"  # A value that found no register
    SAVED_REGISTER = "saved register"  # A register that a called function must give back as it was
    # An array or structure on the stack; without an index computed at run time it could live in registers
    ARRAY = "array"


class LocalAccess(Struct, frozen=True, kw_only=True):
    """One load or store. Rows are the kernel's."""

    row: int  # the instruction
    use: LocalUse
    is_store: bool  # it writes local memory
    is_indexed: bool  # the address depends on more than the stack pointer
    slots: tuple[int, ...]  # offsets from the stack pointer of the words it touches; empty when indexed
    value_row: int | None  # of a store, the instruction that computed the value; None when not found close by


@remembered
def find_local_accesses(kernel: KernelRows) -> tuple[LocalAccess, ...]:
    """Every access to local memory in a kernel, by row."""
    found: list[LocalAccess] = []
    for index in range(len(kernel.functions)):
        flow = build_flow(kernel, index)
        if flow is None:
            continue
        is_kernel = index == 0
        for number, procedure in enumerate(flow.graph.procedures):
            start = procedure.start_offset // INSTRUCTION_BYTES
            rows = range(start, min(procedure.end_offset // INSTRUCTION_BYTES, len(flow)))
            found.extend(_find_in_routine(flow, rows, is_called=not is_kernel or number > 0))
    return tuple(found)


def find_spills(kernel: KernelRows, limits: Mapping[str, CompiledLimits]) -> tuple[LocalAccess, ...]:
    """Stores and reloads of spilled registers, by row."""
    return tuple(one for one in find_marked_accesses(kernel, limits) if one.use is LocalUse.SPILL)


def find_marked_accesses(kernel: KernelRows, limits: Mapping[str, CompiledLimits]) -> tuple[LocalAccess, ...]:
    """Every access to local memory of a kernel, by row; the compiler's marks decide what is a spill in functions that have any."""
    marked = {name: frozenset(one.spill_offsets) for name, one in limits.items() if one.spill_offsets}
    found = []
    for access in find_local_accesses(kernel):
        function = kernel.function_of(access.row)
        offsets = marked.get(function.name)
        if offsets is None:
            found.append(access)
            continue
        is_spill = int(function.pc_offsets[kernel.index_of(access.row)]) in offsets
        kept = LocalUse.ARRAY if access.use is LocalUse.SPILL else access.use
        found.append(replace(access, use=LocalUse.SPILL if is_spill else kept))
    return tuple(found)


def list_slots(kernel: KernelRows, access: LocalAccess) -> list[tuple[int, int]]:
    """(routine, offset) of the words an access touches; each routine has a frame of its own."""
    routine = find_scopes(kernel).routine_of(access.row)
    return [(routine, slot) for slot in access.slots]


def measure_spills(kernel: KernelRows, limits: Mapping[str, CompiledLimits]) -> int:
    """Bytes of all frames of a thread that hold spilled registers."""
    return _WORD_BYTES * len({slot for access in find_spills(kernel, limits) for slot in list_slots(kernel, access)})


def _find_in_routine(flow: FunctionFlow, rows: range, *, is_called: bool) -> Iterable[LocalAccess]:
    seen = {row: _look_at(flow, row) for row in rows if flow.opcode(row).memory is MemorySpace.LOCAL}
    saved = {
        slot for row, one in seen.items() if is_called and _saves_register(flow, row, one, rows) for slot in one.slots
    }
    spilled = {slot for row, one in seen.items() if _LAST_USE in flow.mnemonic(row).split(".") for slot in one.slots}
    if not any(one.is_indexed for one in seen.values()):
        loaded, stored = (
            {slot for one in seen.values() if one.is_store == is_store for slot in one.slots}
            for is_store in (False, True)
        )
        spilled |= loaded & stored
    for one in seen.values():
        if not saved.isdisjoint(one.slots):
            yield replace(one, use=LocalUse.SAVED_REGISTER)
        elif not spilled.isdisjoint(one.slots):
            yield replace(one, use=LocalUse.SPILL)
        else:
            yield one


def _look_at(flow: FunctionFlow, row: int) -> LocalAccess:
    """An access, as one to an array until its purpose is known."""
    modifiers = flow.mnemonic(row).split(".")
    width = next((bytes_ for name, bytes_ in _WIDTH_BYTES.items() if name in modifiers), _WORD_BYTES)
    operand = next((one for one in flow.operands(row) if parse_operand(one).kind is OperandKind.ADDRESS), "")
    offset, is_store = _find_offset(flow, row, operand), flow.opcode(row).access is Access.STORE
    value = _find_value(flow, row, flow.rows_before(row)) if is_store else None
    return LocalAccess(
        row=flow.first_row + row,
        use=LocalUse.ARRAY,
        is_store=is_store,
        is_indexed=offset is None,
        slots=() if offset is None else tuple(range(offset, offset + width, _WORD_BYTES)),
        value_row=None if value is None else flow.first_row + value,
    )


def _find_offset(flow: FunctionFlow, row: int, operand: str) -> int | None:
    """Bytes from the stack pointer; None where the address depends on anything else."""
    registers = parse_operand(operand).expand(1)
    if registers in ((), (_STACK_POINTER,)):
        return _read_offset(operand)
    if len(registers) != 1:
        return None
    definition = flow.find_def(row, registers[0], flow.rows_before(row))
    if definition is None or tuple(flow.reads_of[definition]) != (_STACK_POINTER,):
        return None
    if is_in_chain(flow.mnemonic(definition), Chain.MOVES):
        return _read_offset(operand)
    constants = [one for one in flow.operands(definition)[1:] if one.startswith(("0x", "-0x"))]
    if flow.opcode(definition).name not in _ADDITIONS or len(constants) != 1:
        return None
    return int(constants[0], 16) + _read_offset(operand)


def _read_offset(operand: str) -> int:
    """The constant of an address.

    >>> _read_offset("[R1+0x10]"), _read_offset("[R1+-0x8]"), _read_offset("[R1]")
    (16, -8, 0)
    """
    match = _OFFSET.search(operand)
    if match is None:
        return 0
    return int(match[3], 16) * (-1 if "-" in match[1] + match[2] else 1)


def _saves_register(flow: FunctionFlow, row: int, one: LocalAccess, rows: range) -> bool:
    """Whether an access stores a register that the routine has not written: its caller's."""
    if not one.is_store or one.is_indexed or not parse_operand(flow.operands(row)[-1]).expand(1):
        return False
    return _find_value(flow, row, [before for before in flow.rows_before(row) if before in rows]) is None


def _find_value(flow: FunctionFlow, row: int, window: Sequence[int]) -> int | None:
    """The instruction of a window that computed the stored value."""
    values = parse_operand(flow.operands(row)[-1]).expand(1)
    return flow.find_def(row, values[0], window) if values else None
