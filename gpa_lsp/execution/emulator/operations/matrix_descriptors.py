"""Where matrices stand that a descriptor of ``wgmma`` tells of: :func:`find_rows`; and their elements: :func:`arrange`.

Such a matrix is read in rows of 16 bytes. Along the depth of the product it has 32 bytes: two rows side by side for each row of A (or column of
B) where neighbours along the depth stand side by side (*K-major*); else, for elements of 16 bits, 16 rows, each of eight elements along the other
side (*MN-major*). Eight rows of 16 · w bytes make an *atom*, w is 1, 2, 4 or 8 by the swizzle; atoms follow one another at the two strides of
the descriptor. Within an atom, the three bits of an address above those of a row of 16 bytes are exchanged (exclusive or) with the low bits of
the atom's row, which are those of the address above the lowest seven: one bit of them for a swizzle of 32 bytes, two for 64, three for 128.

Source: PTX ISA 9.0, sections 9.7.15.5.1.2.1 (strides, canonical layouts) and 9.7.15.5.1.2.2 (matrix descriptor format).
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.matrix_numbers import unpack
from gpa_lsp.execution.emulator.operations.warp_group_products import ROW_BYTES

UNIT_BYTES = 16  # What is read at once, and what addresses and strides of a descriptor count in
_FIELD = (1 << 14) - 1
_START_BITS = 16
_STRIDE_SHIFT = 16
_BASE_SHIFT = 33
_MODE_SHIFT = 46
_WIDTHS = (1, 8, 4, 2)  # Units side by side in an atom, by swizzle mode
_TURNED_DEPTH = 16


def has_base_offset(descriptors: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which descriptors say that their atoms begin at an address that is no multiple of an atom; ignored without a swizzle."""
    fields = descriptors >> np.uint64(_START_BITS)
    found: npt.NDArray[np.bool_] = (fields >> np.uint64(_BASE_SHIFT) & np.uint64(7) != 0) & (
        fields >> np.uint64(_MODE_SHIFT) != 0
    )
    return found


def find_rows(descriptors: npt.NDArray[np.uint64], lines: int, *, is_turned: bool) -> npt.NDArray[np.int64]:
    """Addresses in shared memory of the rows of 16 bytes of matrices.

    Args:
        descriptors: uint64[x], base offsets not looked at.
    """
    fields = descriptors >> np.uint64(_START_BITS)
    starts = (descriptors & np.uint64(_FIELD)).astype(np.int64) * UNIT_BYTES
    found = np.empty((len(descriptors), 2 * lines), np.int64)
    for value in np.unique(fields):
        where = fields == value
        addresses = starts[where, None] + _find_offsets(int(value), lines, is_turned)
        swizzled = (_WIDTHS[int(value) >> _MODE_SHIFT] - 1) * UNIT_BYTES
        found[where] = addresses ^ (addresses >> 3 & swizzled)
    return found


@lru_cache(maxsize=256)
def _find_offsets(fields: int, lines: int, is_turned: bool) -> npt.NDArray[np.int64]:
    """int64[2 · lines]: distances of rows from the start of a matrix, before addresses are swizzled."""
    leading, stride = (fields & _FIELD) * UNIT_BYTES, (fields >> _STRIDE_SHIFT & _FIELD) * UNIT_BYTES
    width = _WIDTHS[fields >> _MODE_SHIFT]
    if not is_turned:
        line, half = np.arange(lines)[:, None], np.arange(2)[None, :]
        step = leading if width == 1 else UNIT_BYTES
        return (line % 8 * width * UNIT_BYTES + line // 8 * stride + half * step).reshape(-1)
    eight, depth = np.arange(lines // 8)[:, None], np.arange(_TURNED_DEPTH)[None, :]
    across, along = (stride, leading) if width == 1 else (leading, stride)
    beside = eight % width * UNIT_BYTES + eight // width * across
    return (beside + depth % 8 * width * UNIT_BYTES + depth // 8 * along).reshape(-1)


def arrange(words: npt.NDArray[np.uint32], kind: ScalarType, *, is_turned: bool) -> Any:
    """Rows as :func:`find_rows` lists them → elements.

    Args:
        is_turned: as of :func:`find_rows`.

    Returns:
        [x, lines, depth]: what :func:`.matrix_numbers.unpack` gives.
    """
    count = len(words)
    if not is_turned:
        return unpack(words.reshape(count, -1, ROW_BYTES // 4), kind)
    elements = unpack(words, kind).reshape(count, -1, _TURNED_DEPTH, 8)
    return elements.transpose(0, 1, 3, 2).reshape(count, -1, _TURNED_DEPTH)
