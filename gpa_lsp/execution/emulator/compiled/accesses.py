"""Operations of loads, stores and atomic instructions."""

from typing import Any

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, LOAD, MOST_ELEMENTS, STORE
from gpa_lsp.execution.emulator.engine.binder import flatten
from gpa_lsp.execution.emulator.engine.resolving import STRONG, find_space
from gpa_lsp.execution.emulator.operations.atomics import atomic_function

_ADDRESS_BYTES = (4, 8)
_NUMBERS = {"add": 0, "and": 1, "or": 2, "xor": 3, "exch": 4, "cas": 5, "inc": 6, "dec": 7, "min": 8, "max": 9}
_SIGNED = 2  # How far the signed forms of min and max lie behind the others
_ADD_FLOAT = 12
_MOST_OFFSET = 1 << 62


def _describe(lowering: Lowering, operand: Operand, kind: ScalarType, elements: int) -> dict[str, Any]:
    """What loads, stores and atomic operations have in common."""
    if not isinstance(operand, Address) or elements > MOST_ELEMENTS:
        raise NotLowered
    words = lowering.instruction.suffixes
    offset, width = 0, 8
    if isinstance(operand.base, Register):
        width = lowering.width(operand.base)
        if width not in _ADDRESS_BYTES:
            raise NotLowered
        place, offset = lowering.place_exactly(operand.base, width), operand.offset_bytes
        if not -_MOST_OFFSET <= offset < _MOST_OFFSET:
            raise NotLowered
    elif isinstance(operand.base, Symbol):
        if lowering.machine.texture_references.get(operand.base.name) is not None:
            raise NotLowered
        address = lowering.find_address(Symbol(operand.base.name, operand.base.offset_bytes + operand.offset_bytes))
        place = lowering.read(Immediate(address), ScalarType.U64)
    else:
        place = lowering.read(Immediate(operand.offset_bytes % (1 << 64)), ScalarType.U64)
    return {
        "a": place,
        "literal": offset,
        "address_bytes": width,
        "space": int(find_space(words)),
        "elements": elements,
        "element_bytes": kind.natural_dtype.itemsize,
        "is_strong": not STRONG.isdisjoint(words),
    }


def lower_load(lowering: Lowering) -> None:
    """``ld``, but of what calls return.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    if find_space(instruction.suffixes) is Space.PARAM and not (
        isinstance(operand, Address)
        and isinstance(operand.base, Symbol)
        and lowering.machine.is_kernel_parameter(operand.base.name)
    ):
        raise NotLowered
    results = flatten(instruction.destinations)
    widths = {lowering.width(one) for one in results if isinstance(one, Register)}
    size = kind.natural_dtype.itemsize
    if len(widths) != 1 or kind is ScalarType.PRED or min(widths) < size:
        raise NotLowered
    width = widths.pop()
    places = [-1 if one is None else lowering.place_exactly(one, width) for one in results]
    fields = _describe(lowering, operand, kind, len(results))
    lowering.emit(
        LOAD,
        **fields,
        kind=int(AccessKind.LOAD),
        is_signed=kind.is_signed,
        register_bytes=width,
        places=places + [-1] * (2 * MOST_ELEMENTS - len(places)),
    )


def lower_store(lowering: Lowering) -> None:
    """``st``, but to what is handed over to calls.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    kind = instruction.types[-1]
    values = flatten(instruction.sources[1:2])
    if find_space(instruction.suffixes) is Space.PARAM or "async" in instruction.suffixes or kind is ScalarType.PRED:
        raise NotLowered
    size = kind.natural_dtype.itemsize
    widths = {lowering.width(one) for one in values if isinstance(one, Register)}
    if len(widths) > 1 or (widths and min(widths) < size):
        raise NotLowered
    width = widths.pop() if widths else size
    places = [
        lowering.place_exactly(one, width) if isinstance(one, Register) else lowering.read(one, kind) for one in values
    ]
    if any(not isinstance(one, Register | Immediate) for one in values):
        raise NotLowered
    fields = _describe(lowering, instruction.sources[0], kind, len(values))
    lowering.emit(
        STORE,
        **fields,
        kind=int(AccessKind.STORE),
        is_float=kind.storage_dtype.kind == "f",
        register_bytes=width,
        places=places + [-1] * (2 * MOST_ELEMENTS - len(places)),
    )


def lower_atomic(lowering: Lowering) -> None:
    """``atom`` and ``red`` of one value of 32 or 64 bits.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    function = atomic_function(instruction)
    if function is None or "async" in instruction.suffixes or function.type.bytes not in _ADDRESS_BYTES:
        raise NotLowered
    kind = function.type
    number = _NUMBERS.get(function.name)
    if number is None or kind not in (
        ScalarType.U32,
        ScalarType.S32,
        ScalarType.U64,
        ScalarType.S64,
        ScalarType.F32,
        ScalarType.F64,
    ):
        raise NotLowered
    if kind.is_float:
        if function.name != "add" or "ftz" in instruction.suffixes:
            raise NotLowered
        number = _ADD_FLOAT
    elif kind.is_signed:
        number += _SIGNED
    parts = [flatten((operand,)) for operand in instruction.sources[1 : 1 + function.operands]]
    if any(len(part) != 1 for part in parts) or len(parts) != function.operands:
        raise NotLowered
    sources = [_read_exactly(lowering, part[0], kind) for part in parts]
    results = flatten(instruction.destinations)
    if len(results) > 1:
        raise NotLowered
    result = results[0] if results else None
    place = -1 if result is None else lowering.place_exactly(result, kind.bytes)
    fields = _describe(lowering, instruction.sources[0], kind, 1) | {"is_strong": 1}
    lowering.emit(
        ATOMIC,
        **fields,
        kind=int(AccessKind.REDUCTION if result is None else AccessKind.ATOMIC),
        combination=number,
        b=sources[0],
        c=sources[-1],
        result=place,
        register_bytes=kind.bytes,
    )


def _read_exactly(lowering: Lowering, operand: Operand | None, kind: ScalarType) -> int:
    if isinstance(operand, Immediate):
        return lowering.read(operand, kind)
    return lowering.place_exactly(operand, kind.bytes)
