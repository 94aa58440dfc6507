"""``.nv.info``: what the assembler notes about functions (EIATTR records).

A record is ``u8 format, u8 attribute, u16 value``; format 4 has ``value`` bytes of payload behind it. The section ``.nv.info`` holds records
whose payload starts with a symbol index, ``.nv.info.<function>`` those of one function.

Source: formats and attribute numbers aligned with what nvdisasm prints for cubins of CUDA 11 to 13, sm_70 to sm_120.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import numpy as np

from gpa_lsp.code.binary.byte_reader import DAMAGED
from gpa_lsp.foundation.errors import InputError


class Attribute(IntEnum):
    """The attributes that are read."""

    MAX_THREADS = 0x05  # Three u32: the block of ``__launch_bounds__`` (``.maxntid``)
    REQUIRED_THREADS = 0x10  # Three u32: the block that must be launched (``.reqntid``, ``__block_size__``)
    FRAME_SIZE = 0x11
    MIN_STACK_SIZE = 0x12
    PARAMETER = 0x17  # u32 0, u16 its number, u16 its offset among the parameters, u32 with its size from bit 18 on
    # The most registers per thread that the compiler may use: a flag's, a launch bound's, or the architecture's
    REGISTER_CAP = 0x1B
    REGISTER_COUNT = 0x2F
    INDIRECT_BRANCH_TARGETS = 0x34
    BARRIER_COUNT = 0x4C
    ANNOTATIONS = 0x55
    """Pairs of u32: a kind, and the pc offset of an instruction. Kind 1 marks stores and reloads of spilled registers.

    Source: of 480 accesses to local memory of the fixtures' spills, sm_75 to sm_120 of CUDA 13.5, all are listed, and of 120 accesses to arrays
    and saved registers none is."""


PER_SYMBOL = (Attribute.FRAME_SIZE, Attribute.MIN_STACK_SIZE, Attribute.REGISTER_COUNT)
UNKNOWN_STACK = 0xFFFFFFFF  # Value of MIN_STACK_SIZE where recursion or calls through pointers leave it open

_RECORD_HEAD = struct.Struct("<BBH")
_FORMAT_VALUE = 2
_FORMAT_PAYLOAD = 4
_PAIR_DTYPE = np.dtype([("format", "u1"), ("attribute", "u1"), ("size", "<u2"), ("symbol", "<u4"), ("value", "<u4")])
_PAIR_BYTES = 8
_BRANCH_HEAD = struct.Struct("<III")


def read_symbol_attributes(data: bytes, *, path: Path | None = None) -> dict[Attribute, dict[int, int]]:
    """The records of ``.nv.info`` that give one number for a symbol.

    Args:
        data: the section's bytes.

    Raises:
        InputError: a record reaches past the end.

    >>> found = read_symbol_attributes(bytes.fromhex("042f0800050000001a000000"))
    >>> found[Attribute.REGISTER_COUNT]
    {5: 26}
    """
    found: dict[Attribute, dict[int, int]] = {attribute: {} for attribute in PER_SYMBOL}
    pairs = np.frombuffer(data, dtype=_PAIR_DTYPE, count=len(data) // _PAIR_DTYPE.itemsize)
    uniform = (pairs["format"] == _FORMAT_PAYLOAD) & (pairs["size"] == _PAIR_BYTES)
    if len(data) % _PAIR_DTYPE.itemsize == 0 and uniform.all():
        # All records alike, as in every linked image: with thousands of functions the columns are much faster than a walk.
        for attribute in PER_SYMBOL:
            chosen = pairs[pairs["attribute"] == attribute]
            found[attribute] = dict(zip(chosen["symbol"].tolist(), chosen["value"].tolist(), strict=True))
        return found
    for number, _, payload in walk_records(data, path=path, place="section .nv.info"):
        if number in PER_SYMBOL and len(payload) == _PAIR_BYTES:
            symbol, value = struct.unpack("<II", payload)
            found[Attribute(number)][symbol] = value
    return found


def read_barrier_count(data: bytes, *, path: Path | None = None, place: str = "") -> int | None:
    """The number of CTA barriers a function uses, from its ``.nv.info.<function>``; None when it is not noted.

    Raises:
        InputError: a record reaches past the end.

    >>> read_barrier_count(bytes.fromhex("031bff00" "024c0400"))
    4
    """
    if bytes((_FORMAT_VALUE, Attribute.BARRIER_COUNT)) not in data:
        return None
    for attribute, value, _ in walk_records(data, path=path, place=place):
        if attribute == Attribute.BARRIER_COUNT:
            return value & 0xFF
    return None


def read_branch_targets(data: bytes, *, path: Path | None = None, place: str = "") -> dict[int, tuple[int, ...]]:
    """Where indirect branches can go, from ``.nv.info.<function>``.

    Raises:
        InputError: a record reaches past the end, or a list past its record.

    >>> read_branch_targets(bytes.fromhex("04341400" "d00d0000" "00000000" "02000000" "400e0000" "e00d0000"))
    {3536: (3648, 3552)}
    """
    targets: dict[int, tuple[int, ...]] = {}
    if bytes((_FORMAT_PAYLOAD, Attribute.INDIRECT_BRANCH_TARGETS)) not in data:
        return targets
    for attribute, _, payload in walk_records(data, path=path, place=place):
        if attribute == Attribute.INDIRECT_BRANCH_TARGETS:
            _add_branch_targets(targets, payload, path=path, place=place)
    return targets


def _add_branch_targets(targets: dict[int, tuple[int, ...]], payload: bytes, *, path: Path | None, place: str) -> None:
    """One record holds the lists of several branches one behind the other."""
    position = 0
    while position + _BRANCH_HEAD.size <= len(payload):
        pc_offset, _, count = _BRANCH_HEAD.unpack_from(payload, position)
        position += _BRANCH_HEAD.size
        if count > (len(payload) - position) // 4:
            raise InputError(
                f"the branch at 0x{pc_offset:x} claims {count} targets", path=path, place=place, remedy=DAMAGED
            )
        targets[pc_offset] = struct.unpack_from(f"<{count}I", payload, position)
        position += 4 * count


def walk_records(data: bytes, *, path: Path | None, place: str) -> Iterator[tuple[int, int, bytes]]:
    """(attribute, value, payload) of each record; the payload is empty for the formats without one."""
    position = 0
    while position + _RECORD_HEAD.size <= len(data):
        form, attribute, value = _RECORD_HEAD.unpack_from(data, position)
        position += _RECORD_HEAD.size
        if form != _FORMAT_PAYLOAD:
            yield attribute, value, b""
            continue
        if position + value > len(data):
            raise InputError(
                f"attribute 0x{attribute:x} at offset 0x{position - _RECORD_HEAD.size:x} reaches past the end",
                path=path,
                place=place,
                remedy=DAMAGED,
            )
        yield attribute, value, data[position : position + value]
        position += value
