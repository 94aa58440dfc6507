"""Cycles for which a warp's accesses occupy L1's data pipe: :func:`count_paper_cycles`, :func:`count_cycles`.

Both find, per access, how lanes share banks; the later rule adds what looking up tags takes, and what handing over the values takes. The corrected
model also counts a cycle for each line that is filled (:mod:`~gpa_lsp.execution.volumes.counting`), as the authors' later program does. On a V100
tags and data
take their time one after the other: for loads of a 2D box from L1 alone that lie in 1 to 32 rows, and for 3D stars whose blocks are 2 to 8 wide, the
sum is within 15 % of what was measured, without fills; the larger of the two is up to half too short.

Sources: Ernst et al. (2022), section 4.2 (banks; "close" addresses within 1024 bytes). The later rule is that of the authors' program of 2025; it
meets the measured cycles of strided loads of the public gpu-benches within 5 to 14 % (A100, A40, H200), the paper's within 29 to 48 %.
"""

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.volumes.block_volumes import (
    LINE_BYTES,
    WARP_THREADS,
    Blocks,
    find_warp_shape,
    list_offsets,
    list_warp_places,
)
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups, Integers

Numbers = npt.NDArray[np.float64]

_HALF_WARP = 16
_FAR_BYTES = 1024
_FEWEST_BANK_BYTES = 4
TAGS_PER_CYCLE = 4
FREE_TAGS = 2  # Lines that are looked up in a cycle in which data is handed over, and those of them that cost nothing


def count_paper_cycles(entry: ArrayGroups, group: AccessGroup, blocks: Blocks) -> float:
    """Cycles of a warp for one iteration of a group's accesses: bank conflicts of half-warps, or addresses too far apart.

    The mean over all half-warps of a box of blocks, twice.
    """
    places, weights = list_warp_places(entry, group, blocks, _HALF_WARP, _FAR_BYTES)
    offsets = list_offsets(group.find_thread_steps(), find_warp_shape(blocks.block, _HALF_WARP))
    elements = (places[:, np.newaxis] + offsets) // group.element_bytes
    conflicts = count_bank_conflicts(elements, LINE_BYTES // group.element_bytes)
    chunks = _count_distinct_rows(elements // (_FAR_BYTES // group.element_bytes))
    cycles = float(np.average(np.maximum(conflicts, chunks), weights=weights))
    return 2 * cycles * len(group.constants_bytes)


def count_cycles(entry: ArrayGroups, group: AccessGroup, blocks: Blocks, *, tags_per_cycle: int | None = None) -> float:
    """Cycles of a warp for one iteration of a group's accesses by the later rule: the most of conflicts, tags and width; or their sum."""
    places, weights = list_warp_places(entry, group, blocks, WARP_THREADS, LINE_BYTES)
    offsets = list_offsets(group.find_thread_steps(), find_warp_shape(blocks.block, WARP_THREADS))
    cycles = count_request_cycles(places[:, np.newaxis] + offsets, group.element_bytes, tags_per_cycle=tags_per_cycle)
    return float(np.average(cycles, weights=weights)) * len(group.constants_bytes)


def count_request_cycles(addresses: Integers, element_bytes: int, *, tags_per_cycle: int | None = None) -> Numbers:
    """Cycles of warp-level accesses by the later rule.

    Args:
        addresses: int64[n, lanes], of each lane's first byte.

    Returns:
        float64[n]: ``max(bank conflicts, ceil((lines + 2) / 4), lanes' bytes / 128)``; where tags delay data
        ``max(bank conflicts, lanes' bytes / 128) + lines / tags per cycle``.

    >>> strides = np.arange(32)[np.newaxis] * np.array([[8], [128], [0]])
    >>> count_request_cycles(strides, 8).tolist(), count_request_cycles(strides, 8, tags_per_cycle=4).tolist()
    ([2.0, 32.0, 2.0], [2.5, 40.0, 2.25])
    """
    width = max(_FEWEST_BANK_BYTES, min(element_bytes, LINE_BYTES))
    conflicts = count_bank_conflicts(addresses // width, max(1, LINE_BYTES // width))
    lines = _count_distinct_rows(addresses // LINE_BYTES)
    data = np.maximum(conflicts, -(-WARP_THREADS * element_bytes // LINE_BYTES))
    cycles: Numbers
    if tags_per_cycle is None:
        cycles = np.maximum(data, np.ceil((lines + FREE_TAGS) / TAGS_PER_CYCLE))
    else:
        cycles = data + lines / tags_per_cycle
    return cycles


def count_bank_conflicts(elements: Integers, banks: int) -> Integers:
    """Distinct elements in the fullest bank, int64[n], of elements int64[n, lanes].

    >>> count_bank_conflicts(np.array([[0, 1, 2, 2], [0, 4, 8, 1]]), 4).tolist()
    [1, 3]
    """
    rows = len(elements)
    ordered = np.sort(elements, axis=1)
    is_new = np.ones(ordered.shape, dtype=np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=is_new[:, 1:])
    # Banks are a power of two as a rule, and a mask is several times faster than a division.
    bank = ordered & (banks - 1) if banks & (banks - 1) == 0 else ordered % banks
    cells = (np.arange(rows, dtype=np.int64)[:, np.newaxis] * banks + bank)[is_new]
    counts: Integers = np.bincount(cells, minlength=rows * banks).reshape(rows, banks).max(axis=1)
    return counts


def _count_distinct_rows(values: Integers) -> Integers:
    ordered = np.sort(values, axis=1)
    counts: Integers = 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)
    return counts
