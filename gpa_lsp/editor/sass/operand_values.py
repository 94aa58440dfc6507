"""The operand under a cursor, and which values it stands for: what its instruction reads there, or writes."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import MaskUse, describe_mnemonic
from gpa_lsp.code.binary.operands import FILE_SIZES, find_registers
from gpa_lsp.code.binary.uses import OperandRole, find_roles
from gpa_lsp.editor.sass.operand_spans import SpanKind, find_mnemonic, list_operands

_SEPARATOR = ", "
_WHOLE_FILES = {"PR": ResourceKind.PREDICATE, "UPR": ResourceKind.UNIFORM_PREDICATE}
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
    writes_mask = opcode.predicate_mask is MaskUse.WRITE
    values = []
    for span in list_operands(text):
        if span.end <= guard:
            values.append(OperandValue(span.start, span.end, span.kind, span.resources, True, False))
            continue
        first, token, role = next(place for place in reversed(places) if place[0] <= span.start)
        resources = _find_resources(token, span.start - first, role) or span.resources
        is_read, is_written = bool(resources) and role.is_read, bool(resources) and role.is_written
        if token.strip() in _WHOLE_FILES:
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
    """Where an instruction's text names a register that it reads, or writes; none where only the encoding does."""
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
    whole = _WHOLE_FILES.get(token.strip())
    if whole is not None:
        return tuple(encode_resource(whole, index) for index in range(_PREDICATE_COUNT))
    for named in find_registers(token):
        if named.start == start:
            group = named.group
            end = min(group.first + (group.width or role.width), FILE_SIZES[group.kind])
            return tuple(encode_resource(group.kind, index) for index in range(group.first, end))
    return ()
