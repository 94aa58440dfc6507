"""The whole report as text for a terminal or a file."""

import datetime
from collections.abc import Iterator, Mapping, Sequence

from gpa_lsp.document.advice_screen import WHOLE, build_screen, has_cut_sentence, render_screen
from gpa_lsp.document.advice_words import BY_COUNTERS, NO_SASS, show_bound, show_estimate, show_interval
from gpa_lsp.document.answer_view import build_answers, list_answers
from gpa_lsp.document.blocks import Table
from gpa_lsp.document.check_text import render_problems
from gpa_lsp.document.context_words import build_context_table, name_shape
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.kernel_tables import (
    TableBuilder,
    build_cause_table,
    build_function_table,
    build_launch_table,
    build_line_table,
    build_loop_table,
    build_state_table,
    name_reasons,
)
from gpa_lsp.document.launch_place_words import describe_place_time
from gpa_lsp.document.layout import (
    EMPTY_LINE,
    Align,
    Column,
    Line,
    Style,
    join_facts,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sampling_words import describe_device, describe_quiet, list_sampling_facts
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_ns,
    format_duration_spread,
    format_launches,
    format_percent,
    format_share,
)
from gpa_lsp.foundation.prose import begin_lower
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.report.launch_places import list_launch_places
from gpa_lsp.report.model import KernelReport, Report, RuleNote


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


_RIGHT = Align.RIGHT


def build_advice_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """The pieces of advice, largest estimate first."""
    columns = (
        Column(title="speedup", align=_RIGHT),
        Column(title="range"),
        Column(title="at most", align=_RIGHT),
        Column(title="of the samples", align=_RIGHT),
        Column(title="to change"),
        Column(title="advice", can_shrink=True, min_chars=20),
    )
    rows = [
        (
            (show_estimate(advice.speedup), style_of_share(1 - 1 / max(1.0, advice.speedup.estimate))),
            (show_interval(advice.speedup), Style.PLAIN),
            (show_bound(advice.speedup), Style.PLAIN),
            (
                BY_COUNTERS if advice.by_counters else format_share(advice.share) if advice.matched_samples else "",
                Style.PLAIN,
            ),
            (advice.category.value, Style.PLAIN),
            (advice.title, Style.PLAIN),
        )
        for advice in (kernel.advice.advice if kernel.advice is not None else ())
    ]
    return Table(title="Advice", columns=columns, rows=rows)


_NAME_CHARS = 400
# Lines of a kernel in the brief form.
_BRIEF_LINES = 10

# In the order they are shown
_TABLES: Sequence[TableBuilder] = (
    build_advice_table,
    build_context_table,
    build_state_table,
    build_cause_table,
    build_function_table,
    build_line_table,
    build_loop_table,
    build_launch_table,
)


def render_kernel(
    kernel: KernelReport, name: str, places: PlaceNames, width: int | None, max_rows: int | None
) -> Iterator[Line]:
    """Heading, tables, where it was launched from, and what the profiler's own rules said.

    Args:
        width: characters per line; None for as many as it takes.
        max_rows: longest table; what is cut is counted. None shows all.
    """
    yield from _render_heading(kernel, name, places, width)
    for build_table in _TABLES:
        yield from _render_table(build_table(kernel, places), width, max_rows)
    for part in build_answers(kernel, places):
        yield from (EMPTY_LINE, *write_terminal([part], width, max_rows=max_rows))
    yield from _render_context(kernel, width, max_rows)
    yield from _render_rules(kernel, width, max_rows)


def render_kernel_briefly(
    kernel: KernelReport, name: str, places: PlaceNames, width: int | None, max_rows: int | None
) -> Iterator[Line]:
    """Heading, the screen of its advice, its hottest lines, and what was left out: at most two screens.

    Args:
        width: characters per line; None for as many as it takes.
        max_rows: lines shown; None for :data:`_BRIEF_LINES`.
    """
    yield from _render_heading(kernel, name, places, width)
    yield EMPTY_LINE
    screen = list(render_screen(build_screen(kernel, name, places), width))[1:]  # the heading says its first line
    yield from screen
    yield from _render_table(build_line_table(kernel, places), width, _BRIEF_LINES if max_rows is None else max_rows)
    yield EMPTY_LINE
    if has_cut_sentence(screen):
        yield from wrap(f"{WHOLE}report --details", width, style=Style.DIM)
    yield from wrap(_describe_left_out(kernel, places), width, style=Style.DIM)


def _describe_left_out(kernel: KernelReport, places: PlaceNames) -> str:
    """What the long form has besides, and how to get it."""
    tables = [build(kernel, places) for build in _TABLES if build is not build_line_table]
    parts: list[str] = [begin_lower(table.title) for table in tables if table.rows]
    answers = len(list(list_answers(kernel)))
    parts += [f"{format_count(answers)} analyses"] if answers else []
    parts += ["where it was launched from"] if any(_list_contexts(kernel)) else []
    parts += ["the profiler's own rules"] if _list_rules(kernel) else []
    left = f"left out: {', '.join(parts)}; " if parts else ""
    return f"{left}everything: --details, --format json, --html"


def _render_heading(kernel: KernelReport, name: str, places: PlaceNames, width: int | None) -> Iterator[Line]:
    yield text_line(name, Style.TITLE)
    if kernel.name != name:
        yield from wrap(_abridge(kernel.name), width, style=Style.DIM)
    yield from wrap(describe_device(kernel.device), width)
    yield from wrap(_describe_launches(kernel), width)
    yield from wrap(_describe_samples(kernel), width)
    if kernel.profile_path is not None:
        when = _format_time(kernel.measured_unix_s)
        yield from wrap(f"{places.show_path(kernel.profile_path)}{when}", width, style=Style.DIM)


def _abridge(name: str) -> str:
    """Shorten names of template libraries, which reach two thousand characters."""
    if len(name) <= _NAME_CHARS:
        return name
    return f"{name[:_NAME_CHARS]}… ({format_count(len(name))} characters)"


def _describe_launches(kernel: KernelReport) -> str:
    if not kernel.launches:
        return join_facts(["not measured", *_describe_resources(kernel.configuration)])
    times = kernel.launch_count
    launches = f"{format_launches(times)} of " if times != 1 else ""
    facts = [
        f"{launches}{format_duration_spread(kernel.duration_spread_ns)}"
        if times is not None
        else format_launches(times)
    ]
    shape = name_shape(kernel)
    return join_facts([*facts, *_describe_configuration(kernel.configuration), *([shape] if shape else [])])


def _describe_configuration(configuration: LaunchConfiguration) -> list[str]:
    grid, block = format_dim3(configuration.grid), format_dim3(configuration.block)
    return [f"grid {grid}", f"block {block}", *_describe_resources(configuration)]


def _describe_resources(configuration: LaunchConfiguration) -> list[str]:
    facts = []
    if configuration.registers_per_thread is not None:
        facts.append(format_count_of(configuration.registers_per_thread, "register"))
    shared_bytes = (configuration.shared_static_bytes or 0) + (configuration.shared_dynamic_bytes or 0)
    if shared_bytes:
        facts.append(f"{format_bytes(shared_bytes)} shared memory per block")
    return facts


def _describe_samples(kernel: KernelReport) -> str:
    if not kernel.total_samples:
        return "no samples"
    text = f"{format_count_of(kernel.total_samples, 'sample')}, {describe_quiet(kernel)}"
    spread = kernel.samples_spread
    if spread is not None and spread.standard_deviation is not None:
        text += f"; {format_count(spread.mean)} ± {format_count(spread.standard_deviation)} per launch"
    full = ["the sampling buffer was full"] if kernel.samples_truncated else []
    return "; ".join([text, *list_sampling_facts(kernel), *full, *([NO_SASS] if kernel.lacks_sass else [])])


def _render_context(kernel: KernelReport, width: int | None, max_rows: int | None) -> Iterator[Line]:
    """Where on the host the kernel was launched from: each different place once."""
    contexts = _list_contexts(kernel)
    if not contexts:
        return
    yield EMPTY_LINE
    yield text_line("Launched from", Style.HEADING)
    times = {place.stack: place for place in list_launch_places(kernel)}
    for ranges, stack in contexts[:max_rows]:
        if ranges:
            yield from wrap("NVTX " + " > ".join(ranges), width)
        if stack:
            time = describe_place_time(times[stack]) if len(times) > 1 else ""
            yield from wrap(": ".join(part for part in (time, " < ".join(stack)) if part), width)
    yield from _count_rest(len(contexts) - len(contexts[:max_rows]))


def _render_rules(kernel: KernelReport, width: int | None, max_rows: int | None) -> Iterator[Line]:
    notes = _list_rules(kernel)
    if not notes:
        return
    yield EMPTY_LINE
    yield text_line("The profiler's own rules", Style.HEADING)
    for note in notes[:max_rows]:
        yield from wrap(_describe_rule(note), width)
    yield from _count_rest(len(notes) - len(notes[:max_rows]))


def _list_contexts(kernel: KernelReport) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """NVTX ranges and call stack of each launch, each once."""
    pairs = ((launch.nvtx_ranges, launch.call_stack) for launch in kernel.launches)
    return list(dict.fromkeys(pair for pair in pairs if any(pair)))


def _list_rules(kernel: KernelReport) -> list[RuleNote]:
    return list(dict.fromkeys(note for launch in kernel.launches for note in launch.rules if note.kind != "ok"))


def _describe_rule(note: RuleNote) -> str:
    text = f"{note.rule}: {note.text}"
    if note.speedup_percent is None:
        return text
    scope = "of the kernel's time" if note.speedup_is_global else "of this part's time"
    return f"{text} (the profiler's estimate: {format_percent(note.speedup_percent / 100)} {scope})"


def _render_table(table: Table, width: int | None, max_rows: int | None) -> Iterator[Line]:
    """A table under its title, with the number of rows left out; nothing where it has none."""
    shown = table.rows[:max_rows]
    if table.rows:
        yield EMPTY_LINE
        yield text_line(table.title, Style.HEADING)
        yield from lay_out_table(table.columns, shown, width=width)
        yield from _count_rest(len(table.rows) - len(shown))


def _count_rest(count: int) -> Iterator[Line]:
    if count:
        yield text_line(f"  and {format_count(count)} more", Style.DIM)


def _format_time(unix_s: int | None) -> str:
    if unix_s is None:
        return ""
    try:
        when = datetime.datetime.fromtimestamp(unix_s, tz=datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f", measured {when:%Y-%m-%d %H:%M} UTC"
