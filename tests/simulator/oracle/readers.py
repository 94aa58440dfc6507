"""Operands as columns of numpy: what only :mod:`.integer_steps` and :mod:`.float_steps` read."""

import numpy as np

from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import (
    _CONSTANT,
    _INTEGER,
    _SIGN,
    _SIGN_64,
    _SOURCE,
    RZ,
    Reader,
    UnreadOperandError,
    _number,
    _read_register,
    find_signs,
    read_bits,
    read_number,
)
from gpa_lsp.execution.simulator.execution.warp_state import Column


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
