"""CUDAAdvisor's own numbers as an answer: :class:`PaperCollector` takes the pieces of a trace, :meth:`PaperCollector.answer` says what they show."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer, Column, Missing, Table
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.lane_addresses import Integers
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.paper_mode import (
    KEPLER_LINE_BYTES,
    PASCAL_LINE_BYTES,
    PaperBranches,
    PaperDivergence,
    PaperReuse,
    advise_paper_bypassing,
    measure_paper_branches,
    measure_paper_divergence,
    measure_paper_reuse,
)
from gpa_lsp.execution.traces.reuse_distance import Scope
from gpa_lsp.foundation.numbers import Cell, Quantity, format_count, format_count_of
from gpa_lsp.foundation.prose import join, number, say

NAME = "traced_paper"
_LINE_SIZES = (KEPLER_LINE_BYTES, PASCAL_LINE_BYTES)
_SCOPES = (Scope.WARP, Scope.BLOCK)
_MOST_LINES = 32
# Accesses by threads that are looked at: a log of them takes about 300 bytes each while it is sorted
_MOST_ENTRIES = 8_000_000


class _Piece(Struct, frozen=True, kw_only=True):
    """What one piece of a trace shows."""

    warps: int
    blocks: int
    divergence: tuple[PaperDivergence, ...]
    reuse: tuple[PaperReuse, ...]
    branches: PaperBranches


class PaperCollector:
    """A :class:`~gpa_lsp.execution.emulator.model.TraceSink` that counts as CUDAAdvisor's analyser does, see
    :mod:`gpa_lsp.execution.traces.paper_mode`.

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
        self._origin, self._warps_per_block = piece.origin, -(-x * y * z // 32)
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
        """What was counted."""
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
                "A load touches {wide} of 128 bytes, {narrow} of 32; the mean reuse distance within a warp, as coded, is {distance}.",
                wide=number(divergence[0].degree, "line"),
                narrow=number(divergence[1].degree),
                distance=number(reuse[0].mean_distance),
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
        """Means weigh as much as what they are over: entries, and sequences (warps or blocks)."""
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
        columns = (
            Column(name="line", quantity=Quantity.BYTES),
            Column(name="warps that use L1", quantity=Quantity.COUNT),
            Column(name="by Equation 1", quantity=Quantity.COUNT),
            Column(name="warps of a block", quantity=Quantity.COUNT),
        )
        return (Table(title="Bypassing by Equation 1", columns=columns, rows=tuple(rows)),)


def _tabulate_divergence(found: tuple[PaperDivergence, ...]) -> Table:
    rows = []
    for lines in range(1, _MOST_LINES + 1):
        ratios = [one.ratios.get(lines) for one in found]
        if any(ratio is not None for ratio in ratios):
            rows.append((lines, *(ratio or 0.0 for ratio in ratios)))
    return Table(
        title="Memory divergence",
        columns=(
            Column(name="distinct lines", quantity=Quantity.COUNT),
            *(Column(name=f"lines of {one.line_bytes} B", quantity=Quantity.RATIO) for one in found),
        ),
        rows=tuple(rows),
        note=say("Loads of global memory only; lanes are grouped by how often each had executed the load."),
    )


def _tabulate_reuse(found: tuple[PaperReuse, ...]) -> Table:
    last = max((index for one in found for index, hits in enumerate(one.bins.tolist()) if hits), default=-1)
    rows: list[tuple[Cell, ...]] = []
    for index in range(last + 1):
        name = "0" if index == 0 else "1" if index == 1 else f"from {format_count(1 << (index - 1))}"
        rows.append((name, *(int(one.bins[index]) for one in found)))
    rows.append(("∞ (streaming intervals)", *(one.streaming for one in found)))
    means = join(
        (
            say(
                "per {scope} {entries} over entries, {addresses} over addresses",
                scope=scope.value,
                entries=number(one.mean_distance),
                addresses=number(one.mean_of_addresses),
            )
            for scope, one in zip(_SCOPES, found, strict=True)
        ),
        "; ",
    )
    return Table(
        title="Reuse distance in elements",
        columns=(
            Column(name="distance"),
            *(Column(name=f"loads, per {scope.value}", quantity=Quantity.COUNT) for scope in _SCOPES),
        ),
        rows=tuple(rows),
        note=say("First loads count as distance 1. Means as coded: {means}.", means=means),
    )


def _tabulate_branches(found: PaperBranches) -> tuple[Table, ...]:
    if not found.total:
        return ()
    columns = (
        Column(name="divergent blocks", quantity=Quantity.COUNT),
        Column(name="total blocks", quantity=Quantity.COUNT),
        Column(name="divergence", quantity=Quantity.RATIO),
    )
    note = say(
        "Pairs of warp and basic block; divergent: entered, over the whole kernel, by a number of threads that is not a multiple of 32."
    )
    return (
        Table(
            title="Branch divergence", columns=columns, rows=((found.divergent, found.total, found.ratio),), note=note
        ),
    )
