"""Cost of one request of a warp: wavefronts of shared memory, sectors, and cycles of L1.

Shared memory has 32 banks of 4 bytes; a wavefront serves each bank once. Lanes that access the same word share it; lanes that need different
words of one bank wait for each other. Requests of 8 bytes per lane go half a warp at a time, of 16 bytes a quarter, so that a wavefront moves
128 bytes at most.

Wide *loads* may go twice as many lanes at a time (8 bytes: the whole warp, 16 bytes: half a warp), because lanes with equal addresses need
less room on the way back: where throughout the warp neighbours (lanes n and n ^ 1), or throughout the warp next neighbours (n and n ^ 2),
have the same address or one of the two is inactive. They do so where it saves a wavefront. The ideal is the number of parts the request went
in: 2 for a broadcast of 16 bytes, 4 for dense lanes or for quarters of a warp that meet in the same banks.

Approximations: only loads are joined, because what is joined is the return of values; no measured store had equal addresses. Atomic operations
of several lanes on one word take one pass each; the combining that compilers and some hardware do for equal addresses is not modelled.

Sources: CUDA C++ Programming Guide, section "Shared Memory" of the compute capabilities; NVIDIA on its developer forum (topic 77228,
"Unexpected shared memory bank conflict") for the two conditions. That joining must save a wavefront is fitted on
``memory_l1_wavefronts_shared`` and its ``_ideal`` of real reports, whose addresses were emulated or computed from SASS: 16 instructions
(RTX 4090) whose quarters read one address each, all in the same banks, have an ideal of 4. Both counters are then met by all of 143
``LDS.128`` (RTX 3080, 3090, 4090, 5090; quarters that are never joined meet 66, distinct words of halves 111), by 4 ``STS.128`` (3080,
5090), 5 ``STS.64`` (4080) and the scalar accesses beside them. Of ``LDS.64`` no report has addresses that can be known; five in a ray
tracer with 1.06 ideal wavefronts for 5.8 active lanes on average speak for the rule.
"""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.static_instructions import AccessKind

BANKS = 32
BANK_BYTES = 4

WARP_LANES = 32  # Threads of a warp, on every architecture
_JOINED_WORDS = (2, 4)  # Words per lane of loads whose parts may go together
_NOTHING = np.iinfo(np.int64).max

SECTOR_BYTES, LINE_BYTES = 32, 128
_FEWEST_BANK_BYTES = 4
TAGS_PER_CYCLE = 4
FREE_TAGS = 2  # Lines that are looked up in a cycle in which data is handed over, and those of them that cost nothing

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


def count_wavefronts(
    addresses: npt.NDArray[np.uint64], active: Marks, bytes_per_lane: int, kinds: npt.NDArray[np.int8]
) -> tuple[Integers, Integers]:
    """Passes of n requests of one width.

    Args:
        addresses: uint64[n, 32], first byte of each lane, from the start of shared memory; multiples of their width, as the hardware asks.
        active: bool[n, 32].
        bytes_per_lane: 1 to 16; more go fewer lanes at a time.
        kinds: int8[n], :class:`~gpa_lsp.code.ptx.static_instructions.AccessKind`: of atomics, equal words of different lanes take a pass each.

    Returns:
        int64[n] and int64[n]: passes taken, and passes without conflicts.

    >>> lanes = np.arange(32, dtype=np.uint64)[None]
    >>> every, load = np.ones((1, 32), dtype=bool), np.full(1, AccessKind.LOAD, dtype=np.int8)
    >>> [int(count_wavefronts(lanes * np.uint64(step), every, 4, load)[0][0]) for step in (0, 4, 8, 128)]
    [1, 1, 2, 32]
    >>> [int(count_wavefronts(lanes * np.uint64(width), every, width, load)[0][0]) for width in (1, 8, 16)]
    [1, 2, 4]
    >>> [int(count_wavefronts(lanes * np.uint64(0), every, width, load)[0][0]) for width in (1, 8, 16)]
    [1, 1, 2]
    """
    words, parts = divide_request(bytes_per_lane)
    adds_up = np.isin(kinds, (AccessKind.ATOMIC, AccessKind.REDUCTION))
    taken, ideal = _serve(addresses, active, adds_up, words, parts)
    if words in _JOINED_WORDS:
        rows = np.flatnonzero((kinds == AccessKind.LOAD) & _are_paired(addresses, active))
        joined, joined_ideal = _serve(addresses[rows], active[rows], adds_up[rows], words, parts // 2)
        is_saved = joined < taken[rows]
        taken[rows[is_saved]], ideal[rows[is_saved]] = joined[is_saved], joined_ideal[is_saved]
    return taken, ideal


def divide_request(bytes_per_lane: int) -> tuple[int, int]:
    """Words of each lane, and parts in which a warp goes.

    >>> [divide_request(width) for width in (1, 4, 8, 16)]
    [(1, 1), (1, 1), (2, 2), (4, 4)]
    """
    words = 1 << (-(-bytes_per_lane // BANK_BYTES) - 1).bit_length()
    return words, WARP_LANES // max(1, min(WARP_LANES, BANKS // words))


def _serve(
    addresses: npt.NDArray[np.uint64], active: Marks, adds_up: Marks, words: int, parts: int
) -> tuple[Integers, Integers]:
    """Passes when the warp goes in so many parts, int64[n], and the parts with an active lane, int64[n].

    A part takes as many as the most different units of one group of banks, each group as wide as a lane; of atomics as the most lanes.
    """
    count, groups = len(addresses), max(1, BANKS // words)
    unit = (addresses >> np.uint64((BANK_BYTES * words).bit_length() - 1)).view(np.int64)
    unit[~active] = _NOTHING
    unit = unit.reshape(count * parts, WARP_LANES // parts)
    unit.sort(axis=1)
    is_new = unit != _NOTHING
    ideal = is_new[:, 0].reshape(count, parts).sum(axis=1)
    is_new[:, 1:] &= (unit[:, 1:] != unit[:, :-1]) | np.repeat(adds_up, parts)[:, None]
    unit &= groups - 1
    unit += groups * np.arange(count * parts)[:, None]
    degrees = np.bincount(unit[is_new], minlength=count * parts * groups).reshape(count, parts, groups).max(axis=2)
    return degrees.sum(axis=1) * max(1, words // BANKS), ideal


def _are_paired(addresses: npt.NDArray[np.uint64], active: Marks) -> Marks:
    """bool[n], whether all lanes n and n ^ 1, or all lanes n and n ^ 2, have equal addresses or are not both active."""
    found = np.zeros(len(addresses), dtype=np.bool_)
    for step in (1, 2):
        lanes, marks = (column.reshape(-1, WARP_LANES // (2 * step), 2, step) for column in (addresses, active))
        is_equal = lanes[:, :, 0] == lanes[:, :, 1]
        found |= (is_equal | ~(marks[:, :, 0] & marks[:, :, 1])).all(axis=(1, 2))
    return found


# Sectors and lines, and the cycles for which they occupy L1.


def count_sectors(addresses: Integers, active: Marks, bytes_each: int) -> Integers:
    """int64[n], the distinct sectors of 32 bytes that the active lanes of each request touch.

    >>> lanes = np.arange(32, dtype=np.int64)[None]
    >>> every = np.ones((1, 32), dtype=bool)
    >>> [int(count_sectors(lanes * step, every, 4)[0]) for step in (0, 4, 8, 12, 32, 400)]
    [1, 4, 8, 12, 32, 32]
    >>> int(count_sectors(lanes * 4 + 4, every, 4)[0])
    5
    """
    parts = -(-bytes_each // SECTOR_BYTES) + 1
    steps = np.minimum(np.arange(parts, dtype=np.int64) * SECTOR_BYTES, bytes_each - 1)
    touched = (addresses[:, :, None] + steps) // SECTOR_BYTES
    some = np.take_along_axis(touched[:, :, 0], active.argmax(axis=1)[:, None], axis=1)
    touched = np.where(active[:, :, None], touched, some[:, :, None]).reshape(len(addresses), -1)
    touched.sort(axis=1)
    counts: Integers = 1 + np.count_nonzero(touched[:, 1:] != touched[:, :-1], axis=1)
    return counts


def count_request_cycles(addresses: Integers, element_bytes: int, *, tags_per_cycle: int | None = None) -> Numbers:
    """Cycles of L1 for warp-level accesses.

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
    lines = count_distinct_rows(addresses // LINE_BYTES)
    data = np.maximum(conflicts, -(-WARP_LANES * element_bytes // LINE_BYTES))
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


def count_distinct_rows(values: Integers) -> Integers:
    """int64[n], the distinct values of each row of int64[n, lanes]."""
    ordered = np.sort(values, axis=1)
    counts: Integers = 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)
    return counts
