"""The next step in each direction: what has to give way for more resident warps, and what is free before some are lost.

Registers are given out in steps (8 per thread on every architecture so far), shared memory in steps of 128 or 256 bytes, so that most small
changes change nothing; the steps here are the smallest that do.
"""

from dataclasses import dataclass

from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import (
    BlockShape,
    Occupancy,
    OccupancyLimit,
    OccupancyStep,
    find_next_steps,
    find_occupancy,
)
from gpa_lsp.arch.occupancy_curves import OccupancyCurve, build_register_curve, build_shared_curve


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeRoom:
    """How much more of a resource a block can use before an SM holds fewer warps.

    Attributes:
        resource: registers (per thread) or shared memory (bytes per block).
        now: as the block is.
        most: the largest amount with which as many warps fit.
        after: what an SM holds with one unit more than ``most``; None where ``most`` is what the architecture allows at all.
    """

    resource: OccupancyLimit
    now: int
    most: int
    after: Occupancy | None

    @property
    def spare(self) -> int:
        """What is free."""
        return self.most - self.now


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
        ValueError: as :func:`~gpa_lsp.arch.occupancy.find_occupancy`.

    >>> from gpa_lsp.arch.lookup import find_architecture
    >>> block = BlockShape(threads=256, registers_per_thread=33, shared_bytes=8192)
    >>> [(step.occupancy.carveout_bytes, step.gained_warps) for step in list_steps_up(find_architecture((8, 0)), block, 32768)[:2]]
    [(65536, 24), (32768, 8)]
    """
    now = find_occupancy(architecture, block, carveout_bytes)
    larger = _find_larger_carveout(architecture, block, now)
    if larger is None:
        return find_next_steps(
            architecture, block
        )  # with the largest carve-out as many warps fit now: the gains are the same
    return (larger, *find_next_steps(architecture, block, carveout_bytes))


def find_needed_carveout(architecture: Architecture, occupancy: Occupancy) -> int:
    """The smallest carve-out that holds the shared memory of all resident blocks.

    >>> from gpa_lsp.arch.lookup import find_architecture
    >>> block = BlockShape(threads=128, registers_per_thread=96, shared_bytes=24576)
    >>> find_needed_carveout(find_architecture((8, 0)), find_occupancy(find_architecture((8, 0)), block))
    135168
    """
    needed = occupancy.blocks_per_sm * occupancy.shared_per_block_bytes
    sizes = architecture.occupancy.shared_carveouts_bytes.value
    return min((size for size in sizes if size >= needed), default=occupancy.carveout_bytes)


def find_free_registers(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> FreeRoom | None:
    """Registers per thread that cost no warp; None where not even one block fits.

    >>> from gpa_lsp.arch.lookup import find_architecture
    >>> room = find_free_registers(find_architecture((8, 0)), BlockShape(threads=256, registers_per_thread=33, shared_bytes=0))
    >>> room.most, room.after.warps_per_sm
    (40, 40)
    """
    curve = build_register_curve(architecture, block, carveout_bytes)
    now = find_occupancy(architecture, block, carveout_bytes)
    return _find_room(curve, now, OccupancyLimit.REGISTERS, block.registers_per_thread)


def find_free_shared(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None = None
) -> FreeRoom | None:
    """Bytes of shared memory per block that cost no warp; None where not even one block fits.

    >>> from gpa_lsp.arch.lookup import find_architecture
    >>> room = find_free_shared(find_architecture((8, 0)), BlockShape(threads=256, registers_per_thread=33, shared_bytes=0))
    >>> room.most, room.after.warps_per_sm
    (26880, 40)
    """
    curve = build_shared_curve(architecture, block, carveout_bytes)
    now = find_occupancy(architecture, block, carveout_bytes)
    return _find_room(curve, now, OccupancyLimit.SHARED_MEMORY, block.shared_bytes)


def _find_room(curve: OccupancyCurve, now: Occupancy, resource: OccupancyLimit, amount: int) -> FreeRoom | None:
    """From here to where the curve, which never rises, falls below what it is here."""
    if not now.blocks_per_sm:
        return None
    lost = ((first, found) for first, _, found in curve.list_jumps() if found.warps_per_sm < now.warps_per_sm)
    first, after = next(lost, (curve.end + 1, None))
    return FreeRoom(resource=resource, now=amount, most=max(amount, first - 1), after=after)


def _find_larger_carveout(architecture: Architecture, block: BlockShape, now: Occupancy) -> OccupancyStep | None:
    """The smallest carve-out with which more warps fit."""
    for size in architecture.occupancy.shared_carveouts_bytes.value:
        if size <= now.carveout_bytes:
            continue
        found = find_occupancy(architecture, block, size)
        if found.warps_per_sm > now.warps_per_sm:
            return OccupancyStep(
                resources=(OccupancyLimit.SHARED_MEMORY,),
                block=block,
                occupancy=found,
                gained_warps=found.warps_per_sm - now.warps_per_sm,
            )
    return None
