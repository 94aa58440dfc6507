"""A page about the past: what became of the time of every kernel that was measured."""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct

from gpa_lsp.document.html_report.changes_section import build_history_section
from gpa_lsp.document.page import read_asset, render_page
from gpa_lsp.document.page.writer import PageWriter
from gpa_lsp.document.time_course_words import draw_blocks
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.kernel.names import shorten_distinctly
from gpa_lsp.report.history.model import TimeCourse

_PACKAGE = "gpa_lsp.document.history_page"
_REPORT = "gpa_lsp.document.html_report"
_MOST_OPEN = 5  # Kernels that are unfolded when the page opens, those measured last


class KernelPast(Struct, frozen=True, kw_only=True):
    """A kernel on the page."""

    name: str  # readable name
    facts: tuple[str, ...]  # the GPU, the launch and where the kernel is, as far as they are known
    course: TimeCourse  # its runs


def render_history_page(kernels: Sequence[KernelPast], zone: tzinfo | None = None) -> str:
    """Every kernel with its times, ranges, regressions and commits.

    Args:
        kernels: in the order of the page.
        zone: of moments; None for the user's.

    Returns:
        HTML that loads nothing.
    """
    names = shorten_distinctly(kernel.name for kernel in kernels)
    page = PageWriter()
    items = [_build_item(kernel, names[kernel.name], zone) for kernel in kernels]
    slower = [item for item in items if item["is_last_slower"]]
    return render_page(
        f"{_PACKAGE}/page.html.jinja",
        title="History of GPU kernels",
        values={
            "items": items,
            "slower": slower,
            "counted": format_count_of(len(items), "kernel"),
            "runs": format_count_of(sum(len(kernel.course.runs) for kernel in kernels), "run"),
            "most_open": _MOST_OPEN,
            "page": page,
        },
        styles=[read_asset(_REPORT, "report.css"), read_asset(_PACKAGE, "page.css")],
        scripts=[read_asset(_PACKAGE, "page.js")],
        draws_charts=any(len(kernel.course.timed) > 1 for kernel in kernels),
    )


def _build_item(kernel: KernelPast, name: str, zone: tzinfo | None) -> dict[str, Any]:
    """What the template shows of a kernel; *wanted* is what the filter looks in."""
    course = kernel.course
    facts = " · ".join(fact for fact in kernel.facts if fact)
    commits = (text for commit in course.commits for text in (commit.short, commit.subject))
    return {
        "name": name,
        "full_name": kernel.name,
        "facts": facts,
        "blocks": draw_blocks(course),
        "section": build_history_section(course, zone),
        "regressions": len(course.regressions),
        "is_last_slower": bool(course.runs) and course.runs[-1].is_regression,
        "wanted": " ".join((kernel.name, facts, *commits)).lower(),
    }
