"""How many lines, sectors and bytes the lanes of one warp access touch together.

Source: CUDAAdvisor (CGO 2018), section 4.2 (B), memory divergence: distinct lines per access.
"""

from enum import IntEnum

from gpa_lsp.execution.traces.lane_addresses import Integers
from gpa_lsp.foundation.records import ColumnRecord

LINE_SHIFT = 7  # A line has 128 bytes
SECTOR_SHIFT = 5  # A sector has 32 bytes; a line has four
WORD_SHIFT = 2  # An element of a reuse distance is a word of 4 bytes
SECTOR_BYTES = 1 << SECTOR_SHIFT
LINE_BYTES = 1 << LINE_SHIFT


class LanePattern(IntEnum):
    """The pattern of one request; which one is decided in this order."""

    SINGLE = 0  # One lane
    BROADCAST = 1  # All lanes at one address
    CONTIGUOUS = 2  # Each lane begins where the lane before it ends
    STRIDED = 3  # Each lane is the same distance, not its own width, beyond the lane before it
    # Pieces of contiguous lanes: at least half of the distances between neighbours are their width (rows of a tile)
    CONTIGUOUS_PIECES = 4
    BROADCAST_PIECES = 5  # Groups of lanes at one address each: at least half of the distances are zero
    STRIDED_PIECES = 6  # At least half of the distances are the same as the first one
    SCATTERED = 7  # Anything else: a gather or scatter


# For people
PATTERN_WORDS = {
    LanePattern.SINGLE: "one lane",
    LanePattern.BROADCAST: "all lanes at one address",
    LanePattern.CONTIGUOUS: "contiguous",
    LanePattern.STRIDED: "strided",
    LanePattern.CONTIGUOUS_PIECES: "contiguous in pieces",
    LanePattern.BROADCAST_PIECES: "groups of lanes at one address",
    LanePattern.STRIDED_PIECES: "strided in pieces",
    LanePattern.SCATTERED: "scattered",
}


class RequestColumns(ColumnRecord, frozen=True, kw_only=True):
    """What n warp-level accesses touch; all int64[n]."""

    lanes: Integers  # active ones
    lines: Integers  # distinct lines of 128 bytes. Every byte of an access counts, so an access across a boundary touches both sides.
    sectors: Integers  # distinct sectors of 32 bytes
    used_bytes: Integers  # distinct bytes
    distinct: Integers  # distinct addresses of first bytes
    pattern: Integers  # :class:`LanePattern`
    stride_bytes: Integers  # from a lane to the next one; 0 where the pattern has none

    @property
    def ideal_sectors(self) -> Integers:
        """int64[n], the fewest sectors that could hold the distinct bytes."""
        return -(-self.used_bytes // SECTOR_BYTES)

    def choose(self, rows: Integers) -> "RequestColumns":
        """Some of the rows."""
        return RequestColumns(**{name: getattr(self, name)[rows] for name in self.__struct_fields__})
