"""Occupancy: the number of blocks and warps of a kernel that one SM holds, and what limits it.

Exact, not approximate: registers are rounded up per warp and given out per sub-partition, shared memory is rounded up per block and comes out
of the carve-out, and the driver's reserved part counts.

Source: NVIDIA's occupancy calculator (``cuda_occupancy.h``, CUDA 13.0), whose rules :class:`~gpa_lsp.gpu.arch.sections.OccupancyRules` restates;
compared with the limits and the occupancy curves that Nsight Compute prints into its reports.
"""

from enum import StrEnum
from itertools import pairwise

from msgspec import Struct

from gpa_lsp.gpu.arch.model import Architecture


class OccupancyLimit(StrEnum):
    """A resource of an SM that limits the occupancy; the values are words for people."""

    WARPS = "warps"
    BLOCKS = "blocks"
    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    BARRIERS = "barriers"


class BlockShape(Struct, frozen=True, kw_only=True):
    """The resources that one block asks for."""

    threads: int  # of one block, at least 1
    registers_per_thread: int  # as compiled
    shared_bytes: int  # static and dynamic shared memory, without what the driver reserves
    barriers: int = 0  # ``BAR`` barriers the kernel uses


class Occupancy(Struct, frozen=True, kw_only=True):
    """The blocks and warps of a kernel that one SM holds."""

    blocks_per_sm: int  # resident blocks; 0 when not even one fits
    warps_per_sm: int  # resident warps
    max_warps_per_sm: int  # the architecture's limit
    warps_per_block: int  # the last one may be partly filled
    # blocks that each resource alone would allow, in the order of :class:`OccupancyLimit`; barriers only where the architecture counts them
    limits: tuple[tuple[OccupancyLimit, int], ...]
    # the resources that allow fewest, of those the block uses; empty when the warps reach the architecture's limit
    limiters: tuple[OccupancyLimit, ...]
    registers_per_warp: int  # as given out, rounded up
    shared_per_block_bytes: int  # as given out, the reserved part included
    carveout_bytes: int  # shared memory of the SM that was reckoned with

    @property
    def ratio(self) -> float:
        """Resident warps of those the architecture allows, 0..1."""
        return self.warps_per_sm / self.max_warps_per_sm

    def limit_of(self, resource: OccupancyLimit) -> int | None:
        """Blocks a resource alone would allow; None when the architecture does not count it."""
        return dict(self.limits).get(resource)


def find_occupancy(architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None) -> Occupancy:
    """The blocks and warps of a kernel that one SM holds, if the grid is large enough.

    Args:
        architecture: whose rules.
        block: what a block asks for.
        carveout_bytes: shared memory the SM was set to, which is raised to the next size where it does not hold even one block; None for the
            largest it can be set to, which the driver chooses when blocks need it.

    Raises:
        ValueError: a block without threads, or a negative number.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> block = BlockShape(threads=128, registers_per_thread=64, shared_bytes=0)
    >>> found = find_occupancy(find_architecture((7, 0)), block)
    >>> found.warps_per_sm, found.blocks_per_sm, [limiter.value for limiter in found.limiters]
    (32, 8, ['registers'])
    """
    if block.threads < 1 or min(block.registers_per_thread, block.shared_bytes, block.barriers) < 0:
        raise ValueError(f"no block has {block}")
    rules = architecture.occupancy
    warps = -(-block.threads // architecture.sm.warp_size_threads.value)
    per_warp = count_registers_per_warp(architecture, block.registers_per_thread)
    shared = count_shared_per_block(architecture, block.shared_bytes)
    carveout = find_carveout(architecture, shared, carveout_bytes)
    limits = [
        (OccupancyLimit.WARPS, rules.max_warps_per_sm.value // warps),
        (OccupancyLimit.BLOCKS, rules.max_blocks_per_sm.value),
        (OccupancyLimit.REGISTERS, _limit_by_registers(architecture, warps, per_warp)),
        (OccupancyLimit.SHARED_MEMORY, _limit_by_shared(architecture, block.shared_bytes, shared, carveout)),
    ]
    if rules.barriers_limit_blocks.value:
        pool = rules.block_barriers_per_sm.value
        limits.append((OccupancyLimit.BARRIERS, pool // block.barriers if block.barriers else pool))
    if block.threads > rules.max_threads_per_block.value:
        limits[0] = (OccupancyLimit.WARPS, 0)
    blocks = min(allowed for _, allowed in limits)
    is_full = blocks * warps >= rules.max_warps_per_sm.value
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * warps,
        max_warps_per_sm=rules.max_warps_per_sm.value,
        warps_per_block=warps,
        limits=tuple(limits),
        limiters=() if is_full else _list_limiters(limits, block, shared),
        registers_per_warp=per_warp,
        shared_per_block_bytes=shared,
        carveout_bytes=carveout,
    )


def count_registers_per_warp(architecture: Architecture, registers_per_thread: int) -> int:
    """Registers a warp is given: those of its threads, rounded up to the allocation unit.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> count_registers_per_warp(find_architecture((8, 0)), 33)
    1280
    """
    unit = architecture.occupancy.register_allocation_unit_registers.value
    return -(-registers_per_thread * architecture.sm.warp_size_threads.value // unit) * unit


def count_shared_per_block(architecture: Architecture, shared_bytes: int) -> int:
    """Shared memory a block is given: its own and the driver's, rounded up to the allocation unit.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> count_shared_per_block(find_architecture((8, 6)), 76896)
    77952
    """
    rules = architecture.occupancy
    unit = rules.shared_allocation_unit_bytes.value
    return -(-(shared_bytes + rules.shared_reserved_per_block_bytes.value) // unit) * unit


def find_carveout(architecture: Architecture, given_bytes: int, set_bytes: int | None) -> int:
    """The shared memory an SM is set to: what was asked for, or the next size that holds one block.

    Args:
        given_bytes: what one block is given (:func:`count_shared_per_block`).
        set_bytes: what was asked for; None for the largest.

    Source: ``cuda_occupancy.h``, ``cudaOccMaxBlocksPerSMSmemLimit``; NVIDIA's curves over shared memory in real reports show it.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> find_carveout(find_architecture((8, 6)), 9216, 8192), find_carveout(find_architecture((8, 6)), 4096, 8192)
    (16384, 8192)
    """
    rules = architecture.occupancy
    if set_bytes is None:
        return rules.shared_per_sm_bytes.value
    if given_bytes <= set_bytes:
        return set_bytes
    return min((size for size in rules.shared_carveouts_bytes.value if size >= given_bytes), default=set_bytes)


def _list_limiters(
    limits: list[tuple[OccupancyLimit, int]], block: BlockShape, shared: int
) -> tuple[OccupancyLimit, ...]:
    """The resources that allow fewest blocks; what a block does not use limits nothing."""
    unused = {OccupancyLimit.SHARED_MEMORY} if shared == 0 else set()
    if block.barriers == 0:
        unused.add(OccupancyLimit.BARRIERS)
    fewest = min(allowed for _, allowed in limits)
    return tuple(resource for resource, allowed in limits if allowed == fewest and resource not in unused)


def _limit_by_registers(architecture: Architecture, warps: int, per_warp: int) -> int:
    rules = architecture.occupancy
    if per_warp == 0:
        return rules.max_blocks_per_sm.value
    granularity = rules.warp_allocation_granularity_warps.value
    if per_warp * (-(-warps // granularity) * granularity) > rules.max_registers_per_block.value:
        return 0
    parts = architecture.sm.sub_partitions_per_sm.value
    return rules.registers_per_sm.value // parts // per_warp * parts // warps


def _limit_by_shared(architecture: Architecture, asked: int, given: int, carveout: int) -> int:
    rules = architecture.occupancy
    if asked > rules.max_shared_per_block_bytes.value:
        return 0
    if given == 0:
        return rules.max_blocks_per_sm.value
    return carveout // given


def list_shared_ends(architecture: Architecture, carveout_bytes: int | None = None) -> tuple[int, ...]:
    """Every size of a block's shared memory of which one byte more can mean fewer blocks, ascending.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> list_shared_ends(find_architecture((8, 6)))[-4:]
    (24576, 33024, 50176, 101376)
    """
    rules = architecture.occupancy
    start = rules.shared_per_sm_bytes.value if carveout_bytes is None else carveout_bytes
    sizes = [0, start, *(size for size in rules.shared_carveouts_bytes.value if size > start)]
    ends = {
        find_most_shared(architecture, count, size)
        for smaller, size in pairwise(sizes)
        # A block that is given more than the smaller size has this one, which holds no more of them.
        for count in range(1, min(rules.max_blocks_per_sm.value, size // (smaller + 1)) + 1)
    }
    return tuple(sorted(end for end in ends if end >= 0))


def find_most_shared(architecture: Architecture, blocks: int, carveout_bytes: int) -> int:
    """The most a block may ask for so that so many fit into a carve-out; negative when they do not fit without any.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> find_most_shared(find_architecture((8, 0)), 3, 167936)
    54912
    """
    rules = architecture.occupancy
    unit = rules.shared_allocation_unit_bytes.value
    most = carveout_bytes // blocks // unit * unit - rules.shared_reserved_per_block_bytes.value
    return min(most, rules.max_shared_per_block_bytes.value)
