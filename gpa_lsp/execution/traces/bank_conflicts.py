"""Bank conflicts: passes of requests to shared memory over a trace, as :mod:`~gpa_lsp.code.symbolic_accesses.model` counts them."""

from functools import cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.wavefronts import count_wavefronts, divide_request
from gpa_lsp.execution.emulator.trace import Accesses
from gpa_lsp.execution.traces.keyed_sums import KeyedSums
from gpa_lsp.execution.traces.lane_addresses import Integers, gather_lanes, split_rows, spread_lanes
from gpa_lsp.execution.traces.piece_rows import PieceRows
from gpa_lsp.execution.traces.request_kinds import list_columns
from gpa_lsp.foundation.native.shared_library import find_core
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
        """Take the shared memory accesses of a piece."""
        piece, accesses = found.piece, found.piece.accesses
        kinds = np.array([-1 if one.kind is None else one.kind for one in piece.instructions], dtype=np.int8)
        if not (accesses.space == Space.SHARED).any():
            return
        if found.kinds is not None:
            chosen = np.flatnonzero(accesses.space[found.kinds.rows] == Space.SHARED)
            rows = found.kinds.rows[chosen]
            instruction = accesses.instruction[rows].astype(np.int64)
            measured = _measure_by_core(accesses, rows, kinds[instruction])
            if measured is not None:
                self._sum(instruction, accesses.bytes[rows], *measured, times=found.kinds.counts[chosen])
                return
        shared = np.flatnonzero(accesses.space == Space.SHARED)
        for width in np.unique(accesses.bytes[shared]).tolist():
            for rows in split_rows(shared[accesses.bytes[shared] == width]):
                instruction = accesses.instruction[rows].astype(np.int64)
                matrix = gather_lanes(accesses, rows)
                addresses, active = spread_lanes(matrix)
                taken, ideal = count_wavefronts(addresses, active, width, kinds[instruction])
                once = np.ones(len(rows), dtype=np.int64)
                self._sum(instruction, accesses.bytes[rows], matrix.counts, taken, ideal, times=once)

    def _sum(
        self,
        instruction: Integers,
        widths: npt.NDArray[np.uint8],
        lanes: Integers,
        taken: Integers,
        ideal: Integers,
        *,
        times: Integers,
    ) -> None:
        """Add requests, each so many times."""
        columns = (np.ones(len(instruction), dtype=np.int64), lanes, lanes * widths, taken, ideal)
        self._sums.add(instruction, np.stack(columns, axis=1) * times[:, None])
        self._histogram.add(instruction * (MOST_WAVEFRONTS + 1) + np.minimum(taken, MOST_WAVEFRONTS), times[:, None])

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


@cache
def _divide_requests() -> Integers:
    """Words and parts by bytes per lane, int64[256, 2]."""
    return np.array([divide_request(width) for width in range(256)], dtype=np.int64)


def _measure_by_core(
    accesses: Accesses, rows: Integers, kinds: npt.NDArray[np.int8]
) -> tuple[Integers, Integers, Integers] | None:
    """Lanes, passes and passes without conflicts of some rows; None where there is no core, or it knows no such width."""
    core = find_core()
    if core is None:
        return None
    words, parts = np.ascontiguousarray(_divide_requests()[accesses.bytes[rows]].T)
    lanes, taken, ideal = np.empty((3, len(rows)), np.int64)
    columns = list_columns(accesses, rows)
    is_done = core.has_done("measure_banks", *columns, kinds, words, parts, lanes, taken, ideal)
    return (lanes, taken, ideal) if is_done else None
