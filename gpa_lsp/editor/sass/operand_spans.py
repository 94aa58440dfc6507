"""Spans of the operands in an instruction's text: what a person can point at.

The registers are found by the decoder's own reading of operands (:mod:`gpa_lsp.code.binary.uses`); here they are joined by what only a reader
cares about: numbers, constants, special registers, targets.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpa_lsp.code.binary.model import WHOLE_FILES, Flow, ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.code.binary.uses import FILE_SIZES, OperandRole, RegisterGroup, find_registers, find_roles
from gpa_lsp.editor.sass.library import SassDocument

_SEPARATOR = ", "
_WITH_TARGET = (Flow.BRANCH, Flow.CALL, Flow.BARRIER_SET)
_MAX_REGISTER = 255
_HEXADECIMAL = re.compile(r"-?0x[0-9a-f]+")


class SpanKind(Enum):
    """Kinds of operands and their parts."""

    GUARD = "guard"  # ``@!P0``, the whole of it
    REGISTER = "register"  # A general register, RZ among them; the name alone, without ``.64`` or ``.reuse``
    UNIFORM_REGISTER = "uniform_register"  # A uniform register, URZ among them; the name alone
    PREDICATE = "predicate"  # PT among them, and PR, which is all of them
    UNIFORM_PREDICATE = "uniform_predicate"
    CONVERGENCE_BARRIER = "convergence_barrier"
    SCOREBOARD = "scoreboard"  # ``SB0`` of DEPBAR
    SPECIAL_REGISTER = "special_register"  # ``SR_TID.X`` with its component
    CONSTANT = "constant"  # ``c[0x0][0x160]``; where a register chooses the place, only the bank ``c[0x0]``
    IMMEDIATE = "immediate"  # A number with its sign; offsets in addresses among them
    TARGET = "target"  # Where a branch or a call goes, or where threads meet again: an address or a name


class OperandSpan(NamedTuple):
    """An operand or a part of one."""

    start: int  # characters of the instruction's text before it
    end: int  # characters before what follows it
    kind: SpanKind  # what it is
    # resource numbers that the text says it stands for, ascending; more may belong to it where the opcode says so (``LDG.E.128 R4``). Empty for what
    # is no register, and for registers that are constants (RZ, PT).
    resources: tuple[int, ...]


_KIND_OF_FILE = {
    ResourceKind.REGISTER: SpanKind.REGISTER,
    ResourceKind.UNIFORM_REGISTER: SpanKind.UNIFORM_REGISTER,
    ResourceKind.PREDICATE: SpanKind.PREDICATE,
    ResourceKind.UNIFORM_PREDICATE: SpanKind.UNIFORM_PREDICATE,
    ResourceKind.CONVERGENCE_BARRIER: SpanKind.CONVERGENCE_BARRIER,
}
_OTHERS: tuple[tuple[SpanKind, str], ...] = (
    (SpanKind.TARGET, r"`\(.*\)"),
    (SpanKind.SPECIAL_REGISTER, r"(?<![\w.])SR(?:Z|_\w+(?:\.\w+)*)"),
    (SpanKind.SCOREBOARD, r"(?<![\w.])SB\d"),
    (SpanKind.CONSTANT, r"(?<!\w)c\[0x[0-9a-f]+\](?:\[0x[0-9a-f]+\])?"),
    (SpanKind.UNIFORM_REGISTER, r"(?<![\w.])URZ(?!\w)"),
    (SpanKind.REGISTER, r"(?<![\w.])RZ(?!\w)"),
    (SpanKind.UNIFORM_PREDICATE, r"(?<![\w.])UP[TR](?!\w)"),
    (SpanKind.PREDICATE, r"(?<![\w.])P[TR](?!\w)"),
    (
        SpanKind.IMMEDIATE,
        r"(?<![\w.])(?:-?(?:0x[0-9a-f]+(?!\w)|\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]))|[+-]?(?:INF|QNAN|SNAN)(?!\w))",
    ),
)
_OTHER = re.compile("|".join(f"({pattern})" for _, pattern in _OTHERS))


def list_operands(text: str) -> tuple[OperandSpan, ...]:
    """The operands of an instruction and the parts of them that can be pointed at; in order, none overlaps another.

    Args:
        text: as ``InstructionColumns.texts`` has it.

    >>> [(text[span.start : span.end], span.resources) for text in ["@!P0 LDG.E R4, desc[UR4][R2.64+0x10]"] for span in list_operands(text)]
    [('@!P0', (512,)), ('R4', (4,)), ('UR4', (260, 261)), ('R2', (2, 3)), ('0x10', ())]
    """
    guard, start, end = find_mnemonic(text)
    spans: list[OperandSpan] = []
    if guard:
        spans.append(OperandSpan(0, guard, SpanKind.GUARD, _list_resources(text[:guard].lstrip("@!"))))
    place = end + 1
    for token in text[place:].split(_SEPARATOR):
        spans.extend(
            OperandSpan(place + first, place + last, kind, resources)
            for first, last, kind, resources in scan_operand(token)
        )
        place += len(token) + len(_SEPARATOR)
    if spans and is_address(text[spans[-1].start :]) and has_target(text[start:end]):
        spans[-1] = spans[-1]._replace(kind=SpanKind.TARGET)
    return tuple(spans)


def find_mnemonic(text: str) -> tuple[int, int, int]:
    """Find the ends of the guard (0 without one), of the white space behind it, and of the opcode with its modifiers; in characters.

    >>> find_mnemonic("@!P0 BRA 0x10"), find_mnemonic("EXIT")
    ((4, 5, 8), (0, 0, 4))
    """
    guard = start = 0
    if text.startswith("@"):
        found = text.find(" ")
        guard = len(text) if found < 0 else found
        start = len(text) - len(text[guard:].lstrip(" "))
    end = text.find(" ", start)
    return guard, start, len(text) if end < 0 else end


def is_address(operand: str) -> bool:
    """Whether an operand is a plain hexadecimal number, as addresses of code are written.

    >>> is_address("0x1f0"), is_address("0x1f0]"), is_address("16")
    (True, False, False)
    """
    return _HEXADECIMAL.fullmatch(operand) is not None


@lru_cache(maxsize=4096)
def has_target(mnemonic: str) -> bool:
    """Whether the number at the end of an instruction's operands is an address of code.

    >>> has_target("BRA"), has_target("BSSY"), has_target("LEA.HI")
    (True, True, False)
    """
    opcode = describe_mnemonic(mnemonic)
    return opcode.has_pc_target and opcode.flow in _WITH_TARGET


@lru_cache(maxsize=1 << 16)
def scan_operand(token: str) -> tuple[OperandSpan, ...]:
    """The parts of one operand, counted from its own start.

    >>> [token[span.start : span.end] for token in ["c[0x0][R4+0x10]"] for span in scan_operand(token)]
    ['c[0x0]', 'R4', '0x10']
    """
    spans = [
        OperandSpan(start, end, _KIND_OF_FILE[group.kind], _expand(group))
        for start, end, group in find_registers(token)
    ]
    spans.extend(
        OperandSpan(match.start(), match.end(), _OTHERS[(match.lastindex or 1) - 1][0], ())
        for match in _OTHER.finditer(token)
    )
    spans.sort(key=lambda span: span.start)
    return tuple(spans)


def _expand(group: RegisterGroup) -> tuple[int, ...]:
    end = min(group.first + (group.width or 1), _MAX_REGISTER)
    return tuple(encode_resource(group.kind, index) for index in range(group.first, end))


def _list_resources(name: str) -> tuple[int, ...]:
    return tuple(number for span in scan_operand(name) for number in span.resources)


_PREDICATE_COUNT = 7


class OperandValue(NamedTuple):
    """An operand, or the part of one that names a register or a place."""

    start: int  # characters of the instruction's text before it
    end: int  # characters before what follows it
    kind: SpanKind  # what it is
    resources: tuple[int, ...]  # resource numbers of all registers it stands for, ascending; empty for what is none
    is_read: bool  # its instruction reads them
    is_written: bool  # its instruction writes them


@lru_cache(maxsize=4096)
def list_values(text: str) -> tuple[OperandValue, ...]:
    """The operands of an instruction with the registers they stand for, in the order of the text.

    >>> [(text[one.start : one.end], one.resources, one.is_written) for text in ["@P0 LDG.E.64 R4, [R2.64]"] for one in list_values(text)]
    [('@P0', (512,), False), ('R4', (4, 5), True), ('R2', (2, 3), False)]
    """
    guard, start, end = find_mnemonic(text)
    mnemonic = text[start:end]
    tokens = text[end + 1 :].split(_SEPARATOR)
    opcode = describe_mnemonic(mnemonic)
    roles = find_roles(mnemonic, opcode, [token.strip() for token in tokens])
    places = list(_place_tokens(tokens, end + 1, roles))
    writes_mask = opcode.predicate_mask == "write"
    values = []
    for span in list_operands(text):
        if span.end <= guard:
            values.append(OperandValue(span.start, span.end, span.kind, span.resources, True, False))
            continue
        first, token, role = next(place for place in reversed(places) if place[0] <= span.start)
        resources = _find_resources(token, span.start - first, role) or span.resources
        is_read, is_written = bool(resources) and role.is_read, bool(resources) and role.is_written
        if token.strip() in WHOLE_FILES:
            is_read, is_written = not writes_mask, writes_mask
        values.append(OperandValue(span.start, span.end, span.kind, resources, is_read, is_written))
    return tuple(values)


def find_value(text: str, column: int) -> OperandValue | None:
    """The operand at a place of an instruction's text; a cursor right behind an operand points at it too.

    >>> text = "FFMA R0, R2, R3, R0"
    >>> [found and text[found.start : found.end] for found in (find_value(text, column) for column in (2, 5, 7, 9))]
    [None, 'R0', 'R0', 'R2']
    """
    values = list_values(text)
    inside = (one for one in values if one.start <= column < one.end)
    return next(inside, None) or next((one for one in values if one.end == column), None)


def find_mentions(text: str, resource: int, *, is_written: bool) -> list[OperandValue]:
    """Find the places where an instruction's text names a register that it reads, or writes; none where only the encoding does."""
    return [
        one
        for one in list_values(text)
        if resource in one.resources and (one.is_written if is_written else one.is_read)
    ]


def _place_tokens(
    tokens: Sequence[str], start: int, roles: Sequence[OperandRole]
) -> Iterator[tuple[int, str, OperandRole]]:
    """Each operand's first character, its text, and what is done to it."""
    for token, role in zip(tokens, roles, strict=True):
        yield start, token, role
        start += len(token) + len(_SEPARATOR)


def _find_resources(token: str, start: int, role: OperandRole) -> tuple[int, ...]:
    """The registers that the name at a place of an operand stands for, by the text or else by the opcode."""
    whole = WHOLE_FILES.get(token.strip())
    if whole is not None:
        return tuple(encode_resource(whole, index) for index in range(_PREDICATE_COUNT))
    for first, _, group in find_registers(token):
        if first == start:
            end = min(group.first + (group.width or role.width), FILE_SIZES[group.kind])
            return tuple(encode_resource(group.kind, index) for index in range(group.first, end))
    return ()


_QUOTES = ("`(", ")")


def find_target(document: SassDocument, row: int, value: OperandValue) -> int | None:
    """The instruction that a branch, a call or a reconvergence point names; None where it is elsewhere, or the operand is no target."""
    if value.kind is not SpanKind.TARGET:
        return None
    report = document.shown.kernel.report
    target = -1 if report.code is None else int(report.code.target_row[row])
    if target >= 0:
        return target
    columns = report.instructions
    name = columns.texts[row][value.start : value.end].removeprefix(_QUOTES[0]).removesuffix(_QUOTES[1])
    if name not in columns.functions:
        return None
    rows = np.flatnonzero(columns.function_index == columns.functions.index(name))
    return int(rows[0]) if len(rows) else None


def list_origins(document: SassDocument, target: int) -> Sequence[int]:
    """The instructions that name an instruction of their own function as their target, ascending."""
    code = document.shown.kernel.report.code
    return [] if code is None else np.flatnonzero(code.target_row == target).tolist()
