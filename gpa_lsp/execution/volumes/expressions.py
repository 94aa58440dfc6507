"""Addresses that a kernel's threads read and write, as affine functions: :class:`AccessExpression`, :class:`KernelAccesses`.

The address of an access, in bytes from its array's first one, is ::

    constant + global · (block index · block size + thread index) + thread · thread index + block · block index + Σ loop · counter

with one coefficient for each of x, y and z. Most accesses need only the first coefficients: they depend on the thread's global index alone, and
keep their meaning when the block's size is changed. Tiles add the others.

Source: Ernst et al., Analytical Performance Estimation during Code Generation on Modern GPUs (2022), section 1.2; their expressions have neither
loops nor coefficients of block or thread alone.
"""

from collections.abc import Sequence
from itertools import product
from math import ceil, prod

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import Sentence

Triple = tuple[int, int, int]  # Of x, y and z

NO_TRIPLE: Triple = (0, 0, 0)


class LoopTerm(Struct, frozen=True, kw_only=True):
    """A loop around an access."""

    step_bytes: int  # from one iteration to the next; may be negative or 0
    trips: int  # iterations, at least 1


class ThreadRegion(Struct, frozen=True, kw_only=True):
    """A box of global thread indexes."""

    low: Triple  # first of x, y, z
    high: Triple  # the one after the last

    @property
    def thread_count(self) -> int:
        """Number of threads."""
        return prod(max(0, high - low) for low, high in zip(self.low, self.high, strict=True))

    def meet(self, other: "ThreadRegion") -> "ThreadRegion":
        """Intersection, which may be empty.

        >>> ThreadRegion(low=(0, 0, 0), high=(8, 4, 1)).meet(ThreadRegion(low=(2, 0, 0), high=(9, 2, 1)))
        ThreadRegion(low=(2, 0, 0), high=(8, 2, 1))
        """
        lows = [max(pair) for pair in zip(self.low, other.low, strict=True)]
        highs = [max(low, min(pair)) for low, *pair in zip(lows, self.high, other.high, strict=True)]
        return ThreadRegion(low=make_triple(lows), high=make_triple(highs))


class AccessedArray(Struct, frozen=True, kw_only=True):
    """An array."""

    name: str  # of the argument or variable
    size_bytes: int | None = None  # None when unknown
    base_bytes: int = 0  # address of its first byte, of which only the alignment matters
    # distance of neighbours along each of its dimensions, the innermost first; None for those found from the coefficients
    strides_bytes: tuple[int, ...] | None = None


class AccessExpression(Struct, frozen=True, kw_only=True):
    """One access of one array by every thread; see the module for the address."""

    array: int  # index in :attr:`KernelAccesses.arrays`
    kind: AccessKind  # load, store, atomic or reduction
    element_bytes: int  # that one thread accesses at once
    constant_bytes: int  # of the address
    global_bytes: Triple  # coefficients of the global thread index in x, y, z
    thread_bytes: Triple = NO_TRIPLE  # further ones of the thread index within the block
    block_bytes: Triple = NO_TRIPLE  # further ones of the block index
    loops: tuple[LoopTerm, ...] = ()  # around it, the innermost first
    region: ThreadRegion | None = None  # global threads that make it; None for all of the launch
    # how often a thread makes it on average beside the loops: below 1 for what only some threads do, in no box
    executions: float = 1.0
    # index of the static instruction it was recovered from; None when it was written down
    instruction: int | None = None
    # it is a load that L1 does not keep (``.cg``, ``.cv``, volatile and the other strong ones); the published model does not look at it
    bypasses_l1: bool = False

    @property
    def trips(self) -> int:
        """Iterations of all loops around it."""
        return prod(loop.trips for loop in self.loops)

    @property
    def is_load(self) -> bool:
        """Whether it reads, as loads and atomics do."""
        return self.kind in (AccessKind.LOAD, AccessKind.ATOMIC, AccessKind.REDUCTION)

    @property
    def is_store(self) -> bool:
        """Whether it writes, as stores and atomics do."""
        return self.kind is not AccessKind.LOAD


class FirstTouched(Struct, frozen=True, kw_only=True):
    """Sectors and lines that an access touches and none of those listed before it in the same direction; their sum is what all touch together."""

    block_sectors: float  # sectors of 32 bytes one block touches, mean
    block_lines: float  # lines of 128 bytes one block touches, mean
    wave_sectors: float  # sectors that no other traced block touches either, of a block, mean
    wave_pairs: float  # the same of pairs of them, 64 bytes


class SampledAccess(Struct, frozen=True, kw_only=True):
    """An access whose address is no affine function (a gather, a list, a tree): what was counted over the traced blocks stands for all."""

    array: int | None  # index in :attr:`KernelAccesses.arrays`; None when its addresses are in no array or in several
    kind: AccessKind  # load, store, atomic or reduction
    element_bytes: int  # that one thread accesses at once
    executions: float  # per thread of the launch, on average
    sectors_per_request: float  # distinct 32-byte sectors of one warp's access, mean
    cycles_per_request: float  # of L1's data pipe for one warp's access, mean
    requests_per_warp: float  # warp-level accesses of one warp, mean
    block_sectors: float  # distinct 32-byte sectors one block touches, mean
    block_lines: float  # distinct 128-byte lines one block touches, mean
    distinct_ratio: float  # distinct sectors of all traced blocks together, of the sum of what each touches: 1 when blocks share nothing
    instruction: int  # index of the static instruction
    why: Sentence  # the reason it counts as not affine, a clause
    bypasses_l1: bool = False  # as in :class:`AccessExpression`
    read: FirstTouched | None = None  # what of this it reads first; None for stores
    written: FirstTouched | None = None  # what of this it writes first; None for loads


class IssuedWork(Struct, frozen=True, kw_only=True):
    """Warp instructions of machine code for a thread: a whole warp counts 1/32 for each of its threads."""

    instructions: float = 0.0  # all, each of which takes a slot of a scheduler
    additions: float = 0.0  # of integers
    logic: float = 0.0  # shifts, comparisons, selections and the like
    singles: float = 0.0  # operations in single precision
    products: float = 0.0  # of integers
    special: float = 0.0  # special functions, conversions from and to floats, bit counts


class KernelAccesses(Struct, frozen=True, kw_only=True):
    """All accesses of a kernel to global memory, and the arithmetic of a thread."""

    name: str  # of the kernel
    arrays: tuple[AccessedArray, ...]  # it accesses
    accesses: tuple[AccessExpression, ...]  # affine ones, in the order of the program
    sampled: tuple[SampledAccess, ...] = ()  # the others
    # floating-point operations of one thread, a multiply-add counts two; None when unknown
    flops_per_thread: float | None = None
    flops_are_double: bool = True  # they are in double precision
    issued: IssuedWork | None = None  # what a thread executes, memory included; None when unknown
    shared_cycles_per_warp: float = 0.0  # of L1's data pipe for one warp's accesses of shared memory, all executions
    notes: tuple[Sentence, ...] = ()  # what a reader must know of how these were found, one sentence each
    # what is a mean of threads is one of all that were launched; else of those of blocks that access global memory, and the others do nothing
    is_executed_whole: bool = False
    is_whole: bool = False  # every block was traced to its end, so that what was counted stands for no other


class LaunchShape(Struct, frozen=True, kw_only=True):
    """Layout of a launch's threads and updates."""

    block: Triple  # threads of a block in x, y, z
    grid: Triple  # blocks in x, y, z
    updates: Triple  # to be made along x, y, z; threads beyond them make none
    fold: Triple = (1, 1, 1)  # updates one thread makes along x, y, z

    @property
    def threads_per_block(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    @property
    def updates_per_thread(self) -> int:
        """Updates that one thread makes."""
        return prod(self.fold)

    @property
    def region(self) -> ThreadRegion:
        """Threads that have updates to make."""
        return ThreadRegion(
            low=NO_TRIPLE, high=make_triple([-(-u // f) for u, f in zip(self.updates, self.fold, strict=True)])
        )


def cover_updates(updates: Triple, block: Triple, fold: Triple = (1, 1, 1)) -> LaunchShape:
    """Launch whose grid covers the updates.

    >>> cover_updates((632, 504, 992), (32, 4, 8), (1, 2, 1)).grid
    (20, 63, 124)
    """
    grid = make_triple([-(-u // (b * f)) for u, b, f in zip(updates, block, fold, strict=True)])
    return LaunchShape(block=block, grid=grid, updates=updates, fold=fold)


def fold_accesses(kernel: KernelAccesses, fold: Triple) -> KernelAccesses:
    """The same kernel with every thread making the updates of several neighbours; what it loads twice it loads once, from registers.

    Source: Ernst et al. (2022), section 5.2, "thread folding".

    Raises:
        InputError: along a folded axis, some address is no formula of the thread's global index, so that those of its neighbours are unknown.
    """
    _require_foldable(kernel, fold)
    folded: dict[AccessExpression, None] = {}
    for access in kernel.accesses:
        coefficients = access.global_bytes
        for place in product(*(range(count) for count in fold)):
            shift = sum(step * index for step, index in zip(coefficients, place, strict=True))
            steps = make_triple([step * count for step, count in zip(coefficients, fold, strict=True)])
            region = None if access.region is None else _fold_region(access.region, fold)
            moved = replace(
                access,
                constant_bytes=access.constant_bytes + shift,
                global_bytes=steps,
                region=region,
                instruction=None,
            )
            folded.setdefault(moved)
    flops = None if kernel.flops_per_thread is None else kernel.flops_per_thread * prod(fold)
    return replace(kernel, accesses=tuple(folded), flops_per_thread=flops, issued=None)


def _require_foldable(kernel: KernelAccesses, fold: Triple) -> None:
    axes = [axis for axis, count in enumerate(fold) if count > 1]
    split = any(one.thread_bytes[axis] or one.block_bytes[axis] for one in kernel.accesses for axis in axes)
    if axes and (split or kernel.sampled):
        message = "its addresses are no formula of the thread's place in the grid: what more elements per thread access is not known"
        raise InputError(message, remedy="write the kernel with that many elements per thread, and describe its launch")


def _fold_region(region: ThreadRegion, fold: Triple) -> ThreadRegion:
    lows = make_triple([low // count for low, count in zip(region.low, fold, strict=True)])
    return ThreadRegion(
        low=lows, high=make_triple([-(-high // count) for high, count in zip(region.high, fold, strict=True)])
    )


def make_triple(values: Sequence[int]) -> Triple:
    """The three values as a tuple, for x, y and z."""
    x, y, z = values
    return (x, y, z)


def count_threads(blocks: "BlockBox", block: Triple, region: ThreadRegion) -> int:
    """Threads of some blocks that lie in a region; ``block`` is the size of a block in threads."""
    low = make_triple([at * size for at, size in zip(blocks.low, block, strict=True)])
    high = make_triple([at * size for at, size in zip(blocks.high, block, strict=True)])
    return ThreadRegion(low=low, high=high).meet(region).thread_count


# The authors' rule of occupancy
_PAPER_MAX_BLOCKS = 32
_PAPER_REGISTERS = 65536
_PAPER_FEWEST_REGISTERS = 32

_REPRESENTATIVE_BLOCKS = 4  # Blocks along each axis over which what one block does is averaged
_SHORT_ROW_RATIO = 0.1  # A last row of blocks that holds less of a block than this is not taken as representative


class BlockBox(Struct, frozen=True, kw_only=True):
    """Blocks from ``low`` up to, without, ``high``; indexes in x, y, z."""

    low: Triple
    high: Triple


class Wave(Struct, frozen=True, kw_only=True):
    """Blocks that run at the same time, and those that ran before them.

    A wave is as many blocks as the whole GPU holds, in the order of their indexes; it is treated as a box of blocks, and all its threads as if they
    ran at once (Ernst et al. 2022, sections 4.4 and 4.4.2; the box, its place in the grid and the sets before it are those of the authors' program).
    """

    blocks: int  # of the wave, as many as the GPU holds or the grid has
    size: Triple  # of its box along x, y, z
    start: Triple  # a box of about as many blocks at the grid's start
    # blocks along each axis over which what a single block does is averaged: the first of ``start``
    representative: Triple
    current: BlockBox  # its blocks
    before_x: BlockBox  # blocks that ran just before and share its rows; empty when a wave fills whole rows
    before_y: BlockBox  # blocks of the rows before it, as many as the wave has; empty when a wave fills whole layers
    before_z: BlockBox  # blocks of the layer before it; empty when there is one layer only


def count_paper_blocks_per_sm(threads_per_block: int, registers_per_thread: int) -> int:
    """Blocks an SM holds by the authors' rule, which knows registers only.

    >>> count_paper_blocks_per_sm(1024, 32), count_paper_blocks_per_sm(256, 40)
    (2, 6)
    """
    registers = -(-max(registers_per_thread, _PAPER_FEWEST_REGISTERS) // 8) * 8
    return min(_PAPER_MAX_BLOCKS, _PAPER_REGISTERS // (threads_per_block * registers))


def build_paper_wave(launch: LaunchShape, blocks: int) -> Wave:
    """The wave of ``blocks`` blocks at the end of a row and of a layer, in the middle of the layers, and the sets before it.

    Rows and layers are counted by updates as if no thread made more than one: so the authors' program does it.
    """
    return _build_wave(launch, blocks, launch.updates)


def build_wave(launch: LaunchShape, blocks: int) -> Wave:
    """The same wave as :func:`build_paper_wave`, with rows and layers counted by threads with work."""
    return _build_wave(launch, blocks, launch.region.high)


def _build_wave(launch: LaunchShape, blocks: int, extent: Triple) -> Wave:
    grid, block = launch.grid, launch.block
    per_row = extent[0] / block[0]
    per_layer = extent[0] * extent[1] / (block[0] * block[1])
    size = (min(grid[0], blocks), min(grid[1], ceil(blocks / per_row)), min(grid[2], ceil(blocks / per_layer)))
    has_short_row = 0 < extent[1] / block[1] % 1 < _SHORT_ROW_RATIO and grid[1] > size[1]
    first_x, end_y, layer = grid[0] - size[0], grid[1] - has_short_row, grid[2] // 2
    first_y, end_z = end_y - size[1], layer + size[2]
    start = (
        min(grid[0], blocks),
        min(grid[1], max(1, blocks // grid[0])),
        min(grid[2], max(1, blocks // grid[0] // grid[1])),
    )
    return Wave(
        blocks=blocks,
        size=size,
        start=start,
        representative=make_triple([min(_REPRESENTATIVE_BLOCKS, count) for count in start]),
        current=BlockBox(low=(first_x, first_y, layer), high=(grid[0], end_y, end_z)),
        before_x=BlockBox(low=(max(0, first_x - size[0]), first_y, layer), high=(first_x, end_y, end_z)),
        before_y=BlockBox(low=(0, max(0, first_y - size[1]), layer), high=(grid[0], first_y, end_z)),
        before_z=BlockBox(low=(0, 0, max(0, layer - 1)), high=(grid[0], grid[1], layer)),
    )
