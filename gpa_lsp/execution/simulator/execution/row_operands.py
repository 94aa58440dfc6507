"""Operands as rows of machine code have them, :class:`RowOperands`, and floating-point arithmetic and conversions with them, :data:`FLOATS`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.execution.emulator.semantics import floats
from gpa_lsp.execution.emulator.semantics.floats import NEAREST
from gpa_lsp.execution.simulator.execution.lane_values import (
    BOTH_ARE_NAN,
    COSINE,
    DOWN,
    EQUAL,
    EXPONENTIAL,
    FIRST_IS_NAN,
    HYPERBOLIC,
    LESS,
    LOGARITHM,
    MORE,
    NOT_ROUNDED,
    NUMBERS,
    ONES,
    RECIPROCAL,
    RECIPROCAL_ROOT,
    ROOT,
    SECOND_IS_NAN,
    SECOND_TRUTH,
    SINE,
    TO_NEAREST,
    TOWARDS_ZERO,
    TRUTHS,
    UP,
)
from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import (
    PARTS,
    RZ,
    MachineInstruction,
    find_comparison_roles,
    find_constant,
    find_half,
    find_register,
    find_roles,
    find_signs,
    read_literal,
    read_number,
)
from gpa_lsp.execution.simulator.execution.walk_model import WHOLE, Code, Extension, File, Join, PredicateBit

FILES = {"R": File.REGISTER, "UR": File.UNIFORM}
SIGN = 1 << 31
_WORD = (1 << 32) - 1
_BOTH_HALVES = 0x10001

Row = dict[str, Any]


class NotLoweredError(Exception):
    """An instruction, or a form of one, is unknown."""


class RowOperands:
    """Operands of the instructions of one launch.

    Args:
        banks: constants.
        registers: general ones that there is room for.
        specials: numbers of the special registers whose values are known.
    """

    def __init__(self, banks: ConstantBanks, registers: int, specials: Mapping[str, int]) -> None:
        self._banks = banks
        self.specials = specials
        self._room = {"R": registers, "UR": RZ}

    def word(self, operand: str, extension: Extension = Extension.ZERO) -> Row:
        """A source of 32 bits."""
        negative, inverted, bar, suffix = find_signs(operand)
        if bar:
            raise NotLoweredError
        shift, bits = PARTS[suffix] or (0, 32)
        source = self._find_bits(operand) | {"shift": shift, "mask": (1 << bits) - 1, "extension": extension}
        return source | _turn(negative, inverted, _WORD)

    def carried(self, operand: str) -> Row:
        """A summand with its carry."""
        return self.word(operand, Extension.NONE)

    def pair(self, operand: str) -> Row:
        """Two registers or constants that follow each other, or an immediate."""
        negative, inverted, _, _ = find_signs(operand)
        found, place = find_register(operand), find_constant(operand)
        if found is not None and found[1] != RZ:
            file, number = found
            if number + 1 >= self._room[file]:
                raise NotLoweredError
            source: Row = {"file": FILES[file], "number": number, "is_pair": 1}
        elif place is not None:
            bank, offset = place
            source = {"value": self._banks.read_word(bank, offset) | self._banks.read_word(bank, offset + 4) << 32}
        else:
            source = {"value": 0 if found else int(operand, 16) & WHOLE}
        return source | _turn(negative, inverted, WHOLE)

    def single(self, operand: str) -> Row:
        """A float32."""
        number = read_number(operand)
        if number is not None:
            return {"value": int(np.float32(number).view(np.uint32))}
        negative, _, bar, _ = find_signs(operand)
        return self._find_bits(operand) | {"mask": _WORD ^ SIGN if bar else _WORD, "flip": SIGN if negative else 0}

    def double(self, operand: str) -> Row:
        """A float64."""
        number = read_number(operand)
        if number is not None:
            return {"value": int(np.float64(number).view(np.uint64))}
        negative, _, bar, _ = find_signs(operand)
        source = {name: one for name, one in self.pair(operand).items() if name not in ("flip", "added")}
        top = 1 << 63
        return source | {"mask": WHOLE ^ top if bar else WHOLE, "flip": top if negative else 0}

    def half(self, operand: str) -> Row:
        """The lower float16, or the part that stands for it."""
        found = find_half(operand, 0)
        mask = 0x7FFF if found.is_absolute else 0xFFFF
        return self._find_bits(found.word) | {"shift": found.shift, "mask": mask, "flip": found.flips << 15}

    def halves(self, operand: str) -> Row:
        """Two float16, with the signs of each."""
        lower, upper = (find_half(operand, half) for half in (0, 1))
        if lower.shift > upper.shift:
            raise NotLoweredError
        mask, is_one = 0x7FFF if lower.is_absolute else 0xFFFF, lower.shift == upper.shift
        return self._find_bits(lower.word) | {
            "shift": lower.shift,
            "mask": mask if is_one else mask * _BOTH_HALVES,
            "scale": _BOTH_HALVES if is_one else 1,
            "flip": lower.flips << 15 | upper.flips << 31,
        }

    def _find_bits(self, operand: str) -> Row:
        found, place = find_register(operand), find_constant(operand)
        if found is None:
            return {"value": int(operand, 16) & _WORD if place is None else self._banks.read_word(*place)}
        file, number = found
        if number == RZ:
            return {"value": 0}
        if number >= self._room[file]:
            raise NotLoweredError
        return {"file": FILES[file], "number": number}

    def find_target(self, operand: str, words: int) -> tuple[int, int]:
        """File and number of the first of some registers; -1 for those that go nowhere."""
        found = find_register(operand)
        if found is None:
            raise NotLoweredError
        file, number = found
        if number == RZ:
            return FILES[file], -1
        self.check_room(file, number, words)
        return FILES[file], number

    def check_room(self, file: str, first: int, count: int) -> None:
        """See that there are so many registers.

        Raises:
            NotLoweredError: there are not.
        """
        if first + count > min(self._room[file], RZ):
            raise NotLoweredError

    @staticmethod
    def list_resources(operand: str, words: int) -> list[int]:
        """Numbers of some registers that follow each other, as resources."""
        found = find_register(operand)
        if found is None or found[1] == RZ:
            return []
        kind = ResourceKind.REGISTER if found[0] == "R" else ResourceKind.UNIFORM_REGISTER
        return [encode_resource(kind, one) for one in range(found[1], min(found[1] + words, RZ))]

    @staticmethod
    def list_predicate_resources(operand: str | None) -> list[int]:
        """The number of a predicate, as a resource; none of those that are always true."""
        if operand is None or operand.endswith("T"):
            return []
        is_uniform = operand.lstrip("!").startswith("U")
        kind = ResourceKind.UNIFORM_PREDICATE if is_uniform else ResourceKind.PREDICATE
        return [encode_resource(kind, int(operand[-1]))]

    def target(self, operand: str, words: int = 1) -> Row:
        """Fields of the target register."""
        file, number = self.find_target(operand, words)
        return {"target_file": file, "target": number, "words": words}


def _turn(negative: str, inverted: str, mask: int) -> Row:
    """Negate or invert the bits of a mask."""
    return {"flip": mask if negative or inverted else 0, "added": int(bool(negative))}


def encode_predicate(operand: str) -> int:
    """A predicate as the core reads it."""
    name = operand.removeprefix("!")
    number = 7 if name.endswith("T") else int(name[-1])
    return (
        number
        | (PredicateBit.UNIFORM if name.startswith("U") else 0)
        | (PredicateBit.NEGATED if operand.startswith("!") else 0)
    )


def encode_out(operand: str) -> int:
    """A predicate that is written; -1 for one that goes nowhere."""
    return -1 if operand.endswith("T") else encode_predicate(operand)


def flag(instruction: MachineInstruction, **flags: int) -> int:
    """The flags of those modifiers that are there."""
    return sum(bit for name, bit in flags.items() if instruction.has(name))


def name_value(name: str, literal: int = 0) -> Row:
    """One of the values of :mod:`lane_values`."""
    return {"code": Code.TRUTH if name in TRUTHS else Code.VALUE, "tables": [NUMBERS[name]], "offset": literal}


# a + b is a 1 + b, a b is a b - 0
_ONE, _NEGATIVE_ZERO = {"value": 0x3F800000}, {"value": SIGN}
_ONE_HALVES, _NEGATIVE_ZERO_HALVES = {"value": 0x3C003C00}, {"value": SIGN | SIGN >> 16}


def _lower_single(low: RowOperands, one: MachineInstruction) -> Row:
    """FADD, FMUL, FFMA."""
    roles = find_roles(one.operands)
    scales = any(text.startswith(("D", "M")) and text[1:].isdigit() for text in one.modifiers)
    if scales or len(roles.sources) != (3 if one.opcode == "FFMA" else 2):
        raise NotLoweredError
    sources = list(map(low.single, roles.sources))
    if one.opcode != "FFMA":
        sources = [sources[0], _ONE, sources[1]] if one.opcode == "FADD" else [*sources, _NEGATIVE_ZERO]
    return {"sources": sources, **name_value("fma_saturated" if one.has("SAT") else "fma"), **low.target(roles.target)}


def _lower_double(low: RowOperands, one: MachineInstruction) -> Row:
    """DADD, DMUL, DFMA."""
    roles = find_roles(one.operands)
    listed = [text for text in roles.sources if text != "RZ" or one.opcode != "DADD"]
    sources = list(map(low.double, listed))
    if one.opcode == "DADD":
        sources += [{"value": 1 << 63}] * (3 - len(sources))
    name = {"DADD": "double_sum", "DMUL": "double_product", "DFMA": "double_fma"}[one.opcode]
    return {"sources": sources, **name_value(name), **low.target(roles.target, 2)}


_ORDERED = {
    "LT": LESS,
    "EQ": EQUAL,
    "GT": MORE,
    "LE": LESS | EQUAL,
    "GE": MORE | EQUAL,
    "NE": LESS | MORE,
    "NUM": LESS | EQUAL | MORE,
}
_NO_NUMBERS = SECOND_IS_NAN | FIRST_IS_NAN | BOTH_ARE_NAN
_COMPARED = _ORDERED | {f"{name}U": table | _NO_NUMBERS for name, table in _ORDERED.items()} | {"NAN": _NO_NUMBERS}


def _lower_float_comparison(low: RowOperands, one: MachineInstruction) -> Row:
    """FSETP, DSETP. The second predicate written is the opposite or, with ``.MIN`` and ``.MAX``, whether an operand is NaN."""
    roles = find_comparison_roles(one.operands)
    read = low.double if one.opcode == "DSETP" else low.single
    chosen = next((text for text in one.modifiers if text in ("MIN", "MAX")), "")
    if chosen:
        table = ((LESS if chosen == "MIN" else MORE) | SECOND_IS_NAN | BOTH_ARE_NAN) | _NO_NUMBERS << SECOND_TRUTH
    else:
        first = next(_COMPARED[text] for text in one.modifiers if text in _COMPARED)
        table = first | (~first & 63) << SECOND_TRUTH
    return {
        "sources": [read(text) for text in roles.sources[:2]],
        **name_value("compare_doubles" if one.opcode == "DSETP" else "compare_singles", table),
        "predicates": [encode_predicate(roles.predicates_read[0])],
        "outs": list(map(encode_out, roles.predicates_written)),
        "join": next(Join[text] for text in one.modifiers if text in Join.__members__),
        "target": -1,
    }


def _lower_float_choice(low: RowOperands, one: MachineInstruction) -> Row:
    """FMNMX, DMNMX, FSEL."""
    roles = find_roles(one.operands)
    is_double = one.opcode == "DMNMX"
    name = "choose" if one.opcode == "FSEL" else "double_extreme" if is_double else "extreme"
    return {
        "sources": [(low.double if is_double else low.single)(text) for text in roles.sources[:2]],
        "predicates": [encode_predicate(roles.predicates_read[0])],
        **name_value(name),
        **low.target(roles.target, 1 + is_double),
    }


_FUNCTIONS = {
    "RCP": RECIPROCAL, "RSQ": RECIPROCAL_ROOT, "SQRT": ROOT, "EX2": EXPONENTIAL, "LG2": LOGARITHM, "SIN": SINE, "COS": COSINE, "TANH": HYPERBOLIC,
}  # fmt: skip


def _lower_function(low: RowOperands, one: MachineInstruction) -> Row:
    """MUFU: reciprocals, roots, exponents, sines; the upper words of doubles (``64H``)."""
    target, text = one.operands[:2]
    name = one.modifiers[0]
    if one.has("F16"):
        raise NotLoweredError
    if not name.endswith("64H"):
        return {"sources": [low.single(text)], **name_value("function", _FUNCTIONS[name]), **low.target(target)}
    number = read_number(text)
    source = low.word(text) if number is None else {"value": int(np.float64(number).view(np.uint64)) >> 32}
    return {
        "sources": [source],
        **name_value("high_function", _FUNCTIONS[name.removesuffix("64H")]),
        **low.target(target),
    }


def _lower_division_check(low: RowOperands, one: MachineInstruction) -> Row:
    """FCHK."""
    sources = [low.word(text.strip("|-")) for text in one.operands[1:3]]
    return {
        "sources": sources,
        **name_value("needs_slow_division"),
        "outs": [encode_out(one.operands[0])],
        "target": -1,
    }


_HOW = {"TRUNC": TOWARDS_ZERO, "FLOOR": DOWN, "CEIL": UP}
_SIGNED = 8  # In the literal of a conversion, beside how it rounds; above it the bits


def _find_float(low: RowOperands, one: MachineInstruction, text: str) -> tuple[str, Row]:
    """The source of a conversion, and what it is: its type is the last one that is named."""
    named = [name for name in one.modifiers if name in ("F16", "F32", "F64", "BF16")]
    if "BF16" in named:
        raise NotLoweredError
    kind = {"F16": "half", "F64": "double"}.get(named[-1] if named else "", "single")
    return kind, {"half": low.half, "single": low.single, "double": low.double}[kind](text)


def _find_integer(one: MachineInstruction) -> tuple[int, bool]:
    """Bits of the integer of a conversion, and whether it is signed."""
    kind = next(
        (text for text in one.modifiers if text in ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")), "S32"
    )
    return int(kind[1:]), kind[0] == "S"


def _lower_float_to_integer(low: RowOperands, one: MachineInstruction) -> Row:
    """F2I: rounded, and clamped to the integer's range."""
    target, text = one.operands[:2]
    (kind, source), (bits, is_signed) = _find_float(low, one, text), _find_integer(one)
    how = next((_HOW[name] for name in one.modifiers if name in _HOW), TO_NEAREST)
    literal = how | (_SIGNED if is_signed else 0) | bits << 4
    return {"sources": [source], **name_value(f"{kind}_to_integer", literal), **low.target(target, 1 + (bits == 64))}


def _lower_integer_to_float(low: RowOperands, one: MachineInstruction) -> Row:
    """I2F, I2FP: from the integer that is named to the float that is, rounded as it is said."""
    target, text = one.operands[:2]
    if one.has("BF16"):
        raise NotLoweredError
    bits, is_signed = _find_integer(one)
    source, is_double = low.pair(text) if bits == 64 else low.word(text), one.has("F64")
    mode = next((_ROUNDINGS[name] for name in one.modifiers if name in _ROUNDINGS), NEAREST)
    literal = mode | (_SIGNED if is_signed else 0) | bits << 4
    name = "integer_to_half" if one.has("F16") else "integer_to_double" if is_double else "integer_to_single"
    return {"sources": [source], **name_value(name, literal), **low.target(target, 1 + is_double)}


_ROUNDINGS = {"RZ": floats.TOWARDS_ZERO, "RM": floats.DOWN, "RP": floats.UP}


def _lower_float_to_float(low: RowOperands, one: MachineInstruction) -> Row:
    """F2F, FRND: between precisions, or to whole numbers."""
    target, text = one.operands[:2]
    kind, source = _find_float(low, one, text)
    to = next((name for name in one.modifiers if name in ("F16", "F32", "F64")), "F32")
    how = next(
        (_HOW[name] for name in one.modifiers if name in _HOW), TO_NEAREST if one.opcode == "FRND" else NOT_ROUNDED
    )
    into = {"F16": "half", "F32": "single", "F64": "double"}[to]
    return {"sources": [source], **name_value(f"{kind}_to_{into}", how), **low.target(target, 1 + (to == "F64"))}


def _lower_pack(low: RowOperands, one: MachineInstruction) -> Row:
    """F2FP: two floats to two halves, the first one above."""
    roles = find_roles(one.operands)
    if not (one.has("F16") or one.modifiers == ("PACK_AB",)) or any(map(one.has, ("UNPACK_B", "MERGE_C", "BF16"))):
        raise NotLoweredError
    return {
        "sources": [low.single(text) for text in roles.sources[:2]],
        **name_value("pack"),
        **low.target(roles.target),
    }


def _list_halves(low: RowOperands, operands: Sequence[str]) -> list[Row]:
    """Sources of two halves each; of literals, two stand for them."""
    listed, found = list(operands), []
    while listed:
        text = listed.pop(0)
        upper = read_literal(text)
        if upper is None:
            found.append(low.halves(text))
            continue
        lower = read_literal(listed.pop(0)) if listed and read_literal(listed[0]) is not None else upper
        found.append({"value": int(np.array([lower, upper], np.float16).view(np.uint32)[0])})
    return found


def _lower_half_comparison(low: RowOperands, one: MachineInstruction) -> Row:
    """HSETP2: a predicate of each half; HSET2: ones (or 1.0, ``.BF``) in each half where it holds."""
    writes_register, is_bfloat = one.opcode == "HSET2", one.has("BF16_V2")
    roles = find_roles(one.operands) if writes_register else find_comparison_roles(one.operands)
    table = next(_COMPARED[text] for text in one.modifiers if text in _COMPARED)
    if is_bfloat or (writes_register and not one.has("AND")):
        raise NotLoweredError
    row: Row = {"sources": _list_halves(low, roles.sources), "predicates": [encode_predicate(roles.predicates_read[0])]}
    if len(row["sources"]) != 2:
        raise NotLoweredError
    if writes_register:
        literal = table | (0x3C00 if one.has("BF") else 0xFFFF) << ONES
        return row | name_value("compared_halves", literal) | low.target(roles.target)
    join = next(Join[text] for text in one.modifiers if text in Join.__members__)
    outs = list(map(encode_out, roles.predicates_written))
    return row | name_value("compare_halves", table) | {"outs": outs, "join": join, "target": -1}


def _lower_half_choice(low: RowOperands, one: MachineInstruction) -> Row:
    """HMNMX2."""
    roles = find_roles(one.operands)
    if any(map(one.has, ("BF16_V2", "NAN", "XORSIGN"))) or len(roles.sources) != 2:
        raise NotLoweredError
    predicates = [encode_predicate(roles.predicates_read[0])]
    sources = _list_halves(low, roles.sources)
    return {"sources": sources, "predicates": predicates, **name_value("half_extremes"), **low.target(roles.target)}


def _lower_halves(low: RowOperands, one: MachineInstruction) -> Row:
    """HADD2, HMUL2, HFMA2 on both halves, or from the lower half to a float (``.F32``)."""
    name, roles = one.opcode.removesuffix("32I"), find_roles(one.operands)
    if one.has("BF16_V2") or one.has("BF16") or roles.predicates_read:
        raise NotLoweredError
    sources = _list_halves(low, roles.sources)
    if len(sources) != (3 if name == "HFMA2" else 2):
        raise NotLoweredError
    if name == "HADD2":
        sources.insert(1, _ONE_HALVES)
    elif name == "HMUL2":
        sources.append(_NEGATIVE_ZERO_HALVES)
    found = "half_fma_to_single" if one.has("F32") else "half_fma_saturated" if one.has("SAT") else "half_fma"
    return {"sources": sources, **name_value(found), **low.target(roles.target)}


# By opcode
FLOATS: dict[str, Callable[[RowOperands, MachineInstruction], Row]] = {
    **dict.fromkeys(("FADD", "FMUL", "FFMA"), _lower_single),
    **dict.fromkeys(("DADD", "DMUL", "DFMA"), _lower_double),
    "FSETP": _lower_float_comparison,
    "DSETP": _lower_float_comparison,
    **dict.fromkeys(("FMNMX", "DMNMX", "FSEL"), _lower_float_choice),
    "MUFU": _lower_function,
    "FCHK": _lower_division_check,
    "F2I": _lower_float_to_integer,
    "I2F": _lower_integer_to_float,
    "I2FP": _lower_integer_to_float,
    "F2F": _lower_float_to_float,
    "FRND": _lower_float_to_float,
    "F2FP": _lower_pack,
    **dict.fromkeys(("HADD2", "HMUL2", "HFMA2"), _lower_halves),
    **dict.fromkeys(("HSETP2", "HSET2"), _lower_half_comparison),
    "HMNMX2": _lower_half_choice,
}
