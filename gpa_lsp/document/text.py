"""The whole report as text for a terminal or a file."""

from collections.abc import Iterator, Mapping, Sequence

from gpa_lsp.document.check_text import render_problems
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.kernel_tables import name_reasons
from gpa_lsp.document.kernel_text import render_kernel, render_kernel_briefly
from gpa_lsp.document.layout import EMPTY_LINE, Align, Column, Line, Style, lay_out_table, style_of_share, text_line
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.numbers import format_count, format_duration_ns, format_percent
from gpa_lsp.report.model import KernelReport, Report


def render_report(
    report: Report,
    places: PlaceNames,
    width: int | None = None,
    *,
    max_rows: int | None = None,
    has_details: bool = False,
) -> Iterator[Line]:
    """A report: an overview where there are several kernels, then kernel by kernel, then the problems.

    Args:
        report: what to show.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
        max_rows: longest table within a kernel; what is cut is counted. None shows all, without details the ten hottest lines.
        has_details: show everything about each kernel instead of at most two screens.
    """
    render = render_kernel if has_details else render_kernel_briefly
    names = name_kernels(report.kernels)
    if len(report.kernels) > 1:
        yield from _render_overview(report.kernels, names, width)
    for position, kernel in enumerate(report.kernels):
        if position or len(report.kernels) > 1:
            yield EMPTY_LINE
            yield EMPTY_LINE
        yield from render(kernel, names[kernel.name], places, width, max_rows)
    if not report.kernels:
        yield text_line("no kernel was found", Style.DIM)
    yield from render_problems(report.problems, places, width)


def _render_overview(kernels: Sequence[KernelReport], names: Mapping[str, str], width: int | None) -> Iterator[Line]:
    yield text_line("Kernels", Style.HEADING)
    totals = [kernel.total_duration_ns for kernel in kernels]
    whole = sum(totals) or 1.0
    columns = (
        Column(title="time", align=Align.RIGHT),
        Column(title="share", align=Align.RIGHT),
        Column(title="launches", align=Align.RIGHT),
        Column(title="samples", align=Align.RIGHT),
        Column(title="mostly", can_shrink=True),
        Column(title="kernel", can_shrink=True, min_chars=16),
    )
    rows = [
        (
            (format_duration_ns(total or None), Style.PLAIN),
            (format_percent(total / whole) if total else "", style_of_share(total / whole)),
            (format_count(kernel.launch_count), Style.PLAIN),
            (format_count(kernel.total_samples), Style.PLAIN),
            (name_reasons(kernel.by_reason, 1), Style.PLAIN),
            (names[kernel.name], Style.TITLE),
        )
        for kernel, total in zip(kernels, totals, strict=True)
    ]
    yield from lay_out_table(columns, rows, width=width)
