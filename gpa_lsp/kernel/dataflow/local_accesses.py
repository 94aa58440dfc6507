"""What each access to local memory is for: a register that did not fit, a register saved for a caller, or an array.

Local memory is addressed from the stack pointer (R1). Registers that do not fit, and those a function has to preserve, go to fixed places there;
arrays whose index is computed are reached through another register.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.compiled_limits import CompiledLimits
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.code.binary.operands import OperandKind, parse_operand
from gpa_lsp.kernel.dataflow.arithmetic.patterns import Chain, load_patterns
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes

_STACK_POINTER = 1  # Resource number of R1, which compiled code uses as the stack pointer

_LAST_USE = "LU"
"""Modifier of a load that nobody repeats: the place may be dropped from the cache. ptxas gives it to reloads of spilled registers only.

Source: all spills of the fixtures, sm_75 to sm_120, and none of their arrays and saved registers."""

_OFFSET = re.compile(r"([+-]?)(-?)0x([0-9a-f]+)\]$")
_WORD_BYTES = 4
_WIDTH_BYTES = {"128": 16, "64": 8}
_ADDITIONS = ("IADD3", "IADD", "VIADD", "IADD2", "LEA")

_SLOT_BYTES = 4


class LocalUse(Enum):
    """What an access to local memory is for."""

    SPILL = "spill"  # A value that found no register
    SAVED_REGISTER = "saved register"  # A register that a called function must give back as it was
    # An array or structure on the stack; without an index computed at run time it could live in registers
    ARRAY = "array"


class LocalAccess(Struct, frozen=True, kw_only=True):
    """One load or store. Rows are the kernel's."""

    row: int  # the instruction
    use: LocalUse  # what it is for
    is_store: bool  # it writes local memory
    is_indexed: bool  # the address depends on more than the stack pointer
    slots: tuple[int, ...]  # offsets from the stack pointer of the words it touches; empty when indexed
    value_row: int | None  # of a store, the instruction that computed the value; None when not found close by


class _Seen(Struct, frozen=True):
    """An access before it is known what for; rows of the function."""

    row: int
    is_store: bool
    offset: int | None
    bytes: int

    @property
    def slots(self) -> tuple[int, ...]:
        if self.offset is None:
            return ()
        return tuple(range(self.offset, self.offset + self.bytes, _WORD_BYTES))


def find_local_accesses(kernel: KernelRows) -> tuple[LocalAccess, ...]:
    """Every access to local memory in a kernel, by row."""
    return kernel.once(_find_local_accesses)


def _find_local_accesses(kernel: KernelRows) -> tuple[LocalAccess, ...]:
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
    """The words an access touches: their routine and offset, because each routine has a frame of its own."""
    routine = find_scopes(kernel).routine_of(access.row)
    return [(routine, slot) for slot in access.slots]


def count_slots(kernel: KernelRows, limits: Mapping[str, CompiledLimits]) -> int:
    """Words of all frames that hold spilled registers."""
    return len({slot for access in find_spills(kernel, limits) for slot in list_slots(kernel, access)})


def measure_spills(kernel: KernelRows, limits: Mapping[str, CompiledLimits]) -> int:
    """Bytes of all frames of a thread that hold spilled registers."""
    return count_slots(kernel, limits) * _SLOT_BYTES


def _find_in_routine(flow: FunctionFlow, rows: range, *, is_called: bool) -> Iterable[LocalAccess]:
    seen = [_look_at(flow, row) for row in rows if flow.opcode(row).memory is MemorySpace.LOCAL]
    saved = {slot for one in seen if is_called and _saves_register(flow, one, rows) for slot in one.slots}
    spilled = {slot for one in seen if _LAST_USE in flow.mnemonic(one.row).split(".") for slot in one.slots}
    if not any(one.offset is None for one in seen):
        loaded = {slot for one in seen if not one.is_store for slot in one.slots}
        stored = {slot for one in seen if one.is_store for slot in one.slots}
        spilled |= loaded & stored
    for one in seen:
        use = LocalUse.ARRAY
        if not saved.isdisjoint(one.slots):
            use = LocalUse.SAVED_REGISTER
        elif not spilled.isdisjoint(one.slots):
            use = LocalUse.SPILL
        value = _find_value(flow, one.row) if one.is_store else None
        yield LocalAccess(
            row=flow.first_row + one.row,
            use=use,
            is_store=one.is_store,
            is_indexed=one.offset is None,
            slots=one.slots,
            value_row=None if value is None else flow.first_row + value,
        )


def _look_at(flow: FunctionFlow, row: int) -> _Seen:
    modifiers = flow.mnemonic(row).split(".")
    width = next((bytes_ for name, bytes_ in _WIDTH_BYTES.items() if name in modifiers), _WORD_BYTES)
    operand = next((one for one in flow.operands(row) if parse_operand(one).kind is OperandKind.ADDRESS), "")
    return _Seen(row, flow.opcode(row).access is Access.STORE, _find_offset(flow, row, operand), width)


def _find_offset(flow: FunctionFlow, row: int, operand: str) -> int | None:
    """Bytes from the stack pointer; None where the address depends on anything else."""
    registers = parse_operand(operand).expand(1)
    if registers in ((), (_STACK_POINTER,)):
        return _read_offset(operand)
    if len(registers) != 1:
        return None
    definition = flow.find_def(row, registers[0], flow.rows_before(row))
    if definition is None or tuple(flow.reads(definition)) != (_STACK_POINTER,):
        return None
    if load_patterns().holds(Chain.MOVES, flow.mnemonic(definition)):
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


def _saves_register(flow: FunctionFlow, one: _Seen, rows: range) -> bool:
    """A store of a register that the routine has not written: its caller's."""
    if not one.is_store or one.offset is None:
        return False
    values = parse_operand(flow.operands(one.row)[-1]).expand(1)
    if not values:
        return False
    window: Sequence[int] = [row for row in flow.rows_before(one.row) if row in rows]
    return flow.find_def(one.row, values[0], window) is None


def _find_value(flow: FunctionFlow, row: int) -> int | None:
    values = parse_operand(flow.operands(row)[-1]).expand(1)
    return flow.find_def(row, values[0], flow.rows_before(row)) if values else None
