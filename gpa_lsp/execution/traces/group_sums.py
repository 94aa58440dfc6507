"""Sums of requests by instruction, space and array: :class:`GroupSums` gives :class:`AccessGroup` ones."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.trace import Accesses
from gpa_lsp.execution.traces.keyed_sums import KeyedSums, compress_keys, count_values, sum_columns
from gpa_lsp.execution.traces.lane_addresses import MOST_ARRAYS, Integers
from gpa_lsp.execution.traces.model import MOST_SEGMENTS, AccessTotals
from gpa_lsp.execution.traces.patterns import LanePattern, Patterns
from gpa_lsp.execution.traces.segments import Touched

_SPACES = 8
_BINS = MOST_SEGMENTS + 1
_PATTERNS = len(LanePattern)
_MOST_STRIDE_BYTES = 1 << 26  # Longer strides are not told apart from no stride
_STRIDES = 2 * _MOST_STRIDE_BYTES
_LISTED_STRIDES = 8
_FIRST_ARRAY = 2  # Numbers in keys: 0 is no array, 1 is outside of all
_ARRAYS = MOST_ARRAYS + _FIRST_ARRAY
_TOTALS = 8
# Of totals, and of both histograms, among the columns that are summed; patterns follow
_ENDS = (_TOTALS, _TOTALS + _BINS, _TOTALS + 2 * _BINS)


class AccessGroup(Struct, frozen=True, kw_only=True):
    """The requests of one instruction in one space, to all arrays or to one."""

    instruction: int  # index of the static instruction
    space: Space  # resolved
    # index of the buffer, or :data:`~gpa_lsp.execution.traces.model.OUTSIDE`; None for all of them together, and in spaces without arrays
    array: int | None
    totals: AccessTotals  # sums
    # requests by :class:`~gpa_lsp.execution.traces.patterns.LanePattern`, most frequent first
    patterns: tuple[tuple[LanePattern, int], ...]
    # (bytes, requests) of contiguous and strided requests, most frequent first; at most eight
    strides: tuple[tuple[int, int], ...]


def build_keys(accesses: Accesses, rows: Integers, array: Integers | None) -> Integers:
    """int64[n], the keys of the groups that rows belong to.

    Args:
        array: of each row, index of its buffer or outside; None where arrays are not told apart.
    """
    number: Integers | int = 0 if array is None else array + _FIRST_ARRAY
    keys: Integers = (accesses.instruction[rows].astype(np.int64) * _SPACES + accesses.space[rows]) * _ARRAYS + number
    return keys


class GroupSums:
    """Sums of one kind of group."""

    def __init__(self) -> None:
        self._sums = KeyedSums(_TOTALS + 2 * _BINS + _PATTERNS)
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
        histograms = [
            count_values(place, values, len(groups), base, times=times)
            for values, base in (
                (np.minimum(touched.lines, MOST_SEGMENTS), _BINS),
                (np.minimum(touched.sectors, MOST_SEGMENTS), _BINS),
                (patterns.pattern, _PATTERNS),
            )
        ]
        totals = sum_columns(place, np.stack(columns, axis=1) * times[:, None], len(groups))
        self._sums.merge(groups, np.concatenate([totals, *histograms], axis=1))
        has_stride = (patterns.stride_bytes != 0) & (np.abs(patterns.stride_bytes) < _MOST_STRIDE_BYTES)
        strides = keys[has_stride] * _STRIDES + patterns.stride_bytes[has_stride] + _MOST_STRIDE_BYTES
        self._strides.add(strides, times[has_stride, None])

    def finish(self) -> tuple[AccessGroup, ...]:
        """All groups, by instruction, space and array."""
        strides = self._read_strides()
        groups = []
        for key, columns in zip(self._sums.keys.tolist(), self._sums.sums, strict=True):
            if key < 0:
                continue
            rest, array = divmod(key, _ARRAYS)
            instruction, space = divmod(rest, _SPACES)
            sums, lines, sectors, patterns = np.split(columns, _ENDS)
            requests, lanes, requested, used, line_count, sector_count, ideal, uniform = sums.tolist()
            totals = AccessTotals(
                requests=requests, lanes=lanes, requested_bytes=requested, used_bytes=used, lines=line_count,
                sectors=sector_count, ideal_sectors=ideal, uniform=uniform, line_histogram=lines,
                sector_histogram=sectors,
            )  # fmt: skip
            groups.append(
                AccessGroup(
                    instruction=instruction,
                    space=Space(space),
                    array=None if array == 0 else array - _FIRST_ARRAY,
                    totals=totals,
                    patterns=tuple(
                        (LanePattern(one), count) for one, count in _sort_pairs(enumerate(patterns.tolist())) if count
                    ),
                    strides=tuple(_sort_pairs(strides.get(key, ()))[:_LISTED_STRIDES]),
                )
            )
        return tuple(groups)

    def _read_strides(self) -> dict[int, list[tuple[int, int]]]:
        """Group → (bytes, requests)."""
        strides: dict[int, list[tuple[int, int]]] = {}
        for key, (count,) in zip(self._strides.keys.tolist(), self._strides.sums.tolist(), strict=True):
            group, value = divmod(key, _STRIDES)
            strides.setdefault(group, []).append((value - _MOST_STRIDE_BYTES, count))
        return strides


def _sort_pairs(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of values and counts, most frequent first."""
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
