"""Predictions for an open source, on the lines as they are now; and problems of the description of its launches."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.predicted.results import (
    LaunchFact,
    PredictedFault,
    PredictedLaunch,
    PredictedProblem,
    PredictedResult,
    PredictedTrial,
)
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact

_Fact = TypeVar("_Fact", "AccessLineFact", "BranchLineFact")


class PredictedState(Struct, frozen=True, kw_only=True):
    """Latest prediction of one source."""

    result: PredictedResult  # the latest with launches, or that says why there are none
    file: MeasuredFile  # the text of it, for finding its lines
    launches_file: MeasuredFile  # the description's
    trials: tuple[PredictedTrial, ...] = ()  # blocks worth a try, of the same result
    # the description was edited since, and cannot be read now: its problems are new, and all else is from before
    is_old: bool = False


def make_state(
    result: PredictedResult, trials: tuple[PredictedTrial, ...] = (), known: PredictedState | None = None
) -> PredictedState:
    """State after a result; a result with problems alone, or of a source that does not compile, keeps the launches known before."""
    job, has_none = result.job, bool(result.problems or result.has_failed) and not result.launches
    if known is not None and known.result.launches and has_none:
        return replace(
            known,
            result=replace(known.result, problems=result.problems),
            launches_file=_make_file(str(job.launches_path), job.launches_text),
            trials=(),
            is_old=True,
        )
    return PredictedState(
        result=result,
        file=_make_file(str(job.path), job.text),
        launches_file=_make_file(str(job.launches_path), job.launches_text),
        trials=trials,
    )


def _make_file(path: str, text: str) -> MeasuredFile:
    return MeasuredFile(compiled_path=path, local_path=path, lines=split_lines(text))


class PredictedAnchor(Struct, frozen=True, kw_only=True):
    """A launch and the line its lens stands on."""

    line: int  # 1-based, in the document now
    launch: PredictedLaunch  # what was predicted
    index: int  # of the launch
    is_edited: bool  # the document or the description changed since


class PlacedPredictions(Struct, frozen=True, kw_only=True):
    """Predictions placed on a document: a source, or the description of its launches, which has problems and trials alone."""

    result: PredictedResult  # where it comes from
    anchors: tuple[PredictedAnchor, ...]  # launches by line
    # current line → accesses of all launches, most sectors first
    accesses: "Mapping[int, tuple[LaunchFact[AccessLineFact], ...]]"
    branches: "Mapping[int, tuple[LaunchFact[BranchLineFact], ...]]"  # current line → branches of all launches
    faults: Mapping[int, tuple[PredictedFault, ...]]  # current line → faults
    # (line in this document, problem); the line of a source's is that of the kernel, or the first
    problems: tuple[tuple[int, PredictedProblem], ...]
    # blocks worth a try, with the line of this document they are offered on: the kernel's, or the description's
    trials: tuple[tuple[int, PredictedTrial], ...]
    is_source: bool  # the document is the source
    # line of the source as it was emulated → line in it now; of the other accesses of faults alone
    lines: Mapping[int, int]

    def find_launch(self, index: int) -> PredictedLaunch:
        """The launch of a fact."""
        return self.result.launches[index]


def place_predictions(state: PredictedState, local_path: str, finder: LineFinder) -> PlacedPredictions:
    """Put what is known on the lines of a document."""
    if local_path == state.launches_file.local_path:
        return _place_description(state, finder)
    result = state.result
    anchors = _place_anchors(state, finder)
    lines = {anchor.launch.mangled_name: anchor.line for anchor in reversed(anchors)}
    by_index = {anchor.index: anchor.line for anchor in anchors}
    faults: dict[int, list[PredictedFault]] = {}
    for fault in result.faults:
        at = by_index.get(fault.launch) if fault.line is None else finder.find(state.file, fault.line)
        if at is not None:
            faults.setdefault(at, []).append(fault)
    return PlacedPredictions(
        result=result,
        anchors=anchors,
        accesses=_place(result.accesses, state.file, finder),
        branches=_place(result.branches, state.file, finder),
        faults={line: tuple(found) for line, found in faults.items()},
        problems=tuple((lines.get(one.kernel or "", 1), one) for one in result.problems),
        trials=tuple((by_index[one.launch], one) for one in state.trials if one.launch in by_index),
        is_source=True,
        lines=_follow_faults(state, finder),
    )


def _follow_faults(state: PredictedState, finder: LineFinder) -> Mapping[int, int]:
    places = [place for one in state.result.faults for place in (one.other, one.place) if place is not None]
    others = {line for file, line in places if file == state.file.local_path}
    found = ((line, finder.find(state.file, line)) for line in others)
    return {line: now for line, now in found if now is not None}


def _place(
    facts: Sequence[LaunchFact[_Fact]], file: MeasuredFile, finder: LineFinder
) -> Mapping[int, tuple[LaunchFact[_Fact], ...]]:
    found: dict[int, list[LaunchFact[_Fact]]] = {}
    for fact in facts:
        line = finder.find(file, fact.fact.line)
        if line is not None:
            found.setdefault(line, []).append(fact)
    return {line: tuple(some) for line, some in found.items()}


def _place_anchors(state: PredictedState, finder: LineFinder) -> tuple[PredictedAnchor, ...]:
    is_edited = state.is_old or finder.is_edited(state.file)
    lines = [finder.find_kernel(launch.name, state.file, [launch.line]) for launch in state.result.launches]
    found = [
        PredictedAnchor(line=line, launch=launch, index=index, is_edited=is_edited)
        for index, (launch, line) in enumerate(zip(state.result.launches, lines, strict=True))
        if line is not None
    ]
    return tuple(sorted(found, key=lambda anchor: (anchor.line, anchor.index)))


def _place_description(state: PredictedState, finder: LineFinder) -> PlacedPredictions:
    found: list[tuple[int, PredictedProblem]] = []
    for problem in state.result.problems:
        line = None if problem.described_line is None else finder.find(state.launches_file, problem.described_line)
        if line is not None:
            found.append((line, problem))
    trials = ((finder.find(state.launches_file, one.line), one) for one in state.trials)
    return PlacedPredictions(
        result=state.result,
        anchors=(),
        accesses={},
        branches={},
        faults={},
        problems=tuple(found),
        trials=tuple((line, one) for line, one in trials if line is not None),
        is_source=False,
        lines={},
    )
