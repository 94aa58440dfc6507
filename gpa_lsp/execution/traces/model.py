"""What the analyses of a trace share: where it is thought to run (:class:`TraceContext`), and sums over accesses (:class:`AccessTotals`)."""

from enum import StrEnum

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.traces.lane_addresses import WARP_LANES, Integers
from gpa_lsp.execution.traces.segments import SECTOR_BYTES
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.records import ColumnRecord

MOST_SEGMENTS = 128  # Lines or sectors per request from which on they are counted together

OUTSIDE = -1  # In place of an array: none of the buffers holds the address

OUTSIDE_NAME = "outside of all arrays"  # In place of its name


class Granularity(StrEnum):
    """What counts as the same thing when it is used again."""

    ELEMENT = "element"  # An aligned word of 4 bytes
    SECTOR = "sector"
    LINE = "line"


class TraceContext(Struct, frozen=True, kw_only=True):
    """The GPU a trace is thought to run on."""

    gpu: str = ""  # its name, for people; empty when it is of no product
    sm_count: int  # streaming multiprocessors
    blocks_per_sm: int  # blocks of the kernel one SM holds at once, at least 1
    l1_bytes: int | None = None  # of one SM: the unified data cache without the shared memory's part; None when unknown
    l2_bytes: int | None = None  # of the GPU; None when unknown
    assumptions: tuple[Sentence, ...] = ()  # what was assumed to get these numbers, as sentences


class StoreEffect(StrEnum):
    """What a store or atomic does to the reuse of what it stores to."""

    REFERENCE = "reference"  # It is a use like a load
    # It ends the unit's reuse: the next load is a first one, as in a cache that evicts what is written. The store itself has no distance, and from it
    # on the unit counts in no distance until it is loaded again.
    RESTART = "restart"
    IGNORED = "ignored"  # Only loads count


class AnalysisSettings(Struct, frozen=True, kw_only=True):
    """What is asked, and what bounds the time and memory; what is left out is said in the results."""

    stores: StoreEffect = StoreEffect.REFERENCE  # their effect on the reuse within blocks and warps
    evicts_on_store: bool = False  # L1 drops a line that is stored to, as before Volta; from Volta on it keeps it
    cache_ways: int | None = None  # ways of each set of both caches; None for fully associative ones
    # references looked at for each reuse within blocks and warps. Blocks are taken whole, in the order of the trace; of the first one as much as
    # fits.
    block_references: int = 1_000_000
    # sector references kept for the caches and the reuse by SM, about 100 bytes each while they are analysed
    wave_references: int = 2_000_000
    footprint_sectors: int = 1 << 26  # sectors of all arrays together that are watched for being touched; a byte each
    value_rows: int = 1_000_000  # requests kept to find repeated loads and overwritten stores, about 60 bytes each


class AccessTotals(ColumnRecord, frozen=True, kw_only=True):
    """Sums over *requests*: warp-level accesses with at least one lane."""

    requests: int  # how many
    lanes: int  # active lanes over all of them
    requested_bytes: int  # bytes of all lanes, equal addresses counted each time
    used_bytes: int  # distinct bytes of each request
    lines: int  # distinct lines of 128 bytes of each request
    sectors: int  # distinct sectors of 32 bytes of each request
    ideal_sectors: int  # the fewest sectors that hold the distinct bytes of each request
    uniform: int  # requests of two lanes or more, all at one address
    line_histogram: Integers  # int64[129], requests by lines; the last bin holds those with more as well
    sector_histogram: Integers  # int64[129], requests by sectors; the last bin as above

    @property
    def lines_per_request(self) -> float:
        """The degree of memory divergence at 128 bytes; 0 without requests."""
        return self.lines / self.requests if self.requests else 0.0

    @property
    def sectors_per_request(self) -> float:
        """The degree of memory divergence at 32 bytes; 0 without requests."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def ideal_sectors_per_request(self) -> float:
        """What the distinct bytes would need if they lay side by side."""
        return self.ideal_sectors / self.requests if self.requests else 0.0

    @property
    def excess_sectors(self) -> int:
        """Sectors beyond the fewest; never negative."""
        return self.sectors - self.ideal_sectors

    @property
    def excess_ratio(self) -> float:
        """Of all sectors, 0..1."""
        return self.excess_sectors / self.sectors if self.sectors else 0.0

    @property
    def used_ratio(self) -> float:
        """Distinct bytes of those of the touched sectors, 0..1."""
        return self.used_bytes / (self.sectors * SECTOR_BYTES) if self.sectors else 0.0

    @property
    def lane_ratio(self) -> float:
        """Active lanes of all lanes, 0..1."""
        return self.lanes / (self.requests * WARP_LANES) if self.requests else 0.0


def build_empty_totals() -> AccessTotals:
    """Sums over nothing."""
    empty = np.zeros(MOST_SEGMENTS + 1, dtype=np.int64)
    return AccessTotals(
        requests=0, lanes=0, requested_bytes=0, used_bytes=0, lines=0, sectors=0, ideal_sectors=0, uniform=0,
        line_histogram=empty, sector_histogram=empty,
    )  # fmt: skip


def add_totals(totals: "list[AccessTotals] | tuple[AccessTotals, ...]") -> AccessTotals:
    """The sums of several groups of requests."""
    every = totals or [build_empty_totals()]
    if len(every) == 1:
        return every[0]
    return AccessTotals(
        requests=sum(one.requests for one in every),
        lanes=sum(one.lanes for one in every),
        requested_bytes=sum(one.requested_bytes for one in every),
        used_bytes=sum(one.used_bytes for one in every),
        lines=sum(one.lines for one in every),
        sectors=sum(one.sectors for one in every),
        ideal_sectors=sum(one.ideal_sectors for one in every),
        uniform=sum(one.uniform for one in every),
        line_histogram=np.sum([one.line_histogram for one in every], axis=0),
        sector_histogram=np.sum([one.sector_histogram for one in every], axis=0),
    )


class AccessGroupKind(StrEnum):
    """Loads, stores and atomics are never added up."""

    LOADS = "loads"
    STORES = "stores"
    ATOMICS = "atomics"  # Reductions as well


def find_group_kind(instruction: StaticInstruction) -> AccessGroupKind:
    """Which of the three an access instruction is; what states no kind counts as a load."""
    if instruction.kind in (AccessKind.ATOMIC, AccessKind.REDUCTION):
        return AccessGroupKind.ATOMICS
    return AccessGroupKind.STORES if instruction.kind is AccessKind.STORE else AccessGroupKind.LOADS


ARRAY_SPACES = (Space.GLOBAL, Space.TEXTURE, Space.CONST)  # Spaces whose addresses are of arrays

CACHED_SPACES = (Space.GLOBAL, Space.TEXTURE, Space.LOCAL)  # Spaces whose accesses go through L1
