"""VIEW: a report, and each kernel in numbers: advice, stalls, functions, lines, loops, launches, and answers of the analyses."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.diagnosis.blame.model import NO_STALLS
from gpa_lsp.document.advice_screen import WHOLE, build_rows
from gpa_lsp.document.advice_words import BY_COUNTERS, NO_SASS, describe_cause, lead_gain, show_bound
from gpa_lsp.document.answer_view import build_answers
from gpa_lsp.document.blame_words import NO_CAUSE, measure_causes
from gpa_lsp.document.blocks import NO_SPAN, Block, Gauge, Item, Items, Paragraph, Part, Table, tabulate
from gpa_lsp.document.context_words import build_context_table, name_shape
from gpa_lsp.document.findings import choose_reasons, name_kernels
from gpa_lsp.document.launch_place_words import describe_place_time, describe_stack
from gpa_lsp.document.layout import Column, Span, Style, flexible, join_facts, left, right, style_of_share
from gpa_lsp.document.notices import build_problems
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sampling_words import OTHER_CODE, describe_device, describe_quiet, list_sampling_facts
from gpa_lsp.document.time_course_words import format_measured
from gpa_lsp.foundation.locations import write_place
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
from gpa_lsp.kernel.names import demangle, explain_number, shorten_name
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.changes import ReasonCounts
from gpa_lsp.report.launch_places import list_launch_places
from gpa_lsp.report.model import KernelReport, LaunchReport, LineRow, LoopRow, Report, RuleNote

_BAR_CELLS = 12
_SOURCE_CHARS = 60
_NAME_CHARS = 400
_MOST_PLACES = 50  # That launched a kernel
_CALLED_SHOWN_FROM = 0.005

TableBuilder = Callable[[KernelReport, PlaceNames], Table]


def name_reasons(counts: ReasonCounts, limit: int) -> str:
    """The dominating stall reasons in a few words.

    >>> from gpa_lsp.report.changes import ReasonCount
    >>> name_reasons({"wait": ReasonCount(all_samples=3, latency_samples=0)}, 2)
    'wait 100 %'
    """
    reasons = choose_reasons(counts)[:limit]
    return ", ".join(f"{reason.name} {format_percent(reason.ratio)}" for reason in reasons)


def _share_span(kernel: KernelReport, samples: int, called_ratio: float = 0.0, *, is_dim: bool = False) -> Span:
    share = kernel.share_of(samples)
    return format_share(share), Style.DIM if is_dim else style_of_share(share.ratio + called_ratio)


def _draw_share(kernel: KernelReport, samples: int, *, is_dim: bool) -> Span:
    ratio = samples / kernel.total_samples if kernel.total_samples else 0.0
    return Gauge(ratio, _BAR_CELLS), Style.DIM if is_dim else Style.BAR


def build_state_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """Samples by warp state; the two states of issuing are dimmed."""
    return tabulate(
        [(name, count, describe_stall_reason(name)) for name, count in kernel.by_reason.items()],
        [
            (right("share"), lambda row: _share_span(kernel, row[1].all_samples, is_dim=not row[2].is_stall)),
            (left(drop_order=1), lambda row: _draw_share(kernel, row[1].all_samples, is_dim=not row[2].is_stall)),
            (right("samples", drop_order=3), lambda row: format_count(row[1].all_samples)),
            (right("not issued", drop_order=2), lambda row: format_count(row[1].latency_samples)),
            (left("state"), lambda row: (row[0], Style.PLAIN if row[2].is_stall else Style.DIM)),
            (flexible("", 20, drop_order=4), lambda row: (row[2].description, Style.DIM)),
        ],
        "Warp states",
    )


def build_cause_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """Samples by category of cause, and those without a cause."""
    blame, total = kernel.blame, kernel.total_samples
    causes = [] if blame is None else measure_causes(kernel, blame)
    rows = [(describe_cause(category), ratio, category in NO_STALLS) for category, ratio in causes]
    lost = 0.0 if blame is None else float(blame.unattributed.all_samples.sum())
    if lost:
        rows.append((NO_CAUSE, lost / total, True))
    return tabulate(
        rows,
        [
            (right("share"), lambda row: (format_percent(row[1]), Style.DIM if row[2] else style_of_share(row[1]))),
            (left(drop_order=1), lambda row: (Gauge(row[1], _BAR_CELLS), Style.DIM if row[2] else Style.BAR)),
            (right("samples", drop_order=2), lambda row: format_count(row[1] * total)),
            (flexible("stalled on", 20), lambda row: (row[0], Style.DIM if row[2] else Style.PLAIN)),
        ],
        "Causes",
    )


def build_function_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """Functions, where there are more than the kernel itself; the last row is other code sampled meanwhile."""
    foreign = kernel.sampling.foreign_samples
    table = tabulate(
        kernel.functions if len(kernel.functions) > 1 or foreign else (),
        [
            (right("share"), lambda row: _share_span(kernel, row.samples)),
            (right("samples", drop_order=1), lambda row: format_count(row.samples)),
            (
                right("instructions", drop_order=2),
                lambda row: format_count(row.instruction_count) if row.instruction_count else "",
            ),
            (
                right("registers", drop_order=3),
                lambda row: format_count(row.registers) if row.registers is not None else "",
            ),
            (left("lines", drop_order=4), lambda row: "yes" if row.has_lines else ("no", Style.WARNING)),
            (flexible("mostly", drop_order=5), lambda row: name_reasons(row.by_reason, 1)),
            (flexible("function", 20), lambda row: (shorten_name(demangle(row.name), 100), Style.CODE)),
        ],
        "Functions",
    )
    if not foreign:
        return table
    other = [NO_SPAN, (format_count(foreign), Style.DIM), *[NO_SPAN] * 4, (OTHER_CODE, Style.DIM)]
    return replace(table, rows=[*table.rows, other])


def build_line_table(kernel: KernelReport, places: PlaceNames) -> Table:
    """The source lines, hottest first, and the samples without a line."""
    total = kernel.total_samples or 1

    def show_place(row: LineRow) -> str:
        if row.file is None or row.line is None:
            return f"{shorten_name(demangle(row.function))} (no line)"
        return places.show_line(kernel, row.file, row.line)

    def read_source(row: LineRow) -> str:
        is_known = row.file is not None and row.line is not None
        return (places.read_line(kernel, row.file or "", row.line or 0) if is_known else None) or ""

    def show_called(row: LineRow) -> str:
        called = row.called_samples / total
        return f"~{format_percent(called)}" if called >= _CALLED_SHOWN_FROM else ""

    return tabulate(
        kernel.lines,
        [
            (right("inclusive"), lambda row: _share_span(kernel, row.inclusive_samples, row.called_samples / total)),
            (
                right("self", drop_order=3),
                lambda row: format_percent(row.samples / total) if kernel.total_samples else "",
            ),
            (right("called", drop_order=4), show_called),
            (right("samples", drop_order=2), lambda row: format_count(row.inclusive_samples)),
            (flexible("mostly", drop_order=5), lambda row: name_reasons(row.inclusive_by_reason, 2)),
            (flexible("line", 20, keeps_end=True), lambda row: (show_place(row), Style.PATH)),
            (flexible(drop_order=1), lambda row: (read_source(row)[:_SOURCE_CHARS], Style.CODE)),
        ],
        "Source lines",
    )


def build_loop_table(kernel: KernelReport, places: PlaceNames) -> Table:
    """Loops with samples, hottest first."""
    loops = sorted(
        (loop for loop in kernel.loops if loop.samples),
        key=lambda loop: (-loop.samples, loop.depth, loop.function, loop.header_pc_offset),
    )

    def name_function(loop: LoopRow) -> str:
        return "" if loop.function == kernel.mangled_name else shorten_name(demangle(loop.function))

    return tabulate(
        loops,
        [
            (right("share"), lambda loop: _share_span(kernel, loop.samples)),
            (right("samples", drop_order=2), lambda loop: format_count(loop.samples)),
            (right("depth", drop_order=1), lambda loop: str(loop.depth)),
            (left("instructions"), lambda loop: f"0x{loop.header_pc_offset:x} to 0x{loop.last_pc_offset:x}"),
            (flexible("lines", 16, keeps_end=True), lambda loop: (show_loop_lines(kernel, loop, places), Style.PATH)),
            (flexible("function", drop_order=3), lambda loop: (name_function(loop), Style.CODE)),
        ],
        "Loops",
    )


def show_loop_lines(kernel: KernelReport, loop: LoopRow, places: PlaceNames) -> str:
    """Lines of a loop, ``file:first-last``; empty without line information."""
    if loop.file is None or loop.first_line is None:
        return ""
    return write_place(places.show_file(kernel, loop.file), loop.first_line, loop.last_line)


def build_launch_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """The launches, where there are several, one that failed, or an aggregate of several."""
    is_special = any(launch.failure is not None or launch.aggregate is not None for launch in kernel.launches)
    return tabulate(
        kernel.launches if len(kernel.launches) > 1 or is_special else (),
        [
            (right("launch"), lambda launch: str(launch.index)),
            (right("time"), lambda launch: format_duration_ns(launch.duration_ns)),
            (right("samples", drop_order=1), lambda launch: format_count(launch.total_samples)),
            (right("grid"), lambda launch: format_dim3(launch.configuration.grid)),
            (right("block"), lambda launch: format_dim3(launch.configuration.block)),
            (flexible("mostly", drop_order=2), lambda launch: name_reasons(launch.by_reason, 2)),
            (flexible("", 20), lambda launch: ("; ".join(_note_launch(launch)), Style.WARNING)),
        ],
        "Launches",
    )


def _note_launch(launch: LaunchReport) -> Iterator[str]:
    if launch.samples_truncated:
        yield "sampling buffer full"
    if launch.sampling.dropped_samples:
        yield f"{format_count(launch.sampling.dropped_samples)} more samples dropped"
    if launch.aggregate is not None:
        yield f"{format_launches(launch.launch_count)} combined; the time is their mean"
    if launch.failure is not None:
        yield launch.failure


def build_advice_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """The pieces of advice, largest estimate first."""

    def show_part(advice: Advice) -> str:
        return BY_COUNTERS if advice.by_counters else format_share(advice.share) if advice.matched_samples else ""

    return tabulate(
        kernel.advice.advice if kernel.advice is not None else (),
        [
            (right("gain"), lead_gain),
            (right("at most", drop_order=3), lambda advice: show_bound(advice.speedup)),
            (right("of the samples", drop_order=1), show_part),
            (left("to change", drop_order=2), lambda advice: advice.category.value),
            (flexible("advice", 20), lambda advice: advice.title),
        ],
        "Advice",
    )


def build_heading(kernel: KernelReport, name: str, places: PlaceNames) -> Part:
    """Name, GPU, launches, samples and profile of a kernel."""
    names = [_abridge(kernel.name) if kernel.name != name else "", explain_number(name)]
    blocks = [Paragraph(text=text, style=Style.DIM) for text in names if text]
    facts = (describe_device(kernel.device), _describe_launches(kernel), describe_samples(kernel))
    blocks += [Paragraph(text=fact) for fact in facts]
    if kernel.profile_path is not None:
        measured = format_measured(kernel.measured_unix_s)
        path = f"{places.show_path(kernel.profile_path)}{f', measured {measured}' if measured else ''}"
        blocks.append(Paragraph(text=path, style=Style.DIM))
    return Part(title=name, style=Style.TITLE, blocks=blocks)


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
    return join_facts([*facts, *describe_configuration(kernel.configuration), *([shape] if shape else [])])


def describe_configuration(configuration: LaunchConfiguration) -> list[str]:
    """Grid, block, registers and shared memory of a launch."""
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


def describe_samples(kernel: KernelReport) -> str:
    """Number of samples, share not issued, spread per launch, and caveats about the sampling."""
    if not kernel.total_samples:
        return "no samples"
    said = f"{format_count_of(kernel.total_samples, 'sample')}, {describe_quiet(kernel)}"
    spread = kernel.samples_spread
    if spread is not None and spread.standard_deviation is not None:
        said += f"; {format_count(spread.mean)} ± {format_count(spread.standard_deviation)} per launch"
    full = ["the sampling buffer was full"] if kernel.samples_truncated else []
    return "; ".join([said, *list_sampling_facts(kernel), *full, *([NO_SASS] if kernel.lacks_sass else [])])


def build_launch_places(kernel: KernelReport) -> Part:
    """Host call sites of the kernel, each once: NVTX ranges, then call stacks with their times."""
    ranges = dict.fromkeys(" > ".join(launch.nvtx_ranges) for launch in kernel.launches if launch.nvtx_ranges)
    places = list_launch_places(kernel)
    items = [Item(text=f"NVTX {names}") for names in ranges]
    for place in places:
        time = describe_place_time(place) if len(places) > 1 else ""
        items.append(Item(text=": ".join(part for part in (time, describe_stack(place)) if part)))
    return Part(title="Launched from", blocks=[Items(items=items, most_items=_MOST_PLACES)] if items else [])


def build_rules(kernel: KernelReport) -> Part:
    """Remarks of the profiler's own rules, each once."""
    notes = dict.fromkeys(note for launch in kernel.launches for note in launch.rules if note.kind != "ok")
    items = [Item(text=_describe_rule(note)) for note in notes]
    blocks = [Items(items=items, most_items=len(items))] if items else []
    return Part(title="The profiler's own rules", blocks=blocks, folds=True)


def _describe_rule(note: RuleNote) -> str:
    said = f"{note.rule}: {note.text}"
    if note.speedup_percent is None:
        return said
    scope = "of the kernel's time" if note.speedup_is_global else "of this part's time"
    return f"{said} (the profiler's estimate: {format_percent(note.speedup_percent / 100)} {scope})"


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


def build_parts(kernel: KernelReport, places: PlaceNames) -> list[Part]:
    """All facts of a kernel: tables, answers of the analyses, host call sites, and remarks of the profiler's rules."""
    tables = [build(kernel, places) for build in _TABLES]
    parts = [
        *(Part(title=table.title, blocks=[replace(table, title="")]) for table in tables if table.rows),
        *build_answers(kernel, places),
        build_launch_places(kernel),
        build_rules(kernel),
    ]
    return [part for part in parts if part.blocks]


_BRIEF_LINES = 10  # Of a kernel without details, where the reader sets no limit


def build_report_page(report: Report, places: PlaceNames, *, has_details: bool = False) -> list[Block]:
    """A report: an overview where there are several kernels, then kernel by kernel, then the problems.

    Args:
        report: what to show.
        places: how sources are shown.
        has_details: show everything about each kernel instead of at most two screens.
    """

    def build(kernel: KernelReport, name: str) -> Part:
        heading, parts = build_heading(kernel, name, places), build_parts(kernel, places)
        rest = parts if has_details else _choose_briefly(kernel, places, parts)
        return replace(heading, blocks=[*heading.blocks, *rest])

    overview = build_overview(report.kernels, _OVERVIEW, _describe_briefly, every=report.kernels)
    return list_kernels(report, places, overview, build)


def list_kernels(
    report: Report,
    places: PlaceNames,
    overview: Sequence[Part],
    build: Callable[[KernelReport, str], Part],
    *,
    max_kernels: int | None = None,
    before: Report | None = None,
) -> list[Block]:
    """An overview, then kernel by kernel, the number of kernels left out, and the problems of both reports."""
    names, shown = name_kernels(report.kernels), report.kernels[:max_kernels]
    blocks: list[Block] = [*overview, *(build(kernel, names[kernel.name]) for kernel in shown)]
    rest = len(report.kernels) - len(shown)
    nothing = "" if report.kernels else "no kernel was found"
    said = f"and {format_count_of(rest, 'more kernel')}" if rest else nothing
    if said:
        blocks.append(Paragraph(text=said, style=Style.DIM))
    return [*blocks, *build_problems((*report.problems, *(() if before is None else before.problems)), places)]


def build_overview(
    kernels: Sequence[KernelReport],
    columns: Sequence[Column],
    describe: Callable[[KernelReport], Sequence[Span]],
    *,
    every: Sequence[KernelReport],
) -> list[Part]:
    """A table of several kernels: time, share of all time, given columns, and name; none for a single kernel.

    Args:
        kernels: to show.
        columns: of what is described.
        describe: the cells of a kernel in these columns.
        every: kernels of the report, whose time is the whole.
    """
    if len(kernels) < 2:
        return []
    names, whole = name_kernels(every), sum(kernel.total_duration_ns for kernel in every) or 1.0
    rows = []
    for kernel in kernels:
        total = kernel.total_duration_ns
        time: Span = (format_duration_ns(total or None), Style.PLAIN)
        share: Span = (format_percent(total / whole) if total else "", style_of_share(total / whole))
        rows.append([time, share, *describe(kernel), (names[kernel.name], Style.TITLE)])
    shown = (right("time"), right("share", drop_order=4), *columns, flexible("kernel", 16))
    return [Part(title="Kernels", blocks=[Table(columns=shown, rows=rows, is_whole=True)])]


_OVERVIEW = (right("launches", drop_order=1), right("samples", drop_order=2), flexible("mostly", drop_order=3))


def _describe_briefly(kernel: KernelReport) -> Sequence[Span]:
    counts = (format_count(kernel.launch_count), format_count(kernel.total_samples))
    return [(cell, Style.PLAIN) for cell in (*counts, name_reasons(kernel.by_reason, 1))]


def _choose_briefly(kernel: KernelReport, places: PlaceNames, parts: Sequence[Part]) -> Iterator[Block]:
    """The kernel's screen of advice, its hottest lines, and the names of what is left out: at most two screens."""
    yield build_rows(kernel, places, whole=f"{WHOLE}report --details")
    lines = build_line_table(kernel, places)
    if lines.rows:
        yield Part(title=lines.title, blocks=[replace(lines, title="", most_rows=_BRIEF_LINES)])
    others = [part for part in parts if part.title != lines.title]
    names = [begin_lower(str(part.title)) for part in others if not part.name]
    answers = len(others) - len(names)
    listed = [*names, *([f"{format_count(answers)} analyses"] if answers else [])]
    left = f"left out: {', '.join(listed)}; " if listed else ""
    yield Paragraph(text=f"{left}everything: --details, --format json, --html", style=Style.DIM)
