"""Wavefronts of shared memory: how many passes a request takes, and how many of them bank conflicts cost.

Shared memory has 32 banks of 4 bytes; a wavefront serves each bank once. Lanes that read the same word share it; lanes that need different
words of one bank wait for each other. Requests of 8 bytes per lane go half a warp at a time, of 16 bytes a quarter, so that a wavefront moves
128 bytes at most.

Approximations: two halves that read the same words are not merged into one wavefront, though some hardware does so for whole-warp broadcasts
of 8 and 16 bytes. Atomic operations of several lanes on one word take one pass each; the combining that compilers and some hardware do for
equal addresses is not modelled.

Source: CUDA C++ Programming Guide, section "Shared Memory" of the compute capabilities; the profilers' "wavefront".
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.traces.keyed_sums import KeyedSums
from gpa_lsp.analyses.traces.lane_addresses import WARP_LANES, Integers, Marks, gather_lanes, split_rows, spread_lanes
from gpa_lsp.emulator.ptx.model import Space
from gpa_lsp.emulator.trace import AccessKind, Trace

BANKS = 32
BANK_BYTES = 4
MOST_WAVEFRONTS = 64
"""From so many on they are counted together."""

_NOTHING = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class BankConflicts:
    """The requests of one instruction to shared memory.

    Attributes:
        instruction: index of the static instruction.
        requests: warp-level accesses.
        lanes: active lanes over all of them.
        requested_bytes: bytes of all lanes.
        wavefronts: passes taken.
        ideal_wavefronts: passes without any conflict: one for each part of the warp (whole, half, quarter) with an active lane.
        histogram: int64[65], requests by wavefronts; the last bin holds those with more as well.
    """

    instruction: int
    requests: int
    lanes: int
    requested_bytes: int
    wavefronts: int
    ideal_wavefronts: int
    histogram: Integers = field(repr=False)

    @property
    def excess_wavefronts(self) -> int:
        """What conflicts cost; never negative."""
        return self.wavefronts - self.ideal_wavefronts

    @property
    def wavefronts_per_request(self) -> float:
        """On average; 0 without requests."""
        return self.wavefronts / self.requests if self.requests else 0.0

    @property
    def conflict_ways(self) -> float:
        """Wavefronts in place of one: an n-way conflict on average; 1 is none."""
        return self.wavefronts / self.ideal_wavefronts if self.ideal_wavefronts else 1.0


class BankAccumulator:
    """Sums over pieces of a trace."""

    def __init__(self) -> None:
        self._sums = KeyedSums(5)
        self._histogram = KeyedSums(1)

    def add(self, piece: Trace) -> None:
        """Take the shared memory accesses of a piece."""
        accesses = piece.accesses
        adds_up = np.array(
            [one.kind in (AccessKind.ATOMIC, AccessKind.REDUCTION) for one in piece.instructions], dtype=np.bool_
        )
        shared = np.flatnonzero(accesses.space == Space.SHARED)
        for width in np.unique(accesses.bytes[shared]).tolist():
            for rows in split_rows(shared[accesses.bytes[shared] == width]):
                instruction = accesses.instruction[rows].astype(np.int64)
                matrix = gather_lanes(accesses, rows)
                addresses, active = spread_lanes(matrix)
                taken, ideal = count_wavefronts(addresses, active, width, adds_up[instruction])
                ones = np.ones(len(rows), dtype=np.int64)
                columns = (ones, matrix.counts, matrix.counts * width, taken, ideal)
                self._sums.add(instruction, np.stack(columns, axis=1))
                self._histogram.count(instruction * (MOST_WAVEFRONTS + 1) + np.minimum(taken, MOST_WAVEFRONTS))

    def finish(self) -> tuple[BankConflicts, ...]:
        """By instruction."""
        histograms: dict[int, Integers] = {}
        for key, (count,) in zip(self._histogram.keys.tolist(), self._histogram.sums.tolist(), strict=True):
            instruction, bin_number = divmod(key, MOST_WAVEFRONTS + 1)
            empty = np.zeros(MOST_WAVEFRONTS + 1, dtype=np.int64)
            histograms.setdefault(instruction, empty)[bin_number] = count
        return tuple(
            BankConflicts(
                instruction=instruction, requests=requests, lanes=lanes, requested_bytes=requested, wavefronts=taken,
                ideal_wavefronts=ideal, histogram=histograms[instruction],
            )
            for instruction, (requests, lanes, requested, taken, ideal) in zip(
                self._sums.keys.tolist(), self._sums.sums.tolist(), strict=True
            )
        )  # fmt: skip


def count_wavefronts(
    addresses: npt.NDArray[np.uint64], active: Marks, bytes_per_lane: int, adds_up: Marks
) -> tuple[Integers, Integers]:
    """Passes of n requests of one width.

    Args:
        addresses: uint64[n, 32], first byte of each lane, from the start of shared memory.
        active: bool[n, 32].
        bytes_per_lane: 1 to 16; more go one lane at a time.
        adds_up: bool[n], atomic: equal words of different lanes take a pass each.

    Returns:
        int64[n] and int64[n]: passes taken, and passes without conflicts.

    >>> lanes = np.arange(32, dtype=np.uint64)[None]
    >>> every, no = np.ones((1, 32), dtype=bool), np.zeros(1, dtype=bool)
    >>> [int(count_wavefronts(lanes * np.uint64(step), every, 4, no)[0][0]) for step in (0, 4, 8, 128)]
    [1, 1, 2, 32]
    >>> [int(count_wavefronts(lanes * np.uint64(width), every, width, no)[0][0]) for width in (1, 8, 16)]
    [1, 2, 4]
    """
    words = max(1, -(-bytes_per_lane // BANK_BYTES))
    lanes = max(1, min(WARP_LANES, BANKS // words))
    parts = WARP_LANES // lanes
    count = len(addresses)
    first = (addresses >> np.uint64(2)).view(np.int64).reshape(count * parts, lanes, 1)
    word = (first + np.arange(words, dtype=np.int64)).reshape(count * parts, lanes * words)
    there = np.repeat(active.reshape(count * parts, lanes), words, axis=1)
    degree = _find_degree(word, there, np.repeat(adds_up, parts))
    is_there = there.any(axis=1)
    return degree.reshape(count, parts).sum(axis=1), is_there.reshape(count, parts).sum(axis=1).astype(np.int64)


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
