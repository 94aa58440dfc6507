"""One instruction of SASS, taken apart, and its operands as they are written: :func:`read_instruction` …"""

import re

from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.execution.emulator.semantics import words

RZ = 255
_SOURCE = re.compile(
    r"(?P<negative>-?)(?P<inverted>~?)(?P<bar>\|?)(?P<file>U?R)(?P<number>\d+|Z)\|?(?P<suffix>(?:\.\w+)*)"
)
_CONSTANT = re.compile(
    r"(?P<negative>-?)(?P<inverted>~?)(?P<bar>\|?)c\[0x(?P<bank>[0-9a-f]+)\]\[0x(?P<offset>[0-9a-f]+)\]\|?(?P<suffix>(?:\.\w+)*)"
)


class UnreadOperandError(Exception):
    """An operand is of a form that is not read; its instruction's results are unknown."""


def _number(text: str) -> int:
    return RZ if text == "Z" else int(text)


def find_register(operand: str) -> tuple[str, int] | None:
    """File and number of a register, without sign and part; None for other operands."""
    found = _SOURCE.fullmatch(operand)
    return None if found is None else (found["file"], _number(found["number"]))


def find_constant(operand: str) -> tuple[int, int] | None:
    """Bank and offset of a constant."""
    found = _CONSTANT.fullmatch(operand)
    return None if found is None else (int(found["bank"], 16), int(found["offset"], 16))


def find_signs(operand: str) -> tuple[str, str, bool, str]:
    """Negation and inversion of an operand, whether its absolute value is meant, and its suffix."""
    found = _SOURCE.fullmatch(operand) or _CONSTANT.fullmatch(operand)
    if found is None:
        return "", "", False, ""
    return found["negative"], found["inverted"], bool(found["bar"]), found["suffix"]


# Where a part of a word begins, and how many bits it has; None for all of it
PARTS = {
    "": None, ".U32": None, ".S32": None, ".64": None, ".H0": (0, 16), ".H1": (16, 16), ".B0": (0, 8), ".B1": (8, 8), ".B2": (16, 8), ".B3": (24, 8),
}  # fmt: skip


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


_PARTS = {".H0_H0": (0, 0), ".H1_H1": (1, 1), ".H1_H0": (0, 1), ".H0_NH1": (0, 1), ".H0_H1": (1, 0), "": (0, 1)}


class Half(Struct, frozen=True, kw_only=True):
    """Source of one float16."""

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
        operands=tuple(one.replace(".reuse", "") for part in listed.split(",") if (one := part.strip())),
    )


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


_ADDRESS = re.compile(r"(?:desc\[UR?\w+\])?\[(?P<terms>[^\]]*)\]")
_TERM = re.compile(r"(?P<file>U?R)(?P<number>\d+|Z)(?P<suffix>(?:\.\w+)*)")
SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_OTHER_SIZES = ("256", "ENL2")


class Term(Struct, frozen=True, kw_only=True):
    """A register that is part of an address."""

    file: str
    number: int
    is_pair: bool  # with the one that follows, the upper word
    scale: int  # what it is multiplied by


def find_width(instruction: MachineInstruction) -> int:
    """Bytes of each lane.

    Raises:
        UnreadOperandError: they are more than are known.
    """
    if any(map(instruction.has, _OTHER_SIZES)):
        raise UnreadOperandError(instruction.text)
    return next((SIZES[one] for one in instruction.modifiers if one in SIZES), 4)


def list_addresses(instruction: MachineInstruction) -> list[int]:
    """Places of the operands that are addresses."""
    return [place for place, one in enumerate(instruction.operands) if one.endswith("]")]


def list_terms(operand: str, *, is_wide: bool) -> tuple[list[Term], int]:
    """Terms of an address in brackets: registers, and the sum of the numbers.

    Args:
        is_wide: registers are pairs where they do not say otherwise.

    Raises:
        UnreadOperandError: something else is added.
    """
    found = _ADDRESS.fullmatch(operand)
    if found is None:
        raise UnreadOperandError(operand)
    terms: list[Term] = []
    offset = 0
    for text in found["terms"].split("+"):
        term = _TERM.fullmatch(text)
        if term is None:
            offset += _read_offset(text, operand)
            continue
        suffixes = term["suffix"].split(".")[1:]
        is_pair = "64" in suffixes or (is_wide and not {"U32", "32"} & set(suffixes))
        scale = next((int(one[1:]) for one in suffixes if one.startswith("X")), 1)
        terms.append(Term(file=term["file"], number=_number(term["number"]), is_pair=is_pair, scale=scale))
    return terms, offset


def _read_offset(text: str, operand: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise UnreadOperandError(operand) from None


def list_term_resources(terms: list[Term]) -> list[int]:
    """Numbers of the registers of an address."""
    kinds = {"R": ResourceKind.REGISTER, "UR": ResourceKind.UNIFORM_REGISTER}
    return [
        encode_resource(kinds[one.file], number)
        for one in terms
        for number in range(one.number, one.number + 1 + one.is_pair)
        if number < RZ
    ]


def list_address_resources(instruction: MachineInstruction) -> list[int] | None:
    """Numbers of the registers that the addresses of an instruction are made of; None where they cannot be told from others."""
    found: list[int] = []
    for place in list_addresses(instruction):
        operand = instruction.operands[place]
        try:
            terms, _ = list_terms(operand[operand.rindex("[") :], is_wide=instruction.has("E"))
        except UnreadOperandError:
            return None
        found += list_term_resources(terms)
    return found


_OPERATIONS = {
    "ADD": words.ADD, "MIN": words.MIN, "MAX": words.MAX, "AND": words.AND, "OR": words.OR, "XOR": words.XOR,
    "EXCH": words.EXCHANGE, "INC": words.INCREMENT, "DEC": words.DECREMENT, "CAS": words.COMPARE_AND_SWAP,
    "CAST": words.COMPARE_AND_SWAP,
}  # fmt: skip
_SIGNED = {words.MIN: words.MIN_SIGNED, words.MAX: words.MAX_SIGNED}
_UNKNOWN = -1  # Operation of halves: of what it leaves in memory nothing is known
_HALVES = ("F16", "BF16")


def find_atomic(one: MachineInstruction) -> tuple[int, int]:
    """The kind of an atomic operation, and its width in bytes.

    Raises:
        UnreadOperandError: more than are known.
    """
    size = 8 if any(map(one.has, ("64", "U64", "S64", "F64"))) else 4
    if any(text.startswith(("128", "256", "PACKED")) for text in one.modifiers):
        raise UnreadOperandError(one.text)
    if any(text.startswith(_HALVES) for text in one.modifiers):
        return _UNKNOWN, size
    if one.has("POPC"):
        return words.ADD, size
    found = next(_OPERATIONS[text] for text in one.modifiers if text in _OPERATIONS)
    if one.has("F32") or one.has("F64"):
        found = {words.ADD: words.ADD_FLOAT, words.EXCHANGE: found, words.COMPARE_AND_SWAP: found}.get(found, _UNKNOWN)
    return (_SIGNED.get(found, found) if one.has("S32") or one.has("S64") else found), size


def is_shared_atomic(operation: int, width: int) -> bool:
    """Whether shared memory has an operation of so many bytes: of 8, it swaps; it adds up no floats."""
    if width == 8:
        return operation in (words.EXCHANGE, words.COMPARE_AND_SWAP)
    return operation not in (words.ADD_FLOAT, _UNKNOWN)
