"""The page: :func:`render_history_page`."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count_of
from gpa_lsp.render.html_report.history_section import HistorySection, build_history_section
from gpa_lsp.render.page.embedding import embed_compressed
from gpa_lsp.render.page.frame import read_asset, render_page
from gpa_lsp.render.time_course_words import draw_blocks
from gpa_lsp.report.names import shorten_distinctly
from gpa_lsp.report.time_course import TimeCourse

_PACKAGE = "gpa_lsp.render.history_page"
_REPORT = "gpa_lsp.render.html_report"
_MOST_OPEN = 5
"""Kernels that are unfolded when the page opens, those measured last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPast:
    """A kernel on the page.

    Attributes:
        name: readable name.
        facts: the GPU, the launch and where the kernel is, as far as they are known.
        course: its runs.
    """

    name: str
    facts: tuple[str, ...]
    course: TimeCourse


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What the template shows of a kernel.

    Attributes:
        name: short.
        full_name: as it is called.
        facts: in one line.
        blocks: its times as blocks.
        section: what the report's page shows, too.
        regressions: how many.
        is_last_slower: its newest run is a regression.
        wanted: what the filter looks in.
    """

    name: str
    full_name: str
    facts: str
    blocks: str
    section: HistorySection
    regressions: int
    is_last_slower: bool
    wanted: str


def render_history_page(kernels: Sequence[KernelPast], zone: tzinfo | None = None) -> str:
    """Every kernel with its times, ranges, regressions and commits.

    Args:
        kernels: in the order of the page.
        zone: of moments; None for the user's.

    Returns:
        HTML that loads nothing.
    """
    names = shorten_distinctly(kernel.name for kernel in kernels)
    charts: dict[str, Mapping[str, Any]] = {}
    items = [_build_item(kernel, names[kernel.name], charts, zone) for kernel in kernels]
    slower = [item for item in items if item.is_last_slower]
    return render_page(
        f"{_PACKAGE}/page.html.jinja",
        title="History of GPU kernels",
        values={
            "items": items,
            "slower": slower,
            "counted": format_count_of(len(items), "kernel"),
            "runs": format_count_of(sum(len(kernel.course.runs) for kernel in kernels), "run"),
            "most_open": _MOST_OPEN,
            "data": embed_compressed(charts),
        },
        styles=[read_asset(_REPORT, "report.css"), read_asset(_PACKAGE, "page.css")],
        scripts=[read_asset(_PACKAGE, "page.js")],
        draws_charts=bool(charts),
    )


def _build_item(kernel: KernelPast, name: str, charts: dict[str, Mapping[str, Any]], zone: tzinfo | None) -> _Item:
    course = kernel.course
    facts = " · ".join(fact for fact in kernel.facts if fact)
    commits = (text for commit in course.commits for text in (commit.short, commit.subject))
    return _Item(
        name=name,
        full_name=kernel.name,
        facts=facts,
        blocks=draw_blocks(course),
        section=build_history_section(course, charts, zone),
        regressions=len(course.regressions),
        is_last_slower=bool(course.runs) and course.runs[-1].is_regression,
        wanted=" ".join((kernel.name, facts, *commits)).lower(),
    )
