"""Memory of a GPU → where emulator and simulator can have it: :func:`relocate`, with all addresses that it holds."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpa_lsp.launches.model import FIRST_ADDRESS, MOST_SPAN_BYTES
from gpa_lsp.launches.write_recording import hold_addresses
from gpa_lsp.record.raw_records import RawLaunch

_ALIGNMENT_BYTES = 512
_GAP_BYTES = 512
_BEGIN = FIRST_ADDRESS + 4096
_POINTER_BYTES = 8

Words = npt.NDArray[np.uint64]


class _Moved:
    """Where each array goes."""

    def __init__(self, arrays: Mapping[int, npt.NDArray[np.uint8]]) -> None:
        self.bases = np.array(sorted(arrays), np.uint64)
        self._sizes = np.array([arrays[base].nbytes for base in sorted(arrays)], np.uint64)
        self.places: dict[int, int] = {}
        end = _BEGIN
        for base in sorted(arrays):
            self.places[base] = end + base % _ALIGNMENT_BYTES
            end = -(-(self.places[base] + arrays[base].nbytes + _GAP_BYTES) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        self.is_possible = end <= FIRST_ADDRESS + MOST_SPAN_BYTES
        self._added = np.array([self.places[int(base)] for base in self.bases], np.uint64) - self.bases

    def move(self, words: Words) -> Words:
        """The words, those that lie in an array moved with it."""
        place = np.searchsorted(self.bases, words, side="right").astype(np.int64) - 1
        known = np.maximum(place, 0)
        inside = (place >= 0) & (words - self.bases[known] < self._sizes[known])
        return np.where(inside, words + self._added[known], words)


def relocate(launch: RawLaunch) -> RawLaunch:
    """Move what holds addresses to where emulator and simulator have memory; what needs no place of its own stays as it is.

    In arrays that hold the address of another, all words that lie in one are taken for addresses.
    """
    bases = np.array(sorted(launch.arrays), np.uint64)
    ends = [base + data.nbytes for base, data in launch.arrays.items()]
    is_placed = not ends or (bases[0] >= FIRST_ADDRESS and max(ends) <= FIRST_ADDRESS + MOST_SPAN_BYTES)
    if is_placed or not hold_addresses(launch.arrays, bases):
        return launch
    moved = _Moved(launch.arrays)
    if not moved.is_possible:
        return launch
    return replace(
        launch,
        arrays={moved.places[base]: _move_array(data, bases, moved) for base, data in launch.arrays.items()},
        variables={moved.places[base]: name for base, name in launch.variables.items()},
        content=_move_words(np.frombuffer(launch.content, np.uint8), moved).tobytes(),
    )


def _move_array(data: npt.NDArray[np.uint8], bases: Words, moved: _Moved) -> npt.NDArray[np.uint8]:
    return _move_words(data, moved) if hold_addresses({0: data}, bases) else data


def _move_words(data: npt.NDArray[np.uint8], moved: _Moved) -> npt.NDArray[np.uint8]:
    whole = data.nbytes // _POINTER_BYTES * _POINTER_BYTES
    return np.concatenate([moved.move(data[:whole].view(np.uint64)).view(np.uint8), data[whole:]])
