"""The operands of an instruction as written, and the registers they name.

An operand names the first register of each group; how many registers follow it is either part of the text (``[R2.64]``, ``desc[UR4]``) or a
fact about the opcode (:mod:`gpa_lsp.code.binary.opcodes`).
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from gpa_lsp.code.binary.model import ResourceKind, encode_resource

_KIND_OF_PREFIX = {
    "R": ResourceKind.REGISTER,
    "UR": ResourceKind.UNIFORM_REGISTER,
    "P": ResourceKind.PREDICATE,
    "UP": ResourceKind.UNIFORM_PREDICATE,
    "B": ResourceKind.CONVERGENCE_BARRIER,
}
# Registers of each file; a group that would go beyond is cut there
FILE_SIZES = {
    ResourceKind.REGISTER: 255,
    ResourceKind.UNIFORM_REGISTER: 255,
    ResourceKind.PREDICATE: 7,
    ResourceKind.UNIFORM_PREDICATE: 7,
    ResourceKind.CONVERGENCE_BARRIER: 16,
}
_WIDTH_OF_SUFFIX = {"64": 2, "U32": 1, "32": 1, "F32": 1, "F32x2": 2}
_RESOURCE = re.compile(r"(?<![\w.])(UR|UP|R|P|B)(\d{1,3})(?!\w)\|?((?:\.\w+)*)")
_PREDICATE = re.compile(r"!?U?P[0-6T]")
_CONVERGENCE_BARRIER = re.compile(r"B\d{1,2}")
_OFFSET = re.compile(r"\+-?0x[0-9a-f]+\]\Z")
_SIGNS = "-|~!"
_PAIR_PREFIXES = ("desc[", "cx[")  # The uniform register in their first bracket is a 64-bit handle
_ADDRESS_PREFIXES = ("[", "desc[")
_LABEL_PREFIX = "`"
_MAY_NAME_A_RESOURCE = frozenset("RPB")


class OperandKind(StrEnum):
    """What an operand is, as far as roles and widths go; the values are single letters, so that they join to a shape."""

    REGISTER = "r"  # A register, or another value that is no address: a constant, an immediate, a name
    ADDRESS = "a"  # An address in memory, in brackets
    # Another value with brackets: a constant, perhaps with an index, a descriptor, an address in tensor memory
    INDIRECT = "i"
    PREDICATE = "p"
    CONVERGENCE_BARRIER = "b"


class RegisterGroup(NamedTuple):
    """A register in an operand and how many it stands for."""

    kind: ResourceKind  # which file it is in
    first: int  # index of the first register
    width: int | None  # registers in the group, when the text says; None when the opcode does


class NamedRegister(NamedTuple):
    """A register and where its name stands."""

    start: int  # characters before its name, in the operand
    end: int  # characters before what follows its name (``.64``, ``.reuse``)
    group: RegisterGroup  # what it names


class Operand(NamedTuple):
    """One operand."""

    kind: OperandKind  # what it is
    groups: tuple[RegisterGroup, ...]  # registers it names, in the order of the text
    # the resource numbers it stands for, by the opcode's width, as far as they have been asked for
    expanded: dict[int, tuple[int, ...]]

    def expand(self, width: int) -> tuple[int, ...]:
        """The resource numbers it stands for when the opcode's width is ``width``; cut at the end of the register file."""
        numbers = self.expanded.get(width)
        if numbers is None:
            numbers = self.expanded[width] = tuple(
                encode_resource(group.kind, index)
                for group in self.groups
                for index in range(group.first, min(group.first + (group.width or width), FILE_SIZES[group.kind]))
            )
        return numbers


class OperandTable(dict[str, Operand]):
    """Operands already parsed, by their text; looking up another one parses it. Addresses that differ only in their offset share one."""

    def __missing__(self, token: str) -> Operand:
        if not _MAY_NAME_A_RESOURCE.intersection(token):
            operand = Operand(_find_kind(token), (), {})
        else:
            without_offset = _OFFSET.sub("]", token) if token.endswith("]") else token
            operand = parse_operand(token) if without_offset == token else self[without_offset]
        self[token] = operand
        return operand


@lru_cache(maxsize=8192)
def parse_operand(token: str) -> Operand:
    """Find the registers in one operand.

    >>> parse_operand("desc[UR4][R2.64+0x10]").expand(1)
    (260, 261, 2, 3)
    >>> parse_operand("-|R7.reuse|").expand(2)
    (7, 8)
    >>> parse_operand("!PT").kind
    <OperandKind.PREDICATE: 'p'>
    """
    return Operand(_find_kind(token), tuple(named.group for named in find_registers(token)), {})


def find_registers(token: str) -> tuple[NamedRegister, ...]:
    """Where the registers of one operand stand in it; zero registers and always-true predicates are none.

    >>> [(named.start, named.end, named.group.first, named.group.width) for named in find_registers("[R2.64+UR14]")]
    [(1, 3, 2, 2), (7, 11, 14, None)]
    """
    if token.startswith(_LABEL_PREFIX):
        return ()
    found = [
        NamedRegister(
            match.start(1), match.end(2), RegisterGroup(_KIND_OF_PREFIX[match[1]], int(match[2]), _find_width(match[3]))
        )
        for match in _RESOURCE.finditer(token)
        if int(match[2]) < FILE_SIZES[_KIND_OF_PREFIX[match[1]]]
    ]
    if found and token.lstrip(_SIGNS).startswith(_PAIR_PREFIXES):
        first = found[0].group
        if first.kind == ResourceKind.UNIFORM_REGISTER:
            found[0] = found[0]._replace(group=first._replace(width=2))
    return tuple(found)


def _find_kind(token: str) -> OperandKind:
    if _PREDICATE.fullmatch(token):
        return OperandKind.PREDICATE
    if _CONVERGENCE_BARRIER.fullmatch(token):
        return OperandKind.CONVERGENCE_BARRIER
    if token.startswith(_ADDRESS_PREFIXES):
        return OperandKind.ADDRESS
    return OperandKind.INDIRECT if "[" in token else OperandKind.REGISTER


def _find_width(suffixes: str) -> int | None:
    if not suffixes:
        return None
    return next((_WIDTH_OF_SUFFIX[one] for one in suffixes.split(".") if one in _WIDTH_OF_SUFFIX), None)
