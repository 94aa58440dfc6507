"""The smallest changes of a block that bring more resident warps.

Registers are given out in steps (8 per thread on every architecture so far), shared memory in steps of 128 or 256 bytes, so that most small
changes change nothing; the steps here are the smallest that do.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import (
    BlockShape,
    Occupancy,
    OccupancyLimit,
    count_registers_per_warp,
    find_most_shared,
    find_occupancy,
    list_shared_ends,
)

# Resident warps over one property of a block, all others unchanged: over its size, the registers of a thread, its shared memory.
#
# The curves are steps: :class:`OccupancyCurve` holds the places where they jump. Nsight Compute prints the same curves, point by point.


class OccupancyCurve(Struct, frozen=True, kw_only=True):
    """Resident warps over one number."""

    xs: tuple[int, ...]  # where the curve may jump, ascending; ``found[i]`` holds from ``xs[i]`` on
    found: tuple[Occupancy, ...]  # what an SM holds there
    end: int  # the last x there is

    def at(self, x: int) -> Occupancy:
        """The occupancy at ``x``.

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
    """The curve over the threads of a block, from 1 to the most a block can have.

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
    """The curve over the registers of a thread, from 1 to the most a thread can name.

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
    """The curve over the bytes of shared memory of a block, from 0 to the most a block can have; the driver's part comes on top.

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


class OccupancyStep(Struct, frozen=True, kw_only=True):
    """A change of what a block asks for that lets an SM hold more warps."""

    # what gives way: registers, shared memory, or both; :attr:`OccupancyLimit.WARPS` for another block size
    resources: tuple[OccupancyLimit, ...]
    block: BlockShape  # the changed block
    occupancy: Occupancy  # what an SM holds of it
    gained_warps: int  # more than before, per SM


def list_steps_up(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> tuple[OccupancyStep, ...]:
    """The smallest changes with which an SM would hold more warps, one carve-out of the shared memory included.

    Where a larger carve-out alone helps, it is the first step (its block is unchanged), and the others keep the carve-out as it is. Where it
    does not, the driver is taken to raise it as the other steps need.

    Args:
        architecture: whose rules.
        block: as it is now.
        carveout_bytes: shared memory the SM was set to; None for the largest.

    Returns:
        Empty when nothing helps.

    Raises:
        ValueError: as :func:`~gpa_lsp.gpu.arch.occupancy.find_occupancy`.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=256, registers_per_thread=33, shared_bytes=8192)
    >>> [(step.occupancy.carveout_bytes, step.gained_warps) for step in list_steps_up(find_architecture((8, 0)), block, 32768)[:2]]
    [(65536, 24), (32768, 8)]
    """
    now = find_occupancy(architecture, block, carveout_bytes)
    larger = _find_larger_carveout(architecture, block, now)
    if larger is None:
        # With the largest carve-out as many warps fit now: the gains are the same.
        return find_next_steps(architecture, block)
    return (larger, *find_next_steps(architecture, block, carveout_bytes))


def find_next_steps(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> tuple[OccupancyStep, ...]:
    """The smallest changes with which an SM would hold more warps.

    First fewer registers, then less shared memory, each alone and as little as helps; where neither helps alone, both together as far as one
    more block needs. Last another block size: the one with most resident warps, and of those the nearest, with the shared memory of a block
    unchanged; not where shared memory is a limit, because tiles grow with their blocks.

    Args:
        architecture: whose rules.
        block: as it is now.
        carveout_bytes: as in :func:`find_occupancy`, before and after.

    Returns:
        Empty when nothing helps.

    Raises:
        ValueError: as :func:`find_occupancy`.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=256, registers_per_thread=56, shared_bytes=0)
    >>> step = find_next_steps(find_architecture((9, 0)), block)[0]
    >>> step.block.registers_per_thread, step.gained_warps
    (48, 8)
    """
    now = find_occupancy(architecture, block, carveout_bytes)
    ask = partial(find_occupancy, architecture, carveout_bytes=carveout_bytes)
    by_registers = _find_first(ask, now, _list_fewer_registers(architecture, block), OccupancyLimit.REGISTERS)
    less_shared = _list_less_shared(architecture, block, carveout_bytes)
    by_shared = _find_first(ask, now, less_shared, OccupancyLimit.SHARED_MEMORY)
    steps = [step for step in (by_registers, by_shared) if step is not None]
    joint = None if steps else _find_joint_step(architecture, ask, block, now)
    by_size = _find_block_size(architecture, ask, block, now)
    return (*steps, *(step for step in (joint, by_size) if step is not None))


def list_register_steps(architecture: Architecture, block: BlockShape) -> tuple[OccupancyStep, ...]:
    """Every number of registers, downwards, at which an SM holds more warps than at the number before.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=128, registers_per_thread=64, shared_bytes=0)
    >>> [(step.block.registers_per_thread, step.gained_warps) for step in list_register_steps(find_architecture((7, 0)), block)]
    [(56, 4), (48, 8), (40, 16), (32, 32)]
    """
    steps: list[OccupancyStep] = []
    now = find_occupancy(architecture, block)
    most = now.warps_per_sm
    for smaller in _list_fewer_registers(architecture, block):
        found = find_occupancy(architecture, smaller)
        if found.warps_per_sm > most:
            most = found.warps_per_sm
            steps.append(_step(now, smaller, found, OccupancyLimit.REGISTERS))
    return tuple(steps)


def find_needed_carveout(architecture: Architecture, occupancy: Occupancy) -> int:
    """The smallest carve-out that holds the shared memory of all resident blocks.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=128, registers_per_thread=96, shared_bytes=24576)
    >>> find_needed_carveout(find_architecture((8, 0)), find_occupancy(find_architecture((8, 0)), block))
    135168
    """
    needed = occupancy.blocks_per_sm * occupancy.shared_per_block_bytes
    sizes = architecture.occupancy.shared_carveouts_bytes.value
    return min((size for size in sizes if size >= needed), default=occupancy.carveout_bytes)


def _find_larger_carveout(architecture: Architecture, block: BlockShape, now: Occupancy) -> OccupancyStep | None:
    """The smallest carve-out with which more warps fit."""
    for size in architecture.occupancy.shared_carveouts_bytes.value:
        if size <= now.carveout_bytes:
            continue
        found = find_occupancy(architecture, block, size)
        if found.warps_per_sm > now.warps_per_sm:
            return _step(now, block, found, OccupancyLimit.SHARED_MEMORY)
    return None


def _list_fewer_registers(architecture: Architecture, block: BlockShape) -> Iterator[BlockShape]:
    """Fewer and fewer registers: of each amount that a warp can be given, the most that fit it."""
    given = count_registers_per_warp(architecture, block.registers_per_thread)
    for count in range(block.registers_per_thread - 1, 0, -1):
        smaller = count_registers_per_warp(architecture, count)
        if smaller < given:
            given = smaller
            yield replace(block, registers_per_thread=count)


def _list_less_shared(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None
) -> Iterator[BlockShape]:
    """The most shared memory with which one block more fits, with which two do, and so on."""
    for most in reversed(list_shared_ends(architecture, carveout_bytes)):
        if most < block.shared_bytes:
            yield replace(block, shared_bytes=most)


def _find_first(
    ask: Callable[[BlockShape], Occupancy], now: Occupancy, candidates: Iterator[BlockShape], resource: OccupancyLimit
) -> OccupancyStep | None:
    """The first candidate that holds more warps; a resource that limits nothing is not asked."""
    if resource not in now.limiters:
        return None
    for candidate in candidates:
        found = ask(candidate)
        if found.warps_per_sm > now.warps_per_sm:
            return _step(now, candidate, found, resource)
    return None


def _find_joint_step(
    architecture: Architecture, ask: Callable[[BlockShape], Occupancy], block: BlockShape, now: Occupancy
) -> OccupancyStep | None:
    """Registers and shared memory reduced together, as far as one more block needs."""
    both = (OccupancyLimit.REGISTERS, OccupancyLimit.SHARED_MEMORY)
    if not set(both) <= set(now.limiters):
        return None
    wanted = now.blocks_per_sm + 1
    shared = min(block.shared_bytes, find_most_shared(architecture, wanted, now.carveout_bytes))
    if shared < 0:
        return None
    for smaller in _list_fewer_registers(architecture, replace(block, shared_bytes=shared)):
        found = ask(smaller)
        if found.blocks_per_sm >= wanted:
            return _step(now, smaller, found, *both)
    return None


def _find_block_size(
    architecture: Architecture, ask: Callable[[BlockShape], Occupancy], block: BlockShape, now: Occupancy
) -> OccupancyStep | None:
    size = architecture.sm.warp_size_threads.value
    largest = architecture.occupancy.max_threads_per_block.value
    if OccupancyLimit.SHARED_MEMORY in now.limiters:
        return None
    shapes = [replace(block, threads=threads) for threads in range(size, largest + 1, size)]
    found = [(shape, ask(shape)) for shape in shapes]
    shape, best = min(found, key=lambda pair: (-pair[1].warps_per_sm, abs(pair[0].threads - block.threads)))
    return _step(now, shape, best, OccupancyLimit.WARPS) if best.warps_per_sm > now.warps_per_sm else None


def _step(now: Occupancy, block: BlockShape, found: Occupancy, *resources: OccupancyLimit) -> OccupancyStep:
    gained = found.warps_per_sm - now.warps_per_sm
    return OccupancyStep(resources=resources, block=block, occupancy=found, gained_warps=gained)


class FreeRoom(Struct, frozen=True, kw_only=True):
    """The amount of a resource that a block can use more before an SM holds fewer warps."""

    now: int  # registers per thread, or bytes of shared memory per block, as the block is
    most: int  # the largest amount with which as many warps fit
    # what an SM holds with one unit more than ``most``; None where ``most`` is what the architecture allows at all
    after: Occupancy | None

    @property
    def spare(self) -> int:
        """The amount that is free."""
        return self.most - self.now


def find_free_registers(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> FreeRoom | None:
    """Registers per thread that cost no warp; None where not even one block fits.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> room = find_free_registers(find_architecture((8, 0)), BlockShape(threads=256, registers_per_thread=33, shared_bytes=0))
    >>> room.most, room.after.warps_per_sm
    (40, 40)
    """
    curve = build_register_curve(architecture, block, carveout_bytes)
    now = find_occupancy(architecture, block, carveout_bytes)
    return _find_room(curve, now, block.registers_per_thread)


def find_free_shared(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> FreeRoom | None:
    """Bytes of shared memory per block that cost no warp; None where not even one block fits.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> room = find_free_shared(find_architecture((8, 0)), BlockShape(threads=256, registers_per_thread=33, shared_bytes=0))
    >>> room.most, room.after.warps_per_sm
    (26880, 40)
    """
    curve = build_shared_curve(architecture, block, carveout_bytes)
    now = find_occupancy(architecture, block, carveout_bytes)
    return _find_room(curve, now, block.shared_bytes)


def _find_room(curve: OccupancyCurve, now: Occupancy, amount: int) -> FreeRoom | None:
    """The room from an amount to the place where the curve, which never rises, falls below its value there."""
    if not now.blocks_per_sm:
        return None
    lost = ((first, found) for first, _, found in curve.list_jumps() if found.warps_per_sm < now.warps_per_sm)
    first, after = next(lost, (curve.end + 1, None))
    return FreeRoom(now=amount, most=max(amount, first - 1), after=after)
