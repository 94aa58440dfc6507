"""All analyses of a trace that comes in pieces: :class:`TraceAnalyser`."""

import numpy as np

from gpa_lsp.execution.accesses.lane_addresses import check_trace
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.access_sums import AccessAccumulator, BankAccumulator
from gpa_lsp.execution.traces.branch_divergence import BranchAccumulator
from gpa_lsp.execution.traces.cache_hits import advise_bypassing, follow_waves
from gpa_lsp.execution.traces.model import AnalysisSettings, Granularity, StoreEffect, TraceContext
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.reuse_distance import (
    ReuseAccumulator,
    ReuseDistances,
    ReuseGroup,
    Scope,
    add_histograms,
)
from gpa_lsp.execution.traces.values import RepeatAccumulator
from gpa_lsp.execution.traces.waves import WaveCollector, WaveRequests
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import InlineChain, shorten_paths

_DEFAULTS = AnalysisSettings()


class TraceAnalyser:
    """Takes pieces of a trace, each with all rows of some whole blocks, and says at the end what they show.

    It is a :class:`~gpa_lsp.execution.emulator.model.TraceSink`. Memory is bounded by the settings and the largest piece.

    Args:
        context: the GPU the trace is thought to run on.
        settings: what is asked, and how much is looked at.
        block_chains: of :func:`~gpa_lsp.execution.prediction.predict_launch.list_block_chains`, where basic blocks are to have lines.
    """

    def __init__(
        self,
        context: TraceContext,
        settings: AnalysisSettings = _DEFAULTS,
        *,
        block_chains: tuple[InlineChain | None, ...] = (),
    ) -> None:
        self._context = context
        self._block_chains = block_chains
        self._settings = settings
        self._first: Trace | None = None
        self._is_complete = True
        self._blocks = 0

    def add(self, piece: Trace) -> None:
        """Take one piece; see :meth:`add_rows`."""
        self.add_rows(PieceRows(piece))

    def add_rows(self, rows: PieceRows) -> None:
        """Take one piece with what was found of it so far.

        Raises:
            InputError: its rows do not lead anywhere, or it is of another launch than the pieces before it.
        """
        piece = rows.piece
        check_trace(piece)
        if self._first is None:
            self._start(piece)
        first = self._first
        if first is None or (piece.kernel, piece.grid, piece.block_threads) != (
            first.kernel,
            first.grid,
            first.block_threads,
        ):
            raise InputError(
                "pieces of different launches", place=f"kernel {piece.kernel}", remedy="analyse each launch by itself"
            )
        self._instructions = piece.instructions  # each piece has those of the pieces before it, and maybe more
        self._is_complete &= piece.is_complete
        self._blocks += len(piece.traced_blocks)
        for reuse in (self._elements, self._lines, self._warps, self._kept):
            reuse.add(rows)
        self._waves.add(rows)
        for part in (self._accesses, self._banks, self._repeats):
            part.add(rows)
        self._branches.add(piece)

    def finish(self) -> TraceAnalyses:
        """What all pieces show.

        Raises:
            InputError: there was no piece.
        """
        first = self._first
        if first is None:
            raise InputError("there is no trace to analyse", remedy="trace at least one block")
        waves = self._waves.finish()
        caches, sm_lines = follow_waves(waves, self._context, first.buffers)
        analyses = TraceAnalyses(
            kernel=first.kernel,
            grid=first.grid,
            block_threads=first.block_threads,
            origin=first.origin,
            is_complete=self._is_complete,
            traced_blocks=self._blocks,
            instructions=self._instructions,
            buffers=first.buffers,
            context=self._context,
            accesses=self._accesses.finish(),
            banks=self._banks.finish(),
            branches=self._branches.finish(),
            block_elements=self._elements.finish(),
            block_lines=self._lines.finish(),
            warp_lines=self._warps.finish(),
            sm_lines=self._describe_sm_lines(waves, sm_lines),
            caches=caches,
            bypassing=advise_bypassing(self._kept.finish(), self._context, _count_warps(first)),
            repeats=self._repeats.finish(),
            block_chains=self._block_chains,
            short_files=self._shorten_files(),
        )
        self._first = None
        return analyses

    def _start(self, piece: Trace) -> None:
        settings, buffers = self._settings, piece.buffers
        self._first = piece
        self._accesses = AccessAccumulator(buffers, footprint_sectors=settings.footprint_sectors)
        self._banks = BankAccumulator()
        self._branches = BranchAccumulator()
        self._elements, self._lines, self._warps = (
            ReuseAccumulator(
                buffers,
                scope=scope,
                granularity=granularity,
                stores=StoreEffect.REFERENCE,
                most_references=settings.block_references,
            )
            for scope, granularity in (
                (Scope.BLOCK, Granularity.ELEMENT),
                (Scope.BLOCK, Granularity.LINE),
                (Scope.WARP, Granularity.LINE),
            )
        )
        self._kept = ReuseAccumulator(
            buffers,
            scope=Scope.WARP,
            granularity=Granularity.LINE,
            stores=StoreEffect.IGNORED,
            most_references=settings.block_references,
            is_l1_only=True,
        )
        self._waves = WaveCollector(self._context, most_references=settings.wave_references)
        self._repeats = RepeatAccumulator(most_rows=settings.value_rows)

    def _shorten_files(self) -> dict[str, str]:
        chains = (*(one.chain for one in self._instructions), *self._block_chains)
        return shorten_paths({frame.file for chain in chains for frame in chain or ()})

    def _describe_sm_lines(self, waves: WaveRequests, groups: tuple[ReuseGroup, ...]) -> ReuseDistances:
        return ReuseDistances(
            scope=Scope.SM,
            granularity=Granularity.LINE,
            stores=StoreEffect.IGNORED,
            total=add_histograms([group.histogram for group in groups]),
            groups=groups,
            sequences=waves.groups,
            is_whole=waves.is_whole and waves.kept_ratio == 1.0,
        )


def _count_warps(trace: Trace) -> int:
    return -(-int(np.prod(trace.block_threads)) // 32)
