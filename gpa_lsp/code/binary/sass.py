"""SASS text → :class:`~gpa_lsp.code.binary.model.Instructions`: resources read and written, control flow, control codes.

The text is what nvdisasm prints per instruction, without the final semicolon. Equal texts are decoded once, in whatever function they stand: in
unrolled code most rows repeat, and kernels made from one template have most of theirs in common.
"""

import re
import struct
from collections.abc import Container, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import (
    INSTRUCTION_BYTES,
    ControlCodes,
    Flow,
    Instructions,
    ResourceKind,
    ResourceLists,
    encode_resource,
)
from gpa_lsp.code.binary.opcodes import Descriptor, describe_mnemonic
from gpa_lsp.code.binary.uses import UseFinder
from gpa_lsp.foundation.distinct import find_distinct

# Scheduling bits: stall cycles, yield, write and read barrier, wait mask. Source: GPA, Table I.

_FIRST_BIT = 105 - 64
_STALL, _YIELD, _WRITE, _READ, _WAIT, _REUSE = 0, 4, 5, 8, 11, 17  # Offsets of the fields from bit 105


def split_words(code: bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The low and the high 64 bits of each instruction, uint64[n] each; a ragged tail is left out."""
    whole = len(code) - len(code) % INSTRUCTION_BYTES
    words = np.frombuffer(code, dtype="<u8", count=whole // 8).reshape(-1, 2)
    return words[:, 0], words[:, 1]


def decode_control_codes(code: bytes) -> ControlCodes:
    """Decode bits 105..125 of every instruction of a section.

    Source: bit positions as in :class:`~gpa_lsp.code.binary.model.ControlCodes`; the same from sm_70 to sm_120.

    >>> word = (0x7F << 17 | 0b101 << 11 | 7 << 8 | 2 << 5 | 1 << 4 | 9) << 105 & (1 << 126) - 1
    >>> control = decode_control_codes(word.to_bytes(16, "little"))
    >>> int(control.stall_cycles[0]), int(control.write_barrier[0]), int(control.read_barrier[0]), int(control.wait_mask[0])
    (9, 2, 7, 5)
    """
    _, high = split_words(code)
    bits = (high >> np.uint64(_FIRST_BIT)).astype(np.uint32)

    def field(offset: int, mask: int) -> npt.NDArray[np.uint8]:
        return (bits >> np.uint32(offset) & np.uint32(mask)).astype(np.uint8)

    return ControlCodes(
        stall_cycles=field(_STALL, 15),
        yield_flag=field(_YIELD, 1) ^ np.uint8(1),
        write_barrier=field(_WRITE, 7),
        read_barrier=field(_READ, 7),
        wait_mask=field(_WAIT, 63),
        reuse=field(_REUSE, 15),
    )


_NO_TARGET = -1
_NO_RESOURCE = -1
_HEXADECIMAL = re.compile(r"-?0x[0-9a-f]+")
_ADDRESS_PAIR = ".64"
_UNIFORM = "UR"
_NO_DESCRIPTOR = 63  # The uniform register that is always zero, all bits of the field set: no descriptor
_NUMBER_BITS = 12  # Enough for a resource number
_WITH_TARGET = (Flow.BRANCH, Flow.CALL, Flow.BARRIER_SET)
_MOST_KNOWN = 1 << 15  # Distinct texts whose meaning is kept for further functions, at half a kilobyte each


class _Row(NamedTuple):
    """One distinct text decoded, without its address; resources in any order, possibly repeated."""

    mnemonic: str
    reads: list[int]
    writes: list[int]
    guard: int
    guard_negated: bool
    flow: Flow
    target: int
    descriptor: Descriptor | None


def decode_instructions(
    texts: Sequence[str], code: bytes, *, relocated: Container[int] = (), control: ControlCodes | None = None
) -> Instructions:
    """Decode the text of a section into columns.

    Args:
        code: the section's bytes, 16 per text; empty when there are none (a listing written by hand), then no memory descriptor that the
            text leaves out is found and ``control`` is needed.
        control: the control codes, instead of those in ``code``.
    """
    rows, row_of = _decode_distinct(texts)
    if code:
        rows, row_of = _add_descriptors(rows, row_of, code)
    mnemonics = tuple(dict.fromkeys(row.mnemonic for row in rows))
    position = {mnemonic: index for index, mnemonic in enumerate(mnemonics)}
    pc_offsets = np.arange(len(texts), dtype=np.int64) * INSTRUCTION_BYTES
    return Instructions(
        pc_offsets=pc_offsets,
        mnemonics=mnemonics,
        mnemonic_index=np.array([position[row.mnemonic] for row in rows], dtype=np.int32)[row_of],
        texts=tuple(texts),
        guard=np.array([row.guard for row in rows], dtype=np.int16)[row_of],
        guard_negated=np.array([row.guard_negated for row in rows], dtype=np.bool_)[row_of],
        control=decode_control_codes(code) if control is None else control,
        reads=_gather([row.reads for row in rows], row_of),
        writes=_gather([row.writes for row in rows], row_of),
        flow=np.array([row.flow for row in rows], dtype=np.uint8)[row_of],
        target=_find_targets(rows, row_of, relocated),
    )


class Parts(NamedTuple):
    """The text of an instruction, taken apart."""

    guard: str  # as written (``@!P0``); empty without one
    opcode: str  # the bare opcode, e.g. ``LDG``.
    modifiers: tuple[str, ...]  # e.g. ``("E", "64")``.
    operands: tuple[str, ...]  # as written, in order


@lru_cache(maxsize=_MOST_KNOWN)
def take_apart(text: str) -> Parts:
    """The parts of an instruction.

    >>> take_apart("@!P0 LDG.E R1, [R2.64]")
    Parts(guard='@!P0', opcode='LDG', modifiers=('E',), operands=('R1', '[R2.64]'))
    """
    guard, body = _split_guard(text)
    mnemonic, _, operands = body.partition(" ")
    opcode, *modifiers = mnemonic.split(".")
    return Parts(guard=guard, opcode=opcode, modifiers=tuple(modifiers), operands=split_operands(operands))


def read_mnemonic(text: str) -> str:
    """The opcode of an instruction with its modifiers.

    >>> read_mnemonic("@!P0 LDG.E.64 R2, desc[UR4][R2.64]"), read_mnemonic("EXIT")
    ('LDG.E.64', 'EXIT')
    """
    return _split_guard(text)[1].partition(" ")[0]


def read_operands(text: str) -> tuple[str, ...]:
    """The operands of an instruction, as written.

    >>> read_operands("@!P0 IADD3 R1, R2.reuse, 0x4, RZ"), read_operands("EXIT")
    (('R1', 'R2.reuse', '0x4', 'RZ'), ())
    """
    return take_apart(text).operands


def split_operands(operands: str) -> tuple[str, ...]:
    """Split the operands of an instruction.

    >>> split_operands("R2, desc[UR4][R2.64+0x10], +INF , !PT")
    ('R2', 'desc[UR4][R2.64+0x10]', '+INF', '!PT')
    """
    return tuple(map(str.strip, operands.split(", "))) if operands else ()


def _split_guard(text: str) -> tuple[str, str]:
    if not text.startswith("@"):
        return "", text
    guard, _, body = text.partition(" ")
    return guard, body.lstrip()


def _decode_distinct(texts: Sequence[str]) -> tuple[list[_Row], npt.NDArray[np.int64]]:
    """The meaning of each distinct text, and which of them each row has."""
    position = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    known = _open_known()
    rows = [known[text] for text in position]
    if len(known) > _MOST_KNOWN:
        _open_known.cache_clear()
    return rows, np.fromiter(map(position.__getitem__, texts), dtype=np.int64, count=len(texts))


class _KnownRows(dict[str, _Row]):
    """Text → its meaning, found when it is first asked for."""

    def __init__(self) -> None:
        self._finder = UseFinder()

    def __missing__(self, text: str) -> _Row:
        row = self[text] = _decode_row(text, self._finder)
        return row


@cache
def _open_known() -> _KnownRows:
    return _KnownRows()


def _decode_row(text: str, finder: UseFinder) -> _Row:
    guard, body = _split_guard(text)
    mnemonic, _, rest = body.partition(" ")
    opcode = describe_mnemonic(mnemonic)
    tokens = rest.split(", ") if rest else []
    reads, writes = finder.find(mnemonic, opcode, tokens)
    guard_number = _NO_RESOURCE
    if guard:
        named = finder.operands[guard[1:]].expand(1)
        guard_number = named[0] if named else _NO_RESOURCE
        reads += named
    flow = opcode.flow
    if flow == Flow.CALL and any(finder.operands[token].groups for token in tokens):
        flow = Flow.INDIRECT_CALL
    return _Row(
        mnemonic,
        reads,
        writes,
        guard_number,
        guard.startswith("@!"),
        flow,
        _parse_target(tokens) if flow in _WITH_TARGET and opcode.has_pc_target else _NO_TARGET,
        opcode.descriptor if opcode.descriptor is not None and _hides_descriptor(tokens) else None,
    )


def _parse_target(tokens: Sequence[str]) -> int:
    """The address at the end of the operands, as a section offset."""
    last = tokens[-1] if tokens else ""
    return int(last, 16) if _HEXADECIMAL.fullmatch(last) else _NO_TARGET


def _hides_descriptor(tokens: Sequence[str]) -> bool:
    """Whether an access uses a descriptor that only its encoding names: a plain 64-bit address and no ``desc[]`` in the text."""
    return any(token.startswith("[") and _ADDRESS_PAIR in token and _UNIFORM not in token for token in tokens)


def _add_descriptors(
    rows: list[_Row], row_of: npt.NDArray[np.int64], code: bytes
) -> tuple[list[_Row], npt.NDArray[np.int64]]:
    """Split rows whose encodings name different memory descriptors, and add those to what they read."""
    by_place: dict[Descriptor, list[int]] = {}
    for index, row in enumerate(rows):
        if row.descriptor is not None:
            by_place.setdefault(row.descriptor, []).append(index)
    if not by_place:
        return rows, row_of
    descriptors = np.full(len(row_of), _NO_DESCRIPTOR, dtype=np.int64)
    low, high = split_words(code)
    fields = {"low": low >> np.uint64(32), "high": high}  # the descriptor in the lowest bits
    for place, indexes in by_place.items():
        here = np.isin(row_of, indexes)
        descriptors[here] = fields[place][here].astype(np.int64) & _NO_DESCRIPTOR
    hidden = np.flatnonzero(descriptors != _NO_DESCRIPTOR)
    pairs, pair_of = np.unique(row_of[hidden] << 6 | descriptors[hidden], return_inverse=True)
    split = row_of.copy()
    split[hidden] = len(rows) + pair_of
    first = [encode_resource(ResourceKind.UNIFORM_REGISTER, pair & _NO_DESCRIPTOR) for pair in pairs.tolist()]
    originals = [rows[pair >> 6] for pair in pairs.tolist()]
    added = [row._replace(reads=[*row.reads, one, one + 1]) for row, one in zip(originals, first, strict=True)]
    return [*rows, *added], split


def _find_targets(
    rows: Sequence[_Row], row_of: npt.NDArray[np.int64], relocated: Container[int]
) -> npt.NDArray[np.int64]:
    size = len(row_of) * INSTRUCTION_BYTES
    of_row = [
        row.target if 0 <= row.target < size and row.target % INSTRUCTION_BYTES == 0 else _NO_TARGET for row in rows
    ]
    targets = np.array(of_row, dtype=np.int64)[row_of] if rows else np.empty(0, dtype=np.int64)
    for index in np.flatnonzero(targets != _NO_TARGET).tolist():
        if index * INSTRUCTION_BYTES in relocated:
            targets[index] = _NO_TARGET
    return targets


def _gather(lists: Sequence[list[int]], row_of: npt.NDArray[np.int64]) -> ResourceLists:
    """The lists of the distinct rows, put in order and laid out per instruction."""
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    numbers = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=int(lengths.sum()))
    ordered = find_distinct(np.repeat(np.arange(len(lists)), lengths) << _NUMBER_BITS | numbers)
    bounds = np.searchsorted(ordered, np.arange(len(lists) + 1) << _NUMBER_BITS)
    counts = (bounds[1:] - bounds[:-1])[row_of]
    starts = np.concatenate(([0], np.cumsum(counts)))
    picked = np.arange(starts[-1]) + np.repeat(bounds[row_of] - starts[:-1], counts)
    mask = (1 << _NUMBER_BITS) - 1
    return ResourceLists(starts=starts.astype(np.int32), numbers=(ordered[picked] & mask).astype(np.int16))


def join_halves(high: str, low: str) -> int | None:
    """The 32 bits of two 16-bit floats: how compilers load a small integer through the half-precision pipe."""
    try:
        packed = struct.pack("<ee", float(low), float(high))
    except (ValueError, OverflowError):
        return None
    return int(struct.unpack("<I", packed)[0])
