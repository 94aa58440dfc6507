"""A report from a path, as the command line reads it."""

from pathlib import Path

from gpa_lsp.document.check_view import build_check
from gpa_lsp.document.findings import DEFAULT_MIN_SHARE_RATIO, find_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.device.roofs_file import KeptRoofs
from gpa_lsp.kernel.names import list_named
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved import is_saved_report
from gpa_lsp.report.saved.store import read_report


def read_report_file(path: Path, kernel: str | None) -> Report:
    """A profile, analysed, or a saved report.

    Args:
        kernel: only kernels whose name contains this; None for all.

    Raises:
        InputError: there is no such file, or a saved report cannot be read.
    """
    if not path.exists():
        raise InputError("there is no such file", path=path, remedy="give a report or a profile")
    if not (path.is_file() and is_saved_report(path)):
        return analyse([path], kernel_filter=kernel, roofs=KeptRoofs())
    report = read_report(path)
    kernels = report.kernels
    if kernel is not None:
        kernels = tuple(list_named(kernel, kernels, lambda one: (one.mangled_name, one.name)))
    return Report(problems=report.problems, kernels=kernels)


def list_findings(report: Report) -> str:
    """What there is to say where no page is drawn, as ``gpa-lsp check`` does."""
    places = PlaceNames(folder=Path.cwd())
    return write_plain(build_check(report, find_findings(report), places, DEFAULT_MIN_SHARE_RATIO))
