"""The history as a page."""

from pathlib import Path

from gpa_lsp.cli.history_text import show_path
from gpa_lsp.document.history_page.page import KernelPast, render_history_page
from gpa_lsp.foundation.numbers import format_dim3
from gpa_lsp.report.history.model import Run, RunFilter, TimeCourse
from gpa_lsp.report.history.past import build_courses
from gpa_lsp.report.history.store import History


def draw_history(history: History, wanted: RunFilter, most_runs: int | None, folder: Path) -> str:
    """The page of the kernels that match.

    Args:
        most_runs: of each kernel; None for all.

    Raises:
        InputError: the history cannot be read.
        MissingToolError: what draws charts is not installed.
    """
    return render_history_page(
        [_describe(run, course, folder) for run, course in build_courses(history, wanted, most_runs)]
    )


def _describe(newest: Run, course: TimeCourse, folder: Path) -> KernelPast:
    measurement = newest.measurement
    launch = measurement.launch
    facts = (
        measurement.key.device,
        "" if launch.grid is None else f"grid {format_dim3(launch.grid)}",
        "" if launch.block is None else f"block {format_dim3(launch.block)}",
        show_path(measurement.key.home, folder),
    )
    return KernelPast(name=measurement.name, facts=facts, course=course)
