"""Everything the analyses say of one traced launch: :class:`TraceAnalyses`."""

from collections.abc import Mapping

from msgspec import Struct, field

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.trace import Buffer
from gpa_lsp.execution.traces.access_sums import AccessSums
from gpa_lsp.execution.traces.bank_conflicts import BankConflicts
from gpa_lsp.execution.traces.branch_divergence import BranchDivergence
from gpa_lsp.execution.traces.bypassing import BypassingAdvice
from gpa_lsp.execution.traces.cache_hits import CacheHits
from gpa_lsp.execution.traces.lane_addresses import WARP_LANES
from gpa_lsp.execution.traces.model import (
    AccessGroupKind,
    AccessTotals,
    TraceContext,
    add_totals,
    find_group_kind,
)
from gpa_lsp.execution.traces.reuse_distance import ReuseDistances
from gpa_lsp.execution.traces.values import RepeatedValues
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.prose import Sentence, count, say

GLOBAL_SPACES = (Space.GLOBAL, Space.TEXTURE)


class TraceAnalyses(Struct, frozen=True, kw_only=True):
    """What was found in one traced launch."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # blocks in x, y, z
    block_threads: tuple[int, int, int]  # threads of a block in x, y, z
    origin: str  # what made the trace: ``emulated``, or a recorder's name
    is_complete: bool  # the trace had all rows of its blocks
    traced_blocks: int  # how many
    instructions: tuple[StaticInstruction, ...]  # all static instructions, by index
    buffers: tuple[Buffer, ...]  # arrays, by the index the results name them by
    context: TraceContext  # the GPU it was thought to run on
    accesses: AccessSums  # memory divergence, patterns and footprints
    banks: tuple[BankConflicts, ...]  # requests to shared memory, by instruction
    branches: BranchDivergence  # branch divergence
    block_elements: ReuseDistances  # reuse of words within blocks
    block_lines: ReuseDistances  # reuse of lines within blocks
    warp_lines: ReuseDistances  # reuse of lines within warps
    sm_lines: ReuseDistances  # reuse of lines by the loads of an SM; empty without them
    caches: CacheHits  # predicted hits
    bypassing: BypassingAdvice | None  # the bypassing model; None where it has nothing to say
    repeats: RepeatedValues  # repeated loads and overwritten stores
    # inline chain of each basic block's first instruction with a line, by the block's number; empty when not given
    block_chains: tuple[InlineChain | None, ...] = ()
    # by the full name, the short name of each source file, different from those of the others
    short_files: Mapping[str, str] = field(default_factory=dict)

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
