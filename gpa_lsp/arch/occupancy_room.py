"""What is free before warps are lost: more registers per thread, more shared memory per block."""

from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import BlockShape, Occupancy, OccupancyLimit, find_occupancy
from gpa_lsp.arch.occupancy_curves import OccupancyCurve, build_register_curve, build_shared_curve
from gpa_lsp.basis.lazy_dataclass import dataclass


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
