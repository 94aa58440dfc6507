"""What a worker that writes the page of one profile does: a report that was opened as a file, in the workspace or not."""

from pathlib import Path

from gpa_lsp.basis.errors import GpaError, ProblemSeverity
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.whole_files import open_whole
from gpa_lsp.lsp.profile_messages import ProfileJob
from gpa_lsp.processes.worker import Tell, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJob:
    """What to write.

    Attributes:
        profile: how the profile is read.
        target: the file of the page.
    """

    profile: ProfileJob
    target: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWritten:
    """The page is there, or why it is not.

    Attributes:
        kernels: mangled names, in the order of the page.
        failure: a sentence; empty where it is there.
    """

    kernels: tuple[str, ...] = ()
    failure: str = ""


def write_report_page(job: PageJob, tell: Tell) -> PageWritten:
    """Read a profile, which comes from the user's cache where it was analysed before, and write its page."""
    del tell
    try:
        return _write(job)
    except (GpaError, OSError) as error:
        return PageWritten(failure=str(error))


def _write(job: PageJob) -> PageWritten:
    from gpa_lsp.device.kept_roofs import KeptRoofs
    from gpa_lsp.pipeline import analyse
    from gpa_lsp.render.html_report.page import render_html_report
    from gpa_lsp.report.source_paths import SourceLocator

    asked = job.profile
    locator = SourceLocator(asked.roots, asked.path_mappings, is_confined=True)
    report = analyse([asked.profile], locator=locator, blamer=asked.blamer, roofs=KeptRoofs())
    failures = [problem for problem in report.problems if problem.severity is ProblemSeverity.ERROR]
    if failures and not report.kernels:
        return PageWritten(failure=str(failures[0]))
    with open_whole(job.target, errors="backslashreplace") as stream:
        stream.write(render_html_report(report, locator=locator))
    return PageWritten(kernels=tuple(kernel.mangled_name for kernel in report.kernels))


def _explain(job: PageJob, reason: str) -> PageWritten:
    return PageWritten(failure=f"{job.profile.profile}: {reason}")


WORK = Work(do=write_report_page, explain=_explain)
