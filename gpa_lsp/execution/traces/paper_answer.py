"""CUDAAdvisor's own numbers as an answer: :class:`PaperCollector` takes the pieces of a trace and answers."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.diagnosis.analyses.answers import Answer, Missing, Table, list_columns
from gpa_lsp.execution.accesses.lane_addresses import (
    INFINITE,
    NOT_COUNTED,
    Integers,
    count_lanes,
    list_lanes,
    pack_lanes,
    split_rows,
)
from gpa_lsp.execution.accesses.references import measure_distances, name_warps, number_turns, number_warps
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.cache_hits import BypassingAdvice, count_caching_warps
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.reuse_distance import Scope
from gpa_lsp.foundation.numbers import Cell, format_count, format_count_of
from gpa_lsp.foundation.prose import Sentence, join, number, say
from gpa_lsp.foundation.records import ColumnRecord

KEPLER_LINE_BYTES = 128
PASCAL_LINE_BYTES = 32

NAME = "traced_paper"
_LINE_SIZES = (KEPLER_LINE_BYTES, PASCAL_LINE_BYTES)
_SCOPES = (Scope.WARP, Scope.BLOCK)
_MOST_LINES = 32
# Accesses by threads that are looked at: a log of them takes about 300 bytes each while it is sorted
_MOST_ENTRIES = 8_000_000


class PaperDivergence(ColumnRecord, frozen=True, kw_only=True):
    """Memory divergence in the paper's sense."""

    line_bytes: int  # what counts as a line
    groups: Integers  # int64[33], groups of lanes by distinct lines; entry 0 is empty

    @property
    def ratios(self) -> dict[int, float]:
        """Lines → share of the groups, 0..1, those that occur."""
        total = int(self.groups.sum())
        return {lines: int(count) / total for lines, count in enumerate(self.groups) if count}

    @property
    def degree(self) -> float:
        """The mean number of lines; 0 without groups."""
        total = int(self.groups.sum())
        return float((self.groups * np.arange(len(self.groups))).sum()) / total if total else 0.0


class PaperReuse(ColumnRecord, frozen=True, kw_only=True):
    """Reuse distance in the paper's sense, over all warps or blocks of a trace."""

    bins: Integers  # int64[65], loads by distance: 0, then from 2**(k-1) on. First loads are in the bin of 1.
    streaming: int  # streaming intervals, what the figures show as ∞
    entries: int  # loads and stores
    mean_distance: float  # over all entries, a first load 1 and a store -2, as coded; 0 without any
    # over the addresses of each sequence, of the mean over the address's loads; averaged over sequences
    mean_of_addresses: float
    # int64[65], loads by distance as the paper's text defines it: those whose address was loaded before, and not stored to since
    text_bins: Integers
    text_infinite: int  # all other loads, ∞ by the text
    text_sum: int  # of the distances in ``text_bins``

    @property
    def text_mean(self) -> float | None:
        """Mean distance by the text; None where nothing is used again."""
        loads = int(self.text_bins.sum())
        return self.text_sum / loads if loads else None


class PaperBranches(Struct, frozen=True, kw_only=True):
    """Branch divergence in the paper's sense."""

    divergent: int  # pairs of warp and basic block
    total: int  # all pairs

    @property
    def ratio(self) -> float:
        """Divergent ones of all, 0..1."""
        return self.divergent / self.total if self.total else 0.0


class _Piece(Struct, frozen=True, kw_only=True):
    """Measures of one piece of a trace."""

    warps: int
    blocks: int
    divergence: tuple[PaperDivergence, ...]
    reuse: tuple[PaperReuse, ...]
    branches: PaperBranches


class PaperCollector:
    """A :class:`~gpa_lsp.execution.emulator.model.TraceSink` that counts as CUDAAdvisor's analyser does.

    Args:
        most_entries: accesses by threads; pieces after that are left out, which the answer states.
    """

    def __init__(self, most_entries: int = _MOST_ENTRIES) -> None:
        self._left = most_entries
        self._pieces: list[_Piece] = []
        self._left_out = 0
        self._origin = ""
        self._warps_per_block = 1

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        x, y, z = piece.block_threads
        self._origin, self._warps_per_block = piece.origin, -(-x * y * z // WARP_LANES)
        entries = len(piece.accesses.addresses)
        if entries > self._left and self._pieces:
            self._left_out += 1
            return
        self._left -= entries
        blocks = len(piece.traced_blocks)
        self._pieces.append(
            _Piece(
                warps=blocks * self._warps_per_block,
                blocks=blocks,
                divergence=tuple(measure_paper_divergence(piece, line_bytes=size) for size in _LINE_SIZES),
                reuse=tuple(measure_paper_reuse(piece, scope=scope) for scope in _SCOPES),
                branches=measure_paper_branches(piece),
            )
        )

    def answer(self, context: TraceContext) -> Answer:
        """Answer with all counts."""
        title = f"By CUDAAdvisor's own definitions ({self._origin or 'emulated'})"
        if not self._pieces:
            return Answer(analysis=NAME, title=title, summary=say("Nothing was traced."), is_known=False)
        divergence = tuple(self._add_divergence(number) for number in range(len(_LINE_SIZES)))
        reuse = tuple(self._add_reuse(number) for number in range(len(_SCOPES)))
        pairs = sum(one.branches.total for one in self._pieces)
        branches = PaperBranches(divergent=sum(one.branches.divergent for one in self._pieces), total=pairs)
        missing = (
            [] if pairs else [Missing(what="branch divergence", why=say("no entries into basic blocks were traced"))]
        )
        if self._left_out:
            what = f"{format_count_of(self._left_out, 'later piece')} of the trace"
            missing.append(Missing(what=what, why=say("more accesses would not fit in memory")))
        return Answer(
            analysis=NAME,
            title=title,
            summary=say(
                "A load touches {wide} of 128 bytes, {narrow} of 32; {distance}.",
                wide=number(divergence[0].degree, "line"),
                narrow=number(divergence[1].degree),
                distance=_say_mean(reuse[0].text_mean),
            ),
            tables=(
                _tabulate_divergence(divergence),
                _tabulate_reuse(reuse),
                *_tabulate_branches(branches),
                *self._tabulate_bypassing(divergence, reuse[0], context),
            ),
            missing=tuple(missing),
        )

    def _add_divergence(self, number: int) -> PaperDivergence:
        groups: Integers = sum(one.divergence[number].groups for one in self._pieces)  # type: ignore[assignment]  # never empty
        return PaperDivergence(line_bytes=_LINE_SIZES[number], groups=groups)

    def _add_reuse(self, number: int) -> PaperReuse:
        """Sums of the pieces; means are weighted by entries, or by sequences (warps or blocks)."""
        parts = [one.reuse[number] for one in self._pieces]
        sequences = [one.warps if _SCOPES[number] is Scope.WARP else one.blocks for one in self._pieces]
        entries = sum(one.entries for one in parts)
        bins: Integers = sum(one.bins for one in parts)  # type: ignore[assignment]  # never empty
        pairs = list(zip(parts, sequences, strict=True))
        return PaperReuse(
            bins=bins,
            streaming=sum(one.streaming for one in parts),
            entries=entries,
            mean_distance=sum(one.mean_distance * one.entries for one in parts) / max(1, entries),
            mean_of_addresses=sum(one.mean_of_addresses * count for one, count in pairs) / max(1, sum(sequences)),
            text_bins=sum(one.text_bins for one in parts),  # type: ignore[arg-type]  # never empty
            text_infinite=sum(one.text_infinite for one in parts),
            text_sum=sum(one.text_sum for one in parts),
        )

    def _tabulate_bypassing(
        self, divergence: tuple[PaperDivergence, ...], reuse: PaperReuse, context: TraceContext
    ) -> tuple[Table, ...]:
        if context.l1_bytes is None:
            return ()
        rows: list[tuple[Cell, ...]] = []
        for one in divergence:
            advice = advise_paper_bypassing(
                one,
                reuse,
                l1_bytes=context.l1_bytes,
                blocks_per_sm=context.blocks_per_sm,
                warps_per_block=self._warps_per_block,
            )
            if advice is not None:
                rows.append((one.line_bytes, advice.warps, advice.equation_warps, advice.warps_per_block))
        if not rows:
            return ()
        columns = list_columns(
            "line [bytes] | warps that use L1 [count] | by Equation 1 [count] | warps of a block [count]"
        )
        return (Table(title="Bypassing by Equation 1", columns=columns, rows=tuple(rows)),)


def _say_mean(mean: float | None) -> Sentence:
    if mean is None:
        return say("no load within a warp uses an address again")
    return say("the mean reuse distance within a warp is {distance}", distance=number(mean))


def _tabulate_divergence(found: tuple[PaperDivergence, ...]) -> Table:
    rows = []
    for lines in range(1, _MOST_LINES + 1):
        ratios = [one.ratios.get(lines) for one in found]
        if any(ratio is not None for ratio in ratios):
            rows.append((lines, *(ratio or 0.0 for ratio in ratios)))
    return Table(
        title="Memory divergence",
        columns=list_columns("distinct lines [count]", *(f"lines of {one.line_bytes} B [ratio]" for one in found)),
        rows=tuple(rows),
        note=say("Loads of global memory only; lanes are grouped by how often each had executed the load."),
    )


def _tabulate_reuse(found: tuple[PaperReuse, ...]) -> Table:
    columns = [bins for one in found for bins in (one.text_bins, one.bins)]
    last = max((index for bins in columns for index, hits in enumerate(bins.tolist()) if hits), default=-1)
    rows: list[tuple[Cell, ...]] = []
    for index in range(last + 1):
        name = "0" if index == 0 else "1" if index == 1 else f"from {format_count(1 << (index - 1))}"
        rows.append((name, *(int(bins[index]) for bins in columns)))
    rows.append(("∞", *(count for one in found for count in (one.text_infinite, one.streaming))))
    means = join(
        (
            say(
                "per {scope} {text}; as coded {entries} over entries, {addresses} over addresses",
                scope=scope.value,
                text=say("nothing is used again") if one.text_mean is None else number(one.text_mean),
                entries=number(one.mean_distance),
                addresses=number(one.mean_of_addresses),
            )
            for scope, one in zip(_SCOPES, found, strict=True)
        ),
        "; ",
    )
    return Table(
        title="Reuse distance in elements",
        columns=list_columns(
            "distance",
            *(f"loads, per {scope.value}{how} [count]" for scope in _SCOPES for how in ("", ", as coded")),
        ),
        rows=tuple(rows),
        note=say(
            "By the text, a load whose address was not loaded before, or was stored to since, is ∞. The published program counts first loads as 1 "
            "and stores as −2, and calls streaming intervals ∞. Means: {means}.",
            means=means,
        ),
    )


def _tabulate_branches(found: PaperBranches) -> tuple[Table, ...]:
    if not found.total:
        return ()
    columns = list_columns("divergent blocks [count] | total blocks [count] | divergence [ratio]")
    note = say(
        "Pairs of warp and basic block; divergent: entered, over the whole kernel, by a number of threads that is not a multiple of 32."
    )
    return (
        Table(
            title="Branch divergence", columns=columns, rows=((found.divergent, found.total, found.ratio),), note=note
        ),
    )


# CUDAAdvisor's own definitions, as its published analyser counts them, for comparison with its paper. Our own are in
# the other modules.
#
# * *Memory divergence* (:func:`measure_paper_divergence`): loads only, of every space it records; lanes of a warp are
#   grouped by instruction and by how often the lane had executed it (its k-th access), together or not; the
#   distinct ``address / line`` of the first bytes of a group are counted, the width is not looked at.
# * *Reuse distance* (:func:`measure_paper_reuse`): per thread access, exact first-byte addresses, per warp (the text
#   says per block; both can be asked for). A load finds the distinct addresses loaded since the last load of its
#   address. A store erases its address, which then counts in no distance, and is noted as -2. A first load is -1,
#   rewritten to 1 before anything is summed up. Two means are made: over all entries, -2 of the stores included, and
#   the mean over addresses of their loads' means. Bins are 0 and powers of two; what the figures call ∞ is the number
#   of *streaming* intervals: those from a first load to a store, however often the address was loaded in between, and
#   those of an address that was loaded once until the sequence ended.
# * *Branch divergence* (:func:`measure_paper_branches`): per warp and basic block, all thread entries over the whole
#   kernel are added up; the block is "divergent" for that warp when the sum is no multiple of 32.
#
# Differences that remain: its sites are source line and column, ours are PTX instructions (a column is not in PTX, and
# code that was unrolled has more sites, each with fewer accesses, but the same groups); the order of threads is that
# of its atomic counter, ours is by lane.
#
# Source: CUDAAdvisor (CGO 2018), section 4.2, and its analyser's published source (``calcMD``, ``calcRD``,
# ``calcBD``).

_SHARED_BIT = 1 << 61  # Shared memory lies apart from all virtual addresses


def measure_paper_divergence(trace: Trace, *, line_bytes: int = KEPLER_LINE_BYTES) -> PaperDivergence:
    """Memory divergence of accesses to global memory."""
    accesses = trace.accesses
    rows = _list_rows(trace, (Space.GLOBAL,))[0]
    # a warp that always had the same lanes at an instruction has one group per execution; only the others are looked at lane by lane
    sites = np.unique(
        np.stack([name_warps(accesses)[rows], _name_instructions(trace)[rows]], axis=1),
        axis=0, return_inverse=True,
    )[1].reshape(-1)  # fmt: skip
    masks = accesses.lane_mask[rows]
    order = np.argsort(sites, kind="stable")
    changes = (np.diff(sites[order]) == 0) & (np.diff(masks[order].astype(np.int64)) != 0)
    changing = np.unique(sites[order][1:][changes])
    is_changing = np.isin(sites, changing)
    groups = np.zeros(WARP_LANES + 1, dtype=np.int64)
    for chunk in split_rows(rows[~is_changing]):
        line = np.sort(pack_lanes(accesses, chunk) // np.uint64(line_bytes), axis=1)
        groups += np.bincount(1 + np.count_nonzero(np.diff(line, axis=1), axis=1), minlength=len(groups))
    groups += _count_lane_groups(_build_entries(trace, rows[is_changing]), line_bytes)
    return PaperDivergence(line_bytes=line_bytes, groups=groups)


def measure_paper_reuse(
    trace: Trace, *, scope: Scope = Scope.WARP, spaces: tuple[Space, ...] = (Space.GLOBAL, Space.SHARED)
) -> PaperReuse:
    """Reuse distance of accesses to some spaces."""
    entries = _build_entries(trace, np.sort(np.concatenate(_list_rows(trace, spaces))))
    sequence = entries.warp if scope is Scope.WARP else entries.warp >> 16
    order = np.lexsort((entries.lane, entries.warp, entries.turn, sequence))
    sequence, address = sequence[order], entries.address[order]
    is_store = entries.is_store[order]
    found = measure_distances(address, sequence, is_store)
    distance = np.where(found.distance == INFINITE, 1, found.distance)
    loads = distance[~is_store]
    again = found.distance[~is_store & (found.distance != INFINITE)]
    return PaperReuse(
        bins=_count_by_distance(loads),
        text_bins=_count_by_distance(again),
        text_infinite=len(loads) - len(again),
        text_sum=int(again.sum()),
        streaming=_count_streaming(address, sequence, is_store),
        entries=len(distance),
        mean_distance=float(np.where(distance == NOT_COUNTED, -2, distance).mean()) if len(distance) else 0.0,
        mean_of_addresses=_average_addresses(sequence[~is_store], address[~is_store], loads),
    )


def _count_by_distance(distances: Integers) -> Integers:
    """int64[65]: 0, then powers of two."""
    return np.bincount(np.frexp(distances.astype(np.float64))[1], minlength=65).astype(np.int64)


def measure_paper_branches(trace: Trace) -> PaperBranches:
    """Branch divergence, from a trace with entries into basic blocks."""
    entries = trace.entries
    warps = (entries.block.astype(np.int64) << 16) | entries.warp
    order = np.lexsort((entries.basic_block, warps))
    keys = np.stack([warps, entries.basic_block.astype(np.int64)], axis=1)[order]
    threads = count_lanes(entries.lane_mask)[order]
    starts = np.flatnonzero(_find_changes(keys))
    sums = np.add.reduceat(threads, starts) if len(starts) else np.zeros(0, dtype=np.int64)
    return PaperBranches(divergent=int(np.count_nonzero(sums % WARP_LANES)), total=len(starts))


def advise_paper_bypassing(
    divergence: PaperDivergence, reuse: PaperReuse, *, l1_bytes: int, blocks_per_sm: int, warps_per_block: int
) -> BypassingAdvice | None:
    """Equation 1 with the paper's definitions; None where the mean distance is not above zero."""
    if reuse.mean_distance <= 0 or divergence.degree <= 0:
        return None
    equation = count_caching_warps(
        l1_bytes=l1_bytes,
        mean_distance=reuse.mean_distance,
        line_bytes=divergence.line_bytes,
        mean_divergence=divergence.degree,
        blocks_per_sm=blocks_per_sm,
    )
    return BypassingAdvice(
        mean_distance=reuse.mean_distance,
        warps=min(equation, warps_per_block),
        equation_warps=equation,
        warps_per_block=warps_per_block,
    )


class _Entries(ColumnRecord, frozen=True, kw_only=True):
    """The analyser's log: one entry per thread access; all int64[m] but ``is_store``."""

    warp: Integers
    turn: Integers
    lane: Integers
    instruction: Integers
    address: Integers
    is_store: npt.NDArray[np.bool_]


def _find_changes(keys: Integers) -> npt.NDArray[np.bool_]:
    """bool[n], rows of int64[n, columns] that differ from the one before; the first one does."""
    is_new = np.ones(len(keys), dtype=np.bool_)
    is_new[1:] = (np.diff(keys, axis=0) != 0).any(axis=1)
    return is_new


def _count_lane_groups(lanes: _Entries, line_bytes: int) -> Integers:
    """int64[33], groups of lanes by distinct lines, where each lane counts its own executions."""
    site = np.stack([lanes.warp, lanes.instruction, lanes.lane], axis=1)
    order = np.lexsort((np.arange(len(site)), lanes.lane, lanes.instruction, lanes.warp))
    starts = np.flatnonzero(_find_changes(site[order]))
    occurrence = np.empty(len(site), dtype=np.int64)
    occurrence[order] = np.arange(len(site)) - np.repeat(starts, np.diff(starts, append=len(site)))
    line = lanes.address // line_bytes
    order = np.lexsort((line, occurrence, lanes.instruction, lanes.warp))
    keys = np.stack([lanes.warp, lanes.instruction, occurrence], axis=1)[order]
    is_group = _find_changes(keys)
    is_line = is_group.copy()
    is_line[1:] |= np.diff(line[order]) != 0
    per_group = np.bincount(np.cumsum(is_group)[is_line] - 1) if len(keys) else np.zeros(0, dtype=np.int64)
    return np.bincount(per_group, minlength=WARP_LANES + 1).astype(np.int64)


def _list_rows(trace: Trace, spaces: tuple[Space, ...]) -> tuple[Integers, Integers]:
    """The rows of loads and of plain stores; atomics are calls in the analyser's intermediate code and are not in its log."""
    kinds = np.array([-1 if one.kind is None else one.kind for one in trace.instructions], dtype=np.int64)
    kind = kinds[trace.accesses.instruction]
    is_there = np.isin(trace.accesses.space, spaces)
    return np.flatnonzero(is_there & (kind == AccessKind.LOAD)), np.flatnonzero(is_there & (kind == AccessKind.STORE))


def _name_instructions(trace: Trace) -> Integers:
    """int64[n], the instruction of each access, one for all callers of its function: the analyser's log knows no callers."""
    numbers = [one.index if one.same_as is None else one.same_as for one in trace.instructions]
    return np.array(numbers, dtype=np.int64)[trace.accesses.instruction]


def _build_entries(trace: Trace, rows: Integers) -> _Entries:
    accesses = trace.accesses
    chunks = [list_lanes(accesses, chunk) for chunk in split_rows(rows)]
    none = np.empty(0, dtype=np.int64)
    row = np.concatenate([none, *(chunk.row for chunk in chunks)])
    address = np.concatenate([none, *(chunk.address.view(np.int64) for chunk in chunks)])
    address[accesses.space[row] == Space.SHARED] |= _SHARED_BIT
    is_store = np.array([one.kind is AccessKind.STORE for one in trace.instructions], dtype=np.bool_)
    return _Entries(
        warp=name_warps(accesses)[row],
        turn=number_turns(number_warps(accesses.block, accesses.warp))[row],
        lane=np.concatenate([none, *(chunk.lane for chunk in chunks)]),
        instruction=_name_instructions(trace)[row],
        address=address,
        is_store=is_store[accesses.instruction[row]],
    )


def _count_streaming(address: Integers, sequence: Integers, is_store: npt.NDArray[np.bool_]) -> int:
    """Intervals that a store ends, and addresses loaded once at the end."""
    if len(address) == 0:
        return 0
    previous = measure_distances(address, sequence).previous
    follows_load = (previous >= 0) & ~is_store[previous]
    ended = np.count_nonzero(is_store & follows_load)
    is_last = np.ones(len(address), dtype=np.bool_)
    is_last[previous[previous >= 0]] = False
    return int(ended + np.count_nonzero(is_last & ~is_store & ~follows_load))


def _average_addresses(sequence: Integers, address: Integers, distance: Integers) -> float:
    """The mean over addresses within each sequence, then over sequences."""
    if len(sequence) == 0:
        return 0.0
    order = np.lexsort((address, sequence))
    sequence = sequence[order]
    starts = np.flatnonzero(_find_changes(np.stack([sequence, address[order]], axis=1)))
    means = np.add.reduceat(distance[order], starts) / np.diff(starts, append=len(sequence))
    number = np.cumsum(np.diff(sequence[starts], prepend=sequence[:1]) != 0)
    return float((np.bincount(number, weights=means) / np.bincount(number)).mean())
