"""Counting and turning the bits of unsigned integers."""

from typing import Any

import numpy as np
import numpy.typing as npt

_MASKS = {
    4: ((1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0F0F_0F0F)),
    8: ((1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F)),
}
_ONES = {4: 0x0101_0101, 8: 0x0101_0101_0101_0101}


def count_ones(values: Any) -> Any:
    """Bits that are set, as uint32. Values of uint32 or uint64."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(values).astype(np.uint32)
    kind = values.dtype.type
    (one, odd), (two, pairs), (four, nibbles) = _MASKS[values.dtype.itemsize]
    values = values - ((values >> kind(one)) & kind(odd))
    values = (values & kind(pairs)) + ((values >> kind(two)) & kind(pairs))
    values = (values + (values >> kind(four))) & kind(nibbles)
    total = np.multiply(values, kind(_ONES[values.dtype.itemsize]))
    return np.right_shift(total, kind(values.dtype.itemsize * 8 - 8)).astype(np.uint32)


def count_leading_zeros(values: Any) -> Any:
    """Zeros above the highest bit that is set, as uint32; the width for 0. Values of uint32 or uint64."""
    if values.dtype.itemsize == 4:
        _, exponent = np.frexp(values.astype(np.float64))  # exact
        return np.subtract(np.uint32(32), exponent.astype(np.uint32))
    high = np.right_shift(values, np.uint64(32)).astype(np.uint32)
    low = values.astype(np.uint32)
    in_high, in_low = count_leading_zeros(high), count_leading_zeros(low)
    return np.add(in_high, np.multiply(in_low, np.equal(high, np.uint32(0))))


def reverse_bits(values: Any) -> Any:
    """Bits in the reverse order. Values of uint32 or uint64."""
    kind = values.dtype.type
    for shift, mask in _MASKS[values.dtype.itemsize]:
        low = np.left_shift(np.bitwise_and(values, kind(mask)), kind(shift))
        values = np.bitwise_or(low, np.bitwise_and(np.right_shift(values, kind(shift)), kind(mask)))
    return values.byteswap()


def find_nth_set(
    mask: npt.NDArray[np.uint32], start: npt.NDArray[np.uint32], offset: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint32]:
    """``fns``: position of the n-th bit that is set, counted from a start up (offset > 0) or down (offset < 0).

    Offset 0 asks whether the bit at the start is set. 0xFFFFFFFF where there is none. Source: PTX ISA 9.0, section 9.7.1.18.
    """
    bits = (mask[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    places = np.arange(32)
    begin = np.minimum(start, 32).astype(np.int64)[:, None]
    offsets = offset.astype(np.int64)[:, None]
    upward = np.cumsum(bits * (places >= begin), axis=1)
    downward = np.cumsum((bits * (places <= begin))[:, ::-1], axis=1)[:, ::-1]
    wanted = np.abs(offsets)
    up = (offsets > 0) & (upward == wanted) & (places >= begin)
    down = (offsets < 0) & (downward == wanted) & (places <= begin)
    found = (up | down | ((offsets == 0) & (places == begin))) & (bits != 0) & (start < 32)[:, None]
    result = np.where(found.any(axis=1), found.argmax(axis=1), 0xFFFF_FFFF)
    return result.astype(np.uint32)
