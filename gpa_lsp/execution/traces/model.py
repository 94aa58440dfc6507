"""Records that the analyses of a trace share: the GPU it is taken to run on (:class:`TraceContext`), sums over accesses (:class:`AccessTotals`)."""

from collections.abc import Sequence
from enum import StrEnum
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES, WARP_LANES
from gpa_lsp.execution.accesses.lane_addresses import Integers
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count, format_count_of
from gpa_lsp.foundation.prose import Sentence, say, size
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, count_shared_per_block, find_occupancy
from gpa_lsp.gpu.device.products import Product, load_products

MOST_SEGMENTS = 128  # Lines or sectors per request from which on they are counted together

OUTSIDE_NAME = "outside of all arrays"  # In place of its name


class Granularity(StrEnum):
    """Unit whose reuse is measured."""

    ELEMENT = "element"  # An aligned word of 4 bytes
    LINE = "line"


class TraceContext(Struct, frozen=True, kw_only=True):
    """The GPU a trace is taken to run on."""

    gpu: str = ""  # its name, for people; empty when it is of no product
    sm_count: int  # streaming multiprocessors
    blocks_per_sm: int  # blocks of the kernel one SM holds at once, at least 1
    l1_bytes: int | None = None  # of one SM: the unified data cache without the shared memory's part; None when unknown
    l2_bytes: int | None = None  # of the GPU; None when unknown
    assumptions: tuple[Sentence, ...] = ()  # what was assumed to get these numbers, as sentences


class AnalysisSettings(Struct, frozen=True, kw_only=True):
    """Bounds of time and memory of the analyses; results say what was left out."""

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
        """Sectors of a request whose distinct bytes lie side by side; 0 without requests."""
        return self.ideal_sectors / self.requests if self.requests else 0.0

    @property
    def excess_sectors(self) -> int:
        """Sectors beyond the fewest; never negative."""
        return self.sectors - self.ideal_sectors

    @property
    def excess_ratio(self) -> float:
        """Excess sectors of all, 0..1."""
        return self.excess_sectors / self.sectors if self.sectors else 0.0

    @property
    def used_ratio(self) -> float:
        """Distinct bytes of those of the touched sectors, 0..1."""
        return self.used_bytes / (self.sectors * SECTOR_BYTES) if self.sectors else 0.0

    @property
    def lane_ratio(self) -> float:
        """Active lanes of all lanes, 0..1."""
        return self.lanes / (self.requests * WARP_LANES) if self.requests else 0.0


def add_totals(totals: Sequence[AccessTotals]) -> AccessTotals:
    """The sums of several groups of requests."""
    sums: dict[str, Any] = dict.fromkeys(AccessTotals.__struct_fields__, 0)
    sums["line_histogram"] = sums["sector_histogram"] = np.zeros(MOST_SEGMENTS + 1, dtype=np.int64)
    return AccessTotals(**{name: sum((getattr(one, name) for one in totals), start) for name, start in sums.items()})


class AccessGroupKind(StrEnum):
    """Kind of a group of requests; different kinds are never added up."""

    LOADS = "loads"
    STORES = "stores"
    ATOMICS = "atomics"  # Reductions as well


def find_group_kind(instruction: StaticInstruction) -> AccessGroupKind:
    """Kind of an access instruction; one that states no kind counts as a load."""
    if instruction.kind in (AccessKind.ATOMIC, AccessKind.REDUCTION):
        return AccessGroupKind.ATOMICS
    return AccessGroupKind.STORES if instruction.kind is AccessKind.STORE else AccessGroupKind.LOADS


def build_trace_context(
    compute_capability: tuple[int, int],
    *,
    block_threads: tuple[int, int, int],
    registers_per_thread: int | None = None,
    shared_bytes: int = 0,
    product: Product | None = None,
) -> TraceContext:
    """The context of a launch.

    Args:
        registers_per_thread: as compiled; None when unknown, and registers then limit nothing.
        product: the GPU with these SMs and L2; None for the first known one of this capability, which the assumptions name.

    Raises:
        UnknownArchitectureError: there is no table of this capability.
        InputError: no block of this kind fits, or the product is of another capability.
    """
    architecture = find_architecture(compute_capability)
    assumptions: list[Sentence] = []
    if product is None:
        product = next((one for one in load_products() if one.compute_capability == compute_capability), None)
        if product is not None:
            assumptions.append(say("SMs and L2 are those of the {gpu}.", gpu=product.name))
    if product is not None and product.compute_capability != compute_capability:
        raise InputError(
            f"{product.name} is of compute capability {product.compute_capability[0]}.{product.compute_capability[1]}",
            remedy=f"name a GPU of {compute_capability[0]}.{compute_capability[1]}",
        )
    if registers_per_thread is None:
        assumptions.append(say("Register use is unknown and assumed not to limit occupancy."))
    threads = prod(block_threads)
    if threads < 1:
        raise InputError(
            f"a block of {format_count_of(threads, 'thread')}", remedy="give a block of at least one thread"
        )
    shape = BlockShape(threads=threads, registers_per_thread=registers_per_thread or 0, shared_bytes=shared_bytes)
    blocks = find_occupancy(architecture, shape).blocks_per_sm
    if blocks == 0:
        raise InputError(
            f"no SM of compute capability {compute_capability[0]}.{compute_capability[1]} can hold a block of {format_count(threads)} threads",
            remedy="make the block smaller, or give it fewer registers or less shared memory",
        )
    carveout = _find_carveout(architecture, blocks, shared_bytes)
    own = None if product is None else product.l1_bytes
    l1_bytes = max(0, (own or architecture.caches.unified_data_cache_bytes.value) - carveout)
    assumptions.append(say("L1 has what a shared-memory carve-out of {carveout} leaves.", carveout=size(carveout)))
    if product is None:
        assumptions.append(say("One SM is modelled: no GPU of this compute capability is in the tables."))
    return TraceContext(
        gpu="" if product is None else product.name,
        sm_count=1 if product is None else product.sm_count,
        blocks_per_sm=blocks,
        l1_bytes=l1_bytes,
        l2_bytes=None if product is None else product.l2_bytes,
        assumptions=tuple(assumptions),
    )


def _find_carveout(architecture: Architecture, blocks: int, shared_bytes: int) -> int:
    """The smallest carve-out that holds all resident blocks."""
    per_block = count_shared_per_block(architecture, shared_bytes)
    sizes = architecture.occupancy.shared_carveouts_bytes.value
    return next((size for size in sizes if size >= blocks * per_block), sizes[-1])
