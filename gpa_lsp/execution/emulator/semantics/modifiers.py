"""Types, modifiers and literals of an instruction, as families read them."""

from gpa_lsp.code.ptx.model import Immediate, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType

S = ScalarType

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
