"""Bank conflicts: passes of requests to shared memory over a trace, as :mod:`~gpa_lsp.code.symbolic_accesses.model` counts them."""

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.wavefronts import count_wavefronts
from gpa_lsp.execution.traces.keyed_sums import KeyedSums
from gpa_lsp.execution.traces.lane_addresses import Integers, count_lanes, split_rows, spread_lanes
from gpa_lsp.execution.traces.piece_rows import PieceRows
from gpa_lsp.foundation.records import ColumnRecord

MOST_WAVEFRONTS = 64  # From so many on they are counted together


class BankConflicts(ColumnRecord, frozen=True, kw_only=True):
    """The requests of one instruction to shared memory."""

    instruction: int  # index of the static instruction
    requests: int  # warp-level accesses
    lanes: int  # active lanes over all of them
    requested_bytes: int  # bytes of all lanes
    wavefronts: int  # passes taken
    # passes without any conflict: one for each part of the warp (whole, half, quarter) that went at a time and has an active lane
    ideal_wavefronts: int
    histogram: Integers  # int64[65], requests by wavefronts; the last bin holds those with more as well

    @property
    def excess_wavefronts(self) -> int:
        """What conflicts cost; never negative."""
        return self.wavefronts - self.ideal_wavefronts

    @property
    def wavefronts_per_request(self) -> float:
        """On average; 0 without requests."""
        return self.wavefronts / self.requests if self.requests else 0.0


class BankAccumulator:
    """Sums over pieces of a trace."""

    def __init__(self) -> None:
        self._sums = KeyedSums(5)
        self._histogram = KeyedSums(1)

    def add(self, found: PieceRows) -> None:
        """Take the shared memory accesses of a piece; those of a kind meet in the same banks."""
        piece, accesses, every = found.piece, found.piece.accesses, found.kinds
        kinds = np.array([-1 if one.kind is None else one.kind for one in piece.instructions], dtype=np.int8)
        shared = np.flatnonzero(accesses.space[every.rows] == Space.SHARED)
        widths = accesses.bytes[every.rows[shared]]
        for width in np.unique(widths).tolist():
            for chosen in split_rows(shared[widths == width]):
                rows, times = every.rows[chosen], every.counts[chosen]
                instruction, lanes = accesses.instruction[rows].astype(np.int64), count_lanes(accesses.lane_mask[rows])
                taken, ideal = count_wavefronts(*spread_lanes(accesses, rows), width, kinds[instruction])
                columns = (np.ones(len(rows), dtype=np.int64), lanes, lanes * width, taken, ideal)
                self._sums.add(instruction, np.stack(columns, axis=1) * times[:, None])
                bins = instruction * (MOST_WAVEFRONTS + 1) + np.minimum(taken, MOST_WAVEFRONTS)
                self._histogram.add(bins, times[:, None])

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
