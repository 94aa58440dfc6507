"""Wavefronts of shared memory: how many passes a request takes, and how many of them bank conflicts cost.

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
from gpa_lsp.foundation.native.shared_library import find_core

BANKS = 32
BANK_BYTES = 4

_LANES = 32
_JOINED_WORDS = (2, 4)  # Words per lane of loads whose parts may go together
_NOTHING = np.iinfo(np.int64).max

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


def count_wavefronts(
    addresses: npt.NDArray[np.uint64], active: Marks, bytes_per_lane: int, kinds: npt.NDArray[np.int8]
) -> tuple[Integers, Integers]:
    """Passes of n requests of one width.

    Args:
        addresses: uint64[n, 32], first byte of each lane, from the start of shared memory.
        active: bool[n, 32].
        bytes_per_lane: 1 to 16; more go one lane at a time.
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
    core = find_core()
    if core is not None:
        passes, least = np.empty((2, len(addresses)), np.int64)
        columns = (np.ascontiguousarray(one) for one in (addresses, active, np.asarray(kinds, np.int8)))
        if core.has_done("count_wavefronts", *columns, len(addresses), words, parts, passes, least):
            return passes, least
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
    words = max(1, -(-bytes_per_lane // BANK_BYTES))
    return words, _LANES // max(1, min(_LANES, BANKS // words))


def _serve(
    addresses: npt.NDArray[np.uint64], active: Marks, adds_up: Marks, words: int, parts: int
) -> tuple[Integers, Integers]:
    """Passes when the warp goes in so many parts, int64[n], and the parts with an active lane, int64[n]."""
    count, lanes = len(addresses), _LANES // parts
    first = (addresses >> np.uint64(2)).view(np.int64).reshape(count * parts, lanes, 1)
    word = (first + np.arange(words, dtype=np.int64)).reshape(count * parts, lanes * words)
    there = np.repeat(active.reshape(count * parts, lanes), words, axis=1)
    degree = _find_degree(word, there, np.repeat(adds_up, parts))
    is_there = there.any(axis=1)
    return degree.reshape(count, parts).sum(axis=1), is_there.reshape(count, parts).sum(axis=1).astype(np.int64)


def _are_paired(addresses: npt.NDArray[np.uint64], active: Marks) -> Marks:
    """bool[n], whether all lanes n and n ^ 1, or all lanes n and n ^ 2, have equal addresses or are not both active."""
    found = np.zeros(len(addresses), dtype=np.bool_)
    for step in (1, 2):
        lanes, marks = (column.reshape(-1, _LANES // (2 * step), 2, step) for column in (addresses, active))
        is_equal = lanes[:, :, 0] == lanes[:, :, 1]
        found |= (is_equal | ~(marks[:, :, 0] & marks[:, :, 1])).all(axis=(1, 2))
    return found


def _find_degree(word: Integers, there: Marks, adds_up: Marks) -> Integers:
    """int64[n], the most different words of one bank; of atomics the most lanes."""
    keys = np.where(there, ((word % BANKS) << 48) | (word // BANKS), _NOTHING)
    keys.sort(axis=1)
    is_new = keys != _NOTHING
    is_new[:, 1:] &= (keys[:, 1:] != keys[:, :-1]) | adds_up[:, None]
    row, column = np.nonzero(is_new)
    bank = keys[row, column] >> 48
    counts = np.bincount(row * BANKS + bank, minlength=len(word) * BANKS).reshape(len(word), BANKS)
    degree: Integers = counts.max(axis=1).astype(np.int64)
    return degree
