"""Which operations an instruction becomes: :func:`lower_instruction`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, Pair, PtxInstruction, Register, Space, Symbol, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered, Operation
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, DIVIDE, LOAD, MOST_ELEMENTS, STORE
from gpa_lsp.execution.emulator.engine.binder import flatten
from gpa_lsp.execution.emulator.engine.memory_steps import STRONG, find_space
from gpa_lsp.execution.emulator.engine.private_memory import LOCAL_WINDOW, SHARED_WINDOW
from gpa_lsp.execution.emulator.operations.atomics import atomic_function
from gpa_lsp.execution.emulator.operations.matrix_layouts import Fragment, MatrixProduct, find_product
from gpa_lsp.execution.emulator.operations.matrix_numbers import BITS
from gpa_lsp.execution.emulator.operations.modifiers import INTEGERS, as_unsigned, as_wide, find_literal, find_rounding

S = ScalarType
_BITS = frozenset({S.B16, S.B32, S.B64})
_FLOATS = frozenset({S.F32, S.F64})
_SCALARS = frozenset({S.U8, S.S8, S.U16, S.S16, S.U32, S.S32, S.U64, S.S64})
_COMBINATIONS = {"and": 1, "or": 2, "xor": 3}
_FLOAT_COMPARISONS = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}
)
_UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_INTEGER_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
# What comes of operands that nobody writes
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
_TO_INTEGRAL = frozenset({"rni", "rzi", "rmi", "rpi"})
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def lower_instruction(lowering: Lowering, instruction: PtxInstruction) -> list[Operation] | None:
    """The operations of an instruction that ends no segment; None where numpy does it."""
    lower = _LOWERERS.get(instruction.opcode)
    if lower is None or S.B128 in instruction.types:
        return None
    lowering.begin(instruction)
    try:
        lower(lowering)
    except (NotLowered, *_MALFORMED):
        return None
    return lowering.finish()


def _find_type(lowering: Lowering) -> ScalarType:
    types = lowering.instruction.types
    if len(types) != 1:
        raise NotLowered
    return types[0]


def _refuse(lowering: Lowering, *words: str) -> None:
    if not set(words).isdisjoint(lowering.instruction.suffixes):
        raise NotLowered


def _compute(
    lowering: Lowering, name: str, sources: tuple[ScalarType, ...], *results: ScalarType, **fields: Any
) -> None:
    operands = flatten(lowering.instruction.sources)
    if len(operands) < len(sources):
        raise NotLowered
    places = [lowering.read(operand, kind) for operand, kind in zip(operands, sources, strict=False)]
    named = dict(zip("abc", places, strict=False))
    lowering.compute(name, tuple(flatten(lowering.instruction.destinations)), results, **{**named, **fields})


def _name_float(lowering: Lowering, name: str, kind: ScalarType) -> str:
    """Of arithmetic rounded to nearest.

    Raises:
        NotLowered: it is another rounding, or saturates.
    """
    _refuse(lowering, "sat", "relu", "NaN", "xorsign", "abs")
    if find_rounding(lowering.instruction) != "rn":
        raise NotLowered
    return f"{name}_{kind.value}{'_ftz' if 'ftz' in lowering.instruction.suffixes else ''}"


def _lower_sum(lowering: Lowering) -> None:
    kind, opcode = _find_type(lowering), lowering.instruction.opcode
    if kind in _FLOATS:
        _compute(lowering, _name_float(lowering, opcode, kind), (kind, kind), kind)
        return
    _refuse(lowering, "sat", "cc")
    if kind not in INTEGERS:
        raise NotLowered
    unsigned = as_unsigned(kind)
    _compute(lowering, f"{opcode}_u{8 * kind.bytes}", (unsigned, unsigned), unsigned)


def _lower_product(lowering: Lowering) -> None:
    kind, words = _find_type(lowering), lowering.instruction.suffixes
    adds = lowering.instruction.opcode != "mul"
    if kind in _FLOATS:
        name = _name_float(lowering, "fma" if adds else "mul", kind)
        _compute(lowering, name, (kind,) * (3 if adds else 2), kind)
        return
    _refuse(lowering, "sat", "cc")
    if kind not in INTEGERS:
        raise NotLowered
    verb = "mad" if adds else "mul"
    result = as_unsigned(kind)
    name = f"{verb}_u{8 * kind.bytes}"
    if "wide" in words:
        result, name = as_wide(kind), f"{verb}wide_{kind.value}"
    elif "hi" in words:
        result, name = kind, f"{verb}hi_{kind.value}"
    elif "lo" not in words:
        raise NotLowered
    _compute(lowering, name, (kind, kind, result)[: 3 if adds else 2], result)


def _lower_quotient(lowering: Lowering) -> None:
    kind = _find_type(lowering)
    instruction = lowering.instruction
    if kind in _FLOATS:
        _refuse(lowering, "approx")
        _compute(lowering, _name_float(lowering, "div", kind), (kind, kind), kind)
        return
    if kind not in INTEGERS:
        raise NotLowered
    first, second = (lowering.read(one, kind) for one in instruction.sources)
    result = lowering.place_exactly(instruction.destinations[0], kind.bytes)
    lowering.emit(
        DIVIDE,
        a=first,
        b=second,
        result=result,
        element_bytes=kind.bytes,
        is_signed=kind.is_signed,
        literal=instruction.opcode == "rem",
    )


def _lower_root(lowering: Lowering) -> None:
    kind = _find_type(lowering)
    if kind not in _FLOATS:
        raise NotLowered
    if kind is S.F64:
        _refuse(lowering, "approx")
    _compute(lowering, _name_float(lowering, lowering.instruction.opcode, kind), (kind,), kind)


def _lower_sign(lowering: Lowering) -> None:
    kind, opcode = _find_type(lowering), lowering.instruction.opcode
    _refuse(lowering, "ftz", "sat")
    if kind in _FLOATS:
        _compute(lowering, f"{opcode}_{kind.value}", (kind,), kind)
    elif kind in (S.S16, S.S32, S.S64):
        unsigned = as_unsigned(kind)
        _compute(lowering, f"{opcode}_{'u' if opcode == 'neg' else 's'}{8 * kind.bytes}", (unsigned,), unsigned)
    else:
        raise NotLowered


def _lower_extreme(lowering: Lowering) -> None:
    kind, opcode = _find_type(lowering), lowering.instruction.opcode
    if len(lowering.instruction.sources) != 2:
        raise NotLowered
    if kind in _FLOATS:
        _compute(lowering, _name_float(lowering, opcode, kind), (kind, kind), kind)
        return
    _refuse(lowering, "relu")
    if kind not in INTEGERS:
        raise NotLowered
    _compute(lowering, f"{opcode}_{kind.value}", (kind, kind), kind)


def _lower_logic(lowering: Lowering) -> None:
    kind, opcode = _find_type(lowering), lowering.instruction.opcode
    sources = 1 if opcode == "not" else 2
    if kind is S.PRED:
        _compute(lowering, f"{opcode}_pred", (kind,) * sources, kind)
    elif kind in _BITS:
        unsigned = as_unsigned(kind)
        _compute(lowering, f"{opcode}_u{8 * kind.bytes}", (unsigned,) * sources, unsigned)
    else:
        raise NotLowered


def _lower_shift(lowering: Lowering) -> None:
    kind, opcode = _find_type(lowering), lowering.instruction.opcode
    if kind not in _BITS and (opcode == "shl" or kind not in INTEGERS):
        raise NotLowered
    signed = kind.is_signed
    data = kind if signed else as_unsigned(kind)
    _compute(lowering, f"{opcode}_{'s' if signed else 'u'}{8 * kind.bytes}", (data, S.U32), data)


def _lower_table(lowering: Lowering) -> None:
    table = find_literal(lowering.instruction, 3)
    if _find_type(lowering) is not S.B32 or table is None or len(lowering.instruction.sources) != 4:
        raise NotLowered
    _compute(lowering, "lop3_u32", (S.U32,) * 3, S.U32, literal=table & 0xFF)


def _lower_funnel(lowering: Lowering) -> None:
    words = lowering.instruction.suffixes
    if _find_type(lowering) is not S.B32:
        raise NotLowered
    _compute(lowering, "shf_u32", (S.U32,) * 3, S.U32, literal=("l" in words) | ("wrap" in words) << 1)


def _lower_permutation(lowering: Lowering) -> None:
    if lowering.instruction.suffixes != ("b32",):
        raise NotLowered  # with a mode
    _compute(lowering, "prmt_u32", (S.U32,) * 3, S.U32)


def _lower_setp(lowering: Lowering) -> None:
    kind, words = _find_type(lowering), lowering.instruction.suffixes
    if kind in _FLOATS:
        word = next((word for word in words if word in _FLOAT_COMPARISONS), None)
        suffix = "f32_ftz" if kind is S.F32 and "ftz" in words else kind.value
        source = kind
    elif kind in INTEGERS or kind in _BITS:
        unsigned = next((_UNSIGNED_COMPARISONS[word] for word in words if word in _UNSIGNED_COMPARISONS), None)
        word = unsigned or next((word for word in words if word in _INTEGER_COMPARISONS), None)
        source = kind if kind.is_signed and unsigned is None else as_unsigned(kind)
        suffix = source.value
    else:
        raise NotLowered
    if word is None:
        raise NotLowered
    combination = next((number for name, number in _COMBINATIONS.items() if name in words), 0)
    sources = (source, source, S.PRED) if combination else (source, source)
    results = (S.PRED,) * len(flatten(lowering.instruction.destinations))
    _compute(lowering, f"{word}_{suffix}", sources, *results, combination=combination)


def _lower_select(lowering: Lowering) -> None:
    kind = _find_type(lowering)
    if kind.bytes not in (2, 4, 8) or kind in (S.F16X2, S.BF16X2):
        raise NotLowered
    _compute(lowering, f"select_u{8 * kind.bytes}", (kind, kind, S.PRED), kind)


def _lower_move(lowering: Lowering) -> None:
    kind, instruction = lowering.instruction.types[-1], lowering.instruction
    source, result = instruction.sources[0], instruction.destinations[0]
    if isinstance(source, Vector) and isinstance(result, Vector):
        raise NotLowered
    halves = {8: S.U32, 4: S.U16}.get(kind.bytes)
    if isinstance(source, Vector):
        if halves is None or len(source.elements) != 2:
            raise NotLowered
        _compute(lowering, f"pack_u{8 * kind.bytes}", (halves, halves), as_unsigned(kind))
    elif isinstance(result, Vector):
        if halves is None or len(result.elements) != 2:
            raise NotLowered
        whole = lowering.read(source, as_unsigned(kind))
        for part, element in zip(("low", "high"), result.elements, strict=True):
            place = -1 if element is None else lowering.place_exactly(element, kind.bytes // 2)
            lowering.emit(f"{part}_u{8 * kind.bytes}", a=whole, result=place, result_bytes=kind.bytes // 2)
    else:
        name = "move_pred" if kind is S.PRED else f"move_u{8 * kind.bytes}"
        _compute(lowering, name, (kind,), kind)


def _lower_conversion(lowering: Lowering) -> None:
    instruction = lowering.instruction
    words = instruction.suffixes
    if len(instruction.types) != 2 or len(instruction.sources) != 1:
        raise NotLowered
    result, source = instruction.types
    _refuse(lowering, "sat", "pack", "relu", "satfinite", "rna", "rs")
    integral = next((word for word in words if word in _TO_INTEGRAL), None)
    if source in _SCALARS and result in _SCALARS:
        name = f"cvt_{source.value}_{8 * result.bytes}"
    elif source in _SCALARS and result in _FLOATS and find_rounding(instruction) == "rn" and integral is None:
        name = f"cvt_{source.value}_{result.value}"
    elif source in _FLOATS and (result in _SCALARS or result is source) and integral is not None:
        if "ftz" in words and (result not in _SCALARS or integral not in ("rni", "rzi")):
            raise NotLowered
        name = f"cvt_{source.value}_{result.value}_{integral}"
    elif source in _FLOATS and result in _FLOATS and source is not result and integral is None:
        _refuse(lowering, "ftz")
        if find_rounding(instruction) != "rn":
            raise NotLowered
        name = f"cvt_{source.value}_{result.value}"
    else:
        raise NotLowered
    _compute(lowering, name, (source,), result)


def _lower_count(lowering: Lowering) -> None:
    kind = _find_type(lowering)
    if kind not in _BITS:
        raise NotLowered
    unsigned = as_unsigned(kind)
    result = unsigned if lowering.instruction.opcode == "brev" else S.U32
    _compute(lowering, f"{lowering.instruction.opcode}_u{8 * kind.bytes}", (unsigned,), result)


def _lower_cvta(lowering: Lowering) -> None:
    instruction = lowering.instruction
    kind = instruction.types[-1]
    window = next(
        (_WINDOWS[word.partition("::")[0]] for word in instruction.suffixes if word.partition("::")[0] in _WINDOWS), 0
    )
    if kind.bytes != 8:
        raise NotLowered
    if window == 0:
        _compute(lowering, "move_u64", (S.U64,), S.U64)
        return
    distance = -window if "to" in instruction.suffixes else window
    added = lowering.read(Immediate(distance % (1 << 64)), S.U64)
    _compute(lowering, "add_u64", (S.U64,), S.U64, b=added)


def _lower_shuffle(lowering: Lowering) -> None:
    mode = next((word for word in lowering.instruction.suffixes if word in ("up", "down", "bfly", "idx")), None)
    if mode is None or not lowering.instruction.destinations:
        raise NotLowered
    has_pair = isinstance(lowering.instruction.destinations[0], Pair)
    _compute(lowering, f"shfl_{mode}", (S.U32,) * 3, *((S.U32, S.PRED) if has_pair else (S.U32,)))


def _lower_vote(lowering: Lowering) -> None:
    instruction = lowering.instruction
    mode = next((word for word in instruction.suffixes if word in ("ballot", "any", "all")), None)
    if mode is None or (len(instruction.sources) > 1 and not isinstance(instruction.sources[1], Immediate)):
        raise NotLowered
    _compute(lowering, f"vote_{mode}", (S.PRED,), S.U32 if mode == "ballot" else S.PRED)


def _lower_active(lowering: Lowering) -> None:
    _compute(lowering, "activemask", (), S.U32)


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
        size, name = kind.natural_dtype.itemsize, "move_pred" if kind.bytes == 1 else f"move_u{8 * kind.bytes}"
        for number, result in enumerate(results):
            place = lowering.find_piece(parameter, number * size, size)
            lowering.compute(name, (result,), (kind,), a=place)
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


_FACTORS = frozenset({S.U8, S.S8, S.U4, S.S4, S.B1})
_MOST_REGISTERS = 8  # Of one matrix, as the core has room for; none has more
_MOST_ELEMENTS = 4096  # Of one matrix, as the core has room for: bits of A in m16n8k256


def lower_product_of_matrices(lowering: Lowering) -> None:
    """``mma`` and ``wmma.mma``.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    product = find_product(instruction)
    if product is None or not _is_known(product):
        raise NotLowered
    operands = [flatten((operand,)) for operand in (*instruction.destinations, *instruction.sources)]
    places = [lowering.place_exactly(element, 4) for operand in operands for element in operand]
    a, b, c, d = product.registers
    if [len(operand) for operand in operands] != [d, a, b, c] or min(places[:d]) < 0:
        raise NotLowered
    frames = lowering.frames
    lowering.emit("multiply_matrices", a=frames.table(_describe_numbers(product)), b=frames.table(places))


def _is_known(product: MatrixProduct) -> bool:
    result, left, right, addend = product.types
    sizes = [one.rows * one.columns for one in product.fragments]
    return (
        result is addend is S.S32
        and {left, right} <= _FACTORS
        and max(sizes) <= _MOST_ELEMENTS
        and max(product.registers) <= _MOST_REGISTERS
    )


def _describe_numbers(product: MatrixProduct) -> list[int]:
    """The product as :class:`~gpa_lsp.execution.emulator.compiled.matrices.Layout` has it."""
    a, b, c = product.fragments
    factors = product.types[1:3]
    is_of_bits = factors[0] is S.B1
    return [
        a.rows, b.columns, a.columns, *product.registers, *(BITS[kind] for kind in factors), *(kind.is_signed for kind in factors),
        product.is_clamped and not is_of_bits, is_of_bits and not product.joins_by_and,
        *_list_elements(a, factors[0]), *_list_elements(b.turned, factors[1]), *_list_elements(c, S.S32),
        *c.places.reshape(32, c.elements).T.reshape(-1).tolist(),
    ]  # fmt: skip


def _list_elements(fragment: Fragment, kind: ScalarType) -> list[int]:
    """Where the elements lie, row by row: 1024 · register + 32 · lane + bit."""
    lane, element = np.divmod(fragment.holders, fragment.elements)
    register, bit = np.divmod(element * BITS[kind], 32)
    found: list[int] = (1024 * register + 32 * lane + bit).tolist()
    return found


_LOWERERS: dict[str, Callable[[Lowering], None]] = {
    "add": _lower_sum, "sub": _lower_sum, "mul": _lower_product, "mad": _lower_product, "fma": _lower_product, "div": _lower_quotient,
    "rem": _lower_quotient, "rcp": _lower_root, "sqrt": _lower_root, "neg": _lower_sign, "abs": _lower_sign, "min": _lower_extreme,
    "max": _lower_extreme, "and": _lower_logic, "or": _lower_logic, "xor": _lower_logic, "not": _lower_logic, "shl": _lower_shift,
    "shr": _lower_shift, "lop3": _lower_table, "shf": _lower_funnel, "prmt": _lower_permutation, "setp": _lower_setp, "selp": _lower_select,
    "mov": _lower_move,
    "cvt": _lower_conversion, "popc": _lower_count, "clz": _lower_count, "brev": _lower_count, "cvta": _lower_cvta,
    "shfl": _lower_shuffle, "vote": _lower_vote, "activemask": _lower_active, "ld": lower_load, "ldu": lower_load, "st": lower_store,
    "atom": lower_atomic, "red": lower_atomic, "mma": lower_product_of_matrices, "wmma": lower_product_of_matrices,
}  # fmt: skip
