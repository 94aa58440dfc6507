"""Pages of 2 MiB a wave touches: a measure of the load on the TLB, which no fit uses.

Source: the authors' program of May 2022; Ernst et al. (2022), section 6, names it as a candidate for a further limiter.
"""

from collections.abc import Sequence

import numpy as np

from gpa_lsp.analyses.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.analyses.volumes.distinct import list_distinct
from gpa_lsp.analyses.volumes.expressions import LaunchShape, ThreadRegion
from gpa_lsp.analyses.volumes.footprints import Place, build_intervals
from gpa_lsp.analyses.volumes.groups import ArrayGroups, Integers
from gpa_lsp.analyses.volumes.waves import BlockBox, Wave

PAGE_BYTES = 2 << 20


def count_wave_pages(entries: Sequence[ArrayGroups], launch: LaunchShape, wave: Wave) -> int:
    """Distinct pages, by array, that as many blocks as a wave has touch at the grid's start."""
    x, y, z = (count * size for count, size in zip(wave.start, launch.block, strict=True))
    everywhere = ThreadRegion(low=(0, 0, 0), high=(x, y, z))
    pages = 0
    for entry in entries:
        place = Place(launch=launch, region=everywhere, base_bytes=entry.array.base_bytes)
        intervals = build_intervals(entry.groups, place, BlockBox(low=(0, 0, 0), high=wave.start))
        pages += _count_union(intervals[:, 0] * SECTOR_BYTES)
    return pages


def _count_union(spans: Integers) -> int:
    if not len(spans):
        return 0
    first, last = spans[:, 0] // PAGE_BYTES, (spans[:, 1] - 1) // PAGE_BYTES
    low = int(first.min())
    length = int(last.max()) - low + 2
    if length > 64 * len(spans):
        return len(list_distinct(np.concatenate([first, last])))
    opened = np.bincount(first - low, minlength=length)
    closed = np.bincount(last - low + 1, minlength=length)
    return int(np.count_nonzero(np.cumsum(opened - closed)))
