"""Whether expressions say of the traced blocks what was counted there: :func:`find_miscounts`."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.emulator.trace import Trace
from gpa_lsp.volumes.contradictions import TOLERANCE_RATIO
from gpa_lsp.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.volumes.expressions import KernelAccesses, LaunchShape, ThreadRegion
from gpa_lsp.volumes.groups import group_accesses
from gpa_lsp.volumes.lane_rows import fill_requests
from gpa_lsp.volumes.model import Contradiction, Rule
from gpa_lsp.volumes.requests import count_requested_sectors
from gpa_lsp.volumes.waves import BlockBox


def find_miscounts(kernel: KernelAccesses, trace: Trace) -> tuple[Contradiction, ...]:
    """Sectors that a kernel's expressions give for the traced blocks, where the trace itself has others.

    Args:
        kernel: recovered from this trace.
        trace: of whole blocks.
    """
    x, y, z = (count * size for count, size in zip(trace.grid, trace.block_threads, strict=True))
    launch = LaunchShape(block=trace.block_threads, grid=trace.grid, updates=(x, y, z))
    everywhere = ThreadRegion(low=(0, 0, 0), high=(x, y, z))
    found = []
    for name, loads in (("loads", True), ("stores and atomics", False)):
        numbers = {
            one.instruction for one in kernel.accesses if one.instruction is not None and one.is_store is not loads
        }
        rows = np.flatnonzero(np.isin(trace.accesses.instruction, np.array(sorted(numbers), dtype=np.int64)))
        counted = _count_traced(trace, rows) * SECTOR_BYTES
        given = SECTOR_BYTES * sum(
            count_requested_sectors(group, entry.array.base_bytes, launch, everywhere, box)
            for entry in group_accesses(kernel)
            for group in entry.groups
            if group.is_store is not loads
            for box in _list_boxes(trace)
        )
        if abs(given - counted) > TOLERANCE_RATIO * max(given, counted):
            least, most = sorted(((given, f"{name} by expressions"), (counted, f"{name} as emulated")))
            # They must be equal, so that the larger one breaks the rule.
            found.append(
                Contradiction(
                    rule=Rule.COUNTED, low_name=most[1], low_bytes=most[0], high_name=least[1], high_bytes=least[0]
                )
            )
    return tuple(found)


def _list_boxes(trace: Trace) -> Iterator[BlockBox]:
    """Each traced block by itself."""
    width, height, _ = trace.grid
    for number in trace.traced_blocks.tolist():
        x, y, z = number % width, number // width % height, number // (width * height)
        yield BlockBox(low=(x, y, z), high=(x + 1, y + 1, z + 1))


def _count_traced(trace: Trace, rows: npt.NDArray[np.intp]) -> int:
    """Distinct sectors of each warp-level access, summed."""
    total = 0
    widths = trace.accesses.bytes[rows].astype(np.int64)
    for width in np.unique(widths).tolist():
        begin = fill_requests(trace, rows[widths == width])
        last = (begin + max(1, width) - 1) // SECTOR_BYTES
        first = begin // SECTOR_BYTES
        most = int((last - first).max(initial=0))
        sectors = np.concatenate([np.minimum(first + index, last) for index in range(most + 1)], axis=1)
        sectors.sort(axis=1)
        total += len(sectors) + int(np.count_nonzero(sectors[:, 1:] != sectors[:, :-1]))
    return total
