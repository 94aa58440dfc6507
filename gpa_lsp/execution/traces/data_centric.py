"""Data-centric view: per array its volumes, patterns and reuse: :func:`list_array_facts`.

Source: CUDAAdvisor (CGO 2018), section 3.2.2, for the attribution of accesses to arrays.
"""

from collections import Counter

from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.execution.accesses.lane_addresses import OUTSIDE, PATTERN_WORDS, LanePattern
from gpa_lsp.execution.emulator.model import Buffer
from gpa_lsp.execution.traces.keyed_sums import AccessGroup
from gpa_lsp.execution.traces.model import OUTSIDE_NAME, AccessGroupKind, AccessTotals, add_totals
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.reuse_distance import ReuseHistogram, add_histograms
from gpa_lsp.foundation.prose import NOTHING, Code, Part, Sentence, count, say

_LISTED_STRIDES = 3


class PatternShare(Struct, frozen=True, kw_only=True):
    """A pattern of some requests."""

    pattern: LanePattern  # which
    requests: int  # that have it
    ratio: float  # of all of them, 0..1


class ArrayFacts(Struct, frozen=True, kw_only=True):
    """A kernel's accesses to one array."""

    buffer: Buffer | None  # which; None for accesses outside of all arrays
    loads: AccessTotals  # their sums; requests to several arrays count in each
    stores: AccessTotals  # their sums
    atomics: AccessTotals  # their sums, reductions included
    patterns: tuple[PatternShare, ...]  # of all of these, most frequent first
    strides: tuple[tuple[int, int], ...]  # (bytes from lane to lane, requests), most frequent first; at most three
    worst_pattern: Sentence  # of the instruction with most sectors too many, in words; empty where none has any
    # distinct sectors touched, in bytes, no more than the array; None where it was not counted
    footprint_bytes: int | None
    line_reuse: ReuseHistogram  # of its lines within blocks
    element_reuse: ReuseHistogram  # of its words within blocks
    instructions: tuple[int, ...]  # indexes of the instructions that access it

    @property
    def name(self) -> str:
        """Name of the argument or variable."""
        return OUTSIDE_NAME if self.buffer is None else self.buffer.name

    @property
    def words(self) -> Part:
        """The name in a sentence."""
        return name_in_words(self.name)

    @property
    def sectors(self) -> int:
        """Sectors of all requests, before any cache."""
        return self.loads.sectors + self.stores.sectors + self.atomics.sectors

    @property
    def requested_bytes(self) -> int:
        """Bytes of all lanes."""
        return self.loads.requested_bytes + self.stores.requested_bytes + self.atomics.requested_bytes

    @property
    def touches_per_sector(self) -> float | None:
        """Requests per touched sector; None without a footprint."""
        return self.sectors * SECTOR_BYTES / self.footprint_bytes if self.footprint_bytes else None


def name_in_words(array: str) -> Part:
    """The name of an array, or of memory outside of all arrays, in a sentence."""
    return f"memory {OUTSIDE_NAME}" if array == OUTSIDE_NAME else Code(text=array)


def list_array_facts(analyses: TraceAnalyses) -> tuple[ArrayFacts, ...]:
    """The arrays that are accessed, by sectors, most first."""
    by_array: dict[int, list[AccessGroup]] = {}
    for group in analyses.accesses.arrays:
        by_array.setdefault(OUTSIDE if group.array is None else group.array, []).append(group)
    facts = [_build_facts(analyses, array, groups) for array, groups in by_array.items()]
    return tuple(sorted(facts, key=lambda one: (-one.sectors, one.name)))


def share_patterns(groups: list[AccessGroup]) -> tuple[PatternShare, ...]:
    """The patterns of several groups of requests, most frequent first."""
    counts: Counter[LanePattern] = Counter()
    for group in groups:
        counts.update(dict(group.patterns))
    total = sum(counts.values())
    return tuple(
        PatternShare(pattern=pattern, requests=count, ratio=count / total)
        for pattern, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    )


def sum_strides(groups: list[AccessGroup]) -> tuple[tuple[int, int], ...]:
    """(bytes, requests) of several groups, most frequent first."""
    counts: Counter[int] = Counter()
    for group in groups:
        counts.update(dict(group.strides))
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_LISTED_STRIDES])


def describe_pattern(patterns: tuple[PatternShare, ...], strides: tuple[tuple[int, int], ...]) -> Sentence:
    """The commonest pattern in words, with its stride.

    >>> describe_pattern((PatternShare(pattern=LanePattern.STRIDED, requests=4, ratio=1.0),), ((4096, 4),))
    'strided by 4,096 bytes'
    """
    if not patterns:
        return NOTHING
    first = patterns[0]
    if first.pattern not in (LanePattern.STRIDED, LanePattern.STRIDED_PIECES) or not strides:
        return say(PATTERN_WORDS[first.pattern])
    pieces = " in pieces" if first.pattern is LanePattern.STRIDED_PIECES else ""
    return say("strided by {stride}{pieces}", stride=count(strides[0][0], "byte"), pieces=pieces)


def _build_facts(analyses: TraceAnalyses, array: int, groups: list[AccessGroup]) -> ArrayFacts:
    def total(kind: AccessGroupKind) -> AccessTotals:
        return add_totals([one.totals for one in groups if analyses.find_kind(one.instruction) is kind])

    buffer = None if array == OUTSIDE else analyses.buffers[array]
    footprint = None if array == OUTSIDE else analyses.accesses.footprints[array]
    worst = max(groups, key=lambda one: one.totals.excess_sectors)
    return ArrayFacts(
        buffer=buffer,
        loads=total(AccessGroupKind.LOADS),
        stores=total(AccessGroupKind.STORES),
        atomics=total(AccessGroupKind.ATOMICS),
        patterns=share_patterns(groups),
        strides=sum_strides(groups),
        worst_pattern=describe_pattern(share_patterns([worst]), worst.strides)
        if worst.totals.excess_sectors
        else NOTHING,
        footprint_bytes=None
        if footprint is None or buffer is None
        else min(footprint * SECTOR_BYTES, buffer.size_bytes),
        line_reuse=add_histograms([one.histogram for one in analyses.block_lines.groups if one.array == array]),
        element_reuse=add_histograms([one.histogram for one in analyses.block_elements.groups if one.array == array]),
        instructions=tuple(sorted({one.instruction for one in groups})),
    )
