"""Facts of a trace by source line, for an editor: :class:`AccessLineFact` and :class:`BranchLineFact`.

An instruction counts at the user's line that names it and, where that is in a function that was inlined or called, marked as nested, at every line
of other functions on its call path, so that a reader of the kernel's file sees what the functions it calls do. Accesses of one line to different
arrays, or in different patterns, are facts of their own; what the compiler unrolled is one.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.traces.access_sums import BankConflicts
from gpa_lsp.execution.traces.code_centric import (
    Look,
    find_caller,
    find_look,
    find_statements,
    list_frames,
    name_arrays,
)
from gpa_lsp.execution.traces.data_centric import PatternShare, describe_pattern, share_patterns, sum_strides
from gpa_lsp.execution.traces.keyed_sums import AccessGroup
from gpa_lsp.execution.traces.model import OUTSIDE_NAME, AccessGroupKind, AccessTotals, add_totals
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.reuse_distance import ReuseHistogram, add_histograms
from gpa_lsp.execution.traces.words import find_remedy
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.numbers import format_count_of, format_number, format_number_of, format_percent
from gpa_lsp.foundation.ownership import choose_frame, find_library_frame, name_stand_in
from gpa_lsp.foundation.prose import Sentence

_SHOWN_SPACES = (Space.GLOBAL, Space.TEXTURE, Space.LOCAL, Space.SHARED, Space.CONST)


class AccessLineFact(Struct, frozen=True, kw_only=True):
    """The accesses of one kind, to one space and the same arrays, in one pattern, at one line."""

    file: str  # as compiled
    line: int  # 1-based
    is_nested: bool  # the instructions are of a function inlined or called here
    kind: AccessGroupKind  # loads, stores or atomics
    space: Space  # of them
    origin: str  # ``emulated``, or what recorded the trace
    arrays: tuple[str, ...]  # names, most sectors first; empty for shared and local memory
    requests: int  # warp-level accesses
    lanes_per_request: float  # active lanes, 1..32
    lines_per_request: float  # distinct lines of 128 bytes; 0 for shared memory, as the next four
    sectors_per_request: float  # distinct sectors of 32 bytes
    ideal_sectors_per_request: float  # what the distinct bytes would need at best
    sectors: int  # of all requests
    share_ratio: float | None  # of all sectors of the kernel's global requests, 0..1; None for other spaces
    patterns: tuple[PatternShare, ...]  # of the lanes, most frequent first
    strides_bytes: tuple[int, ...]  # distances from lane to lane, most frequent first
    wavefronts_per_request: float  # of shared memory; 0 for others
    ideal_wavefronts_per_request: float  # without bank conflicts; 0 for others
    reuse: ReuseHistogram | None  # of lines within blocks, by distance; None where nothing is known of it
    l1_hit_ratio: float | None  # predicted, of load sectors; None without loads, or without L1's size
    l2_hit_ratio: float | None  # predicted, of those that reach L2; None without loads, or without L2's size
    repeated_ratio: float  # loads that repeat an earlier load, stores that are overwritten unread; 0..1
    # (call path to the line's function, outermost first; its share of the requests, 0..1), largest first; empty in the kernel's own code, and where
    # nested
    callers: tuple[tuple[str, float], ...] = ()
    # 1-based, of the instructions on the line, ascending; empty where nested, and where the compiler gave none
    columns: tuple[int, ...] = ()

    def write_arrays(self, mark: Callable[[str], str] = str) -> str:
        """Names of the arrays in a row, with memory outside of all; empty without any.

        Args:
            mark: makes code of a name.
        """
        return ", ".join(f"memory {OUTSIDE_NAME}" if one == OUTSIDE_NAME else mark(one) for one in self.arrays)

    @property
    def is_shared(self) -> bool:
        """Whether banks count, not sectors."""
        return self.space is Space.SHARED

    @property
    def cost(self) -> float:
        """Sectors, or wavefronts, of a request."""
        return self.wavefronts_per_request if self.is_shared else self.sectors_per_request

    @property
    def ideal(self) -> float:
        """The fewest sectors, or wavefronts, of a request."""
        return self.ideal_wavefronts_per_request if self.is_shared else self.ideal_sectors_per_request

    @property
    def excess_ratio(self) -> float:
        """Sectors, or wavefronts, beyond the fewest, of all of them; 0..1."""
        return (self.cost - self.ideal) / self.cost if self.cost > 0 else 0.0

    @property
    def name(self) -> str:
        """``loads of `in```, ``stores of shared memory``."""
        where = self.write_arrays("`{}`".format) or f"{self.space.name.lower()} memory"
        return f"{self.kind.value} of {where}{' in a function called here' if self.is_nested else ''}"

    @property
    def cost_words(self) -> str:
        """``8.0 sectors per request``."""
        return f"{format_number_of(self.cost, 'wavefront' if self.is_shared else 'sector')} per request"

    @property
    def words(self) -> str:
        """Cost of the accesses, and the lowest possible."""
        return f"{self.name}: {self.cost_words}, {format_number(self.ideal)} at best"

    @property
    def pattern_words(self) -> Sentence:
        """The commonest pattern, in words."""
        return describe_pattern(self.patterns, tuple((one, 1) for one in self.strides_bytes))

    @property
    def remedy(self) -> Sentence:
        """Remedy; empty where none is needed."""
        strides = tuple((one, 1) for one in self.strides_bytes)
        return find_remedy(self.kind, tuple((one.pattern, one.requests) for one in self.patterns), strides)


class BranchLineFact(Struct, frozen=True, kw_only=True):
    """The conditional branches at one line."""

    file: str  # as compiled
    line: int  # 1-based
    is_nested: bool  # as in :class:`AccessLineFact`
    origin: str  # as in :class:`AccessLineFact`
    executions: int  # by warps
    divergent: int  # executions that went both ways
    lanes_per_execution: float  # active lanes, 1..32
    taken_ratio: float  # lanes that jumped, of those that executed it
    # ``always``, ``never``: all branches of the line were taken by every lane, or by none; empty otherwise
    one_way: str
    columns: tuple[int, ...] = ()  # as in :class:`AccessLineFact`

    @property
    def divergent_ratio(self) -> float:
        """Divergent executions of all, 0..1."""
        return self.divergent / self.executions if self.executions else 0.0

    @property
    def words(self) -> str:
        """Share of the executions of the line's branches that diverge, in words."""
        return f"{format_percent(self.divergent_ratio)} of {format_count_of(self.executions, 'branch')} diverge"


_Place = tuple[SourceLine, bool]


def list_places(analyses: TraceAnalyses, instruction: int) -> tuple[_Place, ...]:
    """The lines an instruction counts at, and whether it is nested there; none for code without lines, and none in stand-ins of ours."""
    frames = list_frames(analyses, instruction)
    is_stand_in = any(name_stand_in(frame.file) for frame in frames)
    places: dict[SourceLine, bool] = {}
    for depth, frame in enumerate(frames[frames.index(choose_frame(frames)) :] if frames else ()):
        if frame.line > 0 and not name_stand_in(frame.file):
            places.setdefault(frame.source_line, depth > 0 or is_stand_in)
    return tuple(places.items())


def list_line_facts(analyses: TraceAnalyses) -> tuple[AccessLineFact, ...]:
    """The accesses of every line, by file, line, space and kind, most sectors first; nested ones after the line's own."""
    banks = {one.instruction: one for one in analyses.banks}
    groups = {(one.instruction, one.space): one for one in analyses.accesses.instructions}
    members: dict[tuple[_Place, Space, AccessGroupKind, Look], list[int]] = {}
    pairs = [*groups, *((instruction, Space.SHARED) for instruction in banks)]
    for instruction, space in pairs:
        if space in _SHOWN_SPACES:
            look = find_look(analyses, groups.get((instruction, space)))
            for place in list_places(analyses, instruction):
                members.setdefault((place, space, analyses.find_kind(instruction), look), []).append(instruction)
    facts = []
    for ((source, is_nested), space, kind, _), instructions in members.items():
        chosen = [groups[one, space] for one in instructions if (one, space) in groups]
        shared = [banks[one] for one in instructions if space is Space.SHARED]
        facts.append(
            _build_fact(analyses, source, is_nested=is_nested, space=space, kind=kind, groups=chosen, shared=shared)
        )
    return tuple(sorted(facts, key=lambda one: (one.file, one.line, one.is_nested, one.space, one.kind, -one.sectors)))


def list_branch_facts(analyses: TraceAnalyses) -> tuple[BranchLineFact, ...]:
    """The branches of every line, by file and line; those of mathematical functions that are inlined there are not the line's."""
    statements = find_statements(analyses)
    sums: dict[_Place, list[int]] = {}
    members: dict[_Place, list[int]] = {}
    for branch in analyses.branches.branches:
        if statements[branch.instruction][0]:
            continue
        for place in list_places(analyses, branch.instruction):
            row = sums.setdefault(place, [0, 0, 0, 0])
            members.setdefault(place, []).append(branch.instruction)
            values = (branch.executions, branch.divergent, branch.active_lanes, branch.taken_lanes)
            for column, value in enumerate(values):
                row[column] += value
    facts = [
        BranchLineFact(
            file=source.file,
            line=source.line,
            is_nested=is_nested,
            origin=analyses.origin,
            executions=executions,
            divergent=divergent,
            lanes_per_execution=active / executions,
            taken_ratio=taken / active,
            one_way="always" if taken == active else "never" if taken == 0 else "",
            columns=() if is_nested else _list_columns(analyses, members[source, is_nested]),
        )
        for (source, is_nested), (executions, divergent, active, taken) in sums.items()
        if executions and active
    ]
    return tuple(sorted(facts, key=lambda one: (one.file, one.line, one.is_nested)))


def _build_fact(
    analyses: TraceAnalyses,
    source: SourceLine,
    *,
    is_nested: bool,
    space: Space,
    kind: AccessGroupKind,
    groups: list[AccessGroup],
    shared: list[BankConflicts],
) -> AccessLineFact:
    totals: AccessTotals = add_totals([one.totals for one in groups])
    numbers = {one.instruction for one in groups} | {one.instruction for one in shared}
    requests = totals.requests + sum(one.requests for one in shared)
    lanes = totals.lanes + sum(one.lanes for one in shared)
    is_cached = space in (Space.GLOBAL, Space.TEXTURE)
    reuse = [one.histogram for one in analyses.block_lines.groups if one.instruction in numbers] if is_cached else []
    l1, l2 = _predict_hits(analyses, numbers) if is_cached and kind is AccessGroupKind.LOADS else (None, None)
    return AccessLineFact(
        file=source.file,
        line=source.line,
        is_nested=is_nested,
        kind=kind,
        space=space,
        origin=analyses.origin,
        arrays=name_arrays(analyses, numbers) if groups else (),
        requests=requests,
        lanes_per_request=lanes / requests if requests else 0.0,
        lines_per_request=totals.lines_per_request,
        sectors_per_request=totals.sectors_per_request,
        ideal_sectors_per_request=totals.ideal_sectors_per_request,
        sectors=totals.sectors,
        share_ratio=totals.sectors / max(1, analyses.count_global_sectors()) if is_cached else None,
        patterns=share_patterns(groups),
        strides_bytes=tuple(stride for stride, _ in sum_strides(groups)),
        wavefronts_per_request=sum(one.wavefronts for one in shared) / requests if shared else 0.0,
        ideal_wavefronts_per_request=sum(one.ideal_wavefronts for one in shared) / requests if shared else 0.0,
        reuse=add_histograms(reuse) if reuse else None,
        l1_hit_ratio=l1,
        l2_hit_ratio=l2,
        repeated_ratio=_find_repeats(analyses, numbers, requests),
        callers=() if is_nested else _share_callers(analyses, (*groups, *shared)),
        columns=() if is_nested else _list_columns(analyses, numbers),
    )


def _list_columns(analyses: TraceAnalyses, instructions: Iterable[int]) -> tuple[int, ...]:
    own = [one for one in instructions if find_library_frame(list_frames(analyses, one)) is None]
    return tuple(sorted({analyses.instructions[one].column for one in own} - {0}))


def _share_callers(
    analyses: TraceAnalyses, parts: Sequence[AccessGroup | BankConflicts]
) -> tuple[tuple[str, float], ...]:
    sums: dict[str, int] = {}
    for part in parts:
        caller = find_caller(analyses, part.instruction)
        if caller is not None:
            requests = part.totals.requests if isinstance(part, AccessGroup) else part.requests
            words = caller.write(analyses.short_files)
            sums[words] = sums.get(words, 0) + requests
    whole = max(1, sum(sums.values()))
    return tuple((words, sums[words] / whole) for words in sorted(sums, key=lambda one: (-sums[one], one)))


def _predict_hits(analyses: TraceAnalyses, numbers: set[int]) -> tuple[float | None, float | None]:
    rows = [one for one in analyses.caches.instructions if one.instruction in numbers]
    l1, l2 = sum(one.l1_sectors for one in rows), sum(one.l2_sectors for one in rows)
    l1_ratio = sum(one.l1_hits for one in rows) / l1 if l1 and analyses.caches.l1_bytes is not None else None
    l2_ratio = sum(one.l2_hits for one in rows) / l2 if l2 and analyses.caches.l2_bytes is not None else None
    return l1_ratio, l2_ratio


def _find_repeats(analyses: TraceAnalyses, numbers: set[int], requests: int) -> float:
    repeats = (*analyses.repeats.loads, *analyses.repeats.stores)
    repeated = sum(one.repeated for one in repeats if one.instruction in numbers)
    return min(1.0, repeated / requests) if requests else 0.0
