"""A measured kernel beside the same as it is simulated, as a page; done in the process that simulates."""

import json

from gpa_lsp.document.prediction_page import render_comparison_page
from gpa_lsp.editor.simulated.results import ComparisonJob, ComparisonResult
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_report
from gpa_lsp.execution.simulator.profile_document import make_document
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.worker import Tell
from gpa_lsp.report.measured_simulation import answer_comparison, compare_simulated
from gpa_lsp.report.pipeline import analyse


def do_comparison(job: ComparisonJob, tell: Tell) -> ComparisonResult:
    """Simulate a kernel with the code of its report, and write both sides."""
    try:
        return ComparisonResult(failure=_write(job, tell))
    except (GpaError, OSError) as error:
        return ComparisonResult(failure=str(error))


def _write(job: ComparisonJob, tell: Tell) -> str:
    """Why there is no page; empty where it was written."""

    def report(words: str, done: int, total: int) -> None:
        tell(Step(words=words, done=done, total=total))

    settings = SimulationSettings(machine=job.machine, seconds=job.seconds, memory_bytes=job.memory_bytes)
    found = simulate_report(job.profile, kernel=job.kernel, launches=job.launches, settings=settings, progress=report)
    if not found.launches:
        return "; ".join(map(str, found.problems))
    with atomic_write(job.simulated) as stream:
        stream.write(json.dumps(make_document(found.launches, found.problems)) + "\n")
    sides = [analyse([one], kernel_filter=job.kernel, answers=False).kernels for one in (job.profile, job.simulated)]
    answers = [answer_comparison(one) for one in compare_simulated(*sides)]
    if not answers:
        return "the kernel has no samples"
    with atomic_write(job.page, errors="backslashreplace") as stream:
        stream.write(render_comparison_page(job.profile.name, answers))
    return ""
