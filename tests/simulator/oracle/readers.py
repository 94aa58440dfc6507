"""Operands as columns of numpy, and what they are written to: what the other oracles read."""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import (
    _CONSTANT,
    _SOURCE,
    PARTS,
    RZ,
    MachineInstruction,
    UnreadOperandError,
    _number,
    find_signs,
    read_number,
)
from gpa_lsp.execution.simulator.execution.warp_state import Column, Lanes, WarpState

Reader = Callable[[WarpState, Lanes], Column]
Writer = Callable[[WarpState, Lanes, Column], None]
Step = Callable[[WarpState, Lanes], None]
Builder = Callable[[MachineInstruction, ConstantBanks], Step]

_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_ZERO: npt.NDArray[np.uint32] = np.zeros((1, 1), np.uint32)
_SIGN = np.uint32(0x80000000)
_SIGN_64 = np.uint64(1 << 63)


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


@lru_cache(maxsize=1024)
def _read_register(file: str, number: int) -> Reader:
    if number >= RZ:
        return lambda state, lanes: _ZERO
    if file == "R":
        return lambda state, lanes: state.registers[number][lanes.warps]
    return lambda state, lanes: state.uniform[number][lanes.warps]


def read_integer(operand: str, banks: ConstantBanks) -> Reader:
    """uint32 with its sign, its complement, or a part of it.

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


def _take_part(read: Reader, suffix: str) -> Reader:
    if suffix not in PARTS:
        raise UnreadOperandError(suffix)
    part = PARTS[suffix]
    if part is None:
        return read
    shift, mask = np.uint32(part[0]), np.uint32((1 << part[1]) - 1)
    return lambda state, lanes: (read(state, lanes) >> shift) & mask


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
    """Writer of uint32 results, ``width`` registers after the one that is named."""
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
    part = column[lanes.warps]
    np.copyto(part, value, where=lanes.mask)
    column[lanes.warps] = part


def write_pair(operand: str) -> Writer:
    """Writer of uint64 results."""
    low, high = write_register(operand), write_register(operand, 1)

    def write(state: WarpState, lanes: Lanes, value: Column) -> None:
        low(state, lanes, (value & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        high(state, lanes, (value >> np.uint64(32)).astype(np.uint32))

    return write


def write_predicate(operand: str) -> Writer:
    """Writer of predicates."""
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


def read_carried(operand: str, banks: ConstantBanks) -> Reader:
    """uint64 of a 32-bit summand, so that sums have their carry: a negated one is its complement plus one."""
    negative, inverted, bar, suffix = find_signs(operand)
    if bar or suffix not in ("", ".U32", ".64"):
        raise UnreadOperandError(operand)
    bits = read_bits(operand, banks)
    if negative:
        return lambda state, lanes: np.invert(bits(state, lanes)).astype(np.uint64) + np.uint64(1)
    if inverted:
        return lambda state, lanes: np.invert(bits(state, lanes)).astype(np.uint64)
    return lambda state, lanes: bits(state, lanes).astype(np.uint64)


def read_pair(operand: str, banks: ConstantBanks) -> Reader:
    """uint64 of two registers or constants that follow each other; immediates are extended by their sign."""
    negative, inverted, _, _ = find_signs(operand)
    both = _read_pair_bits(operand, banks)
    if negative:
        return lambda state, lanes: np.negative(both(state, lanes))
    if inverted:
        return lambda state, lanes: np.invert(both(state, lanes))
    return both


def _read_pair_bits(operand: str, banks: ConstantBanks) -> Reader:
    found = _SOURCE.fullmatch(operand)
    constant = _CONSTANT.fullmatch(operand)
    if found:
        number = _number(found["number"])
        low = _read_register(found["file"], number)
        high = _read_register(found["file"], number + 1 if number < RZ else RZ)
        return lambda state, lanes: join_words(low(state, lanes), high(state, lanes))
    if constant:
        bank, offset = int(constant["bank"], 16), int(constant["offset"], 16)
        word = banks.read_word(bank, offset) | banks.read_word(bank, offset + 4) << 32
        value = np.full((1, 1), word, np.uint64)
        return lambda state, lanes: value
    if _INTEGER.fullmatch(operand):
        immediate = np.full((1, 1), int(operand, 16) & (1 << 64) - 1, np.uint64)
        return lambda state, lanes: immediate
    raise UnreadOperandError(operand)


def join_words(low: Column, high: Column) -> Column:
    """uint64 of two uint32."""
    joined: Column = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
    return joined


def read_single(operand: str, banks: ConstantBanks) -> Reader:
    """float32 with its sign and absolute value."""
    number = read_number(operand)
    if number is not None:
        immediate = np.full((1, 1), number, np.float32)
        return lambda state, lanes: immediate
    bits = read_bits(operand, banks)
    negative, _, bar, _ = find_signs(operand)
    if bar:
        if negative:
            return lambda state, lanes: (bits(state, lanes) | _SIGN).view(np.float32)
        return lambda state, lanes: (bits(state, lanes) & ~_SIGN).view(np.float32)
    if negative:
        return lambda state, lanes: (bits(state, lanes) ^ _SIGN).view(np.float32)
    return lambda state, lanes: bits(state, lanes).view(np.float32)


def read_double(operand: str, banks: ConstantBanks) -> Reader:
    """float64 of a pair, with its sign and absolute value."""
    number = read_number(operand)
    if number is not None:
        immediate = np.full((1, 1), number, np.float64)
        return lambda state, lanes: immediate
    bits = _read_pair_bits(operand, banks)
    negative, _, bar, _ = find_signs(operand)
    if bar:
        if negative:
            return lambda state, lanes: (bits(state, lanes) | _SIGN_64).view(np.float64)
        return lambda state, lanes: (bits(state, lanes) & ~_SIGN_64).view(np.float64)
    if negative:
        return lambda state, lanes: (bits(state, lanes) ^ _SIGN_64).view(np.float64)
    return lambda state, lanes: bits(state, lanes).view(np.float64)
