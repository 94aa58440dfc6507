"""Ask every analysis about one kernel."""

from collections.abc import Mapping
from functools import cache

import gpa_lsp.analyses.questions as catalogue
from gpa_lsp.analyses.answers import Answer
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.model import KernelAnalyses
from gpa_lsp.analyses.questions import Analysis
from gpa_lsp.analyses.roofline_model import KernelRoofline
from gpa_lsp.basis.catalogue import load_catalogue
from gpa_lsp.basis.errors import Problem
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.rows.model import Kernel


@cache
def list_analyses() -> Mapping[str, Analysis]:
    """All analyses by name, in the order to be read."""
    found: dict[str, Analysis] = load_catalogue(catalogue, "ANALYSIS", Analysis)
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def analyse_kernel(kernel: Kernel, blame: KernelBlame | None, roofline: KernelRoofline | None) -> KernelAnalyses:
    """The answers of all analyses.

    Args:
        kernel: joined.
        blame: of the same kernel; None for code without samples.
        roofline: of the same kernel; None when there is none.

    Returns:
        One answer per analysis; one that fails becomes a problem, and the others go on.
    """
    facts = KernelFacts(kernel, blame, roofline)
    problems: list[Problem] = []
    answers = [
        answer for answer in (_ask(analysis, facts, problems) for analysis in list_analyses().values()) if answer
    ]
    return KernelAnalyses(roofline=roofline, answers=tuple(answers), problems=tuple(problems))


def _ask(analysis: Analysis, facts: KernelFacts, problems: list[Problem]) -> Answer | None:
    try:
        return analysis.answer(facts)
    except Exception as error:  # a broken analysis must not cost the others; tests raise it again
        what, kernel = f"the analysis {analysis.name}", facts.kernel
        problems.append(Problem.from_fault(what, error, path=kernel.profile_path, kernel=kernel.mangled_name))
        return None
