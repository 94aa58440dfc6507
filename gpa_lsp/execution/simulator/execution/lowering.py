"""Bound steps → rows that :mod:`walk_steps` executes: :class:`Lowering`. What has no row is left to numpy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.memory_steps import (
    SIZES,
    SPACES,
    find_operand,
    find_width,
    list_sources,
    list_terms,
    read_address,
)
from gpa_lsp.execution.simulator.execution.operand_values import (
    PARTS,
    RZ,
    MachineInstruction,
    Roles,
    UnreadOperandError,
    find_comparison_roles,
    find_constant,
    find_half,
    find_register,
    find_roles,
    find_signs,
    read_literal,
    read_number,
)
from gpa_lsp.execution.simulator.execution.walk_model import (
    MOST_OUTS,
    MOST_PREDICATES,
    MOST_SOURCES,
    STEP,
    Code,
    Extension,
    File,
    Flag,
    Join,
    PredicateBit,
)

_FILES = {"R": File.REGISTER, "UR": File.UNIFORM}
_WHOLE, _WORD, _SIGN = (1 << 64) - 1, (1 << 32) - 1, 1 << 31
_BOTH_HALVES = 0x10001
# a + b is a 1 + b, a b is a b - 0
_ONE, _NEGATIVE_ZERO, _ONE_HALVES = {"value": 0x3F800000}, {"value": _SIGN}, {"value": 0x3C003C00}
_TRUTHS = {"LT": 1, "EQ": 2, "GT": 4, "LE": 3, "GE": 6, "NE": 5}  # Less, equal and more
_ZEROS = ("RZ", "URZ")

Row = dict[str, Any]


class _NotLoweredError(Exception):
    """Numpy executes it."""


class Lowering:
    """Lowers the instructions of one launch.

    Args:
        banks: constants.
        registers: general ones that there is room for.
    """

    def __init__(self, banks: ConstantBanks, registers: int) -> None:
        self._banks = banks
        self._room = {"R": registers, "UR": RZ}

    def lower_arithmetic(self, instruction: MachineInstruction) -> Row | None:
        """What computes; None where the core cannot."""
        opcode = instruction.opcode
        name = opcode if opcode in _LOWERED else opcode.removeprefix("U")
        lower = _LOWERED.get(name)
        if lower is None:
            return None
        try:
            row = lower(self, instruction)
            self._check(row, is_uniform=row.get("target_file", -1) == _FILES["UR"] or opcode != name)
        except (_NotLoweredError, UnreadOperandError, ValueError, LookupError):
            return None
        return row

    def lower_access(self, instruction: MachineInstruction, *, is_asked: bool) -> Row | None:
        """A load or a store; None where the core cannot."""
        opcode = instruction.opcode
        space = SPACES.get(opcode)
        if opcode not in _ACCESSES or space is None:
            return None
        try:
            return self._lower_access(instruction, int(space), is_asked=is_asked)
        except (_NotLoweredError, UnreadOperandError, ValueError, LookupError):
            return None

    def _lower_access(self, instruction: MachineInstruction, space: int, *, is_asked: bool) -> Row:
        is_load = instruction.opcode.startswith("LD")
        place, width = find_operand(instruction), find_width(instruction)
        is_wide = space == 0 and instruction.has("E")
        terms, offset = list_terms(instruction.operands[place], is_wide=is_wide)
        words = max(width // 4, 1)
        given = (
            next(one for one in instruction.operands if not _is_predicate(one))
            if is_load
            else instruction.operands[place + 1]
        )
        file, number = self._find_target(given, words)
        sources = []
        for name, register, is_pair, scale in terms:
            if register == RZ:
                continue
            if register + is_pair >= min(self._room[name], RZ):
                raise _NotLoweredError
            sources.append({"file": _FILES[name], "number": register, "scale": scale, "is_pair": int(is_pair)})
        if len(sources) > MOST_SOURCES:
            raise _NotLoweredError
        sign = next((SIZES[one] for one in instruction.modifiers if one in ("S8", "S16")), 0)
        return {
            "code": Code.LOAD if is_load else Code.STORE,
            "flags": Flag.ASKED if is_asked else 0,
            "sources": sources,
            "offset": offset,
            "target_file": file,
            "target": number,
            "space": space,
            "width": width,
            "words": words,
            "sign_bytes": sign if is_load else 0,
            "address": read_address(instruction.operands[place], is_wide=is_wide)[1].tolist(),
            **({} if is_load else {"read": list_sources(given, words).tolist()}),
        }

    def _check(self, row: Row, *, is_uniform: bool) -> None:
        """What is one value for the warp comes from such values alone."""
        sources, predicates, outs = (row.get(name, ()) for name in ("sources", "predicates", "outs"))
        if len(sources) > MOST_SOURCES or len(predicates) > MOST_PREDICATES or len(outs) > MOST_OUTS:
            raise _NotLoweredError
        if is_uniform and (
            any(one.get("file") == File.REGISTER for one in sources)
            or any(one >= 0 and not one & PredicateBit.UNIFORM for one in (*predicates, *outs))
        ):
            raise _NotLoweredError

    # Operands ----------------------------------------------------------------------------------------------------------

    def word(self, operand: str, extension: Extension = Extension.ZERO) -> Row:
        """A source of 32 bits."""
        negative, inverted, bar, suffix = find_signs(operand)
        if bar:
            raise _NotLoweredError
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
                raise _NotLoweredError
            source: Row = {"file": _FILES[file], "number": number, "is_pair": 1}
        elif place is not None:
            bank, offset = place
            source = {"value": self._banks.read_word(bank, offset) | self._banks.read_word(bank, offset + 4) << 32}
        else:
            source = {"value": 0 if found else int(operand, 16) & _WHOLE}
        return source | _turn(negative, inverted, _WHOLE)

    def single(self, operand: str) -> Row:
        """A float32."""
        number = read_number(operand)
        if number is not None:
            return {"value": int(np.float32(number).view(np.uint32))}
        negative, _, bar, _ = find_signs(operand)
        return self._find_bits(operand) | {"mask": _WORD ^ _SIGN if bar else _WORD, "flip": _SIGN if negative else 0}

    def halves(self, operand: str) -> Row:
        """Two float16, with the signs of each."""
        lower, upper = (find_half(operand, half) for half in (0, 1))
        if lower.shift > upper.shift:
            raise _NotLoweredError
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
            raise _NotLoweredError
        return {"file": _FILES[file], "number": number}

    def _find_target(self, operand: str, words: int) -> tuple[int, int]:
        found = find_register(operand)
        if found is None:
            raise _NotLoweredError
        file, number = found
        if number == RZ:
            return _FILES[file], -1
        if number + words > min(self._room[file], RZ):
            raise _NotLoweredError
        return _FILES[file], number

    def target(self, operand: str, words: int = 1) -> Row:
        """Where results go."""
        file, number = self._find_target(operand, words)
        return {"target_file": file, "target": number, "words": words}


def _turn(negative: str, inverted: str, mask: int) -> Row:
    """Negate or invert the bits of a mask."""
    return {"flip": mask if negative or inverted else 0, "added": int(bool(negative))}


def _is_predicate(operand: str) -> bool:
    return operand.lstrip("!U").startswith("P")


def encode_predicate(operand: str) -> int:
    """A predicate as the core reads it."""
    name = operand.removeprefix("!")
    number = 7 if name.endswith("T") else int(name[-1])
    return (
        number
        | (PredicateBit.UNIFORM if name.startswith("U") else 0)
        | (PredicateBit.NEGATED if operand.startswith("!") else 0)
    )


def _encode_out(operand: str) -> int:
    return -1 if operand.endswith("T") else encode_predicate(operand)


def _flag(instruction: MachineInstruction, **flags: int) -> int:
    return sum(bit for name, bit in flags.items() if instruction.has(name))


def _lower_move(low: Lowering, one: MachineInstruction) -> Row:
    words = 1 + one.has("64")
    source = low.pair(one.operands[1]) if words > 1 else low.word(one.operands[1])
    return {"code": Code.ADD, "sources": [source], **low.target(one.operands[0], words)}


def _lower_add(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    row = {"code": Code.ADD, **low.target(roles.target, 1 + one.has("64"))}
    if one.has("64"):
        return row | {"sources": list(map(low.pair, roles.sources))}
    if not roles.predicates_read and all(text.endswith("T") for text in roles.predicates_written):
        return row | {"sources": [low.word(text) for text in roles.sources if text not in _ZEROS]}
    return row | {"sources": list(map(low.carried, roles.sources)), **_find_carries(one, roles)}


def _find_carries(one: MachineInstruction, roles: Roles) -> Row:
    return {
        "predicates": list(map(encode_predicate, roles.predicates_read)) if one.has("X") else [],
        "outs": list(map(_encode_out, roles.predicates_written)),
    }


def _lower_multiply(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    first, second, third = roles.sources
    carries = _find_carries(one, roles)
    if one.has("WIDE") or one.has("HI"):
        extension = Extension.ZERO if one.has("U32") else Extension.SIGN
        return {
            "code": Code.MULTIPLY_WIDE,
            "flags": 0 if one.has("WIDE") else Flag.UPPER,
            "sources": [low.word(first, extension), low.word(second, extension), low.pair(third)],
            **carries,
            "outs": carries["outs"][:1],
            **low.target(roles.target, 1 + one.has("WIDE")),
        }
    row: Row = {"code": Code.MULTIPLY, **low.target(roles.target)}
    if roles.predicates_read or any(text >= 0 for text in carries["outs"]):
        return row | {"sources": [low.word(first), low.word(second), low.carried(third)], **carries}
    if first in _ZEROS or second in _ZEROS:
        return row | {"code": Code.ADD, "sources": [low.word(third)]}
    return row | {"sources": list(map(low.word, roles.sources))}


def _lower_load_address(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    *listed, shift = roles.sources
    is_extended = one.has("SX32")
    first = low.word(listed[0], Extension.SIGN if is_extended else Extension.ZERO)
    upper = low.word(listed[2]) if len(listed) > 2 and not is_extended else {"value": 0}
    return {
        "code": Code.LOAD_ADDRESS,
        "flags": _flag(one, HI=Flag.HIGH),
        "sources": [first, upper, low.carried(listed[1])],
        "tables": [int(shift, 16) & 31],
        **_find_carries(one, roles),
        **low.target(roles.target),
    }


def _lower_logic(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    return {
        "code": Code.LOGIC,
        "flags": _flag(one, PAND=Flag.AND),
        "sources": [low.word(text) for text in roles.sources[:3]],
        "tables": [int(roles.sources[3], 16)],
        "predicates": list(map(encode_predicate, roles.predicates_read)),
        "outs": [encode_predicate(text) for text in roles.predicates_written if not text.endswith("T")][:1],
        **low.target(roles.target),
    }


def _lower_predicate_logic(low: Lowering, one: MachineInstruction) -> Row:
    del low
    tables = [int(text, 16) for text in one.operands if text.startswith("0x")]
    predicates = [text for text in one.operands if not text.startswith("0x")]
    reads = list(map(encode_predicate, predicates[2:5]))
    if len(reads) < 3 or not 1 <= len(tables) <= MOST_OUTS:
        raise _NotLoweredError
    return {
        "code": Code.PREDICATE_LOGIC,
        "tables": tables,
        "predicates": reads,
        "outs": list(map(_encode_out, predicates[: len(tables)])),
        "target": -1,
    }


def _lower_comparison(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_comparison_roles(one.operands)
    if one.has("64") or one.has("S64") or one.has("U64"):
        sources = list(map(low.pair, roles.sources[:2]))
        for source in sources if one.has("U64") or one.has("U32") else ():
            source["added"] += 1 << 63  # unsigned numbers are compared as signed ones that are so much smaller
    else:
        extension = Extension.ZERO if one.has("U32") else Extension.SIGN
        sources = [low.word(text, extension) for text in roles.sources[:2]]
    return {
        "code": Code.COMPARE,
        "sources": sources,
        "predicates": [encode_predicate(text) for text in roles.predicates_read[: 1 + one.has("EX")]],
        "outs": list(map(_encode_out, roles.predicates_written)),
        "tables": [next(_TRUTHS[text] for text in one.modifiers if text in _TRUTHS) | (2 if one.has("EX") else 0)],
        "join": next(Join[text] for text in one.modifiers if text in Join.__members__),
    }


def _lower_shift(low: Lowering, one: MachineInstruction) -> Row:
    target, *sources = one.operands
    is_wide, wraps = one.has("U64") or one.has("S64"), one.has("W")
    flags = _flag(one, L=Flag.LEFT, HI=Flag.UPPER, W=Flag.WRAPS, S32=Flag.SIGNED, S64=Flag.SIGNED)
    return {
        "code": Code.SHIFT,
        "flags": flags,
        "sources": list(map(low.word, sources)),
        "tables": [63 if is_wide else 31 if wraps else 32],
        **low.target(target),
    }


def _lower_choice(low: Lowering, one: MachineInstruction) -> Row:
    """SEL, IMNMX."""
    roles = find_roles(one.operands)
    if one.has("64") or len(roles.sources) != 2 or any(text[-1] != "T" for text in roles.predicates_written):
        raise _NotLoweredError
    return {
        "code": Code.SELECT if one.opcode.endswith("SEL") else Code.EXTREME,
        "sources": [low.word(text, Extension.ZERO if one.has("U32") else Extension.SIGN) for text in roles.sources],
        "predicates": [encode_predicate(roles.predicates_read[0])],
        **low.target(roles.target),
    }


def _lower_permute(low: Lowering, one: MachineInstruction) -> Row:
    target, *sources = one.operands
    return {"code": Code.PERMUTE, "sources": list(map(low.word, sources)), **low.target(target)}


def _lower_single(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    if one.has("SAT") or len(roles.sources) != (3 if one.opcode == "FFMA" else 2):
        raise _NotLoweredError
    sources = list(map(low.single, roles.sources))
    if one.opcode != "FFMA":
        sources = [sources[0], _ONE, sources[1]] if one.opcode == "FADD" else [*sources, _NEGATIVE_ZERO]
    return {"code": Code.FMA, "sources": sources, **low.target(roles.target)}


def _lower_halves(low: Lowering, one: MachineInstruction) -> Row:
    """HADD2, HMUL2, HFMA2 on both halves."""
    name = one.opcode.removesuffix("32I")
    listed = list(find_roles(one.operands).sources)
    sources: list[Row] = []
    while listed:
        text = listed.pop(0)
        upper = read_literal(text)
        if upper is None:
            sources.append(low.halves(text))
            continue
        lower = read_literal(listed.pop(0)) if listed and read_literal(listed[0]) is not None else upper
        words = np.array([lower, upper], np.float16)
        if words.astype(np.float64).tolist() != [lower, upper]:
            raise _NotLoweredError
        sources.append({"value": int(words.view(np.uint32)[0])})
    if any(one.has(text) for text in ("SAT", "F32")) or len(sources) != (3 if name == "HFMA2" else 2):
        raise _NotLoweredError
    if name == "HADD2":
        sources.insert(1, _ONE_HALVES)
    return {"code": Code.HALF_FMA, "sources": sources, **low.target(find_roles(one.operands).target)}


_LOWERED = {
    "MOV": _lower_move,
    "MOV32I": _lower_move,
    "IADD3": _lower_add,
    "IADD": _lower_add,
    "VIADD": _lower_add,
    "IMAD": _lower_multiply,
    "LEA": _lower_load_address,
    "LOP3": _lower_logic,
    "PLOP3": _lower_predicate_logic,
    "ISETP": _lower_comparison,
    "SHF": _lower_shift,
    "SEL": _lower_choice,
    "IMNMX": _lower_choice,
    "PRMT": _lower_permute,
    "FADD": _lower_single,
    "FMUL": _lower_single,
    "FFMA": _lower_single,
    "HADD2": _lower_halves,
    "HMUL2": _lower_halves,
    "HFMA2": _lower_halves,
}
_ACCESSES = frozenset({"LDG", "LDS", "LDL", "STG", "STS", "STL"})


def tabulate(rows: Sequence[Row]) -> tuple["npt.NDArray[np.void]", npt.NDArray[np.int32]]:
    """Rows as the core reads them, and the numbers of the resources that they name."""
    table = np.zeros(max(len(rows), 1), STEP)
    for name in ("guard", "guard_resource", "target"):
        table[name] = -1
    table["words"] = 1
    table["sources"]["mask"], table["sources"]["scale"] = _WHOLE, 1
    resources: list[int] = []
    for entry, row in zip(table, rows, strict=False):
        for name, given in row.items():
            if name in ("read", "write", "address"):
                entry[f"first_{name}"], entry[f"{name}_count"] = len(resources), len(given)
                resources.extend(given)
            elif name == "sources":
                for number, source in enumerate(given):
                    for part, value in source.items():
                        entry[name][number][part] = value
            elif name in ("predicates", "outs", "tables"):
                entry[name][: len(given)] = given
            else:
                entry[name] = given
        for name in ("source", "predicate", "out"):
            entry[f"{name}_count"] = len(row.get(f"{name}s", ()))
    return table, np.array([*resources, 0], dtype=np.int32)
