"""Everything the analyses say of one traced launch: :class:`TraceAnalyses`."""

from collections.abc import Mapping
from dataclasses import field

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.basis.prose import Sentence, count, say
from gpa_lsp.emulator.trace import Buffer, StaticInstruction
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.access_sums import AccessSums
from gpa_lsp.traces.bank_conflicts import BankConflicts
from gpa_lsp.traces.branch_divergence import BranchDivergence
from gpa_lsp.traces.bypassing import BypassingAdvice
from gpa_lsp.traces.cache_hits import CacheHits
from gpa_lsp.traces.lane_addresses import WARP_LANES
from gpa_lsp.traces.model import (
    AccessGroupKind,
    AccessTotals,
    TraceContext,
    add_totals,
    find_group_kind,
)
from gpa_lsp.traces.reuse_distance import ReuseDistances
from gpa_lsp.traces.values import RepeatedValues

GLOBAL_SPACES = (Space.GLOBAL, Space.TEXTURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAnalyses:
    """What was found in one traced launch.

    Attributes:
        kernel: mangled name.
        grid: blocks in x, y, z.
        block_threads: threads of a block in x, y, z.
        origin: what made the trace: ``emulated``, or a recorder's name.
        is_complete: the trace had all rows of its blocks.
        traced_blocks: how many.
        instructions: all static instructions, by index.
        buffers: arrays, by the index the results name them by.
        context: the GPU it was thought to run on.
        accesses: memory divergence, patterns and footprints.
        banks: requests to shared memory, by instruction.
        branches: branch divergence.
        block_elements: reuse of words within blocks.
        block_lines: reuse of lines within blocks.
        warp_lines: reuse of lines within warps.
        sm_lines: reuse of lines by the loads of an SM; empty without them.
        caches: predicted hits.
        bypassing: the bypassing model; None where it has nothing to say.
        repeats: repeated loads and overwritten stores.
        block_chains: inline chain of each basic block's first instruction with a line, by the block's number; empty when not given.
        short_files: by the full name, the short name of each source file, different from those of the others.
    """

    kernel: str
    grid: tuple[int, int, int]
    block_threads: tuple[int, int, int]
    origin: str
    is_complete: bool
    traced_blocks: int
    instructions: tuple[StaticInstruction, ...] = field(repr=False)
    buffers: tuple[Buffer, ...]
    context: TraceContext
    accesses: AccessSums = field(repr=False)
    banks: tuple[BankConflicts, ...] = field(repr=False)
    branches: BranchDivergence = field(repr=False)
    block_elements: ReuseDistances = field(repr=False)
    block_lines: ReuseDistances = field(repr=False)
    warp_lines: ReuseDistances = field(repr=False)
    sm_lines: ReuseDistances = field(repr=False)
    caches: CacheHits = field(repr=False)
    bypassing: BypassingAdvice | None
    repeats: RepeatedValues = field(repr=False)
    block_chains: tuple[InlineChain | None, ...] = field(default=(), repr=False)
    short_files: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def warps_per_block(self) -> int:
        """The last one may be partly filled."""
        x, y, z = self.block_threads
        return -(-x * y * z // WARP_LANES)

    @property
    def sampled_words(self) -> Sentence:
        """A clause that says what was traced, e.g. ``64 of 1,024 blocks``."""
        total = self.grid[0] * self.grid[1] * self.grid[2]
        if self.traced_blocks == total:
            return say("all blocks") if total > 1 else say("the only block")
        return say("{traced} of {blocks}", traced=count(self.traced_blocks), blocks=count(total, "block"))

    def find_kind(self, instruction: int) -> AccessGroupKind:
        """Loads, stores or atomics."""
        return find_group_kind(self.instructions[instruction])

    def find_totals(self, kind: AccessGroupKind, spaces: tuple[Space, ...]) -> AccessTotals:
        """The requests of one kind to some spaces."""
        return add_totals(
            [
                group.totals
                for group in self.accesses.instructions
                if group.space in spaces and self.find_kind(group.instruction) is kind
            ]
        )

    def find_global_totals(self, kind: AccessGroupKind) -> AccessTotals:
        """The requests of one kind to global memory and textures."""
        return self.find_totals(kind, GLOBAL_SPACES)

    def count_global_sectors(self) -> int:
        """Sectors of all requests to global memory and textures, before any cache."""
        return sum(group.totals.sectors for group in self.accesses.instructions if group.space in GLOBAL_SPACES)
