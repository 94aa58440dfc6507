"""Sums of requests by instruction, space and array: :class:`GroupSums` gives :class:`AccessGroup` ones."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import Accesses
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.keyed_sums import KeyedSums, compress_keys, count_pairs, sum_columns
from gpa_lsp.traces.lane_addresses import MOST_ARRAYS, Integers
from gpa_lsp.traces.model import MOST_SEGMENTS, AccessTotals
from gpa_lsp.traces.patterns import LanePattern, Patterns
from gpa_lsp.traces.segments import Touched

_SPACES = 8
_BINS = MOST_SEGMENTS + 1
_PATTERNS = len(LanePattern)
_MOST_STRIDE_BYTES = 1 << 26
"""Longer strides are not told apart from no stride."""
_STRIDES = 2 * _MOST_STRIDE_BYTES
_LISTED_STRIDES = 8
_FIRST_ARRAY = 2
"""Numbers in keys: 0 is no array, 1 is outside of all."""
_ARRAYS = MOST_ARRAYS + _FIRST_ARRAY


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessGroup:
    """The requests of one instruction in one space, to all arrays or to one.

    Attributes:
        instruction: index of the static instruction.
        space: resolved.
        array: index of the buffer, or :data:`~gpa_lsp.traces.model.OUTSIDE`; None for all of them together, and in spaces without
            arrays.
        totals: sums.
        patterns: requests by :class:`~gpa_lsp.traces.patterns.LanePattern`, most frequent first.
        strides: (bytes, requests) of contiguous and strided requests, most frequent first; at most eight.
    """

    instruction: int
    space: Space
    array: int | None
    totals: AccessTotals
    patterns: tuple[tuple[LanePattern, int], ...]
    strides: tuple[tuple[int, int], ...]


def build_keys(accesses: Accesses, rows: Integers, array: Integers | None) -> Integers:
    """int64[n], the keys of the groups that rows belong to.

    Args:
        accesses: the trace's.
        rows: which.
        array: of each row, index of its buffer or outside; None where arrays are not told apart.
    """
    number: Integers | int = 0 if array is None else array + _FIRST_ARRAY
    keys: Integers = (accesses.instruction[rows].astype(np.int64) * _SPACES + accesses.space[rows]) * _ARRAYS + number
    return keys


class GroupSums:
    """Sums of one kind of group."""

    def __init__(self) -> None:
        self._sums = KeyedSums(8)
        self._lines = KeyedSums(1)
        self._sectors = KeyedSums(1)
        self._patterns = KeyedSums(1)
        self._strides = KeyedSums(1)

    def add(
        self,
        keys: Integers,
        width: npt.NDArray[np.uint8],
        counts: Integers,
        touched: Touched,
        *,
        patterns: Patterns,
        times: Integers | None = None,
    ) -> None:
        """Add requests, or parts of them.

        Args:
            keys: int64[n], of :func:`build_keys`.
            width: uint8[n], bytes per lane.
            counts: int64[n], their active lanes.
            touched: what they touch.
            patterns: of their lanes.
            times: int64[n], how often each is there; None for once.
        """
        if len(keys) == 0:
            return
        groups, place = compress_keys(keys)
        is_uniform = (touched.distinct == 1) & (counts > 1)
        times = np.ones(len(keys), dtype=np.int64) if times is None else times
        columns = (
            np.ones(len(keys), dtype=np.int64), counts, counts * width, touched.used_bytes, touched.lines,
            touched.sectors, touched.ideal_sectors, is_uniform.astype(np.int64),
        )  # fmt: skip
        self._sums.add(groups, sum_columns(place, np.stack(columns, axis=1) * times[:, None], len(groups)))
        for histogram, segments in ((self._lines, touched.lines), (self._sectors, touched.sectors)):
            count_pairs(histogram, groups, place, np.minimum(segments, MOST_SEGMENTS), _BINS, times=times)
        count_pairs(self._patterns, groups, place, patterns.pattern, _PATTERNS, times=times)
        has_stride = (patterns.stride_bytes != 0) & (np.abs(patterns.stride_bytes) < _MOST_STRIDE_BYTES)
        strides = keys[has_stride] * _STRIDES + patterns.stride_bytes[has_stride] + _MOST_STRIDE_BYTES
        self._strides.add(strides, times[has_stride, None])

    def finish(self) -> tuple[AccessGroup, ...]:
        """All groups, by instruction, space and array."""
        lines, sectors = _read_histograms(self._lines), _read_histograms(self._sectors)
        patterns, strides = _read_pairs(self._patterns, _PATTERNS), _read_pairs(self._strides, _STRIDES)
        empty = np.zeros(_BINS, dtype=np.int64)
        groups = []
        for key, sums in zip(self._sums.keys.tolist(), self._sums.sums.tolist(), strict=True):
            if key < 0:
                continue
            rest, array = divmod(key, _ARRAYS)
            instruction, space = divmod(rest, _SPACES)
            requests, lanes, requested, used, line_count, sector_count, ideal, uniform = sums
            totals = AccessTotals(
                requests=requests, lanes=lanes, requested_bytes=requested, used_bytes=used, lines=line_count,
                sectors=sector_count, ideal_sectors=ideal, uniform=uniform, line_histogram=lines.get(key, empty),
                sector_histogram=sectors.get(key, empty),
            )  # fmt: skip
            groups.append(
                AccessGroup(
                    instruction=instruction,
                    space=Space(space),
                    array=None if array == 0 else array - _FIRST_ARRAY,
                    totals=totals,
                    patterns=tuple((LanePattern(one), count) for one, count in patterns.get(key, ())),
                    strides=tuple(
                        (one - _MOST_STRIDE_BYTES, count) for one, count in strides.get(key, ())[:_LISTED_STRIDES]
                    ),
                )
            )
        return tuple(groups)


def _read_histograms(sums: KeyedSums) -> dict[int, Integers]:
    histograms: dict[int, Integers] = {}
    for key, (count,) in zip(sums.keys.tolist(), sums.sums.tolist(), strict=True):
        group, bin_number = divmod(key, _BINS)
        histograms.setdefault(group, np.zeros(_BINS, dtype=np.int64))[bin_number] = count
    return histograms


def _read_pairs(sums: KeyedSums, base: int) -> dict[int, list[tuple[int, int]]]:
    """Group → (value, count), most frequent first."""
    pairs: dict[int, list[tuple[int, int]]] = {}
    for key, (count,) in zip(sums.keys.tolist(), sums.sums.tolist(), strict=True):
        group, value = divmod(key, base)
        pairs.setdefault(group, []).append((value, count))
    return {group: sorted(found, key=lambda pair: (-pair[1], pair[0])) for group, found in pairs.items()}
