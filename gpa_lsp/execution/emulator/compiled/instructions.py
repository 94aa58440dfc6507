"""Which operations an instruction becomes: :func:`lower_instruction`."""

from typing import Any

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxInstruction, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction, list_steps
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered, Operation
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, FUNCTIONS, LOAD, STORE
from gpa_lsp.execution.emulator.engine.binder import flatten
from gpa_lsp.execution.emulator.engine.memory_steps import STRONG, find_space
from gpa_lsp.execution.emulator.semantics.changes import Change, find_change
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.matrix_products import Product, describe_product
from gpa_lsp.execution.emulator.semantics.model import LONGEST_VECTOR
from gpa_lsp.execution.emulator.semantics.words import ADD_FLOAT
from gpa_lsp.foundation.errors import InputError

S = ScalarType
# What comes of operands that nobody writes
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


def lower_instruction(lowering: Lowering, instruction: PtxInstruction) -> list[Operation] | None:
    """The operations of an instruction that ends no segment; None where numpy does it.

    Raises:
        InputError: it needs more than the core has.
    """
    if S.B128 in instruction.types:
        return None
    meaning, change = find_meaning(instruction), find_change(instruction)
    product = describe_product(instruction) if instruction.opcode in ("mma", "wmma") else None
    if meaning is None and change is None and product is None and instruction.opcode not in ("ld", "ldu", "st"):
        return None
    lowering.begin(instruction)
    try:
        if meaning is not None:
            lowering.apply(meaning)
        elif change is not None:
            _lower_change(lowering, change)
        elif product is not None:
            _lower_product(lowering, product)
        else:
            (_lower_store if instruction.opcode == "st" else _lower_load)(lowering)
    except (NotLowered, *_MALFORMED) as error:
        problem = f"{instruction.text} is not emulated"
        place, remedy = f"line {instruction.text_line}", "split it into several instructions"
        raise InputError(problem, path=lowering.machine.module.name, place=place, remedy=remedy) from error
    return lowering.finish()


def _lower_product(lowering: Lowering, product: Product) -> None:
    """``mma`` and ``wmma.mma``, whose operands were looked at when they were bound."""
    elements = flatten((*lowering.instruction.destinations, *lowering.instruction.sources))
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
_CHANGES = {
    "add": 0, "and": 1, "or": 2, "xor": 3, "exch": 4, "cas": 5, "inc": 6, "dec": 7, "min": 8, "max": 9, "init": 13, "arrive": 14, "arrive_drop": 15,
}  # fmt: skip
_SIGNED = 2  # How far the signed forms of min and max lie behind the others
_MOST_OFFSET = 1 << 62


def _describe(lowering: Lowering, operand: Operand, kind: ScalarType, elements: int) -> dict[str, Any]:
    """What loads, stores and atomic operations have in common."""
    if not isinstance(operand, Address) or elements > LONGEST_VECTOR:
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


def _lower_load(lowering: Lowering) -> None:
    """``ld``. Parameters of functions, and what they return, are registers."""
    instruction = lowering.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    results = flatten(instruction.destinations) or [None]
    parameter = _find_parameter(lowering, operand)
    if parameter is not None:
        size = kind.natural_dtype.itemsize
        for number, result in enumerate(results):
            lowering.give(lowering.find_piece(parameter, number * size, size), result, kind)
        return
    size = kind.natural_dtype.itemsize
    width = max((lowering.width(one) for one in results if isinstance(one, Register)), default=size)
    places = [-1 if one is None else lowering.place_exactly(one, width) for one in results]
    fields = _describe(lowering, operand, kind, len(results))
    lowering.emit(
        LOAD,
        **fields,
        kind=int(AccessKind.LOAD),
        is_signed=kind.is_signed,
        register_bytes=width,
        places=places + [-1] * (2 * LONGEST_VECTOR - len(places)),
    )


def _find_parameter(lowering: Lowering, operand: Operand) -> Symbol | None:
    """What an instruction of parameters accesses, where it is none of the kernel's own."""
    if find_space(lowering.instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
        return None
    base = operand.base
    if not isinstance(base, Symbol) or (lowering.is_kernel and lowering.machine.is_kernel_parameter(base.name)):
        return None
    return Symbol(base.name, base.offset_bytes + operand.offset_bytes)


def _lower_store(lowering: Lowering) -> None:
    """``st``. What is handed over to functions, or returned by them, are registers."""
    instruction = lowering.instruction
    kind = instruction.types[-1]
    values = flatten(instruction.sources[1:2])
    size = kind.natural_dtype.itemsize
    parameter = _find_parameter(lowering, instruction.sources[0])
    if parameter is not None:
        for number, value in enumerate(values):
            lowering.move(lowering.read(value, kind), lowering.find_piece(parameter, number * size, size), size)
        return
    width = max((lowering.width(one) for one in values if isinstance(one, Register)), default=size)
    places = [
        lowering.place_exactly(one, width) if isinstance(one, Register) else lowering.read(one, kind) for one in values
    ]
    fields = _describe(lowering, instruction.sources[0], kind, len(values))
    lowering.emit(
        STORE,
        **fields,
        kind=int(AccessKind.STORE),
        is_float=kind.storage_dtype.kind == "f",
        register_bytes=width,
        places=places + [-1] * (2 * LONGEST_VECTOR - len(places)),
    )


def _lower_change(lowering: Lowering, change: Change) -> None:
    """``atom``, ``red``, and what arrives at barriers."""
    kind, results = change.type, flatten(lowering.instruction.destinations)
    if change.meaning is not None:
        (step,) = list_steps(change.meaning)
        combination = FUNCTIONS + lowering.number(step.function)
    elif kind.is_float:
        combination = ADD_FLOAT
    else:
        combination = _CHANGES[change.name] + (_SIGNED if kind.is_signed else 0)
    values, *others = ([lowering.read(one, kind) for one in flatten((operand,))] for operand in change.operands)
    found = [-1 if one is None else lowering.place_exactly(one, kind.bytes) for one in results]
    places = values + [-1] * (LONGEST_VECTOR - len(values)) + found
    fields = _describe(lowering, lowering.instruction.sources[0], kind, len(values)) | {"is_strong": 1}
    lowering.emit(
        ATOMIC,
        **fields,
        kind=int(AccessKind.ATOMIC if max(found, default=-1) >= 0 else AccessKind.REDUCTION),
        combination=combination,
        c=others[0][0] if others else 0,
        register_bytes=kind.bytes,
        places=places + [-1] * (2 * LONGEST_VECTOR - len(places)),
    )
