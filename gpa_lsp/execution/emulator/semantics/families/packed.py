"""``add sub min max.u16x2|s16x2|u8x4|s8x4``, ``dp4a`` and ``dp2a``, and the video instructions ``vadd vsub vabsdiff vmin vmax vavrg vshl vshr vmad
vset`` with their ``2`` and ``4`` forms.

Source: PTX ISA 9.0, sections 9.7.1.1, 9.7.1.13, 9.7.1.14, 9.7.1.23, 9.7.1.24 and 9.7.15 (video instructions).
"""

from gpa_lsp.code.ptx.model import Operand, PtxInstruction, Register
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import Family, Meaning, find_word, of_one
from gpa_lsp.foundation.machine_code.types import u32

S = ScalarType
_PARTS = frozenset({"u16x2", "s16x2", "u8x4", "s8x4"})
_SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
_BY_PARTS = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset")
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# Of s64 that came from 32 bits or fewer. An average rounds away from zero.
_WORDS = {
    "vadd": "{0} + {1}", "vsub": "{0} - {1}", "vabsdiff": "distance({0}, {1})", "vmin": "lesser({0}, {1})", "vmax": "larger({0}, {1})",
    "vavrg": "average({0}, {1})",
}  # fmt: skip


def lesser(a, b):
    """The lesser of two integers."""
    return a if a < b else b


def larger(a, b):
    """The larger of two integers."""
    return a if a > b else b


def distance(a, b):
    """Distance of two integers."""
    return a - b if a > b else b - a


def average(a, b):
    """Average of two integers, rounded away from zero."""
    return (a + b + (1 if a + b >= 0 else 0)) >> 1


def merge(value, into, position, mask):
    """Bits of a word replaced."""
    return into & ~u32(mask) | u32(value << position) & u32(mask)


def find(instruction: PtxInstruction) -> Meaning | None:
    """Arithmetic on the parts of registers."""
    opcode = instruction.opcode
    if opcode in ("dp4a", "dp2a"):
        return _find_dot(instruction)
    if opcode[0] == "v":
        return _find_video(instruction)
    parts = [word for word in instruction.suffixes if word in _PARTS]
    return _find_integers(instruction, parts[0]) if len(parts) == 1 else None


def _take(name: str, shift: int, bits: int, *, signed: bool, kind: str) -> str:
    """A part of a register, extended by its type."""
    number = f"{'s' if signed else 'u'}{bits}" if bits < 32 else "s32" if signed else "u32"
    return f"{kind}({number}({name}(u32) >> {shift}))" if bits < 32 else f"{kind}({name}({number}))"


def _join(values: list[str], bits: int) -> str:
    """Parts, lowest first, cut to their width."""
    return " | ".join(f"u32(u{bits}({value})) << {bits * place}" for place, value in enumerate(values))


def _find_integers(instruction: PtxInstruction, part: str) -> Meaning:
    """``add sub{.sat}`` and ``min max{.relu}`` of two 16-bit or four 8-bit integers."""
    number = part.partition("x")[0]
    bits, signed = int(number[1:]), number[0] == "s"
    found = []
    for place in range(32 // bits):
        a, b = (_take(one, bits * place, bits, signed=signed, kind="s32") for one in "ab")
        value = _WORDS[f"v{instruction.opcode}"].format(a, b)
        if "relu" in instruction.suffixes:
            value = f"larger({value}, 0)"
        if "sat" in instruction.suffixes:
            value = _saturate(value, bits, signed=signed)
        found.append(value)
    return of_one(S.U32, 2, _join(found, bits))


def _find_dot(instruction: PtxInstruction) -> Meaning | None:
    """Four products of bytes, or two of 16-bit numbers and bytes, and a sum; modulo 2^32."""
    if len(instruction.types) != 2 or not set(instruction.types) <= {S.U32, S.S32}:
        return None
    signs = [kind is S.S32 for kind in instruction.types]
    bits = 8 if instruction.opcode == "dp4a" else 16
    first = 2 if bits == 16 and "hi" in instruction.suffixes else 0
    products = [
        f"{_take('a', bits * place, bits, signed=signs[0], kind='u32')} * "
        f"{_take('b', 8 * (first + place), 8, signed=signs[1], kind='u32')}"
        for place in range(32 // bits)
    ]
    return of_one(S.U32, 3, " + ".join((*products, "c(u32)")))


# Video instructions


def _find_video(instruction: PtxInstruction) -> Meaning | None:
    opcode = instruction.opcode
    if (
        not instruction.types
        or not set(instruction.types) <= {S.U32, S.S32}
        or any(getattr(operand, "is_negated", False) for operand in instruction.sources)
    ):
        return None
    name, count = (opcode[:-1], int(opcode[-1])) if opcode[-1] in "24" else (opcode, 1)
    types = instruction.types if name != "vset" else (S.U32, *instruction.types)
    if len(types) != 3:
        return None
    signs = [kind is S.S32 for kind in types]
    if count > 1:
        return _find_by_parts(instruction, name, count, signs)
    return _find_multiplication(instruction, signs) if name == "vmad" else _find_one(instruction, name, signs)


def find_selector(operand: Operand | None) -> str:
    """``b0`` … ``h1`` of an operand; empty for the whole register."""
    return operand.selector if isinstance(operand, Register) else ""


def _find_part(selector: str) -> tuple[int, int]:
    """Position and width in bits."""
    width = {"b": 8, "h": 16}.get(selector[:1], 32)
    return (int(selector[1]) * width, width) if selector else (0, 32)


def _write_word(instruction: PtxInstruction, name: str, a: str, b: str) -> str | None:
    if name == "vset":
        word = find_word(instruction, frozenset(_COMPARED))
        return None if word is None else f"s64({a} {_COMPARED[word]} {b})"
    if name in ("vshl", "vshr"):
        amount = f"({b} & 31)" if "wrap" in instruction.suffixes else f"lesser({b}, 32)"
        return f"({a} << {amount})" if name == "vshl" else f"({a} >> {amount})"
    return _WORDS[name].format(a, b) if name in _WORDS else None


def _saturate(value: str, bits: int, *, signed: bool) -> str:
    least = -(1 << bits - 1) if signed else 0
    return f"clamp({value}, {least}, {least + (1 << bits) - 1})"


def _find_one(instruction: PtxInstruction, name: str, signs: list[bool]) -> Meaning | None:
    """``vop.dtype.atype.btype{.sat}{.op2} d, a{.sel}, b{.sel}{, c}``, or with ``c`` merged into a part of the result."""
    count = len(instruction.sources)
    if count not in (2, 3):
        return None
    parts = [_find_part(find_selector(operand)) for operand in instruction.sources[:2]]
    target = find_selector(instruction.destinations[0]) if instruction.destinations else ""
    second = find_word(instruction, ("add", "min", "max"))
    if count == 3 and second is None and not target:
        return None
    a, b = (_take(one, *parts[place], signed=signs[place + 1], kind="s64") for place, one in enumerate("ab"))
    value = _write_word(instruction, name, a, b)
    if value is None:
        return None
    if "sat" in instruction.suffixes:
        value = _saturate(value, 32, signed=signs[0])
    if count == 3 and target:
        position, width = _find_part(target)
        value = f"merge(u32({value}), c(u32), {position}, {((1 << width) - 1) << position})"
    elif count == 3:
        number = "s32" if signs[0] else "u32"
        value = _WORDS[f"v{second}"].format(f"{number}({value})", f"c({number})")
    return of_one(S.U32, count, f"u32({value})")


def _find_multiplication(instruction: PtxInstruction, signs: list[bool]) -> Meaning | None:
    """``vmad.dtype.atype.btype{.sat}{.shr7|.shr15} d, a{.sel}, b{.sel}, c`` and ``.po``: a · b + c (+ 1), scaled down."""
    words = instruction.suffixes
    selectors = [find_selector(operand) for operand in instruction.sources[:2]]
    if len(instruction.sources) != 3 or not all(selectors):
        return None  # 32-bit factors make a 66-bit sum; compilers do not emit them
    a, b = (_take(one, *_find_part(selectors[at]), signed=signs[at + 1], kind="s64") for at, one in enumerate("ab"))
    scale = 7 if "shr7" in words else 15 if "shr15" in words else 0
    value = f"({a} * {b} + s64(c({'s32' if signs[0] else 'u32'})) + {int('po' in words)} >> {scale})"
    return of_one(S.U32, 3, f"u32({_saturate(value, 32, signed=signs[0]) if 'sat' in words else value})")


def _find_by_parts(instruction: PtxInstruction, name: str, count: int, signs: list[bool]) -> Meaning | None:
    """``vop2|4.dtype.atype.btype{.sat}{.add} d, a, b, c``; operands without selectors."""
    operands = (*instruction.sources, *instruction.destinations)
    if len(instruction.sources) != 3 or any(map(find_selector, operands)) or name in ("vshl", "vshr"):
        return None
    bits, found = 32 // count, []
    for place in range(count):
        a, b = (_take(one, bits * place, bits, signed=signs[at + 1], kind="s64") for at, one in enumerate("ab"))
        value = _write_word(instruction, name, a, b)
        if value is None:
            return None
        found.append(_saturate(value, bits, signed=signs[0]) if "sat" in instruction.suffixes else value)
    if "add" in instruction.suffixes:
        return of_one(S.U32, 3, " + ".join((*(f"u32({value})" for value in found), "c(u32)")))
    return of_one(S.U32, 3, _join(found, bits))


FAMILY = Family(
    opcodes=(
        "add",
        "sub",
        "min",
        "max",
        "dp4a",
        "dp2a",
        *_SCALAR,
        *(f"{name}{count}" for name in _BY_PARTS for count in "24"),
    ),
    find=find,
)
