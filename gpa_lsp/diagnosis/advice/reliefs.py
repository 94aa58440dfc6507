"""What a remedy relieves: bytes, operations, issues, latency, or idle hardware. Every optimizer says it of itself."""

from collections.abc import Collection
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import MemoryLevel


class Relief(Enum):
    """What gets less."""

    BYTES = "bytes"
    OPERATIONS = "operations"  # Arithmetic of threads
    ISSUES = "issues"  # Warp instructions, with the arithmetic of the threads as it is
    LATENCY = "latency"  # Waiting that nothing hides: for results, other warps, instructions
    PARALLELISM = "parallelism"  # Hardware without work


class OccupancyUse(Enum):
    """When a remedy makes more warps resident and does no more than that."""

    NEVER = "never"
    FULL_GRID = "full_grid"  # Where every SM has a block already
    ALWAYS = "always"


class Reliefs(Struct, frozen=True, kw_only=True):
    """What one remedy relieves. One that changes which unit is waited for is named by what it saves, not by what it costs."""

    relieves: frozenset[Relief]  # at least one
    # of the memory whose traffic gets less; empty without :attr:`Relief.BYTES`
    levels: frozenset[MemoryLevel] = frozenset()
    occupancy: OccupancyUse = OccupancyUse.NEVER  # when it only makes more warps resident

    def relieve(self, levels: Collection[MemoryLevel]) -> "Reliefs":
        """The same with less traffic at some more levels of the memory."""
        if not levels:
            return self
        return replace(self, relieves=self.relieves | {Relief.BYTES}, levels=self.levels | frozenset(levels))
