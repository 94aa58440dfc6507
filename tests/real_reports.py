"""The real reports of the corpus: a worker reads, joins, blames and analyses each once, whichever tests ask about it."""

from functools import cache
from pathlib import Path

from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline import analyse
from tests.conftest import find_corpus

CORPUS = find_corpus()

PATHS = sorted((CORPUS / "ncu").glob("*.ncu-rep")) if CORPUS is not None else []

# Their names; empty where the corpus is not at hand, and then tests that are marked ``corpus`` are skipped.
REPORTS = [path.name for path in PATHS]


def find_report(name: str) -> Path:
    """The file of a report, or of one of a measured pair (``pairs/….ncu-rep``)."""
    assert CORPUS is not None
    return CORPUS / name if "/" in name else CORPUS / "ncu" / name


@cache
def read_launches(name: str) -> tuple[Launch, ...]:
    """The launches of a report that have numbers."""
    return tuple(launch for launch in read_profile(find_report(name)).launches if launch.failure is None)


@cache
def join(name: str) -> tuple[Kernel, ...]:
    """The kernels of a report, with their code."""
    kernels, problems = join_profile(read_profile(find_report(name)))
    assert [problem for problem in problems if problem.kernel is None] == []
    return kernels


@cache
def blame(name: str, blamer: str = "scoreboard") -> tuple[tuple[Kernel, KernelBlame], ...]:
    """The kernels of a report, blamed."""
    return tuple((kernel, blame_kernel(kernel, blamer)) for kernel in join(name))


@cache
def read_subjects(name: str) -> tuple[Subject, ...]:
    """Subjects that questions and optimizers are asked about."""
    return tuple(Subject(kernel, found) for kernel, found in blame(name))


@cache
def analyse_report(name: str) -> Report:
    """All that is known of a report."""
    return analyse([find_report(name)])
