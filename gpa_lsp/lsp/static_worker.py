"""The process that compiles sources for the server and looks at their code: ``python -P -m gpa_lsp.lsp.static_worker``."""

from gpa_lsp.lsp.static_results import StaticJob, StaticResult
from gpa_lsp.lsp.staying_worker import Do, serve_jobs


def prepare() -> Do:
    """Import what the first job needs while nobody waits for it."""
    from gpa_lsp.lsp.static_work import do_job, warm_up

    warm_up()
    return lambda job, tell: do_job(job)


def explain(job: StaticJob, reason: str) -> StaticResult:
    """The result of a job that failed."""
    return StaticResult(path=job.path, text=job.text, failure=f"{job.path}: {reason}")


if __name__ == "__main__":
    serve_jobs(prepare, explain)
