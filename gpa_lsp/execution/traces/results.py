"""Results of all analyses of one traced launch: :class:`TraceAnalyses`."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.model import Buffer
from gpa_lsp.execution.traces.access_sums import AccessSums, BankConflicts
from gpa_lsp.execution.traces.branch_divergence import BranchDivergence
from gpa_lsp.execution.traces.cache_hits import BypassingAdvice, CacheHits
from gpa_lsp.execution.traces.model import AccessGroupKind, AccessTotals, TraceContext, add_totals, find_group_kind
from gpa_lsp.execution.traces.reuse_distance import ReuseDistances
from gpa_lsp.execution.traces.values import RepeatedValues
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import Sentence, count, say

GLOBAL_SPACES = (Space.GLOBAL, Space.TEXTURE)


class TraceAnalyses(Struct, frozen=True, kw_only=True):
    """Results of all analyses of one traced launch."""

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
    def sampled_words(self) -> Sentence:
        """A clause that says what was traced, e.g. ``64 of 1,024 blocks``."""
        total = math.prod(self.grid)
        if self.traced_blocks == total:
            return say("all blocks") if total > 1 else say("the only block")
        return say("{traced} of {blocks}", traced=count(self.traced_blocks), blocks=count(total, "block"))

    def find_kind(self, instruction: int) -> AccessGroupKind:
        """Kind of an access instruction, by its index."""
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


# How much the measures of a kernel differ between launches: mean, least, most and deviation.
#
# Source: CUDAAdvisor (CGO 2018), section 3.3, which merges instances of a kernel this way.


class MeasureSpread(Struct, frozen=True, kw_only=True):
    """One measure over several launches."""

    measure: str  # its name, for people
    quantity: Quantity  # its unit
    launches: int  # that have it
    mean: float  # of them
    least: float  # of them
    most: float  # of them
    deviation: float  # standard deviation over these launches themselves (not an estimate for others); 0 for one


Measure = tuple[str, Quantity, float | None]  # Name, unit, value; None where a launch has none


def list_measures(analyses: TraceAnalyses) -> tuple[Measure, ...]:
    """The measures of one launch that are compared: name, unit, value; None where the launch has none."""
    rows: list[Measure] = []
    for kind in AccessGroupKind:
        totals = analyses.find_global_totals(kind)
        has = totals.requests > 0
        rows += [
            (f"global {kind.value}: requests", Quantity.COUNT, float(totals.requests)),
            (f"global {kind.value}: sectors per request", Quantity.NUMBER, totals.sectors_per_request if has else None),
            (f"global {kind.value}: lines per request", Quantity.NUMBER, totals.lines_per_request if has else None),
            (f"global {kind.value}: excess sectors", Quantity.RATIO, totals.excess_ratio if has else None),
        ]
    branches = analyses.branches
    rows.append(("branches that diverge", Quantity.RATIO, branches.divergent_ratio if branches.executions else None))
    rows.append(("lane efficiency", Quantity.RATIO, branches.lane_ratio))
    shared = sum(one.wavefronts for one in analyses.banks)
    requests = sum(one.requests for one in analyses.banks)
    rows.append(("shared memory: wavefronts per request", Quantity.NUMBER, shared / requests if requests else None))
    reuse = analyses.block_lines.total
    rows.append(("lines used once in their block", Quantity.RATIO, reuse.streaming_ratio if reuse.references else None))
    rows.append(("mean reuse distance in lines, within blocks", Quantity.NUMBER, reuse.mean_distance))
    rows.append(("predicted L1 hit rate", Quantity.RATIO, analyses.caches.l1_hit_ratio))
    rows.append(("predicted L2 hit rate", Quantity.RATIO, analyses.caches.l2_hit_ratio))
    return tuple(rows)


def spread_listed(launches: Sequence[Sequence[Measure]]) -> tuple[MeasureSpread, ...]:
    """Each measure over launches of one kernel, of what :func:`list_measures` gave for each; measures that no launch has are left out."""
    values: dict[tuple[str, Quantity], list[float]] = {}
    for measures in launches:
        for name, quantity, value in measures:
            if value is not None:
                values.setdefault((name, quantity), []).append(value)
    spreads = []
    for (name, quantity), found in values.items():
        mean = math.fsum(found) / len(found)
        spreads.append(
            MeasureSpread(
                measure=name,
                quantity=quantity,
                launches=len(found),
                mean=mean,
                least=min(found),
                most=max(found),
                deviation=math.sqrt(math.fsum((value - mean) ** 2 for value in found) / len(found)),
            )
        )
    return tuple(spreads)
