"""Answers from a trace, one piece of it in memory at a time: each by itself, so that a failure in one does not cost the others."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.emulator.model import TraceSink
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.analyse import TraceAnalyser
from gpa_lsp.execution.traces.ask import answer_questions
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact, list_branch_facts, list_line_facts
from gpa_lsp.execution.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.execution.traces.paper_answer import PaperCollector
from gpa_lsp.execution.traces.results import Measure, TraceAnalyses, list_measures
from gpa_lsp.foundation.errors import Problem, spare_others
from gpa_lsp.foundation.locations import InlineChain


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
        block_chains: see :class:`~gpa_lsp.execution.traces.analyse.TraceAnalyser`.
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
