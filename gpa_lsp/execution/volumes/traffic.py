"""What a launch asks L2 for, array by array, and what of it must come from DRAM at least: the frame in which the model's estimates lie.

Sectors are asked for by warps, exactly (:mod:`~gpa_lsp.execution.volumes.requests`). A block's L1 asks for a sector once or more often, and never
for more than
its warps do; a wave's blocks get from DRAM what they ask L2 for, and no more; and whatever a launch touches comes from DRAM once at least.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.execution.volumes.canvas import measure_union
from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import LaunchShape, Triple
from gpa_lsp.execution.volumes.footprints import (
    Overlaps,
    Place,
    build_intervals,
    count_exactly,
    count_starts,
    measure_overlaps,
)
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups
from gpa_lsp.execution.volumes.requests import count_requested_sectors
from gpa_lsp.execution.volumes.waves import BlockBox

_MOST_STARTS = 1 << 14  # Places from which accesses go on that are looked at for what DRAM fetches


class ArrayTraffic(Struct, frozen=True, kw_only=True):
    """Sectors of the whole launch in one array."""

    cached: float  # asked for by loads through L1
    bypassing: float  # asked for by loads that L1 does not keep
    atomic: float  # asked for by atomics and reductions
    stored: float  # sent by stores, atomics and reductions
    touched_by_loads: float  # distinct ones that loads, atomics and reductions touch, at most
    touched_by_stores: float  # distinct ones that are written, at most
    fetched: float  # that DRAM gives along with ``touched_by_loads``

    @property
    def read_from_l2(self) -> float:
        """At most, through L1 and past it."""
        return self.cached + self.bypassing + self.atomic


def measure_traffic(
    entry: ArrayGroups, launch: LaunchShape, strides: tuple[int, ...], fetch_bytes: int = SECTOR_BYTES
) -> ArrayTraffic:
    """Of one array; ``strides`` are those of its outer dimensions, and DRAM gives ``fetch_bytes`` at once."""
    whole = BlockBox(low=(0, 0, 0), high=launch.grid)
    place = Place(launch=launch, region=launch.region, base_bytes=entry.array.base_bytes, strides=strides)

    def ask(groups: Iterable[AccessGroup]) -> float:
        base = entry.array.base_bytes
        return sum(count_requested_sectors(group, base, launch, launch.region, whole) for group in groups)

    size = entry.array.size_bytes
    held = float("inf") if size is None else (entry.array.base_bytes % SECTOR_BYTES + size - 1) // SECTOR_BYTES + 1

    def touch(groups: Sequence[AccessGroup], asked: float) -> float:
        exact = count_exactly(groups, place, whole) if any(stride % SECTOR_BYTES for stride in strides) else None
        found = measure_overlaps(groups, place, [whole]).current if exact is None else exact
        return min(float(found), asked, held)

    loads, stores = entry.select(loads=True), entry.select(loads=False)
    cached, bypassing = ask(entry.select_cached()), ask(entry.select_bypassing())
    atomic, stored = ask(group for group in loads if group.is_store), ask(stores)
    read = touch(loads, cached + bypassing + atomic)
    ratio = _find_fetched_ratio(loads, place, launch.grid, fetch_bytes)
    return ArrayTraffic(
        cached=cached,
        bypassing=bypassing,
        atomic=atomic,
        stored=stored,
        touched_by_loads=read,
        touched_by_stores=touch(stores, stored),
        fetched=min(read * ratio, held - read),
    )


def _find_fetched_ratio(groups: Sequence[AccessGroup], place: Place, grid: Triple, fetch_bytes: int) -> float:
    """Sectors that are fetched without being touched, per sector that some accesses touch.

    L2 fetches more than a sector at once where its neighbour is not there either: 64 bytes on the GPUs that were looked at. A kernel that packs
    the halo of rows was measured to read 1.50 times the sectors it needs on a V100: of every second row, the two it needs lie in 64 bytes together.
    """
    unit = fetch_bytes // SECTOR_BYTES
    if unit <= 1:
        return 0.0
    sectors = build_intervals(groups, place, _choose_blocks(groups, place, grid))[:, 0]
    if not len(sectors):
        return 0.0
    fetched = np.stack([sectors[:, 0] // unit, (sectors[:, 1] - 1) // unit + 1], axis=1)
    return measure_union(fetched) * unit / measure_union(sectors) - 1


def _choose_blocks(groups: Sequence[AccessGroup], place: Place, grid: Triple) -> BlockBox:
    """As many blocks as can be looked at; axes along which blocks are far apart are cut first."""
    steps = [group.find_block_steps(place.launch.block) for group in groups]
    far = sorted(range(3), key=lambda axis: -max((abs(step[axis]) for step in steps), default=0))
    high = list(grid)
    for axis in far:
        while high[axis] > 1 and _count(groups, place, high) > _MOST_STARTS:
            high[axis] = (high[axis] + 1) // 2
    return BlockBox(low=(0, 0, 0), high=(high[0], high[1], high[2]))


def _count(groups: Sequence[AccessGroup], place: Place, high: Sequence[int]) -> float:
    blocks = BlockBox(low=(0, 0, 0), high=(high[0], high[1], high[2]))
    return sum((len(group.constants_bytes) * count_starts(group, place, blocks) for group in groups), start=0)


def bound_footprint(found: Overlaps, most: float, least: float) -> Overlaps:
    """A wave's footprint, no larger than what its blocks ask for, and no smaller than its part of what the launch touches.

    What it shares with others shrinks with it. The least holds of the mean wave, which the one that was measured stands for.
    """
    if found.current <= most:
        return replace(found, current=max(found.current, min(least, most)))
    ratio = most / found.current
    return Overlaps(current=most, before=found.before, shared=tuple(one * ratio for one in found.shared))
