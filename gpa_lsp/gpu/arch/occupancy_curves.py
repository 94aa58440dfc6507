"""Resident warps over one property of a block, all others unchanged: over its size, the registers of a thread, its shared memory.

The curves are steps: :class:`OccupancyCurve` holds the places where they jump. Nsight Compute prints the same curves, point by point.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, find_occupancy, list_shared_ends


class OccupancyCurve(Struct, frozen=True, kw_only=True):
    """Resident warps over one number."""

    xs: tuple[int, ...]  # where the curve may jump, ascending; ``found[i]`` holds from ``xs[i]`` on
    found: tuple[Occupancy, ...]  # what an SM holds there
    end: int  # the last x there is

    def at(self, x: int) -> Occupancy:
        """What an SM holds at ``x``.

        Raises:
            ValueError: before the first or after the last x.
        """
        if not self.xs[0] <= x <= self.end:
            raise ValueError(f"the curve goes from {self.xs[0]} to {self.end}, not to {x}")
        return self.found[bisect_right(self.xs, x) - 1]

    def list_jumps(self) -> tuple[tuple[int, int, Occupancy], ...]:
        """First x, last x and occupancy of each part on which as many warps fit."""
        starts = [0, *(i for i in range(1, len(self.xs)) if self._warps(i) != self._warps(i - 1))]
        ends = [self.xs[start] - 1 for start in starts[1:]] + [self.end]
        return tuple((self.xs[start], end, self.found[start]) for start, end in zip(starts, ends, strict=True))

    def _warps(self, index: int) -> int:
        return self.found[index].warps_per_sm


def build_block_size_curve(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None, *, scaled_bytes: int = 0
) -> OccupancyCurve:
    """Over the threads of a block, from 1 to the most a block can have.

    Args:
        architecture: whose rules.
        block: as it is now.
        carveout_bytes: as in :func:`~gpa_lsp.gpu.arch.occupancy.find_occupancy`.
        scaled_bytes: the part of the block's shared memory that grows and shrinks with its threads; 0 where all of it stays as it is.

    Raises:
        ValueError: as :func:`~gpa_lsp.gpu.arch.occupancy.find_occupancy`.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=256, registers_per_thread=40, shared_bytes=0)
    >>> curve = build_block_size_curve(find_architecture((8, 0)), block)
    >>> curve.at(256).warps_per_sm, curve.at(32).warps_per_sm, curve.at(1024).warps_per_sm
    (48, 32, 32)
    """
    warp = architecture.sm.warp_size_threads.value
    most = architecture.occupancy.max_threads_per_block.value

    def shape(threads: int) -> BlockShape:
        full = -(-threads // warp) * warp
        shared = block.shared_bytes - scaled_bytes + scaled_bytes * full // block.threads
        return replace(block, threads=full, shared_bytes=shared)

    return _trace(architecture, shape, range(1, most + 1, warp), most, carveout_bytes)


def build_register_curve(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> OccupancyCurve:
    """Over the registers of a thread, from 1 to the most a thread can name.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=128, registers_per_thread=64, shared_bytes=0)
    >>> curve = build_register_curve(find_architecture((7, 0)), block)
    >>> [(first, last, found.warps_per_sm) for first, last, found in curve.list_jumps()][:3]
    [(1, 32, 64), (33, 40, 48), (41, 48, 40)]
    """
    rules = architecture.occupancy
    step = max(1, rules.register_allocation_unit_registers.value // architecture.sm.warp_size_threads.value)
    most = rules.max_registers_per_thread.value
    xs = range(1, most + 1, step)
    return _trace(architecture, lambda count: replace(block, registers_per_thread=count), xs, most, carveout_bytes)


def build_shared_curve(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> OccupancyCurve:
    """Over the bytes of shared memory of a block (the driver's part comes on top), from 0 to the most a block can have.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=256, registers_per_thread=16, shared_bytes=0)
    >>> curve = build_shared_curve(find_architecture((8, 6)), block, 8192)
    >>> [(first, last, found.warps_per_sm) for first, last, found in curve.list_jumps()][:3]
    [(0, 256, 48), (257, 512, 40), (513, 1024, 32)]
    """
    most = architecture.occupancy.max_shared_per_block_bytes.value
    xs = [0, *(end + 1 for end in list_shared_ends(architecture, carveout_bytes) if end < most)]
    return _trace(architecture, lambda size: replace(block, shared_bytes=size), xs, most, carveout_bytes)


def _trace(
    architecture: Architecture,
    shape: Callable[[int], BlockShape],
    xs: Iterable[int],
    end: int,
    carveout_bytes: int | None,
) -> OccupancyCurve:
    places = tuple(xs)
    found = tuple(find_occupancy(architecture, shape(x), carveout_bytes) for x in places)
    return OccupancyCurve(xs=places, found=found, end=end)
