"""Diagnostics of what was emulated, marked *emulated*: lines whose accesses or branches cost more than they must, faults, and the description's own
problems.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol.types import Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import span_line
from gpa_lsp.editor.predicted.hover import describe_fault, describe_wait
from gpa_lsp.editor.predicted.results import PredictedFault, PredictedProblem
from gpa_lsp.editor.predicted.view import PlacedPredictions
from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.foundation.numbers import format_percent

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact

LEAST_EXCESS_RATIO = 0.5  # Of sectors or wavefronts; less is worth a hint, not a diagnostic

LEAST_SHARE_RATIO = 0.05  # Of the sectors of its launch: a line with fewer is not what to look at

LEAST_DIVERGENT_RATIO = 0.25
_LEAST_BRANCH_RATIO = 0.05  # Of the executions of the launch's most executed branch

_SEVERITIES = {
    ProblemSeverity.ERROR: DiagnosticSeverity.Warning,
    ProblemSeverity.WARNING: DiagnosticSeverity.Information,
    ProblemSeverity.NOTE: DiagnosticSeverity.Hint,
}


def list_predicted_diagnostics(view: DocumentView, most: int) -> Iterator[Diagnostic]:
    """Faults first, then the costliest lines, then what is wrong with the description.

    Args:
        most: so many at most, problems of the description aside.
    """
    predicted = view.predicted
    if predicted is None:
        return
    if predicted.is_source:
        found = [*_list_faults(view, predicted), *_list_accesses(view, predicted), *_list_branches(view, predicted)]
        yield from found[: max(most, 0)]
    yield from _list_problems(view, predicted)


def _list_faults(view: DocumentView, predicted: PlacedPredictions) -> Iterator[Diagnostic]:
    told: set[tuple[int, str]] = set()
    for line, faults in predicted.faults.items():
        for fault in faults:
            if (line, fault.kind) not in told:  # several launches show the same
                told.add((line, fault.kind))
                yield _make_fault(view, line, fault)


def _make_fault(view: DocumentView, line: int, fault: PredictedFault) -> Diagnostic:
    related = []
    if fault.place is not None:
        related.append(_relate(view, *fault.place, "it happens here"))
    if fault.other is not None:
        related.append(_relate(view, *fault.other, "the other access"))
    severity = DiagnosticSeverity.Information if fault.is_ending else DiagnosticSeverity.Warning
    return Diagnostic(
        range=view.positions.find_text(line),
        severity=severity,
        code=f"emulated {fault.kind.replace(' ', '-')}",
        message=f"{describe_fault(fault)} (emulated)",
        related_information=related or None,
    )


def _relate(view: DocumentView, file: str, line: int, message: str) -> DiagnosticRelatedInformation:
    """A place as it was compiled; in this document where it is now."""
    if file == view.local_path and view.predicted is not None:
        at = view.predicted.lines.get(line) or line
        if at <= len(view.positions.lines):
            location = Location(uri=view.uri, range=view.positions.find_text(at))
            return DiagnosticRelatedInformation(location=location, message=message)
    location = Location(uri=Path(file).as_uri(), range=span_line(line))
    return DiagnosticRelatedInformation(location=location, message=message)


def _list_accesses(view: DocumentView, predicted: PlacedPredictions) -> Iterator[Diagnostic]:
    """One per line and kind of memory, of the launch where it is worst."""
    worst: dict[tuple[int, bool], AccessLineFact] = {}
    for line, accesses in predicted.accesses.items():
        for one in (access.fact for access in accesses):
            known = worst.get((line, one.is_shared))
            if _is_costly(one) and (known is None or one.excess_ratio > known.excess_ratio):
                worst[line, one.is_shared] = one
    for (line, is_shared), one in sorted(worst.items(), key=lambda item: (-(item[1].share_ratio or 0.0), item[0])):
        what = "Bank conflicts" if is_shared else "Uncoalesced"
        share = "" if one.share_ratio is None else f", {format_percent(one.share_ratio)} of the kernel's sectors"
        pattern = f", {one.pattern_words}" if one.pattern_words else ""
        text = f"{what}: {one.words}{pattern}{share}."
        yield Diagnostic(
            range=view.positions.find_text(line),
            severity=_weigh(view, line),
            code="emulated bank-conflicts" if is_shared else "emulated uncoalesced",
            message=f"{text}{describe_wait(view, line)}\n{one.remedy}".rstrip() + " (emulated)",
        )


def _weigh(view: DocumentView, line: int) -> DiagnosticSeverity:
    """A hint where the line costs next to no time."""
    wait = view.find_wait(line)
    return DiagnosticSeverity.Hint if wait is not None and wait.is_hidden else DiagnosticSeverity.Information


def _is_costly(access: "AccessLineFact") -> bool:
    is_large = access.share_ratio is None or access.share_ratio >= LEAST_SHARE_RATIO
    return not access.is_nested and is_large and access.cost > 1 and access.excess_ratio >= LEAST_EXCESS_RATIO


def _list_branches(view: DocumentView, predicted: PlacedPredictions) -> Iterator[Diagnostic]:
    most: dict[int, int] = {}
    for branch in predicted.result.branches:
        most[branch.launch] = max(most.get(branch.launch, 1), branch.fact.executions)
    for line, branches in predicted.branches.items():
        own = [one.fact for one in branches if _is_divergent(one.fact, most[one.launch])]
        if own:
            worst = max(own, key=lambda one: one.divergent_ratio)
            share = format_percent(worst.divergent_ratio)
            yield Diagnostic(
                range=view.positions.find_text(line),
                severity=_weigh(view, line),
                code="emulated divergence",
                message=f"Divergent: {share} of the branches here go both ways within a warp.{describe_wait(view, line)} "
                "Let whole warps go one way: branch on the warp, sort the work, or make both sides cheap. (emulated)",
            )


def _is_divergent(branch: "BranchLineFact", most: int) -> bool:
    is_frequent = branch.executions >= _LEAST_BRANCH_RATIO * most
    return not branch.is_nested and is_frequent and branch.divergent_ratio >= LEAST_DIVERGENT_RATIO


def _list_problems(view: DocumentView, predicted: PlacedPredictions) -> Iterator[Diagnostic]:
    """Problems of a description at their lines; in the source on the kernel for which nothing is predicted therefore."""
    for line, problem in predicted.problems:
        if predicted.is_source:
            yield _point_at_description(view, predicted, line, problem)
        else:
            yield Diagnostic(
                range=view.positions.find_text(line),
                severity=_SEVERITIES[problem.severity],
                code="emulated launch",
                message=problem.message,
            )


def _point_at_description(
    view: DocumentView, predicted: PlacedPredictions, line: int, problem: PredictedProblem
) -> Diagnostic:
    path = predicted.result.job.launches_path
    related = []
    if problem.described_line is not None:
        related.append(_relate(view, str(path), problem.described_line, "described here"))
    is_error = problem.severity is ProblemSeverity.ERROR
    return Diagnostic(
        range=view.positions.find_text(line),
        severity=DiagnosticSeverity.Information if is_error else DiagnosticSeverity.Hint,
        code="emulated launch",
        message=f"{f'{path.name}:{problem.described_line}: ' if related else ''}{problem.message} (emulated)",
        related_information=related or None,
    )
