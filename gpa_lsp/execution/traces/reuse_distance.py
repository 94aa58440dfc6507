"""Distances between uses of the same word or line: histograms over blocks, warps, or the blocks one SM holds together.

*Reuse distance*: the distinct units referenced between a reference and the last one to the same unit, in the order of
:mod:`gpa_lsp.execution.accesses.references`. A first reference has the distance ∞. The cache of a fully associative LRU of c units hits exactly the
references with a distance below c.

Source: C. Ding, Y. Zhong, "Reuse Distance Analysis" (2001); CUDAAdvisor (CGO 2018), section 4.2 (A), Figure 4.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import is_kept_by_l1
from gpa_lsp.execution.accesses.lane_addresses import LINE_SHIFT, MOST_ARRAYS, WORD_SHIFT, ArrayIndex, Integers, Marks
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import name_warps
from gpa_lsp.execution.emulator.model import Buffer
from gpa_lsp.execution.traces.keyed_sums import KeyedSums, compress_keys
from gpa_lsp.execution.traces.model import Granularity
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:
    from gpa_lsp.execution.accesses.reuse_loops import Tally, UnitLists

FINITE_BINS = 33  # Bin 0 is distance 0; bin k holds the distances from 2**(k-1) to 2**k - 1
INFINITE_BIN = FINITE_BINS
BINS = FINITE_BINS + 1

# Units of ``2**shift`` bytes
SHIFTS = {Granularity.ELEMENT: WORD_SHIFT, Granularity.LINE: LINE_SHIFT}

_FIRST_ARRAY = 2
_ARRAYS = MOST_ARRAYS + _FIRST_ARRAY


class Scope(StrEnum):
    """Unit of execution whose references are one sequence."""

    WARP = "warp"
    BLOCK = "block"
    SM = "SM"  # The blocks one SM holds together, loads through L1 only


class ReuseHistogram(ColumnRecord, frozen=True, kw_only=True):
    """Reuse distances of a set of references."""

    bins: Integers  # int64[34], references by distance; see :data:`FINITE_BINS`, the last one is ∞
    streaming: int  # references whose unit is used once only: not before, and not again in its sequence, or not before it is stored to
    distance_sum: int  # of all finite distances

    @property
    def references(self) -> int:
        """Number of references."""
        return int(self.bins.sum())

    @property
    def infinite(self) -> int:
        """Number of first references."""
        return int(self.bins[INFINITE_BIN])

    @property
    def streaming_ratio(self) -> float:
        """Streaming references of all, 0..1; 0 without any."""
        return self.streaming / self.references if self.references else 0.0

    @property
    def mean_distance(self) -> float | None:
        """Mean of the finite distances; None when nothing is used again."""
        finite = self.references - self.infinite
        return self.distance_sum / finite if finite else None


class ReuseGroup(Struct, frozen=True, kw_only=True):
    """The references of one instruction to one array."""

    instruction: int  # index of the static instruction
    array: int  # index of the buffer, or outside of all
    histogram: ReuseHistogram  # of its references: each distance belongs to the later of two uses


class ReuseDistances(Struct, frozen=True, kw_only=True):
    """The reuse in one kind of sequence."""

    scope: Scope  # whose sequences
    granularity: Granularity  # of what
    total: ReuseHistogram  # all references
    groups: tuple[ReuseGroup, ...]  # by instruction and array; they add up to the total
    sequences: int  # how many were looked at
    is_whole: bool  # False where the trace had more than the settings allowed to look at


def add_histograms(histograms: list[ReuseHistogram]) -> ReuseHistogram:
    """All references of several histograms."""
    bins = np.sum([np.zeros(BINS, dtype=np.int64), *(one.bins for one in histograms)], axis=0)
    return ReuseHistogram(
        bins=bins,
        streaming=sum(one.streaming for one in histograms),
        distance_sum=sum(one.distance_sum for one in histograms),
    )


class ReuseSums:
    """Histograms by instruction and array.

    Args:
        buffers: of the trace.
    """

    def __init__(self, buffers: tuple[Buffer, ...]) -> None:
        self._index = ArrayIndex(buffers)
        self._sums = KeyedSums(BINS + 2)

    def open(
        self, lists: "UnitLists", addresses: Integers, instruction: Integers
    ) -> tuple["Tally", Integers, Integers]:
        """Room for sums of some rows, the first group of the instruction of each row, and the keys of groups for :meth:`close`.

        Args:
            addresses: int64[units], first byte of each.
            instruction: int64[n], of the rows.
        """
        from gpa_lsp.execution.accesses import reuse_loops  # llvmlite takes .1 s to import

        index, of_unit, of_list = self._index, np.zeros(len(addresses), np.int64), np.empty(len(lists.size), np.int64)
        arrays = reuse_loops.ArrayColumns(bases=index.bases, ends=index.ends, order=index.order)
        reuse_loops.find_arrays(arrays, lists, addresses, of_unit, of_list)
        used, slot = compress_keys(instruction)
        count = len(index.order) + 1
        tally = reuse_loops.Tally(
            bins=np.zeros((len(used) * count, BINS), np.int64),
            sums=np.zeros((len(used) * count, 2), np.int64),
            list_array=of_list,
            unit_array=of_unit,
            list_fresh=np.zeros(len(of_list), np.int64),
            unit_fresh=np.zeros(len(of_unit), np.int64),
            has_fresh=np.zeros(len(of_list), np.bool_),
        )
        return tally, slot * count, (used[:, None] * _ARRAYS + np.arange(count) + _FIRST_ARRAY - 1).reshape(-1)

    def close(self, tally: "Tally", keys: Integers) -> None:
        """Add the sums of a tally."""
        is_used = tally.bins.any(axis=1)
        self._sums.merge(keys[is_used], np.concatenate([tally.bins, tally.sums], axis=1)[is_used])

    def finish(self) -> tuple[ReuseGroup, ...]:
        """All groups, by instruction and array."""
        groups = []
        for key, columns in zip(self._sums.keys.tolist(), self._sums.sums, strict=True):
            instruction, array = divmod(key, _ARRAYS)
            streaming, distance_sum = columns[BINS:].tolist()
            histogram = ReuseHistogram(bins=columns[:BINS], streaming=streaming, distance_sum=distance_sum)
            groups.append(ReuseGroup(instruction=instruction, array=array - _FIRST_ARRAY, histogram=histogram))
        return tuple(groups)


class ReuseAccumulator:
    """Reuse within blocks or warps, over pieces of a trace: global memory and textures.

    Args:
        buffers: of the trace.
        scope: WARP or BLOCK.
        granularity: of what.
        most_references: after which further blocks are left out.
        is_l1_only: only loads whose lines L1 keeps are references.
    """

    def __init__(
        self,
        buffers: tuple[Buffer, ...],
        *,
        scope: Scope,
        granularity: Granularity,
        most_references: int,
        is_l1_only: bool = False,
    ) -> None:
        self._is_l1_only = is_l1_only
        self._scope, self._granularity = scope, granularity
        self._room = most_references
        self._sums = ReuseSums(buffers)
        self._sequences = 0
        self._is_whole = True

    def add(self, found: PieceRows) -> None:
        """Take the blocks of a piece, while there is room."""
        is_used = self._find_used(found)
        if self._room <= 0 or not is_used.any():
            self._is_whole &= not is_used.any()
            return
        rows = found.orders.by_warp if self._scope is Scope.WARP else found.orders.by_block
        self._add_rows(found, rows[is_used[rows]] if self._is_l1_only else rows)

    def _find_used(self, found: PieceRows) -> Marks:
        """bool[n], rows that are references."""
        if not self._is_l1_only:
            return found.is_global
        kept = np.array([is_kept_by_l1(one) for one in found.piece.instructions], dtype=np.bool_)
        return found.is_global & kept[found.piece.accesses.instruction]

    def _add_rows(self, piece_rows: PieceRows, rows: Integers) -> None:
        from gpa_lsp.execution.accesses import reuse_loops  # llvmlite takes .1 s to import

        accesses, shift = piece_rows.piece.accesses, SHIFTS[self._granularity]
        known, number = piece_rows.list_units(rows, shift, self._room)
        kept = len(number)
        if kept < len(rows):
            kept = self._cut(accesses.block[rows[:kept]])
        if kept == 0:
            return
        rows, number = rows[:kept], known.number[number[:kept]]
        owner = name_warps(accesses)[rows] if self._scope is Scope.WARP else accesses.block[rows]
        ends = np.append(np.flatnonzero(owner[1:] != owner[:-1]), kept - 1) + 1
        references = np.cumsum(known.lists.size[number])[ends - 1]
        instruction = accesses.instruction[rows].astype(np.int64)
        tally, bases, keys = self._sums.open(known.lists, known.units << shift, instruction)
        recency = reuse_loops.open_recency(known.lists, len(known.units), int(np.diff(references, prepend=0).max()))
        reuse_loops.measure_rows(known.lists, reuse_loops.Sequences(number, ends, bases), recency, tally)
        self._sums.close(tally, keys)
        self._room -= int(references[-1])
        self._sequences += len(ends)

    def finish(self) -> ReuseDistances:
        """The histograms of all blocks that were looked at."""
        groups = self._sums.finish()
        return ReuseDistances(
            scope=self._scope,
            granularity=self._granularity,
            total=add_histograms([group.histogram for group in groups]),
            groups=groups,
            sequences=self._sequences,
            is_whole=self._is_whole,
        )

    def _cut(self, block: npt.NDArray[np.uint32]) -> int:
        """Leave out the block that is not whole, unless it is the only one; number of rows that are left."""
        self._is_whole = False
        self._room = 0
        begin = int(np.argmax(block == block[-1]))
        return begin if begin or self._sequences else len(block)
