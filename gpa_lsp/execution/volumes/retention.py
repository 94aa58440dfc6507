"""Sectors that L2 still holds when a neighbour asks for them: :func:`find_retention`.

Time is counted in lifetimes of a block. Blocks start one after another, a GPU full of them per lifetime, and every touch of a sector falls anywhere
within the life of the block that makes it; in long programs, within that part of it that the program's order leaves open
(:func:`add_delays`); with a loop through memory, within the iteration that makes it, and then blocks run in step: they start a GPU full at a time.
So the touches of a sector that neighbours share are spread over time by where these blocks stand in the grid, and one of them
misses when none of the others came shortly before.

L2's size decides how shortly. What passes through L2 in a time is the sum of all misses and stores in it: the working-set theory of P. J.
Denning (The Working Set Model for Program Behavior, 1968; the rate of misses is the slope of the working set). L2 is set-associative, and what passes
falls into its sets by a hash: a sector goes when as many others as a set has ways have fallen into its own, which is a matter of chance, a
fourth of L2's size to either side (A. J. Smith, A Comparative Study of Set Associative Memory Mapping Algorithms, 1978).

L2 keeps as much as its size, which is not fitted: measured loads from DRAM of a V100 (3D stars of ranges 4 and 2, folded along z and not, 2D boxes
of ranges 0 to 9) ask for 0.9 to 1.15 of it, each family by itself. How many ways its sets have was chosen with these families; from 12 to 32 none of
them is off by more than 5 %. What remains: folded stars are predicted 3 % too low, and of stars of range 4 the five shapes that are 4 to 16 wide
and 32 or 64 layers high 4 to 26 % too high, the other 35 by 1.9 %. Those five keep 2.5 to 5.4 MiB for neighbours along y that come a fourth of a
life to a whole one later, as if the touches of both lay closer to each other than anywhere in two lives.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import ceil, floor, prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.execution.accesses.l2_traffic import L2Cache, Numbers
from gpa_lsp.execution.volumes.expressions import BlockBox, LaunchShape, Triple, count_threads
from gpa_lsp.execution.volumes.footprints import Place, measure_overlaps
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups, Integers
from gpa_lsp.execution.volumes.model import SharedLoads

_MOST_TOUCHES = 12  # Touches of one sector that are followed; of more, gaps are as wide as between these
_PLACES = 12  # Places within a life at which a touch may fall
_PHASES = 4  # Where in a wave a set of neighbours may begin, for blocks that run in step
_SHIFTS = tuple(index / 4 for index in range(-4, 5))
_GROWTH = 2.0
_FAR_TIMES = 32


class Flow(Struct, frozen=True, kw_only=True):
    """Data that runs through L2 during a launch."""

    shared: tuple[SharedLoads, ...]  # what neighbours share
    once_bytes: float  # per update that is loaded when all that is shared is loaded once
    stored_bytes: float  # per update that is stored
    running: int  # blocks that run at once
    blocks: int  # of the launch
    updates_per_block: float  # mean
    iterations: int  # of the loop through memory; 1 without any
    window_ratio: float = 1.0  # the part of a life, without a loop, within which a touch may fall

    @property
    def spread(self) -> float:
        """The part of a life within which a touch may fall."""
        return 1 / self.iterations if self.iterations > 1 else self.window_ratio

    @property
    def spacings(self) -> list[float]:
        """Distances of neighbours' touches, in lifetimes of a block."""
        ordered = 0.0 if self.iterations > 1 else 1 - self.window_ratio
        return [abs(one.spacing_blocks / self.running + ordered * one.delay_ratio) for one in self.shared]


class Retention(Struct, frozen=True, kw_only=True):
    """Misses that follow from how long L2 keeps a sector."""

    missed: tuple[float, ...]  # of each of the shared loads, the part that comes from DRAM again, 0..1
    # that pass through L2 from a block to the neighbour it shares with, for each of them
    needed_bytes: tuple[float, ...]


def find_retention(flow: Flow, cache: L2Cache) -> Retention:
    """Find the part of shared loads that misses L2."""
    spacings = flow.spacings
    times = _list_times(spacings, flow)
    ratios = [
        _find_ratios(one.apart_bytes / one.together_bytes if one.together_bytes else 1.0, spacing, flow, times)
        for one, spacing in zip(flow.shared, spacings, strict=True)
    ]
    rate = np.full(len(times), flow.once_bytes)
    for one, ratio in zip(flow.shared, ratios, strict=True):
        rate += one.again_bytes * ratio
    steps = np.diff(times) * ((rate[1:] + rate[:-1]) / 2 + flow.stored_bytes)
    passed = np.concatenate([[0.0], np.cumsum(steps)]) * flow.running * flow.updates_per_block
    at_bytes, weights = cache.list_evictions()
    stays = np.interp(at_bytes, passed, times)
    return Retention(
        missed=tuple(float(weights @ np.interp(stays, times, ratio)) for ratio in ratios),
        needed_bytes=tuple(float(np.interp(spacing, times, passed)) for spacing in spacings),
    )


def _list_times(spacings: Sequence[float], flow: Flow) -> Numbers:
    """Times at which rates are found: dense where they change."""
    spread = flow.spread
    longest = flow.blocks / flow.running + 2.0
    found = {0.0, *(spread * index / _PLACES for index in range(1, _PLACES + 1))}
    found |= {index / _PLACES for index in range(1, _PLACES + 1)}
    for spacing in spacings:
        found |= {spacing + spread * shift for shift in _SHIFTS}
        if flow.iterations > 1:
            found |= {floor(spacing) - spread, ceil(spacing) + spread}
    far = 1.0
    for _ in range(_FAR_TIMES):
        far *= _GROWTH
        found.add(min(far, longest))
    return np.array(sorted(time for time in found if 0 <= time <= longest))


def _find_ratios(touches: float, spacing: float, flow: Flow, times: Numbers) -> Numbers:
    """Part of shared loads that misses if a sector stays for each of ``times``; a sector has ``touches`` on average."""
    if touches <= 1:
        return np.zeros(len(times))
    # Neighbours a lifetime apart and more come one after the other: each gap is as between two.
    most = _MOST_TOUCHES if spacing < 1 else 2
    fewer = min(most, floor(touches))
    more = min(most, fewer + 1)
    rest = 0.0 if more == fewer else touches - fewer
    is_in_step, key = flow.iterations > 1, tuple(times.tolist())
    again = sum(
        weight * (count - 1) * _count_gaps(count, spacing, flow.spread, key, is_in_step=is_in_step)
        for weight, count in ((1 - rest, fewer), (rest, more))
        if weight and count > 1
    )
    total = (1 - rest) * (fewer - 1) + rest * (more - 1)
    ratios: Numbers = np.asarray(again / total)
    return ratios


@lru_cache(maxsize=256)
def _count_gaps(touches: int, spacing: float, spread: float, times: tuple[float, ...], *, is_in_step: bool) -> Numbers:
    """Part of a sector's touches, the first left out, that no other touch precedes by less than each time.

    Touch i falls anywhere within ``spread`` of lifetime i · spacing; where blocks run in step, they start at whole lifetimes.
    """
    order = np.arange(touches)
    starts = [order * spacing]
    if is_in_step:
        starts = [np.floor((index + 0.5) / _PHASES + order * spacing) for index in range(_PHASES)]
    places = (np.arange(_PLACES) + 0.5) / _PLACES * spread
    stay = np.array(times)[:, np.newaxis, np.newaxis, np.newaxis]
    missed = np.zeros(len(times))
    for begin in starts:
        # Axes: time, touch, other touch, place.
        touch = begin[:, np.newaxis, np.newaxis] + places
        low, high = begin[:, np.newaxis], begin[:, np.newaxis] + spread
        within = np.clip(np.minimum(touch, high) - np.maximum(touch - stay, low), 0.0, spread) / spread
        within[:, order, order, :] = 0.0
        missed += np.prod(1 - within, axis=2).mean(axis=2).sum(axis=1)
    gaps: Numbers = np.clip((missed / len(starts) - 1) / (touches - 1), 0.0, 1.0)
    return gaps


# Delays between neighbours that load the same: :func:`add_delays`.
#
# A thread of a long program goes through memory in the program's order: rows of a large box, one after the other. Its
# neighbours along x load what they share at the same point of theirs, the next row of blocks loads it earlier, and
# neither comes at any time of a life. Loads that are under way together have no order.

# Loads of a thread whose order tells nothing, since the compiler moves loads ahead and warps of a block are not in step. Assumed: stars whose threads
# load up to 40 times are known to touch what they share at any time, boxes of 121 loads and more are known not to.
LOADS_UNDER_WAY = 64

_AXES = "xyz"


def count_loads(entries: Iterable[ArrayGroups]) -> int:
    """Loads in the program of a thread; of loops those of one iteration."""
    return sum(len(group.constants_bytes) for entry in entries for group in entry.select(loads=True))


def find_window_ratio(loads_per_thread: int) -> float:
    """The part of a program within which loads have no order, 0..1.

    >>> find_window_ratio(25), find_window_ratio(256)
    (1.0, 0.25)
    """
    return min(1.0, LOADS_UNDER_WAY / max(1, loads_per_thread))


def add_delays(shared: Iterable[SharedLoads], entry: ArrayGroups, launch: LaunchShape) -> tuple[SharedLoads, ...]:
    """The shared loads of an array, with the delay of each neighbour."""
    group = max(entry.select(loads=True), key=lambda one: len(one.constants_bytes), default=None)
    found = tuple(shared)
    if group is None or not found:
        return found
    sectors, first = _find_first_touches(group, launch.block)
    delays = [_find_delay(sectors, first, step) for step in group.find_block_steps(launch.block)]
    return tuple(replace(one, delay_ratio=delays[_AXES.index(one.axis)]) for one in found)


def _find_first_touches(group: AccessGroup, block: Triple) -> tuple[Integers, Integers]:
    """The sectors of a block, ascending, and the first access to each, in the order of the program."""
    x, y, z = (np.arange(size) * step for size, step in zip(block, group.find_thread_steps(), strict=True))
    threads = (x[:, None, None] + y[None, :, None] + z[None, None, :]).reshape(-1)
    sectors = (group.constants_bytes[:, None] + np.unique(threads // SECTOR_BYTES * SECTOR_BYTES)) // SECTOR_BYTES
    found, place = np.unique(sectors.reshape(-1), return_index=True)
    return found, place // sectors.shape[1]


def _find_delay(sectors: Integers, first: Integers, step_bytes: int) -> float:
    """Delay of a neighbour so far behind, as a part of the program; 0 where nothing is shared."""
    own = sectors - step_bytes // SECTOR_BYTES
    place = np.minimum(np.searchsorted(sectors, own), len(sectors) - 1)
    is_shared = sectors[place] == own
    if not step_bytes or not is_shared.any():
        return 0.0
    program = int(first.max()) + 1
    return float((first[place][is_shared] - first[is_shared]).mean()) / program


# Loads that neighbours share, array by array: :func:`find_sharing`.
#
# Sets of blocks are taken as the GPU runs them: a block, as many along x as run at once, a whole row, a layer, the
# grid. What a larger set loads, each sector once, is less than what its parts load by themselves, and the difference
# is loaded several times, by blocks that start a known number of blocks apart. Whether L2 still has it the second time
# is for :func:`find_retention`.

# Along x, sets of blocks beyond a wave grow by this factor: rows of an array may be laid out along x alone
_WINDOW_GROWTH = 8


def find_sharing(
    entry: ArrayGroups, place: Place, running: int, *, apart_sectors: float, together_sectors: float
) -> tuple[SharedLoads, ...]:
    """Loads of one array that the blocks of a launch share, from neighbouring blocks up to the whole grid."""
    groups = entry.select(loads=True)
    threads = place.region.thread_count
    if not groups or not threads:
        return ()
    per_thread = SECTOR_BYTES / threads / place.launch.updates_per_thread
    least, apart = together_sectors * per_thread, apart_sectors * per_thread
    found = []
    for axis, spacing, box in _list_steps(place.launch, running):
        together = least
        if box != _whole(place.launch):
            counted = count_threads(box, place.launch.block, place.region)
            if not counted:
                continue
            loaded = measure_overlaps(groups, place, [box]).current * SECTOR_BYTES
            together = loaded / counted / place.launch.updates_per_thread
        together = min(apart, max(least, together))
        if together < apart:
            found.append(SharedLoads(axis=axis, spacing_blocks=spacing, apart_bytes=apart, together_bytes=together))
        apart = together
    return tuple(found)


def count_iterations(groups: tuple[AccessGroup, ...]) -> int:
    """Iterations of the longest loop nest that goes through memory, 1 without any."""
    return max((prod(loop.trips for loop in group.loops if loop.step_bytes) for group in groups), default=1)


def _list_steps(launch: LaunchShape, running: int) -> Iterator[tuple[str, float, BlockBox]]:
    """Sets of blocks that are put together of smaller ones: the axis, blocks that start between two neighbouring parts, and the set."""
    width, height, depth = launch.grid
    middle_y, middle_z = height // 2, depth // 2
    parts, size = 1, min(width, max(2, running))
    while width > 1:
        low = (width - size) // 2
        box = BlockBox(low=(low, middle_y, middle_z), high=(low + size, middle_y + 1, middle_z + 1))
        yield "x", 1.0 if parts == 1 else (parts * size) ** 0.5, box
        if size == width:
            break
        parts, size = size, min(width, size * _WINDOW_GROWTH)
    if height > 1:
        yield "y", float(width), BlockBox(low=(0, 0, middle_z), high=(width, height, middle_z + 1))
    # The last step, from what was put together so far to the whole grid, stands for layers; it is there for a single block, too.
    yield "z", float(width * height), _whole(launch)


def _whole(launch: LaunchShape) -> BlockBox:
    return BlockBox(low=(0, 0, 0), high=launch.grid)
