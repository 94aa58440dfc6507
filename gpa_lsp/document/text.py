"""The whole report as text for a terminal or a file."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from gpa_lsp.document.advice_screen import WHOLE, build_rows
from gpa_lsp.document.blocks import Part
from gpa_lsp.document.check_text import build_problems
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.kernel_view import (
    build_heading,
    build_line_table,
    build_parts,
    name_reasons,
)
from gpa_lsp.document.layout import (
    EMPTY_LINE,
    Align,
    Column,
    Line,
    Style,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.foundation.numbers import (
    format_count,
    format_duration_ns,
    format_percent,
)
from gpa_lsp.foundation.prose import begin_lower
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
    for part in build_problems(report.problems, places):
        yield from (EMPTY_LINE, *write_terminal([part], width))


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


# Lines of a kernel in the brief form.
_BRIEF_LINES = 10


def render_kernel(
    kernel: KernelReport, name: str, places: PlaceNames, width: int | None, max_rows: int | None
) -> Iterator[Line]:
    """Heading, tables, what the analyses answer, where it was launched from, and what the profiler's own rules said.

    Args:
        width: characters per line; None for as many as it takes.
        max_rows: longest table; what is cut is counted. None shows all.
    """
    parts = [build_heading(kernel, name, places), *build_parts(kernel, places)]
    yield from write_terminal(parts, width, max_rows=max_rows)


def render_kernel_briefly(
    kernel: KernelReport, name: str, places: PlaceNames, width: int | None, max_rows: int | None
) -> Iterator[Line]:
    """Heading, the screen of its advice, its hottest lines, and what was left out: at most two screens.

    Args:
        width: characters per line; None for as many as it takes.
        max_rows: lines shown; None for :data:`_BRIEF_LINES`.
    """
    yield from write_terminal([build_heading(kernel, name, places)], width)
    yield EMPTY_LINE
    rows = build_rows(kernel, places, whole=f"{WHOLE}report --details")  # the heading says its facts
    yield from write_terminal([rows], width)
    lines = build_line_table(kernel, places)
    if lines.rows:
        part = Part(title=lines.title, blocks=[replace(lines, title="")])
        most = _BRIEF_LINES if max_rows is None else max_rows
        yield from (EMPTY_LINE, *write_terminal([part], width, max_rows=most))
    yield EMPTY_LINE
    yield from wrap(_describe_left_out(kernel, places, lines.title), width, style=Style.DIM)


def _describe_left_out(kernel: KernelReport, places: PlaceNames, shown: str) -> str:
    """What the long form has besides, and how to get it."""
    parts = [part for part in build_parts(kernel, places) if part.title != shown]
    names: list[str] = [begin_lower(str(part.title)) for part in parts if not part.name]
    answers = len(parts) - len(names)
    names += [f"{format_count(answers)} analyses"] if answers else []
    left = f"left out: {', '.join(names)}; " if names else ""
    return f"{left}everything: --details, --format json, --html"
