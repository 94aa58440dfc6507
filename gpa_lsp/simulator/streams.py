"""What the warps of a block execute, as the simulator reads it: :class:`BlockStream`."""

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockStream:
    """The executions of a block's warps, one warp after the other.

    Attributes:
        starts: first execution of each warp, and their number.
        rows: of the program.
        passes: through the data stage; 0 where no lane is active, or for what accesses no memory.
        lines: distinct 128-byte lines.
        first_sector: where an execution's sectors begin in ``sectors``.
        last_sector: where they end.
        sectors: 32-byte sectors.
        weights: how many executions one stands for.
    """

    starts: list[int]
    rows: list[int]
    passes: list[int]
    lines: list[int]
    first_sector: list[int]
    last_sector: list[int]
    sectors: list[int]
    weights: list[float]
