"""Parts of expressions that several families write."""

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType

S = ScalarType
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
_FLOATS = {
    "eq": "{0} == {1}", "ne": "({0} < {1} or {0} > {1})", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "equ": "not ({0} < {1} or {0} > {1})", "neu": "{0} != {1}", "ltu": "not {0} >= {1}", "leu": "not {0} > {1}", "gtu": "not {0} <= {1}",
    "geu": "not {0} < {1}", "num": "({0} == {0} and {1} == {1})", "nan": "({0} != {0} or {1} != {1})",
}  # fmt: skip
_INTEGERS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
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
        word = next((word for word in instruction.suffixes if word in _FLOATS), None)
        return None if word is None else _FLOATS[word].format(*operands)
    unsigned = next((_UNSIGNED[word] for word in instruction.suffixes if word in _UNSIGNED), None)
    sign = unsigned or next((_INTEGERS[word] for word in instruction.suffixes if word in _INTEGERS), None)
    if sign is None or kind is S.PRED:
        return None
    number = kind.value if kind.is_signed and unsigned is None else f"u{8 * kind.bytes}"
    return f"a({number}) {sign} b({number})"


def find_combination(instruction: PtxInstruction) -> str | None:
    """The operator that joins a comparison with a further predicate; None where there is none."""
    return next((_COMBINATIONS[word] for word in instruction.suffixes if word in _COMBINATIONS), None)
