"""Which operations an instruction becomes: :func:`lower_instruction`."""

from collections.abc import Callable
from typing import Any

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxInstruction, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered, Operation
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, LOAD, MOST_ELEMENTS, STORE
from gpa_lsp.execution.emulator.engine.binder import flatten
from gpa_lsp.execution.emulator.engine.memory_steps import STRONG, find_space
from gpa_lsp.execution.emulator.operations.atomics import atomic_function
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.matrix_products import Product, describe_product
from gpa_lsp.foundation.errors import InputError

S = ScalarType
# What comes of operands that nobody writes
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


def lower_instruction(lowering: Lowering, instruction: PtxInstruction) -> list[Operation] | None:
    """The operations of an instruction that ends no segment; None where numpy does it.

    Raises:
        InputError: an instruction of lanes needs more than the core has.
    """
    if S.B128 in instruction.types:
        return None
    lowering.begin(instruction)
    meaning = find_meaning(instruction)
    try:
        if meaning is not None:
            lowering.apply(meaning)
        elif instruction.opcode in _LOWERERS:
            _LOWERERS[instruction.opcode](lowering)
        else:
            return None
    except (NotLowered, *_MALFORMED) as error:
        if meaning is None:
            return None
        problem = f"{instruction.text} is not emulated"
        place, remedy = f"line {instruction.text_line}", "split it into several instructions"
        raise InputError(problem, path=lowering.machine.module.name, place=place, remedy=remedy) from error
    return lowering.finish()


def _lower_product(lowering: Lowering) -> None:
    """``mma`` and ``wmma.mma``, whose operands were looked at when they were bound."""
    instruction = lowering.instruction
    product = describe_product(instruction)
    if product is None:
        raise NotLowered
    elements = flatten((*instruction.destinations, *instruction.sources))
    places = [lowering.place_exactly(element, product.register_bytes) for element in elements]
    frames = lowering.frames
    lowering.emit(write_product(product), a=frames.table(product.numbers), b=frames.table(places), result=-1)


def write_product(product: Product) -> LaneFunction:
    """The function of a product."""
    what, how = "multiply_matrices", ""
    if product.formats:
        what, how = "multiply_floats", ", ".join(("", f"u{8 * product.register_bytes}", *product.formats))
    return LaneFunction(0, f"{what}(a, view(b, s32), frame, machine.constants, written{how})", "", True)


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
        symbol = Symbol(operand.base.name, operand.base.offset_bytes + operand.offset_bytes)
        place = lowering.read(symbol, ScalarType.U64)
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
    """``ld``. Parameters of functions, and what they return, are registers.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    results = flatten(instruction.destinations)
    parameter = _find_parameter(lowering, operand)
    if parameter is not None:
        size = kind.natural_dtype.itemsize
        for number, result in enumerate(results):
            lowering.give(lowering.find_piece(parameter, number * size, size), result, kind)
        return
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


def _find_parameter(lowering: Lowering, operand: Operand) -> Symbol | None:
    """What an instruction of parameters accesses, where it is none of the kernel's own."""
    if find_space(lowering.instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
        return None
    base = operand.base
    if not isinstance(base, Symbol) or (lowering.is_kernel and lowering.machine.is_kernel_parameter(base.name)):
        return None
    return Symbol(base.name, base.offset_bytes + operand.offset_bytes)


def lower_store(lowering: Lowering) -> None:
    """``st``. What is handed over to functions, or returned by them, are registers.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    kind = instruction.types[-1]
    values = flatten(instruction.sources[1:2])
    if "async" in instruction.suffixes or kind is ScalarType.PRED:
        raise NotLowered
    size = kind.natural_dtype.itemsize
    parameter = _find_parameter(lowering, instruction.sources[0])
    if parameter is not None:
        for number, value in enumerate(values):
            lowering.move(lowering.read(value, kind), lowering.find_piece(parameter, number * size, size), size)
        return
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


_LOWERERS: dict[str, Callable[[Lowering], None]] = {
    "ld": lower_load, "ldu": lower_load, "st": lower_store,
    "atom": lower_atomic, "red": lower_atomic, "mma": _lower_product, "wmma": _lower_product,
}  # fmt: skip
