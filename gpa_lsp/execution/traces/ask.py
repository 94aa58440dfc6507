"""Answers of one traced launch, its pieces analysed one at a time (:class:`TraceAnalyser`, :class:`TraceAnswerer`), every question asked:
:func:`answer_questions`.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod

from msgspec import Struct
from msgspec.structs import replace

import gpa_lsp.execution.traces.questions as catalogue
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.diagnosis.analyses.answers import Answer, Table, list_columns
from gpa_lsp.execution.accesses.lane_addresses import check_trace
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.emulator.model import Trace, TraceSink
from gpa_lsp.execution.traces.access_sums import AccessAccumulator, BankAccumulator
from gpa_lsp.execution.traces.branch_divergence import BranchAccumulator
from gpa_lsp.execution.traces.cache_hits import WaveCollector, advise_bypassing, follow_waves
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact, list_branch_facts, list_line_facts
from gpa_lsp.execution.traces.model import AnalysisSettings, Granularity, TraceContext
from gpa_lsp.execution.traces.paper_answer import PaperCollector
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import Measure, MeasureSpread, TraceAnalyses, list_measures
from gpa_lsp.execution.traces.reuse_distance import ReuseAccumulator, ReuseDistances, Scope, add_histograms
from gpa_lsp.execution.traces.values import RepeatAccumulator
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import InputError, Problem, spare_others
from gpa_lsp.foundation.locations import InlineChain, shorten_paths
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import Amount, count, say

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


@cache
def list_questions() -> Mapping[str, TraceQuestion]:
    """All questions by name, in the order to be read."""
    subjects: dict[str, dict[str, TraceQuestion]] = load_catalogue(catalogue, "QUESTIONS", dict)
    found = [item for questions in subjects.values() for item in questions.items()]
    return dict(sorted(found, key=lambda item: (item[1].order, item[0])))


def answer_questions(analyses: TraceAnalyses) -> tuple[tuple[Answer, ...], tuple[Problem, ...]]:
    """One answer per question; one that fails becomes a problem, and the others go on."""
    answers: list[Answer] = []
    problems: list[Problem] = []
    for name, question in list_questions().items():
        try:
            answers.append(question.answer(analyses))
        except Exception as error:  # a broken question must not cost the others; tests raise it again
            problems.append(Problem.from_fault(f"the question {name}", error, kernel=analyses.kernel))
    return tuple(answers), tuple(problems)


def answer_launches(spreads: tuple[MeasureSpread, ...], launches: int, origin: str) -> Answer:
    """Answer how the measures of a kernel differ between launches.

    Args:
        spreads: of :func:`~gpa_lsp.execution.traces.results.spread_listed`.
    """
    rows: list[tuple[Cell, ...]] = []
    for one in spreads:
        unit = "" if one.quantity is not Quantity.RATIO else " (parts of 1)"
        rows.append((f"{one.measure}{unit}", one.mean, one.least, one.most, one.deviation))
    varying = max(spreads, key=lambda one: one.deviation / abs(one.mean) if one.mean else 0.0, default=None)
    summary = say("The {launches} do not differ.", launches=count(launches, "launch"))
    if varying is not None and varying.deviation > 0:
        quantity = Quantity.RATIO if varying.quantity is Quantity.RATIO else Quantity.NUMBER
        summary = say(
            "Over {launches}, “{measure}” varies most: {least} to {most}.",
            launches=count(launches, "launch"),
            measure=varying.measure,
            least=Amount(value=varying.least, quantity=quantity),
            most=Amount(value=varying.most, quantity=quantity),
        )
    return Answer(
        analysis="traced_launches",
        title=f"Launches compared ({origin})",
        summary=summary,
        tables=(
            Table(
                title="Measures",
                columns=list_columns("measure | mean [number] | least [number] | most [number] | deviation [number]"),
                rows=tuple(rows),
            ),
        )
        if rows
        else (),
        is_known=bool(rows),
    )


class TraceAnswers(Struct, frozen=True, kw_only=True):
    """Answers and facts of a trace; a part that failed is empty."""

    answers: tuple[Answer, ...] = ()  # in the order to be read
    accesses: tuple[AccessLineFact, ...] = ()  # what each line does to memory, by file and line
    branches: tuple[BranchLineFact, ...] = ()  # conditional branches by file and line
    measures: tuple[Measure, ...] = ()  # that launches are compared by


class TraceAnswerer:
    """Takes the pieces of a launch's trace. It is a :class:`~gpa_lsp.execution.emulator.model.TraceSink`.

    Args:
        context: the GPU the trace is taken to run on.
        settings: bounds of the analyses.
        problems: failures are added to it.
        block_chains: see :class:`~gpa_lsp.execution.traces.ask.TraceAnalyser`.
        is_paper: count by CUDAAdvisor's own definitions as well.
        sinks: get the pieces, too; their errors are raised.
    """

    def __init__(
        self,
        context: TraceContext,
        settings: AnalysisSettings,
        problems: list[Problem],
        *,
        block_chains: tuple[InlineChain | None, ...] = (),
        is_paper: bool = False,
        sinks: Iterable[TraceSink] = (),
    ) -> None:
        self._context = context
        self._problems = problems
        self._sinks = tuple(sinks)
        self._analyser: TraceAnalyser | None = TraceAnalyser(context, settings, block_chains=block_chains)
        self._paper: PaperCollector | None = PaperCollector() if is_paper else None

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        self.add_rows(PieceRows(piece))

    def add_rows(self, rows: PieceRows) -> None:
        """Take one piece with the rows derived from it so far. An analysis that fails gets no further piece."""
        piece = rows.piece
        analyser, self._analyser = self._analyser, None
        if analyser is not None:
            with spare_others("analysing the trace", self._problems, kernel=piece.kernel):
                analyser.add_rows(rows)
                self._analyser = analyser
        paper, self._paper = self._paper, None
        if paper is not None:
            with spare_others("counting as CUDAAdvisor does", self._problems, kernel=piece.kernel):
                paper.add(piece)
                self._paper = paper
        for sink in self._sinks:
            sink.add(piece)

    def finish(self, *, is_complete: bool = True) -> TraceAnswers:
        """Answers of all pieces."""
        found = self._answer(is_complete)
        if self._paper is not None:
            with spare_others("counting as CUDAAdvisor does", self._problems):
                found = replace(found, answers=(*found.answers, self._paper.answer(self._context)))
        return found

    def _answer(self, is_complete: bool) -> TraceAnswers:
        analyser, problems = self._analyser, self._problems
        analyses: TraceAnalyses | None = None
        if analyser is not None:
            with spare_others("analysing the trace", problems):
                analyses = analyser.finish()
        if analyses is None:
            return TraceAnswers()
        if not is_complete:
            analyses = replace(analyses, is_complete=False)
        answers, met = answer_questions(analyses)
        problems.extend(met)
        found = TraceAnswers(answers=answers)
        with spare_others("the facts of lines", problems, kernel=analyses.kernel):
            found = replace(found, accesses=list_line_facts(analyses))
        with spare_others("the facts of branches", problems, kernel=analyses.kernel):
            found = replace(found, branches=list_branch_facts(analyses))
        with spare_others("measuring the launch", problems, kernel=analyses.kernel):
            return replace(found, measures=list_measures(analyses))
        return found
