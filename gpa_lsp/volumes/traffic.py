"""What a launch asks L2 for, array by array, and what of it must come from DRAM at least: the frame in which the model's estimates lie.

Sectors are asked for by warps, exactly (:mod:`~gpa_lsp.volumes.requests`). A block's L1 asks for a sector once or more often, and never for more than
its warps do; a wave's blocks get from DRAM what they ask L2 for, and no more; and whatever a launch touches comes from DRAM once at least.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.volumes.expressions import LaunchShape
from gpa_lsp.volumes.footprints import Overlaps, Place, count_exactly, measure_overlaps
from gpa_lsp.volumes.groups import AccessGroup, ArrayGroups
from gpa_lsp.volumes.requests import count_requested_sectors
from gpa_lsp.volumes.waves import BlockBox


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayTraffic:
    """Sectors of the whole launch in one array.

    Attributes:
        cached: asked for by loads through L1.
        bypassing: asked for by loads that L1 does not keep.
        atomic: asked for by atomics and reductions.
        stored: sent by stores, atomics and reductions.
        touched_by_loads: distinct ones that loads, atomics and reductions touch, at most.
        touched_by_stores: distinct ones that are written, at most.
    """

    cached: float
    bypassing: float
    atomic: float
    stored: float
    touched_by_loads: float
    touched_by_stores: float

    @property
    def read_from_l2(self) -> float:
        """At most, through L1 and past it."""
        return self.cached + self.bypassing + self.atomic


def measure_traffic(entry: ArrayGroups, launch: LaunchShape, strides: tuple[int, ...]) -> ArrayTraffic:
    """Of one array; ``strides`` are those of its outer dimensions."""
    whole = BlockBox(low=(0, 0, 0), high=launch.grid)
    place = Place(launch=launch, region=launch.region, base_bytes=entry.array.base_bytes, strides=strides)

    def ask(groups: Iterable[AccessGroup]) -> float:
        base = entry.array.base_bytes
        return sum(count_requested_sectors(group, base, launch, launch.region, whole) for group in groups)

    def touch(groups: Sequence[AccessGroup], asked: float) -> float:
        size = entry.array.size_bytes
        held = float("inf") if size is None else (entry.array.base_bytes % SECTOR_BYTES + size - 1) // SECTOR_BYTES + 1
        exact = count_exactly(groups, place, whole) if any(stride % SECTOR_BYTES for stride in strides) else None
        found = measure_overlaps(groups, place, [whole]).current if exact is None else exact
        return min(float(found), asked, held)

    loads, stores = entry.select(loads=True), entry.select(loads=False)
    cached, bypassing = ask(entry.select_cached()), ask(entry.select_bypassing())
    atomic, stored = ask(group for group in loads if group.is_store), ask(stores)
    return ArrayTraffic(
        cached=cached,
        bypassing=bypassing,
        atomic=atomic,
        stored=stored,
        touched_by_loads=touch(loads, cached + bypassing + atomic),
        touched_by_stores=touch(stores, stored),
    )


def bound_footprint(found: Overlaps, most: float, least: float) -> Overlaps:
    """A wave's footprint, no larger than what its blocks ask for, and no smaller than its part of what the launch touches.

    What it shares with others shrinks with it. The least holds of the mean wave, which the one that was measured stands for.
    """
    if found.current <= most:
        return replace(found, current=max(found.current, min(least, most)))
    ratio = most / found.current
    return Overlaps(current=most, before=found.before, shared=tuple(one * ratio for one in found.shared))
