"""Memory of a GPU → where emulator and simulator can have it: :func:`relocate`, with all addresses that it holds."""

from dataclasses import replace

import numpy as np

from gpa_lsp.launches.model import FIRST_ADDRESS, MOST_SPAN_BYTES
from gpa_lsp.launches.moved_memory import MovedMemory
from gpa_lsp.launches.write_recording import hold_addresses
from gpa_lsp.record.raw_records import RawLaunch

_ALIGNMENT_BYTES = 512
_GAP_BYTES = 512
_BEGIN = FIRST_ADDRESS + 4096
_END = FIRST_ADDRESS + MOST_SPAN_BYTES


def relocate(launch: RawLaunch) -> RawLaunch:
    """Move what holds addresses to where emulator and simulator have memory; what needs no place of its own stays as it is."""
    arrays = launch.arrays
    bases = np.array(sorted(arrays), np.uint64)
    if all(FIRST_ADDRESS <= base <= base + data.nbytes <= _END for base, data in arrays.items()):
        return launch
    if not hold_addresses(arrays, bases):
        return launch
    places: dict[int, int] = {}
    end = _BEGIN
    for base in sorted(arrays):
        places[base] = end + base % _ALIGNMENT_BYTES
        end = -(-(places[base] + arrays[base].nbytes + _GAP_BYTES) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    if end > _END:
        return launch
    moved = MovedMemory({base: (data.nbytes, places[base]) for base, data in arrays.items()})
    return replace(
        launch,
        arrays={places[base]: moved.move_content(data) for base, data in arrays.items()},
        variables={places[base]: name for base, name in launch.variables.items()},
        content=moved.move_parameters(np.frombuffer(launch.content, np.uint8)).tobytes(),
    )
