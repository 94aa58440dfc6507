"""Which blocks run at the same time: blocks of an SM, the wave they make, and the blocks that ran before it.

A wave is as many blocks as the whole GPU holds, in the order of their indexes; it is treated as a box of blocks, and all its threads as if they
ran at once.

Source: Ernst et al. (2022), sections 4.4 and 4.4.2; the box, its place in the grid and the sets before it are those of the authors' program.
"""

from math import ceil

from msgspec import Struct

from gpa_lsp.execution.volumes.expressions import LaunchShape, Triple

PAPER_MAX_BLOCKS = 32
PAPER_REGISTERS = 65536
PAPER_FEWEST_REGISTERS = 32
_REPRESENTATIVE_BLOCKS = 4  # Blocks along each axis over which what one block does is averaged
_SHORT_ROW_RATIO = 0.1  # A last row of blocks that holds less of a block than this is not taken as representative


class BlockBox(Struct, frozen=True, kw_only=True):
    """Blocks from ``low`` up to, without, ``high``; indexes in x, y, z."""

    low: Triple
    high: Triple


class Wave(Struct, frozen=True, kw_only=True):
    """A wave and what ran before it."""

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
    registers = -(-max(registers_per_thread, PAPER_FEWEST_REGISTERS) // 8) * 8
    return min(PAPER_MAX_BLOCKS, PAPER_REGISTERS // (threads_per_block * registers))


def build_paper_wave(launch: LaunchShape, blocks: int) -> Wave:
    """The wave at the end of a row and of a layer, in the middle of the layers, and the sets before it.

    Rows and layers are counted by updates as if no thread made more than one: so the authors' program does it.
    """
    return _build(launch, blocks, launch.updates)


def build_wave(launch: LaunchShape, blocks: int) -> Wave:
    """The same with rows and layers counted by threads with work."""
    return _build(launch, blocks, launch.region.high)


def _build(launch: LaunchShape, blocks: int, extent: Triple) -> Wave:
    grid, block = launch.grid, launch.block
    per_row = extent[0] / block[0]
    per_layer = extent[0] * extent[1] / (block[0] * block[1])
    size = (min(grid[0], blocks), min(grid[1], ceil(blocks / per_row)), min(grid[2], ceil(blocks / per_layer)))
    has_short_row = 0 < extent[1] / block[1] % 1 < _SHORT_ROW_RATIO and grid[1] > size[1]
    return _place(launch, blocks, size, 1 if has_short_row else 0)


def _plan_start(grid: Triple, blocks: int) -> Triple:
    rows = max(1, blocks // grid[0])
    layers = max(1, blocks // grid[0] // grid[1])
    return (min(grid[0], blocks), min(grid[1], rows), min(grid[2], layers))


def _place(launch: LaunchShape, blocks: int, size: Triple, shift_y: int) -> Wave:
    grid = launch.grid
    layer = grid[2] // 2
    end_y = grid[1] - shift_y
    first_y = end_y - size[1]
    current = BlockBox(low=(grid[0] - size[0], first_y, layer), high=(grid[0], end_y, layer + size[2]))
    before_x = BlockBox(
        low=(max(0, grid[0] - 2 * size[0]), first_y, layer), high=(grid[0] - size[0], end_y, layer + size[2])
    )
    before_y = BlockBox(low=(0, max(0, first_y - size[1]), layer), high=(grid[0], first_y, layer + size[2]))
    before_z = BlockBox(low=(0, 0, max(0, layer - 1)), high=(grid[0], grid[1], layer))
    start = _plan_start(grid, blocks)
    x, y, z = (min(_REPRESENTATIVE_BLOCKS, count) for count in start)
    return Wave(
        blocks=blocks,
        size=size,
        start=start,
        representative=(x, y, z),
        current=current,
        before_x=before_x,
        before_y=before_y,
        before_z=before_z,
    )
