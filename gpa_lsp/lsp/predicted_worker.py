"""The process that emulates sources for the server: ``python -P -m gpa_lsp.lsp.predicted_worker``.

It is another one than that which compiles them, so that static findings never wait for an emulation.
"""

from gpa_lsp.lsp.predicted_results import Job
from gpa_lsp.lsp.staying_worker import Do, serve_jobs


def prepare() -> Do:
    """Import what the first job needs while nobody waits for it."""
    from gpa_lsp.lsp.predicted_work import do_job, warm_up

    warm_up()
    return do_job


def explain(job: Job, reason: str) -> object:
    """The result of a job that failed."""
    from gpa_lsp.lsp import predicted_work

    return predicted_work.explain(job, reason)


if __name__ == "__main__":
    serve_jobs(prepare, explain, niceness=10)  # compiling comes first
