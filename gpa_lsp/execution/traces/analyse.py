"""All analyses of a trace that comes in pieces: :class:`TraceAnalyser`."""

from math import prod

from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.accesses.lane_addresses import check_trace
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.access_sums import AccessAccumulator, BankAccumulator
from gpa_lsp.execution.traces.branch_divergence import BranchAccumulator
from gpa_lsp.execution.traces.cache_hits import advise_bypassing, follow_waves
from gpa_lsp.execution.traces.model import AnalysisSettings, Granularity, TraceContext
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.reuse_distance import ReuseAccumulator, ReuseDistances, Scope, add_histograms
from gpa_lsp.execution.traces.values import RepeatAccumulator
from gpa_lsp.execution.traces.waves import WaveCollector
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import InlineChain, shorten_paths

_DEFAULTS = AnalysisSettings()


class TraceAnalyser:
    """Analyses pieces of a trace, each with all rows of some whole blocks.

    It is a :class:`~gpa_lsp.execution.emulator.model.TraceSink`. Memory is bounded by the settings and the largest piece.

    Args:
        context: the GPU the trace is thought to run on.
        settings: bounds of time and memory.
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
        """Take one piece with the rows derived from it so far.

        Raises:
            InputError: its rows do not lead anywhere, or it is of another launch than the pieces before it.
        """
        piece = rows.piece
        check_trace(piece)
        if self._first is None:
            self._start(piece)
            self._first = piece
        first = self._first
        if (piece.kernel, piece.grid, piece.block_threads) != (first.kernel, first.grid, first.block_threads):
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
        """Analyses of all pieces.

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
            sm_lines=ReuseDistances(
                scope=Scope.SM,
                granularity=Granularity.LINE,
                total=add_histograms([group.histogram for group in sm_lines]),
                groups=sm_lines,
                sequences=waves.groups,
                is_whole=waves.is_whole and waves.kept_ratio == 1.0,
            ),
            caches=caches,
            bypassing=advise_bypassing(self._kept.finish(), self._context, -(-prod(first.block_threads) // WARP_LANES)),
            repeats=self._repeats.finish(),
            block_chains=self._block_chains,
            short_files=self._shorten_files(),
        )
        self._first = None
        return analyses

    def _start(self, piece: Trace) -> None:
        settings, buffers = self._settings, piece.buffers
        self._accesses = AccessAccumulator(buffers, footprint_sectors=settings.footprint_sectors)
        self._banks = BankAccumulator()
        self._branches = BranchAccumulator()
        self._elements, self._lines, self._warps = (
            ReuseAccumulator(
                buffers,
                scope=scope,
                granularity=granularity,
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
            most_references=settings.block_references,
            is_l1_only=True,
        )
        self._waves = WaveCollector(self._context, most_references=settings.wave_references)
        self._repeats = RepeatAccumulator(most_rows=settings.value_rows)

    def _shorten_files(self) -> dict[str, str]:
        chains = (*(one.chain for one in self._instructions), *self._block_chains)
        return shorten_paths({frame.file for chain in chains for frame in chain or ()})
