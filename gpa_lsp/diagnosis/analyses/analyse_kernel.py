"""Ask every analysis about one kernel."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

import gpa_lsp.diagnosis.analyses.questions as catalogue
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses, Limiter
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import Problem

Found = TypeVar("Found")


@cache
def list_analyses() -> Mapping[str, Analysis]:
    """All analyses by name, in the order to be read."""
    found: dict[str, Analysis] = load_catalogue(catalogue, "ANALYSIS", Analysis)
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def analyse_kernel(subject: Subject) -> KernelAnalyses:
    """The answers of all analyses: one per analysis; one that fails becomes a problem, and the others go on."""
    problems: list[Problem] = []
    answers = [
        answer
        for analysis in list_analyses().values()
        if (answer := _guard(f"the analysis {analysis.name}", analysis.ask, subject, problems))
    ]
    return KernelAnalyses(roofline=subject.roofline, answers=tuple(answers), problems=tuple(problems))


def judge_kernel(subject: Subject) -> tuple[Limiter | None, tuple[Problem, ...]]:
    """Find the limiter of a kernel; None, and a problem, where the search failed."""
    problems: list[Problem] = []
    limiter = _guard("the search for the limiter", find_limiter, subject, problems)
    return limiter, tuple(problems)


def _guard(what: str, ask: Callable[[Subject], Found], subject: Subject, problems: list[Problem]) -> Found | None:
    try:
        return ask(subject)
    except Exception as error:  # a broken analysis must not cost the others; tests raise it again
        kernel = subject.kernel
        problems.append(Problem.from_fault(what, error, path=kernel.profile_path, kernel=kernel.mangled_name))
        return None
