"""The same sets by brute force: every thread's addresses, one by one."""

from collections.abc import Iterator, Sequence
from itertools import product

from gpa_lsp.execution.volumes.expressions import AccessExpression, BlockBox, LaunchShape, ThreadRegion

SECTOR_BYTES = 32


def enumerate_addresses(
    access: AccessExpression, launch: LaunchShape, blocks: BlockBox, region: ThreadRegion
) -> Iterator[int]:
    """First bytes of an access by every thread of some blocks, in a region, over all iterations."""
    if access.region is not None:
        region = region.meet(access.region)
    for block in product(*(range(low, high) for low, high in zip(blocks.low, blocks.high, strict=True))):
        for thread in product(*(range(size) for size in launch.block)):
            place = [b * size + t for b, size, t in zip(block, launch.block, thread, strict=True)]
            if any(not low <= at < high for at, low, high in zip(place, region.low, region.high, strict=True)):
                continue
            start = access.constant_bytes
            start += sum(step * at for step, at in zip(access.global_bytes, place, strict=True))
            start += sum(step * at for step, at in zip(access.thread_bytes, thread, strict=True))
            start += sum(step * at for step, at in zip(access.block_bytes, block, strict=True))
            for counters in product(*(range(loop.trips) for loop in access.loops)):
                yield start + sum(loop.step_bytes * at for loop, at in zip(access.loops, counters, strict=True))


def enumerate_sectors(
    accesses: Sequence[AccessExpression], launch: LaunchShape, blocks: BlockBox, region: ThreadRegion, base: int = 0
) -> set[int]:
    """Sectors that some blocks touch; nothing when the box of blocks is empty."""
    return {
        sector
        for access in accesses
        for address in enumerate_addresses(access, launch, blocks, region)
        for sector in range(
            (base + address) // SECTOR_BYTES, (base + address + access.element_bytes - 1) // SECTOR_BYTES + 1
        )
    }
