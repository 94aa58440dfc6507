"""Advice as text for a terminal or a file: kernels by time; per kernel what bounds it, what to change and on what basis."""

from collections.abc import Iterator, Mapping, Sequence

from gpa_lsp.document.advice_piece_text import AdviceText, count_rest
from gpa_lsp.document.advice_words import (
    NO_SASS,
    SECTION_TITLES,
    find_best_advice,
    name_best_advice,
    show_estimate,
    summarise_advice,
)
from gpa_lsp.document.blame_words import describe_basis, describe_bounds
from gpa_lsp.document.check_text import name_code_place, render_problems
from gpa_lsp.document.context_words import build_context_table
from gpa_lsp.document.finding_words import describe_code_finding
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import (
    EMPTY_LINE,
    Align,
    Column,
    Line,
    Style,
    cut,
    hang,
    join_facts,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.rule_estimates import list_estimates
from gpa_lsp.document.sampling_words import describe_dropped, describe_time
from gpa_lsp.document.silence_text import render_silences
from gpa_lsp.foundation.numbers import format_count_of, format_duration_ns, format_launches, format_percent
from gpa_lsp.report.model import KernelReport, Report

_REMARK_CELLS = 120  # Of a remark of the profiler; ``gpa-lsp report`` shows all of it

BY_CODE = "By the code alone, where nothing was counted"

ALTERNATIVES = "Estimates are alternatives: several may count the same samples. Do not add or multiply them."


def render_advice(
    report: Report, places: PlaceNames, width: int | None = None, *, max_kernels: int | None, max_advice: int | None
) -> Iterator[Line]:
    """Everything there is to advise: an overview where there are several kernels, then kernel by kernel, then the problems.

    Args:
        report: what to show.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
        max_kernels: kernels shown, of most time first; None shows all.
        max_advice: pieces of advice shown per kernel and category; None shows all.
    """
    names = name_kernels(report.kernels)
    shown = report.kernels[:max_kernels]
    if len(shown) > 1:
        whole = sum(kernel.total_duration_ns for kernel in report.kernels)
        yield from _render_overview(shown, names, whole, width)
    for position, kernel in enumerate(shown):
        if position or len(shown) > 1:
            yield EMPTY_LINE
            yield EMPTY_LINE
        yield from _render_kernel(kernel, names[kernel.name], places, width, max_advice)
    rest = len(report.kernels) - len(shown)
    if rest:
        yield EMPTY_LINE
        yield text_line(f"and {format_count_of(rest, 'more kernel')}", Style.DIM)
    if not report.kernels:
        yield text_line("no kernel was found", Style.DIM)
    yield from render_problems(report.problems, places, width)


def _render_overview(
    kernels: Sequence[KernelReport], names: Mapping[str, str], whole_ns: float, width: int | None
) -> Iterator[Line]:
    yield text_line("Kernels", Style.HEADING)
    columns = (
        Column(title="time", align=Align.RIGHT),
        Column(title="share", align=Align.RIGHT),
        Column(title="best", align=Align.RIGHT),
        Column(title="advice", can_shrink=True, min_chars=16),
        Column(title="kernel", can_shrink=True, min_chars=16),
    )
    rows = []
    for kernel in kernels:
        total, best = kernel.total_duration_ns, find_best_advice(kernel)
        ratio = total / whole_ns if whole_ns else 0.0
        rows.append(
            (
                (format_duration_ns(total or None), Style.PLAIN),
                (format_percent(ratio) if total else "", style_of_share(ratio)),
                ("" if best is None else show_estimate(best.speedup), Style.PLAIN),
                (name_best_advice(kernel), Style.DIM if best is None else Style.PLAIN),
                (names[kernel.name], Style.TITLE),
            )
        )
    yield from lay_out_table(columns, rows, width=width)


def _render_kernel(
    kernel: KernelReport, name: str, places: PlaceNames, width: int | None, max_advice: int | None
) -> Iterator[Line]:
    yield text_line(name, Style.TITLE)
    yield from wrap(join_facts(describe_run(kernel)), width, style=Style.DIM)
    bounds = describe_bounds(kernel)
    if bounds:
        yield from wrap(bounds, width)
    best = find_best_advice(kernel)
    if best is not None:
        yield from wrap(f"best: {summarise_advice(best)}", width)
    contexts = build_context_table(kernel, places)
    if contexts.rows:
        yield EMPTY_LINE
        yield text_line(contexts.title, Style.HEADING)
        yield from lay_out_table(contexts.columns, contexts.rows, width=width)
    advice = kernel.advice.advice if kernel.advice is not None else ()
    for category, title in SECTION_TITLES.items():
        found = [one for one in advice if one.category is category]
        if not found:
            continue
        yield EMPTY_LINE
        yield text_line(title, Style.HEADING)
        for position, one in enumerate(found[:max_advice]):
            if position:
                yield EMPTY_LINE
            yield from AdviceText(kernel, places, width).render(one, advice)
        yield from count_rest(len(found) - len(found[:max_advice]), indent=2)
    if advice:
        yield EMPTY_LINE
        yield from wrap(ALTERNATIVES, width, style=Style.DIM)
    yield from _render_by_code(kernel, places, width)
    yield from render_silences(kernel, width)
    yield from _render_estimates(kernel, width)
    yield from _render_basis(kernel, width)


def _render_by_code(kernel: KernelReport, places: PlaceNames, width: int | None) -> Iterator[Line]:
    if not kernel.code_findings:
        return
    yield EMPTY_LINE
    yield text_line(BY_CODE, Style.HEADING)
    for finding in kernel.code_findings:
        place = name_code_place(kernel, finding, places)
        spans = ((f"  {place}  ", Style.PATH), (describe_code_finding(finding), Style.PLAIN))
        yield from hang(spans, width, indent=4)


def describe_run(kernel: KernelReport) -> list[str]:
    """Device, time, launches and samples of a kernel."""
    facts = [kernel.device.name] if kernel.device.name is not None else []
    if not kernel.launches:
        return [*facts, "not measured"]
    time = describe_time(kernel, kernel.total_duration_ns) if kernel.total_duration_ns else "unknown time"
    facts.append(f"{time} in {format_launches(kernel.launch_count)}")
    facts.append(format_count_of(kernel.total_samples, "sample") if kernel.total_samples else "no samples")
    if kernel.total_samples and kernel.latency_samples is None:
        facts.append("how many were not issued is unknown")
    if dropped := describe_dropped(kernel):
        facts.append(dropped)
    if kernel.samples_truncated:
        facts.append("the sampling buffer was full")
    if kernel.lacks_sass:
        facts.append(NO_SASS)
    return facts


def _render_estimates(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    estimates = list_estimates(kernel)
    if not estimates:
        return
    yield EMPTY_LINE
    yield text_line("The profiler's own estimates", Style.HEADING)
    columns = (
        Column(title="factor", align=Align.RIGHT),
        Column(title="saves", align=Align.RIGHT),
        Column(title="of the time of"),
        Column(title="rule"),
        Column(title="remark", can_shrink=True, min_chars=16),
    )
    rows = [
        (
            (estimate.factor, Style.PLAIN),
            (estimate.saved, Style.PLAIN),
            (estimate.base, Style.PLAIN),
            (estimate.rule, Style.PLAIN),
            (cut(estimate.text, _REMARK_CELLS), Style.DIM),
        )
        for estimate in estimates
    ]
    yield from lay_out_table(columns, rows, width=width)


def _render_basis(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    basis = list(describe_basis(kernel))
    if not basis:
        return
    yield EMPTY_LINE
    yield text_line("Basis", Style.HEADING)
    for name, sentence in basis:
        yield from hang((("  ", Style.PLAIN), (f"{name}: ", Style.DIM), (sentence, Style.PLAIN)), width)
