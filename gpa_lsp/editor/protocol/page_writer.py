"""Process that writes the page of a report opened as a file, in the workspace or not."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.protocol.profile_reader import ProfileJob
from gpa_lsp.foundation.errors import GpaError, ProblemSeverity
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.processes.worker import Tell, Work

if TYPE_CHECKING:
    from gpa_lsp.report.history.model import TimeCourse
    from gpa_lsp.report.model import Report

_LOG = logging.getLogger(__name__)


class PageJob(Struct, frozen=True, kw_only=True):
    """Page to write."""

    profile: ProfileJob  # how the profile is read
    target: Path  # the file of the page


class PageWritten(Struct, frozen=True, kw_only=True):
    """The page is there, or why it is not."""

    kernels: tuple[str, ...] = ()  # mangled names, in the order of the page
    failure: str = ""  # a sentence; empty where it is there


def write_report_page(job: PageJob, tell: Tell) -> PageWritten:
    """Read a profile, which comes from the user's cache where it was analysed before, and write its page."""
    del tell
    try:
        return _write(job)
    except (GpaError, OSError) as error:
        return PageWritten(failure=str(error))


def _write(job: PageJob) -> PageWritten:
    from gpa_lsp.document.html_report.page import render_html_report
    from gpa_lsp.gpu.device.roofs_file import KeptRoofs
    from gpa_lsp.report.pipeline import analyse
    from gpa_lsp.report.source_paths import SourceLocator

    asked = job.profile
    locator = SourceLocator(asked.roots, asked.path_mappings, is_confined=True)
    report = analyse([asked.profile], locator=locator, roofs=KeptRoofs())
    failures = [problem for problem in report.problems if problem.severity is ProblemSeverity.ERROR]
    if failures and not report.kernels:
        return PageWritten(failure=str(failures[0]))
    courses = _find_courses(report) if asked.keeps_history else {}
    with atomic_write(job.target, errors="backslashreplace") as stream:
        stream.write(render_html_report(report, locator=locator, courses=courses))
    return PageWritten(kernels=tuple(kernel.mangled_name for kernel in report.kernels))


def _find_courses(report: "Report") -> "Mapping[int, TimeCourse]":
    """The past of its kernels; a history that cannot be read costs the past and nothing else."""
    from gpa_lsp.report.history.past import find_courses

    try:
        return find_courses(report.kernels)
    except (GpaError, OSError, ImportError) as error:
        _LOG.warning("the page says nothing of earlier runs: %s", error)
        return {}


def _explain(job: PageJob, reason: str) -> PageWritten:
    return PageWritten(failure=f"{job.profile.profile}: {reason}")


WORK = Work(do=write_report_page, explain=_explain)
