"""Operands as rows of machine code have them: :class:`RowOperands`."""

from typing import Any

import numpy as np

from gpa_lsp.execution.simulator.execution.lane_values import NUMBERS, TRUTHS
from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import (
    PARTS,
    RZ,
    MachineInstruction,
    find_constant,
    find_half,
    find_register,
    find_signs,
    read_number,
)
from gpa_lsp.execution.simulator.execution.walk_model import Code, Extension, File, PredicateBit

FILES = {"R": File.REGISTER, "UR": File.UNIFORM}
SIGN = 1 << 31
WHOLE, _WORD = (1 << 64) - 1, (1 << 32) - 1
_BOTH_HALVES = 0x10001

Row = dict[str, Any]


class NotLoweredError(Exception):
    """It is not known."""


class RowOperands:
    """Operands of the instructions of one launch.

    Args:
        banks: constants.
        registers: general ones that there is room for.
    """

    def __init__(self, banks: ConstantBanks, registers: int) -> None:
        self._banks = banks
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
        if number + words > min(self._room[file], RZ):
            raise NotLoweredError
        return FILES[file], number

    def target(self, operand: str, words: int = 1) -> Row:
        """Where results go."""
        file, number = self.find_target(operand, words)
        return {"target_file": file, "target": number, "words": words}


def _turn(negative: str, inverted: str, mask: int) -> Row:
    """Negate or invert the bits of a mask."""
    return {"flip": mask if negative or inverted else 0, "added": int(bool(negative))}


def is_predicate(operand: str) -> bool:
    """Whether an operand is a predicate."""
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


def encode_out(operand: str) -> int:
    """A predicate that is written; -1 for one that goes nowhere."""
    return -1 if operand.endswith("T") else encode_predicate(operand)


def flag(instruction: MachineInstruction, **flags: int) -> int:
    """The flags of those modifiers that are there."""
    return sum(bit for name, bit in flags.items() if instruction.has(name))


def name_value(name: str, literal: int = 0) -> Row:
    """One of the values of :mod:`lane_values`."""
    return {"code": Code.TRUTH if name in TRUTHS else Code.VALUE, "tables": [NUMBERS[name]], "offset": literal}
