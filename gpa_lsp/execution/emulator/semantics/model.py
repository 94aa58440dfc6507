"""Meanings of instructions: :class:`Meaning`, and the :class:`Family` that finds it; what families read of an instruction, and write.

Operands are counted *flattened*: the elements of vectors one by one, both halves of a pair. A negated predicate (``!%p``) arrives negated. A register
wider than its source type gives its low bits, one that is narrower zeros above it; a result narrower than its register is extended by the result
type. A literal is converted to the source type: ``-1`` of ``U32`` is 0xFFFFFFFF.
"""

from collections.abc import Callable

from msgspec import Struct

from gpa_lsp.code.ptx.model import Immediate, Operand, Pair, PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType

S = ScalarType
SHARED_WINDOW = 0x7FFD_0000_0000  # Generic address of the first byte of a block's own shared memory
LOCAL_WINDOW = 0x7FFE_0000_0000  # Generic address of the first byte of a thread's own local memory
WINDOW_BYTES = 1 << 32
# Shared addresses of a cluster have the rank of the block plus 1 from this bit on; 0 is the block's own memory. Within: bits of the offset.
RANK_SHIFT = 24
RANKS_MASK = ((1 << 32) - 1) >> RANK_SHIFT << RANK_SHIFT
LONGEST_VECTOR = 8  # Elements that an instruction accesses at once


class Meaning(Struct, frozen=True, kw_only=True):
    """Meaning of an instruction, as expressions of typed Python.

    ``a(T)`` are the lanes of its first source as numbers of a type T, ``b(T)`` to ``e(T)`` those of the others, ``k(u8)`` the carry flag. Predicates
    are ``u8`` 0 or 1. What exchanges sees ``mask``, the lanes that execute it, and ``standing``, those that stand at it, guarded or not.
    """

    sources: tuple[ScalarType, ...]  # in the order written
    results: tuple[ScalarType, ...]  # of the destinations
    values: tuple[str, ...]  # expression of each result, of its width
    steps: tuple[tuple[str, int, str], ...] = ()  # names (x, y, z), bits and expressions of what the values also read
    carry: str = ""  # the new carry flag
    exchanges: bool = False  # lanes read those of others
    divides: bool = False  # the second source must not be 0
    members: int | None = (
        None  # which source is the member mask of the ``.sync`` form; None: all lanes of the warp meet
    )


class Family(Struct, frozen=True, kw_only=True):
    """A family of instructions: one file of the catalogue :mod:`.families`."""

    opcodes: tuple[str, ...]  # first words of the instructions that it may know; several families can name the same one
    # gives the meaning, with all its choices made, or None for a form that it does not know; once per instruction of a kernel
    find: Callable[[PtxInstruction], Meaning | None]


def flatten(operands: tuple[Operand, ...]) -> list[Operand | None]:
    """Operands with vectors and pairs taken apart; None for dropped results."""
    out: list[Operand | None] = []
    for operand in operands:
        if isinstance(operand, Vector):
            out.extend(operand.elements)
        elif isinstance(operand, Pair):
            out.extend((operand.first, operand.second))
        else:
            out.append(operand)
    return out


def of_one(kind: ScalarType, sources: int, value: str) -> Meaning:
    """A meaning whose sources and single result are of one type."""
    return Meaning(sources=(kind,) * sources, results=(kind,), values=(value,))


def name_bits(kind: ScalarType) -> str:
    """The unsigned integer of typed Python that a value of a type is stored as."""
    return f"u{8 * kind.bytes}"


def find_word(instruction: PtxInstruction, words: "tuple[str, ...] | dict[str, object] | frozenset[str]") -> str | None:
    """The first suffix that is one of some words."""
    return next((word for word in instruction.suffixes if word in words), None)


INTEGERS = frozenset({S.U16, S.S16, S.U32, S.S32, S.U64, S.S64})  # Types of integer arithmetic
SIGNED = frozenset({S.S8, S.S16, S.S32, S.S64})
_UNSIGNED = {1: S.U8, 2: S.U16, 4: S.U32, 8: S.U64}
_SIGNED = {1: S.S8, 2: S.S16, 4: S.S32, 8: S.S64}


def as_unsigned(kind: ScalarType) -> ScalarType:
    """The unsigned integer of the same width; predicates and f128-wide types are left alone."""
    return kind if kind is S.PRED or kind is S.B128 else _UNSIGNED[kind.bytes]


def as_wide(kind: ScalarType) -> ScalarType:
    """The integer of twice the width and the same sign."""
    return (_SIGNED if kind in SIGNED else _UNSIGNED)[kind.bytes * 2]


def find_limits(kind: ScalarType) -> tuple[int, int]:
    """The lowest and the highest number of an integer type."""
    bits = kind.bytes * 8
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind.is_signed else (0, (1 << bits) - 1)


def find_type(instruction: PtxInstruction) -> ScalarType | None:
    """The one type of an instruction; None when it names none or several."""
    return instruction.types[0] if len(instruction.types) == 1 else None


def find_literal(instruction: PtxInstruction, source: int) -> int | None:
    """The integer a source operand is, where it is a literal; None otherwise."""
    if source >= len(instruction.sources):
        return None
    operand = instruction.sources[source]
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        return operand.value
    return None


ROUNDINGS = {
    "rn": "NEAREST",
    "rz": "TOWARDS_ZERO",
    "rm": "DOWN",
    "rp": "UP",
    "rna": "AWAY",
}  # AWAY: ties away from zero
# To an integral value
INTEGRAL = {"rni": "round_even", "rzi": "truncate", "rmi": "floor", "rpi": "ceil"}
HALVES = frozenset({S.F16, S.BF16})
ELEMENTS = {S.F16: S.F16, S.BF16: S.BF16, S.F16X2: S.F16, S.BF16X2: S.BF16}  # Of halves and of their pairs
PAIRS = frozenset({S.F16X2, S.BF16X2})
_FLOAT_COMPARISONS = {
    "eq": "{0} == {1}", "ne": "({0} < {1} or {0} > {1})", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "equ": "not ({0} < {1} or {0} > {1})", "neu": "{0} != {1}", "ltu": "not {0} >= {1}", "leu": "not {0} > {1}", "gtu": "not {0} <= {1}",
    "geu": "not {0} < {1}", "num": "({0} == {0} and {1} == {1})", "nan": "({0} != {0} or {1} != {1})",
}  # fmt: skip
_INTEGER_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED_COMPARISONS = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_COMBINATIONS = {"and": "&", "or": "|", "xor": "^"}


def find_rounding(words: tuple[str, ...]) -> str:
    """The rounding modifier ``rn rz rm rp rna`` among suffixes; ``rn`` when none is written."""
    return next((word for word in words if word in ROUNDINGS), "rn")


def limit(words: tuple[str, ...], value: str) -> str:
    """A number with ``.relu`` and ``.sat``, where suffixes have them; rounding undoes neither."""
    for word, function in (("relu", "clip_negative"), ("sat", "saturate")):
        if word in words:
            value = f"{function}({value})"
    return value


def write_half(name: str, kind: ScalarType, *, shift: int | None = None, flushes: bool = False) -> str:
    """An operand of half precision as f32.

    Args:
        name: of the operand.
        kind: F16 or BF16.
        shift: by how many bits it lies higher in a word of 32; None for an operand of 16 bits.
        flushes: subnormal halves become zeros.
    """
    bits = f"u32({name}(u16))" if shift is None else f"({name}(u32) >> {shift} & 0xFFFF)"
    if flushes:
        bits = f"flush_bits({bits}, {kind.name})"
    return f"widen({bits}, {kind.name})"


def write_extreme(instruction: PtxInstruction, operands: list[str]) -> str:
    """The least or greatest of two or three numbers: a NaN loses against a number, or wins with ``.NaN``; −0 < +0; ``.xorsign.abs`` compares
    magnitudes and gives the result the product's sign. Source: PTX ISA 9.0, sections 9.7.3.11 and 9.7.3.12.
    """
    name = "least" if instruction.opcode == "min" else "greatest"
    by_magnitude = "abs" in instruction.suffixes
    compared = [f"magnitude({one})" for one in operands] if by_magnitude else operands
    found = compared[0]
    for one in compared[1:]:
        chosen = f"{name}({found}, {one})"
        found = f"or_nan({found}, {one}, {chosen})" if "NaN" in instruction.suffixes else chosen
    if by_magnitude:
        found = f"copy_sign({found}, {' ^ '.join(f'as_bits({one})' for one in operands)})"
    return found


def write_comparison(instruction: PtxInstruction, kind: ScalarType, operands: tuple[str, str] | None) -> str | None:
    """Whether the comparison of an instruction holds; None for one that the type does not have.

    Args:
        operands: numbers that are compared; None for the first two sources, as integers of the type or of what the instruction says.
    """
    if operands is not None:
        word = next((word for word in instruction.suffixes if word in _FLOAT_COMPARISONS), None)
        return None if word is None else _FLOAT_COMPARISONS[word].format(*operands)
    unsigned = next(
        (_UNSIGNED_COMPARISONS[word] for word in instruction.suffixes if word in _UNSIGNED_COMPARISONS), None
    )
    sign = unsigned or next(
        (_INTEGER_COMPARISONS[word] for word in instruction.suffixes if word in _INTEGER_COMPARISONS), None
    )
    if sign is None or kind is S.PRED:
        return None
    number = kind.value if kind.is_signed and unsigned is None else f"u{8 * kind.bytes}"
    return f"a({number}) {sign} b({number})"


def find_combination(instruction: PtxInstruction) -> str | None:
    """The operator that joins a comparison with a further predicate; None where there is none."""
    return next((_COMBINATIONS[word] for word in instruction.suffixes if word in _COMBINATIONS), None)
