"""RENDER: a report → one page of HTML that opens from disk, asks no network, and shows everything the report holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpa_lsp.basis.errors import Problem
from gpa_lsp.render.findings import name_kernels
from gpa_lsp.render.html_report.changes_section import ChangeSection, build_change
from gpa_lsp.render.html_report.kernel_section import KernelPlace, build_kernel_data
from gpa_lsp.render.html_report.overview import (
    build_groups,
    format_measured,
    list_facts,
    list_problems,
    name_profile,
)
from gpa_lsp.render.html_report.row_choice import share_rows
from gpa_lsp.render.html_report.source_texts import SourceTexts
from gpa_lsp.render.page.embedding import embed_compressed
from gpa_lsp.render.page.frame import read_asset, render_page
from gpa_lsp.report.compare import compare_reports
from gpa_lsp.report.comparison import Comparison
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.source_paths import SourceLocator
from gpa_lsp.report.time_course import TimeCourse

_HERE = "gpa_lsp.render.html_report"
TEMPLATE = f"{_HERE}/report.html.jinja"
_SCRIPTS = ("overview.js", "grid.js", "code.js", "flame.js", "report.js")


def render_html_report(
    report: Report,
    *,
    locator: SourceLocator | None = None,
    with_sources: bool = True,
    before: Report | None = None,
    courses: Mapping[int, TimeCourse] | None = None,
) -> str:
    """The page.

    Sources, folders and names are shown as they were compiled; of the machine that writes the page nothing is said.

    Args:
        report: what to show.
        locator: finds sources here, where the profile does not carry them; one that may have changed since is marked, one that has is not shown.
        with_sources: False leaves the texts of sources out.
        before: an earlier profile of the same program; the page then says what became of each kernel.
        courses: number of a kernel → its runs up to this one.

    Returns:
        HTML, to be written as UTF-8.
    """
    kernels = report.kernels
    names = name_kernels(kernels)
    comparison = None if before is None else compare_reports(before, report)
    changes, earlier = _find_changes(kernels, comparison)
    texts = SourceTexts(locator, is_wanted=with_sources)
    data = _build_data(report, names, changes, earlier, courses=courses or {}, texts=texts)
    return render_page(
        TEMPLATE,
        title=_name_page(kernels, names),
        values={
            "groups": build_groups(kernels, names, changes),
            "facts": list_facts(report),
            "problems": list_problems((*(before.problems if before is not None else ()), *report.problems)),
            "comparison": comparison,
            "before_names": _name_lost(comparison),
            "packed": [embed_compressed(one) for one in data],
        },
        styles=[read_asset(_HERE, "report.css")],
        scripts=[read_asset(_HERE, name) for name in _SCRIPTS],
        draws_charts=any(one["charts"] for one in data),
    )


def _build_data(
    report: Report,
    names: Mapping[str, str],
    changes: Mapping[int, ChangeSection],
    earlier: Mapping[int, KernelReport],
    *,
    courses: Mapping[int, TimeCourse],
    texts: SourceTexts,
) -> list[dict[str, Any]]:
    """What the page's script draws of each kernel."""
    limits = share_rows([len(kernel.instructions) for kernel in report.kernels])
    return [
        build_kernel_data(
            kernel,
            KernelPlace(
                number=number,
                name=names[kernel.name],
                profile=name_profile(kernel),
                measured=format_measured(kernel.measured_unix_s),
                most_rows=limits[number],
                change=changes.get(number),
                before=earlier.get(number),
                problems=_list_own_problems(report.problems, kernel),
                course=courses.get(number),
            ),
            texts,
        )
        for number, kernel in enumerate(report.kernels)
    ]


def _find_changes(
    kernels: Sequence[KernelReport], comparison: Comparison | None
) -> tuple[Mapping[int, ChangeSection], Mapping[int, KernelReport]]:
    """By number of the kernel: what became of it, and what it was."""
    if comparison is None:
        return {}, {}
    numbers = {id(kernel): number for number, kernel in enumerate(kernels)}
    return (
        {numbers[id(found.after)]: build_change(found) for found in comparison.kernels},
        {numbers[id(found.after)]: found.before for found in comparison.kernels},
    )


def _name_lost(comparison: Comparison | None) -> list[str]:
    """The kernels that the earlier profile alone has."""
    return [] if comparison is None else [name_kernels([one])[one.name] for one in comparison.only_before]


def _list_own_problems(problems: Sequence[Problem], kernel: KernelReport) -> tuple[str, ...]:
    return tuple(
        f"{problem.severity.value}: {problem.message}" + (f"; {problem.remedy}" if problem.remedy else "")
        for problem in problems
        if problem.kernel == kernel.mangled_name
    )


def _name_page(kernels: Sequence[KernelReport], names: Mapping[str, str]) -> str:
    profiles = list(dict.fromkeys(name_profile(kernel) for kernel in kernels if kernel.profile_path))
    if len(profiles) == 1:
        return f"{profiles[0]} – gpa-lsp"
    if len(kernels) == 1:
        return f"{names[kernels[0].name]} – gpa-lsp"
    return "GPU kernels – gpa-lsp"
