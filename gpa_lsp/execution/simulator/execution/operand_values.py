"""One instruction of SASS, taken apart, and its operands → functions that read and write them for the warps that execute: :func:`read_integer` …"""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.warp_state import Column, Lanes, WarpState

Reader = Callable[[WarpState, Lanes], Column]
Writer = Callable[[WarpState, Lanes, Column], None]

RZ = 255
_SOURCE = re.compile(
    r"(?P<negative>-?)(?P<inverted>~?)(?P<bar>\|?)(?P<file>U?R)(?P<number>\d+|Z)\|?(?P<suffix>(?:\.\w+)*)"
)
_CONSTANT = re.compile(
    r"(?P<negative>-?)(?P<inverted>~?)(?P<bar>\|?)c\[0x(?P<bank>[0-9a-f]+)\]\[0x(?P<offset>[0-9a-f]+)\]\|?(?P<suffix>(?:\.\w+)*)"
)
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_ZERO: npt.NDArray[np.uint32] = np.zeros((1, 1), np.uint32)
_SIGN = np.uint32(0x80000000)
_SIGN_64 = np.uint64(1 << 63)


class UnreadOperandError(Exception):
    """An operand is of a form that is not read; its instruction's results are unknown."""


def read_bits(operand: str, banks: ConstantBanks) -> Reader:
    """32 bits without any sign or part: registers, uniform registers, constants, hexadecimal immediates."""
    found = _SOURCE.fullmatch(operand)
    if found:
        return _read_register(found["file"], _number(found["number"]))
    constant = _CONSTANT.fullmatch(operand)
    if constant:
        value = np.full((1, 1), banks.read_word(int(constant["bank"], 16), int(constant["offset"], 16)), np.uint32)
        return lambda state, lanes: value
    if _INTEGER.fullmatch(operand):
        immediate = np.full((1, 1), int(operand, 16) & 0xFFFFFFFF, np.uint32)
        return lambda state, lanes: immediate
    raise UnreadOperandError(operand)


def _number(text: str) -> int:
    return RZ if text == "Z" else int(text)


@lru_cache(maxsize=1024)
def _read_register(file: str, number: int) -> Reader:
    if number >= RZ:
        return lambda state, lanes: _ZERO
    if file == "R":
        return lambda state, lanes: state.registers[number][lanes.warps]
    return lambda state, lanes: state.uniform[number][lanes.warps]


def find_register(operand: str) -> tuple[str, int] | None:
    """File and number of a register, whatever its sign or part."""
    found = _SOURCE.fullmatch(operand)
    return None if found is None else (found["file"], _number(found["number"]))


def find_constant(operand: str) -> tuple[int, int] | None:
    """Bank and offset of a constant."""
    found = _CONSTANT.fullmatch(operand)
    return None if found is None else (int(found["bank"], 16), int(found["offset"], 16))


def find_signs(operand: str) -> tuple[str, str, bool, str]:
    """How an operand is negated or inverted, whether its absolute value is meant, and which part of it."""
    found = _SOURCE.fullmatch(operand) or _CONSTANT.fullmatch(operand)
    if found is None:
        return "", "", False, ""
    return found["negative"], found["inverted"], bool(found["bar"]), found["suffix"]


def read_integer(operand: str, banks: ConstantBanks) -> Reader:
    """uint32 with its sign, its complement, or a part of it.

    >>> from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
    >>> read = read_integer("-0x1", ConstantBanks({}))
    >>> int(read(None, None)[0, 0])
    4294967295
    """
    negative, inverted, bar, suffix = find_signs(operand)
    read = _take_part(read_bits(operand, banks), suffix)
    if bar:
        inner = read
        read = lambda state, lanes: np.abs(inner(state, lanes).view(np.int32)).view(np.uint32)  # noqa: E731
    if negative:
        plain = read
        return lambda state, lanes: np.negative(plain(state, lanes))
    if inverted:
        upright = read
        return lambda state, lanes: np.invert(upright(state, lanes))
    return read


# Where a part of a word begins, and how many bits it has; None for all of it
PARTS = {
    "": None, ".U32": None, ".S32": None, ".64": None, ".H0": (0, 16), ".H1": (16, 16), ".B0": (0, 8), ".B1": (8, 8), ".B2": (16, 8), ".B3": (24, 8),
}  # fmt: skip


def _take_part(read: Reader, suffix: str) -> Reader:
    if suffix not in PARTS:
        raise UnreadOperandError(suffix)
    part = PARTS[suffix]
    if part is None:
        return read
    shift, mask = np.uint32(part[0]), np.uint32((1 << part[1]) - 1)
    return lambda state, lanes: (read(state, lanes) >> shift) & mask


def read_number(operand: str) -> float | None:
    """The value of a literal of a floating-point instruction; None for what is no literal.

    >>> read_number("-1.5"), read_number("+INF"), read_number("R3")
    (-1.5, inf, None)
    """
    if operand.endswith(("INF", "NAN")):
        return float("-inf" if operand.startswith("-") else "inf") if operand.endswith("INF") else float("nan")
    try:
        return float(operand) if not operand.startswith(("0x", "-0x")) else None
    except ValueError:
        return None


def read_predicate(operand: str) -> Reader:
    """bool of a predicate, negated where it is."""
    name = operand.removeprefix("!")
    is_uniform = name.startswith("U")
    number = 7 if name.endswith("T") else int(name[-1])
    if operand.startswith("!"):
        if is_uniform:
            return lambda state, lanes: ~state.uniform_predicates[number][lanes.warps]
        return lambda state, lanes: ~state.predicates[number][lanes.warps]
    if is_uniform:
        return lambda state, lanes: state.uniform_predicates[number][lanes.warps]
    return lambda state, lanes: state.predicates[number][lanes.warps]


def write_register(operand: str, width: int = 0) -> Writer:
    """Where uint32 results go; ``width`` registers behind the one that is named."""
    found = _SOURCE.fullmatch(operand)
    if found is None:
        raise UnreadOperandError(operand)
    number = _number(found["number"])
    if number == RZ or number + width >= RZ:
        return lambda state, lanes, value: None
    number += width
    if found["file"] == "UR":

        def write_uniform(state: WarpState, lanes: Lanes, value: Column) -> None:
            runs = lanes.mask.any(axis=1, keepdims=True)
            state.uniform[number][lanes.warps] = np.where(runs, value, state.uniform[number][lanes.warps])

        return write_uniform

    def write(state: WarpState, lanes: Lanes, value: Column) -> None:
        store(state.registers[number], lanes, value)

    return write


def store(column: Column, lanes: Lanes, value: Column) -> None:
    """Write to the lanes that execute, of one register."""
    if lanes.is_whole:
        column[lanes.warps] = value
    elif lanes.is_slice:
        np.copyto(column, value, where=lanes.mask)
    else:
        part = column[lanes.warps]
        np.copyto(part, value, where=lanes.mask)
        column[lanes.warps] = part


def write_pair(operand: str) -> Writer:
    """Where uint64 results go."""
    low, high = write_register(operand), write_register(operand, 1)

    def write(state: WarpState, lanes: Lanes, value: Column) -> None:
        low(state, lanes, (value & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        high(state, lanes, (value >> np.uint64(32)).astype(np.uint32))

    return write


def write_predicate(operand: str) -> Writer:
    """Where truth goes."""
    if operand.endswith("T"):
        return lambda state, lanes, value: None
    number = int(operand[-1])
    if operand.startswith("U"):

        def write_uniform(state: WarpState, lanes: Lanes, value: Column) -> None:
            runs = lanes.mask.any(axis=1, keepdims=True)
            before = state.uniform_predicates[number][lanes.warps]
            state.uniform_predicates[number][lanes.warps] = np.where(runs, value, before)

        return write_uniform

    def write(state: WarpState, lanes: Lanes, value: Column) -> None:
        store(state.predicates[number], lanes, value)

    return write


_PARTS = {".H0_H0": (0, 0), ".H1_H1": (1, 1), ".H1_H0": (0, 1), ".H0_NH1": (0, 1), ".H0_H1": (1, 0), "": (0, 1)}


class Half(Struct, frozen=True, kw_only=True):
    """Where one float16 comes from."""

    word: str  # register or constant
    shift: int  # bits below it
    is_absolute: bool  # without its sign
    flips: bool  # the other sign


def find_half(operand: str, half: int) -> Half:
    """The lower (0) or upper (1) half, or the part that stands for it.

    >>> find_half("-R3.H1_H1", 0)
    Half(word='R3', shift=16, is_absolute=False, flips=True)

    Raises:
        UnreadOperandError: it names a part that is not known.
    """
    text, negative = operand.lstrip("-"), operand.startswith("-")
    name, dot, suffix = text.replace("|", "").partition(".")
    part = f".{suffix}" if dot else ""
    if part not in _PARTS:
        raise UnreadOperandError(operand)
    flips = negative != (suffix == "H0_NH1" and half == 1)
    return Half(word=name, shift=16 * _PARTS[part][half], is_absolute="|" in operand, flips=flips)


def read_literal(operand: str) -> float | None:
    """The value of a literal; None for registers and constants."""
    if operand.lstrip("-|~").startswith(("R", "U", "c")):
        return None
    if operand.endswith(("INF", "NAN")):
        return float(operand.replace("QNAN", "nan").replace("SNAN", "nan").replace("INF", "inf"))
    try:
        return float(operand)
    except ValueError:
        raise UnreadOperandError(operand) from None


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
