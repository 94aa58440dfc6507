"""What blocks load that their neighbours load too, array by array: :func:`find_sharing`.

Sets of blocks are taken as the GPU runs them: a block, as many along x as run at once, a whole row, a layer, the grid. What a larger set loads, each
sector once, is less than what its parts load by themselves, and the difference is loaded several times, by blocks that start a known number of
blocks apart. Whether L2 still has it the second time is for :mod:`~gpa_lsp.execution.volumes.retention`.
"""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import LaunchShape
from gpa_lsp.execution.volumes.footprints import Place, measure_overlaps
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups
from gpa_lsp.execution.volumes.model import SharedLoads
from gpa_lsp.execution.volumes.waves import BlockBox

# Along x, sets of blocks beyond a wave grow by this factor: rows of an array may be laid out along x alone
_WINDOW_GROWTH = 8


class _Step(Struct, frozen=True, kw_only=True):
    """A set of blocks that is made of smaller ones."""

    axis: str  # along which they are put together
    spacing: float  # blocks that start between two neighbouring parts
    box: BlockBox  # the set, in the grid's midst


def find_sharing(
    entry: ArrayGroups, place: Place, running: int, *, apart_sectors: float, together_sectors: float
) -> tuple[SharedLoads, ...]:
    """What the blocks of a launch load of one array more than once, from blocks next to each other to the whole grid."""
    groups = entry.select(loads=True)
    threads = place.region.thread_count
    if not groups or not threads:
        return ()
    per_thread = SECTOR_BYTES / threads / place.launch.updates_per_thread
    least, apart = together_sectors * per_thread, apart_sectors * per_thread
    found = []
    for step in _list_steps(place.launch, running):
        together = least
        if step.box != _whole(place.launch):
            counted = _count_threads(step.box, place)
            if not counted:
                continue
            loaded = measure_overlaps(groups, place, [step.box]).current * SECTOR_BYTES
            together = loaded / counted / place.launch.updates_per_thread
        together = min(apart, max(least, together))
        if together < apart:
            found.append(
                SharedLoads(axis=step.axis, spacing_blocks=step.spacing, apart_bytes=apart, together_bytes=together)
            )
        apart = together
    return tuple(found)


def count_iterations(groups: tuple[AccessGroup, ...]) -> int:
    """Iterations of the longest loop nest that goes through memory, 1 without any."""
    trips = 1
    for group in groups:
        own = 1
        for loop in group.loops:
            own *= loop.trips if loop.step_bytes else 1
        trips = max(trips, own)
    return trips


def _list_steps(launch: LaunchShape, running: int) -> Iterator[_Step]:
    width, height, depth = launch.grid
    middle_y, middle_z = height // 2, depth // 2
    parts, size = 1, min(width, max(2, running))
    while width > 1:
        low = (width - size) // 2
        box = BlockBox(low=(low, middle_y, middle_z), high=(low + size, middle_y + 1, middle_z + 1))
        yield _Step(axis="x", spacing=1.0 if parts == 1 else (parts * size) ** 0.5, box=box)
        if size == width:
            break
        parts, size = size, min(width, size * _WINDOW_GROWTH)
    if height > 1:
        row = BlockBox(low=(0, 0, middle_z), high=(width, height, middle_z + 1))
        yield _Step(axis="y", spacing=float(width), box=row)
    # The last step, from what was put together so far to the whole grid, stands for layers; it is there for a single block, too.
    yield _Step(axis="z", spacing=float(width * height), box=_whole(launch))


def _whole(launch: LaunchShape) -> BlockBox:
    return BlockBox(low=(0, 0, 0), high=launch.grid)


def _count_threads(box: BlockBox, place: Place) -> int:
    total = 1
    for low, high, size, least, most in zip(
        box.low, box.high, place.launch.block, place.region.low, place.region.high, strict=True
    ):
        total *= max(0, min(high * size, most) - max(low * size, least))
    return total
