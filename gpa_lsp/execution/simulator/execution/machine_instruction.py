"""One instruction of SASS, taken apart: :func:`read_instruction`."""

import re

from msgspec import Struct

_PREDICATE = re.compile(r"!?U?P(?:\d|T)")
_GUARD = re.compile(r"@(!?)(U?P(?:\d|T)) +")


class MachineInstruction(Struct, frozen=True, kw_only=True):
    """An instruction as it is written."""

    row: int  # in the kernel's rows
    text: str  # all of it
    guard: str  # name of the guard's predicate; empty without one
    is_guard_negated: bool  # ``@!P0``
    opcode: str  # without modifiers
    modifiers: tuple[str, ...]  # behind it, without dots
    operands: tuple[str, ...]  # as written, without ``.reuse``

    @property
    def is_uniform(self) -> bool:
        """Whether it computes one value for the warp."""
        return bool(self.operands) and self.operands[0].startswith("U") and not self.opcode.startswith(("R2", "VOTE"))

    def has(self, modifier: str) -> bool:
        """Whether a modifier is there."""
        return modifier in self.modifiers


def read_instruction(row: int, text: str) -> MachineInstruction:
    """Take one apart.

    >>> one = read_instruction(7, "@!P0 LDG.E.64 R2, desc[UR4][R2.64+0x10]")
    >>> one.guard, one.is_guard_negated, one.opcode, one.modifiers, one.operands
    ('P0', True, 'LDG', ('E', '64'), ('R2', 'desc[UR4][R2.64+0x10]'))
    """
    guard = _GUARD.match(text)
    rest = text[guard.end() :] if guard else text
    mnemonic, _, listed = rest.strip().partition(" ")
    opcode, *modifiers = mnemonic.split(".")
    return MachineInstruction(
        row=row,
        text=text,
        guard=guard[2] if guard else "",
        is_guard_negated=bool(guard and guard[1]),
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=tuple(one.replace(".reuse", "") for one in _split_operands(listed)),
    )


def _split_operands(listed: str) -> list[str]:
    return [one for part in listed.split(",") if (one := part.strip())]


class Roles(Struct, frozen=True, kw_only=True):
    """The operands of an arithmetic instruction by what they are for."""

    target: str  # the register written; empty where only predicates are
    predicates_written: tuple[str, ...]  # in order
    sources: tuple[str, ...]  # registers, constants and immediates read
    predicates_read: tuple[str, ...]  # in order


def is_predicate(operand: str) -> bool:
    """Whether an operand is a predicate."""
    return _PREDICATE.fullmatch(operand) is not None


def find_roles(operands: tuple[str, ...]) -> Roles:
    """Tell targets from sources: predicates before the first source are written, those behind it are read.

    >>> find_roles(("R4", "P0", "R2", "R3", "RZ")).predicates_written
    ('P0',)
    >>> find_roles(("P0", "RZ", "R0", "0x7c", "RZ", "0xc0", "!PT")).sources
    ('R0', '0x7c', 'RZ', '0xc0')
    """
    place = 0
    written: list[str] = []
    while place < len(operands) and is_predicate(operands[place]):
        written.append(operands[place])
        place += 1
    target = operands[place] if place < len(operands) else ""
    place += 1
    while place < len(operands) and is_predicate(operands[place]):
        written.append(operands[place])
        place += 1
    rest = operands[place:]
    return Roles(
        target=target,
        predicates_written=tuple(written),
        sources=tuple(one for one in rest if not is_predicate(one)),
        predicates_read=tuple(one for one in rest if is_predicate(one)),
    )


def find_comparison_roles(operands: tuple[str, ...]) -> Roles:
    """The same of instructions that write two predicates and no register."""
    return Roles(
        target="",
        predicates_written=operands[:2],
        sources=tuple(one for one in operands[2:] if not is_predicate(one)),
        predicates_read=tuple(one for one in operands[2:] if is_predicate(one)),
    )
