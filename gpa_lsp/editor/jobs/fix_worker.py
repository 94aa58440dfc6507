"""The process that tries fixes, so that nothing of it delays an answer."""

from gpa_lsp.foundation.processes.worker import Work
from gpa_lsp.report.fixes.results import FixJob, FixState, FixVerdict, LaunchedJob, LaunchedResult
from gpa_lsp.report.fixes.trials import compare_launches, try_fix


def do_job(job: FixJob | LaunchedJob) -> FixVerdict | LaunchedResult:
    """The result of a job; what cannot be compiled is a result too."""
    return try_fix(job) if isinstance(job, FixJob) else compare_launches(job)


def _warm_up() -> None:
    from gpa_lsp.code.binary import disassembler  # noqa: F401
    from gpa_lsp.execution.compiler import compile as compiling  # noqa: F401


def _explain(job: FixJob | LaunchedJob, reason: str) -> FixVerdict | LaunchedResult:
    if isinstance(job, LaunchedJob):
        return LaunchedResult()
    return FixVerdict(state=FixState.UNKNOWN, details=(f"It cannot be compiled here: {reason}.",))


WORK = Work(do=lambda job, tell: do_job(job), prepare=_warm_up, explain=_explain)
