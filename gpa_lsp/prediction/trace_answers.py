"""What a trace shows, one piece of it in memory at a time: every answer of its own, so that a failure in one does not cost the others."""

from collections.abc import Iterable
from dataclasses import field, replace

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.basis.errors import Problem, spare_others
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.emulator.model import TraceSink
from gpa_lsp.emulator.trace import Trace
from gpa_lsp.traces.analyse import TraceAnalyser
from gpa_lsp.traces.ask import answer_questions
from gpa_lsp.traces.line_facts import AccessLineFact, BranchLineFact, list_branch_facts, list_line_facts
from gpa_lsp.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.traces.paper_answer import PaperCollector
from gpa_lsp.traces.piece_rows import PieceRows
from gpa_lsp.traces.results import TraceAnalyses
from gpa_lsp.traces.statistics import Measure, list_measures


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAnswers:
    """What a trace shows; a part that failed is empty.

    Attributes:
        answers: in the order to be read.
        accesses: what each line does to memory, by file and line.
        branches: conditional branches by file and line.
        measures: that launches are compared by.
    """

    answers: tuple[Answer, ...] = field(default=(), repr=False)
    accesses: tuple[AccessLineFact, ...] = field(default=(), repr=False)
    branches: tuple[BranchLineFact, ...] = field(default=(), repr=False)
    measures: tuple[Measure, ...] = field(default=(), repr=False)


class TraceAnswerer:
    """Takes the pieces of a launch's trace. It is a :class:`~gpa_lsp.emulator.model.TraceSink`.

    Args:
        context: the GPU the trace is thought to run on.
        settings: how much is looked at.
        problems: gets what went wrong.
        block_chains: see :class:`~gpa_lsp.traces.analyse.TraceAnalyser`.
        is_paper: count by CUDAAdvisor's own definitions as well.
        sinks: get the pieces, too; what they raise is the caller's.
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
        """Take one piece with what was found of it so far. An analysis that fails is given no more."""
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
        """What all pieces show.

        Args:
            is_complete: the trace has all rows of its blocks, as far as the pieces do not say otherwise.
        """
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
