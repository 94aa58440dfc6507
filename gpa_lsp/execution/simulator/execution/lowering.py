"""Bound steps → rows that the compiled core executes: :func:`lower_steps`. What has no row is left to numpy."""

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

_SOURCES, _PREDICATES, _OUTS = 4, 4, 2
SOURCE = np.dtype(
    [
        ("value", np.uint64),
        *((name, np.int32) for name in ("file", "number", "signs")),
        *((name, np.uint32) for name in ("shift", "mask")),
        *((name, np.int32) for name in ("scale", "is_pair", "upper_signs")),
    ],
    align=True,
)
# A step as the core reads it
STEP = np.dtype(
    [
        ("sources", SOURCE, (_SOURCES,)),
        ("offset", np.int64),
        *((name, np.int32) for name in ("code", "flags", "source_count", "predicate_count", "out_count")),
        ("predicates", np.int32, (_PREDICATES,)),
        ("outs", np.int32, (_OUTS,)),
        *((name, np.int32) for name in ("target_file", "target")),
        ("tables", np.int32, (2,)),
        *((name, np.int32) for name in (
            "compare", "join", "guard", "guard_resource", "first_read", "read_count", "first_write", "write_count", "first_address",
            "address_count", "space", "width", "words", "sign_bytes",
        )),
    ],
    align=True,
)  # fmt: skip

# What a step does, by the number that the core knows it by
CODES = (
    "PYTHON", "SKIP", "OPAQUE", "MOVE", "MOVE_PAIR", "ADD", "ADD_CARRY", "ADD_PAIR", "MULTIPLY", "MULTIPLY_CARRY", "MULTIPLY_HIGH",
    "MULTIPLY_WIDE", "LOAD_ADDRESS", "LOGIC", "PREDICATE_LOGIC", "COMPARE", "COMPARE_PAIR", "SHIFT", "SELECT", "EXTREME", "PERMUTE", "FADD",
    "FMUL", "FFMA", "HADD2", "HMUL2", "HFMA2", "LOAD", "STORE",
)  # fmt: skip
_FILES = {"": 0, "R": 1, "UR": 2}
_NEGATIVE, _INVERTED, _BAR = 1, 2, 4
_UNIFORM, _NEGATED = 8, 16
_SIGNED, _LEFT, _HIGH, _WRAPS, _WIDE, _EXTENDED, _AND, _LOWER, _ASKED, _UPPER = (1 << bit for bit in range(10))
_COMPARISONS = ("LT", "LE", "GT", "GE", "EQ", "NE")
_JOINS = ("AND", "OR", "XOR")
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
        sign = next((SIZES[one] for one in instruction.modifiers if one in ("S8", "S16")), 0)
        return {
            "code": CODES.index("LOAD" if is_load else "STORE"),
            "flags": _ASKED if is_asked else 0,
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
        if len(row.get("sources", ())) > _SOURCES or len(row.get("outs", ())) > _OUTS:
            raise _NotLoweredError
        if len(row.get("predicates", ())) > _PREDICATES:
            raise _NotLoweredError
        if not is_uniform:
            return
        listed = [*row.get("predicates", ()), *(one for one in row.get("outs", ()) if one >= 0)]
        if any(one.get("file") == _FILES["R"] for one in row.get("sources", ())) or any(
            not one & _UNIFORM for one in listed
        ):
            raise _NotLoweredError

    # Operands ----------------------------------------------------------------------------------------------------------

    def word(self, operand: str) -> Row:
        """A source of 32 bits."""
        return self._find_source(operand, parts=True)

    def carried(self, operand: str) -> Row:
        """A summand with its carry."""
        return self._find_source(operand, parts=False)

    def pair(self, operand: str) -> Row:
        """Two registers or constants that follow each other, or an immediate."""
        negative, inverted, _, _ = find_signs(operand)
        signs = _NEGATIVE if negative else _INVERTED if inverted else 0
        found = find_register(operand)
        if found is not None:
            file, number = found
            if number == RZ:
                return {"signs": signs}
            if number + 1 >= self._room[file]:
                raise _NotLoweredError
            return {"file": _FILES[file], "number": number, "signs": signs}
        place = find_constant(operand)
        if place is not None:
            bank, offset = place
            value = self._banks.read_word(bank, offset) | self._banks.read_word(bank, offset + 4) << 32
            return {"value": value, "signs": signs}
        return {"value": int(operand, 16) & (1 << 64) - 1, "signs": 0}

    def single(self, operand: str) -> Row:
        """A float32."""
        number = read_number(operand)
        if number is not None:
            return {"value": int(np.float32(number).view(np.uint32))}
        found = self._find_source(operand, parts=False)
        found["signs"] = found.get("signs", 0) & ~_INVERTED
        return found

    def halves(self, operand: str) -> Row:
        """Two float16: how far to shift for the lower one and for the upper one, and the signs of each."""
        lower, upper = (find_half(operand, half) for half in (0, 1))
        found = self._find_source(lower.word, parts=False)
        bar = _BAR if lower.is_absolute else 0
        signs = [bar | (_NEGATIVE if one.flips else 0) for one in (lower, upper)]
        return found | {"shift": lower.shift, "mask": upper.shift, "signs": signs[0], "upper_signs": signs[1]}

    def _find_source(self, operand: str, *, parts: bool) -> Row:
        negative, inverted, bar, suffix = find_signs(operand)
        signs = (_BAR if bar else 0) | (_NEGATIVE if negative else _INVERTED if inverted else 0)
        found = find_register(operand)
        if found is None:
            place = find_constant(operand)
            value = int(operand, 16) & 0xFFFFFFFF if place is None else self._banks.read_word(*place)
            source: Row = {"value": value}
        elif found[1] == RZ:
            source = {"value": 0}
        else:
            if found[1] >= self._room[found[0]]:
                raise _NotLoweredError
            source = {"file": _FILES[found[0]], "number": found[1]}
        part = PARTS[suffix] if parts else None
        if part is not None:
            source |= {"shift": part[0], "mask": (1 << part[1]) - 1}
        return source | {"signs": signs}

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
        return {"target_file": file, "target": number}


def _is_predicate(operand: str) -> bool:
    return operand.lstrip("!U").startswith("P")


def encode_predicate(operand: str) -> int:
    """A predicate as the core reads it."""
    name = operand.removeprefix("!")
    number = 7 if name.endswith("T") else int(name[-1])
    return number | (_UNIFORM if name.startswith("U") else 0) | (_NEGATED if operand.startswith("!") else 0)


def _encode_out(operand: str) -> int:
    return -1 if operand.endswith("T") else encode_predicate(operand)


def _flag(instruction: MachineInstruction, **flags: int) -> int:
    return sum(bit for name, bit in flags.items() if instruction.has(name))


def _lower_move(low: Lowering, one: MachineInstruction) -> Row:
    if one.has("64"):
        return {
            "code": CODES.index("MOVE_PAIR"),
            "sources": [low.pair(one.operands[1])],
            **low.target(one.operands[0], 2),
        }
    return {"code": CODES.index("MOVE"), "sources": [low.word(one.operands[1])], **low.target(one.operands[0])}


def _lower_add(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    if one.has("64"):
        return {
            "code": CODES.index("ADD_PAIR"),
            "sources": list(map(low.pair, roles.sources)),
            **low.target(roles.target, 2),
        }
    if not roles.predicates_read and all(text.endswith("T") for text in roles.predicates_written):
        sources = [low.word(text) for text in roles.sources if text not in _ZEROS]
        return {"code": CODES.index("ADD"), "sources": sources, **low.target(roles.target)}
    return {
        "code": CODES.index("ADD_CARRY"),
        "sources": list(map(low.carried, roles.sources)),
        "predicates": list(map(encode_predicate, roles.predicates_read)) if one.has("X") else [],
        "outs": list(map(_encode_out, roles.predicates_written)),
        **low.target(roles.target),
    }


def _lower_multiply(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    first, second, third = roles.sources
    carries = list(map(encode_predicate, roles.predicates_read)) if one.has("X") else []
    outs = list(map(_encode_out, roles.predicates_written))
    signed = 0 if one.has("U32") else _SIGNED
    if one.has("WIDE") or one.has("HI"):
        is_wide = one.has("WIDE")
        return {
            "code": CODES.index("MULTIPLY_WIDE" if is_wide else "MULTIPLY_HIGH"),
            "flags": signed,
            "sources": [low.word(first), low.word(second), low.pair(third)],
            "predicates": carries,
            "outs": outs[:1],
            **low.target(roles.target, 1 + is_wide),
        }
    if roles.predicates_read or any(text >= 0 for text in outs):
        sources = [low.word(first), low.word(second), low.carried(third)]
        code = CODES.index("MULTIPLY_CARRY")
        return {"code": code, "sources": sources, "predicates": carries, "outs": outs, **low.target(roles.target)}
    if first in _ZEROS or second in _ZEROS:
        return {"code": CODES.index("MOVE"), "sources": [low.word(third)], **low.target(roles.target)}
    return {"code": CODES.index("MULTIPLY"), "sources": list(map(low.word, roles.sources)), **low.target(roles.target)}


def _lower_load_address(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    *listed, shift = roles.sources
    is_extended = one.has("SX32")
    sources = [low.word(listed[0]), low.carried(listed[1])]
    has_upper = len(listed) > 2 and not is_extended
    if has_upper:
        sources.append(low.word(listed[2]))
    return {
        "code": CODES.index("LOAD_ADDRESS"),
        "flags": _flag(one, HI=_HIGH, SX32=_EXTENDED) | (_UPPER if has_upper else 0),
        "sources": sources,
        "tables": [int(shift, 16) & 31, 0],
        "predicates": list(map(encode_predicate, roles.predicates_read)) if one.has("X") else [],
        "outs": list(map(_encode_out, roles.predicates_written)),
        **low.target(roles.target),
    }


def _lower_logic(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    return {
        "code": CODES.index("LOGIC"),
        "flags": _flag(one, PAND=_AND),
        "sources": [low.word(text) for text in roles.sources[:3]],
        "tables": [int(roles.sources[3], 16), 0],
        "predicates": list(map(encode_predicate, roles.predicates_read)),
        "outs": [encode_predicate(text) for text in roles.predicates_written if not text.endswith("T")][:1],
        **low.target(roles.target),
    }


def _lower_predicate_logic(low: Lowering, one: MachineInstruction) -> Row:
    del low
    tables = [int(text, 16) for text in one.operands if text.startswith("0x")]
    predicates = [text for text in one.operands if not text.startswith("0x")]
    reads = list(map(encode_predicate, predicates[2:5]))
    if len(reads) < 3 or not 1 <= len(tables) <= _OUTS:
        raise _NotLoweredError
    return {
        "code": CODES.index("PREDICATE_LOGIC"),
        "tables": [*tables, 0][:2],
        "predicates": reads,
        "outs": list(map(_encode_out, predicates[: len(tables)])),
        "target": -1,
    }


def _find_number(one: MachineInstruction, known: Sequence[str]) -> int:
    return next(known.index(text) for text in one.modifiers if text in known)


def _lower_comparison(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_comparison_roles(one.operands)
    is_wide = one.has("64") or one.has("S64") or one.has("U64")
    signed = 0 if one.has("U32") or one.has("U64") else _SIGNED
    return {
        "code": CODES.index("COMPARE_PAIR" if is_wide else "COMPARE"),
        "flags": signed | _flag(one, EX=_LOWER),
        "sources": [(low.pair if is_wide else low.word)(text) for text in roles.sources[:2]],
        "predicates": [encode_predicate(text) for text in roles.predicates_read[: 2 if one.has("EX") else 1]],
        "outs": list(map(_encode_out, roles.predicates_written)),
        "compare": _find_number(one, _COMPARISONS),
        "join": _find_number(one, _JOINS),
        "target": -1,
    }


def _lower_shift(low: Lowering, one: MachineInstruction) -> Row:
    target, *sources = one.operands
    flags = _flag(one, L=_LEFT, HI=_HIGH, W=_WRAPS)
    flags |= _WIDE if one.has("U64") or one.has("S64") else 0
    flags |= _SIGNED if one.has("S32") or one.has("S64") else 0
    return {"code": CODES.index("SHIFT"), "flags": flags, "sources": list(map(low.word, sources)), **low.target(target)}


def _lower_choice(low: Lowering, one: MachineInstruction) -> Row:
    """SEL, IMNMX."""
    roles = find_roles(one.operands)
    if one.has("64") or len(roles.sources) != 2 or any(text[-1] != "T" for text in roles.predicates_written):
        raise _NotLoweredError
    return {
        "code": CODES.index("SELECT" if one.opcode.endswith("SEL") else "EXTREME"),
        "flags": 0 if one.has("U32") else _SIGNED,
        "sources": list(map(low.word, roles.sources)),
        "predicates": [encode_predicate(roles.predicates_read[0])],
        **low.target(roles.target),
    }


def _lower_permute(low: Lowering, one: MachineInstruction) -> Row:
    target, *sources = one.operands
    return {"code": CODES.index("PERMUTE"), "sources": list(map(low.word, sources)), **low.target(target)}


def _lower_single(low: Lowering, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    if one.has("SAT") or len(roles.sources) != (3 if one.opcode == "FFMA" else 2):
        raise _NotLoweredError
    return {
        "code": CODES.index(one.opcode),
        "sources": list(map(low.single, roles.sources)),
        **low.target(roles.target),
    }


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
        sources.append({"value": int(words.view(np.uint32)[0]), "shift": 0, "mask": 16})
    if any(one.has(text) for text in ("SAT", "F32")) or len(sources) != (3 if name == "HFMA2" else 2):
        raise _NotLoweredError
    return {"code": CODES.index(name), "sources": sources, **low.target(find_roles(one.operands).target)}


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
    resources: list[int] = []
    for entry, row in zip(table, rows, strict=False):
        entry["guard"], entry["guard_resource"] = row.get("guard", -1), row.get("guard_resource", -1)
        for name in (
            "code",
            "flags",
            "offset",
            "target_file",
            "compare",
            "join",
            "space",
            "width",
            "words",
            "sign_bytes",
        ):
            entry[name] = row.get(name, 0)
        entry["target"] = row.get("target", -1)
        for name in ("predicates", "outs", "tables"):
            listed = row.get(name, ())
            entry[name][: len(listed)] = listed
        for number, source in enumerate(row.get("sources", ())):
            for name, value in source.items():
                entry["sources"][number][name] = value
        entry["source_count"] = len(row.get("sources", ()))
        entry["predicate_count"], entry["out_count"] = len(row.get("predicates", ())), len(row.get("outs", ()))
        for name in ("read", "write", "address"):
            listed = row.get(name, ())
            entry[f"first_{name}"], entry[f"{name}_count"] = len(resources), len(listed)
            resources.extend(listed)
    return table, np.array([*resources, 0], dtype=np.int32)
