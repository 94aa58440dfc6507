"""Rooflines of a report as text for a terminal or a file: what each kernel comes closest to, its points, the ceilings and where they come from."""

from collections.abc import Iterator, Mapping, Sequence

from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Roofline
from gpa_lsp.document.advice_words import describe_limit_briefly
from gpa_lsp.document.answer_view import build_bars, describe_missing, describe_movement, list_suggestions
from gpa_lsp.document.charts.roofline_chart import RooflineView
from gpa_lsp.document.check_text import build_problems
from gpa_lsp.document.context_words import count_contexts, list_context_lines, name_contexts
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import EMPTY_LINE, Align, Column, Line, Span, Style, hang, lay_out_table, text_line, wrap
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.roofline_text import (
    CLOCK_WORDS,
    choose_roofline,
    describe_clock_rates,
    describe_line,
    find_main_point,
    list_bars,
)
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_bytes,
    format_bytes_per_s,
    format_change,
    format_count,
    format_count_of,
    format_duration_ns,
    format_intensity,
    format_number,
    format_per_s,
    format_percent,
    format_speedup,
)
from gpa_lsp.gpu.device.model import Machine, explain_l2
from gpa_lsp.report.changes import Verdict, compare_measurements
from gpa_lsp.report.compare import measure_work
from gpa_lsp.report.model import KernelReport, Report

_MOST_LAUNCHES = 10
_SIDES = {True: "bandwidth", False: "peak", None: UNKNOWN}

NOT_PLACED = "its place in the roofline is unknown: the profile has neither the GPU nor the time of a launch"
NOT_ANALYSED = "its place in the roofline is unknown: this saved report has no analyses; give the profile itself"


def render_rooflines(
    report: Report,
    places: PlaceNames,
    width: int | None = None,
    *,
    before: Report | None = None,
    view: RooflineView = RooflineView.TIME,
    max_kernels: int | None = None,
) -> Iterator[Line]:
    """Kernel by kernel, after an overview where there are several; then the problems.

    Args:
        report: what to show.
        places: how files are shown in problems.
        width: characters per line; None for as many as it takes.
        before: of an earlier profile, for what changed in kernels of the same linkage name.
        view: which points are listed.
        max_kernels: kernels shown one by one, of most time first; None shows all.
    """
    names = name_kernels(report.kernels)
    earlier = {} if before is None else {kernel.mangled_name: kernel for kernel in before.kernels}
    shown = report.kernels[:max_kernels]
    if len(report.kernels) > 1:
        yield from _render_overview(report.kernels, names, width)
    for position, kernel in enumerate(shown):
        if position or len(report.kernels) > 1:
            yield from (EMPTY_LINE, EMPTY_LINE)
        yield from _render_kernel(kernel, names[kernel.name], earlier.get(kernel.mangled_name), width, view)
    if len(shown) < len(report.kernels):
        rest = len(report.kernels) - len(shown)
        yield from (EMPTY_LINE, text_line(f"and {format_count_of(rest, 'more kernel')}", Style.DIM))
    if not report.kernels:
        yield text_line("no kernel was found", Style.DIM)
    for part in build_problems((*report.problems, *(before.problems if before is not None else ())), places):
        yield from (EMPTY_LINE, *write_terminal([part], width))


def _render_overview(kernels: Sequence[KernelReport], names: Mapping[str, str], width: int | None) -> Iterator[Line]:
    yield text_line("Kernels", Style.HEADING)
    columns = (
        Column(title="time", align=Align.RIGHT),
        Column(title="nearest ceiling", can_shrink=True),
        Column(title="used", align=Align.RIGHT),
        Column(title="headroom", align=Align.RIGHT),
        Column(title="", drop_order=1),
        Column(title="kernel", can_shrink=True, min_chars=16),
    )
    rows = []
    for kernel in kernels:
        line = _find_line(kernel)
        nearest = None if line is None else line.tighter_unit or line.binding
        rows.append(
            (
                (format_duration_ns(kernel.total_duration_ns or None), Style.PLAIN),
                (UNKNOWN if nearest is None else nearest.name, Style.PLAIN),
                (UNKNOWN if nearest is None else format_percent(nearest.share_ratio), Style.PLAIN),
                (UNKNOWN if nearest is None else format_speedup(nearest.headroom), Style.PLAIN),
                (describe_limit_briefly(kernel) if line is not None else "", Style.DIM),
                (names[kernel.name], Style.TITLE),
            )
        )
    yield from lay_out_table(columns, rows, width=width)


def _find_line(kernel: KernelReport) -> Roofline | None:
    roofline = None if kernel.analyses is None else kernel.analyses.roofline
    return None if roofline is None else choose_roofline(roofline)


def _render_kernel(
    kernel: KernelReport, name: str, before: KernelReport | None, width: int | None, view: RooflineView
) -> Iterator[Line]:
    yield text_line(name, Style.TITLE)
    roofline = None if kernel.analyses is None else kernel.analyses.roofline
    line = None if roofline is None else choose_roofline(roofline)
    if roofline is None or line is None:
        yield from wrap(NOT_ANALYSED if kernel.analyses is None else NOT_PLACED, width, style=Style.DIM)
        return
    limit = () if kernel.limiter is None else (kernel.limiter.sentence,)
    for text in (*limit, *describe_line(line, roofline.machine)):
        if text:
            yield from wrap(text, width)
    earlier = None if before is None else _find_line(before)
    if before is not None and earlier is not None:
        judgement = compare_measurements(measure_work(before), measure_work(kernel))
        note = f" ({judgement.note})" if judgement.note else ""
        is_other = judgement.verdict is Verdict.OTHER_WORK
        change = "before: not compared" if is_other else _describe_change(earlier, line)
        yield from wrap(f"{change}{note}", width)
    yield EMPTY_LINE
    yield from write_terminal([build_bars(list_bars(line, most=12))], width)
    if view is RooflineView.TIME:
        yield from _render_points(line, width)
    else:
        yield from _render_instruction_points(line, width)
    yield from _render_launches(kernel, roofline, width)
    yield from _render_movements(kernel, width)
    yield from _render_suggestions(kernel, width)
    yield from _render_roofs(roofline.machine, line, width)
    if line.missing:
        yield from (EMPTY_LINE, text_line("Unknown", Style.HEADING))
    for missing in line.missing:
        yield from hang((("  ", Style.PLAIN), (describe_missing(missing), Style.PLAIN)), width)


def _describe_change(before: Roofline, now: Roofline) -> str:
    """What became of the main point since the earlier profile."""
    point = find_main_point(now)
    old = next(
        (one for one in before.points if point is not None and (one.kind, one.level) == (point.kind, point.level)), None
    )
    if point is None or old is None or old.achieved_ops_per_s <= 0 or old.intensity <= 0:
        return "before: no point to compare with"
    rate = format_change(point.achieved_ops_per_s / old.achieved_ops_per_s - 1)
    intensity = format_change(point.intensity / old.intensity - 1)
    unit = f"{point.kind.operation}/B"
    return (
        f"before: {format_per_s(old.achieved_ops_per_s, old.kind.operation)} at {format_intensity(old.intensity, unit)} "
        f"of {old.level}; since then {rate} rate, {intensity} intensity"
    )


def _render_points(line: Roofline, width: int | None) -> Iterator[Line]:
    columns = (
        Column(title="operations"),
        Column(title="bytes of"),
        Column(title="intensity", align=Align.RIGHT),
        Column(title="achieved", align=Align.RIGHT),
        Column(title="attainable", align=Align.RIGHT),
        Column(title="reached", align=Align.RIGHT),
        Column(title="limited by", drop_order=1),
    )
    rows = []
    for point in line.points:
        unit = f"{point.kind.operation}/B"
        reached = point.attainable_ops_per_s and point.achieved_ops_per_s / point.attainable_ops_per_s
        style = Style.PLAIN if point.kind is line.dominant else Style.DIM
        cells = (
            point.kind.value,
            point.level.value,
            format_intensity(point.intensity, unit),
            format_per_s(point.achieved_ops_per_s, point.kind.operation),
            format_per_s(point.attainable_ops_per_s, point.kind.operation),
            format_percent(reached),
            _SIDES[point.is_memory_side],
        )
        rows.append([(cell, style) for cell in cells])
    yield from _titled("Points", columns, rows, width)


def _render_instruction_points(line: Roofline, width: int | None) -> Iterator[Line]:
    columns = (
        Column(title="transactions of"),
        Column(title="instructions", align=Align.RIGHT),
        Column(title="achieved", align=Align.RIGHT),
        Column(title="attainable", align=Align.RIGHT),
        Column(title="reached", align=Align.RIGHT),
    )
    rows = [
        [
            (point.level.value, Style.PLAIN),
            (f"{format_number(point.intensity)} per {format_bytes(point.transaction_bytes)}", Style.PLAIN),
            (format_per_s(point.achieved_per_s, "inst"), Style.PLAIN),
            (format_per_s(point.attainable_per_s, "inst"), Style.PLAIN),
            (
                format_percent(point.attainable_per_s and point.achieved_per_s / point.attainable_per_s),
                Style.PLAIN,
            ),
        ]
        for point in line.instruction_points
    ]
    yield from _titled("Warp instructions per transaction", columns, rows, width)


def _render_launches(kernel: KernelReport, roofline: KernelRoofline, width: int | None) -> Iterator[Line]:
    if len(roofline.launches) < 2:
        return
    contexts = list_context_lines(kernel)
    names = {
        index: name for name, one in zip(name_contexts(kernel), kernel.contexts, strict=True) for index in one.launches
    }
    known = {line.launch_index for _, line in contexts}
    shown = [*(line for _, line in contexts), *(line for line in roofline.launches if line.launch_index not in known)]
    columns = (
        *((Column(title="launched with", can_shrink=True, min_chars=12),) if contexts else ()),
        Column(title="launch", align=Align.RIGHT),
        Column(title="time", align=Align.RIGHT),
        Column(title="nearest ceiling"),
        Column(title="used", align=Align.RIGHT),
        Column(title="headroom", align=Align.RIGHT),
    )
    rows = []
    for launch in shown[:_MOST_LAUNCHES]:
        nearest = launch.tighter_unit or launch.binding
        cells = (
            *((names.get(launch.launch_index or 0, "another context"),) if contexts else ()),
            format_count(launch.launch_index),
            format_duration_ns(launch.duration_s * 1e9),
            UNKNOWN if nearest is None else nearest.name,
            UNKNOWN if nearest is None else format_percent(nearest.share_ratio),
            UNKNOWN if nearest is None else format_speedup(nearest.headroom),
        )
        rows.append([(cell, Style.PLAIN) for cell in cells])
    if contexts:
        text = f"The figures above are the sum of {count_contexts(kernel)}; each is listed by its longest launch first."
        yield from (EMPTY_LINE, *wrap(text, width))
    yield from _titled("Launches", columns, rows, width)
    rest = len(roofline.launches) + roofline.left_out - _MOST_LAUNCHES
    if rest > 0:
        yield text_line(f"  and {format_count(rest)} more", Style.DIM)


def _render_movements(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    answers = () if kernel.analyses is None else kernel.analyses.answers
    movements = [movement for answer in answers for movement in answer.movements]
    if movements:
        yield from (
            EMPTY_LINE,
            text_line("Where Starlight's suggestions would move the kernel, by its own equations", Style.HEADING),
        )
    for movement in movements:
        yield from hang((("  ", Style.PLAIN), (describe_movement(movement), Style.PLAIN)), width)


def _render_suggestions(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    suggestions = list_suggestions(kernel)
    if suggestions:
        yield from (
            EMPTY_LINE,
            text_line("Starlight's suggestions and what our own advice makes of them", Style.HEADING),
        )
    for title, ours in suggestions:
        yield from hang(((f"  {title}: ", Style.PLAIN), (ours, Style.DIM)), width)


def _render_roofs(machine: Machine, line: Roofline, width: int | None) -> Iterator[Line]:
    """Peaks of types in play and all bandwidths, with their sources; then the clocks and what is in doubt."""
    kinds = {count.kind for count in line.operations if count.operations > 0}
    found = [
        (peak.kind.value, format_per_s(peak.ops_per_s, peak.kind.operation), peak.citation)
        for peak in machine.peaks
        if peak.kind in kinds
    ]
    found += [(one.level.value, format_bytes_per_s(one.bytes_per_s), one.citation) for one in machine.bandwidths]
    if machine.issue_per_s is not None:
        found.append(("instruction issue", format_per_s(machine.issue_per_s, "inst"), "the architecture's table"))
    columns = (
        Column(title="ceiling"),
        Column(title="at most", align=Align.RIGHT),
        Column(title="from", can_shrink=True, min_chars=16),
    )
    rows = [[(name, Style.PLAIN), (rate, Style.PLAIN), (citation, Style.DIM)] for name, rate, citation in found]
    yield from _titled(f"Ceilings of {machine.name}", columns, rows, width)
    clocks = machine.clocks
    rates = describe_clock_rates(clocks)
    text = f"at {CLOCK_WORDS[clocks.basis]}{': ' if rates else ''}{rates} ({clocks.source})"
    for note in (text, explain_l2(machine)):
        yield from wrap(note, width, style=Style.DIM) if note else ()
    for doubt in machine.doubts:
        yield from wrap(doubt, width, style=Style.WARNING)


def _titled(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Span]], width: int | None) -> Iterator[Line]:
    if rows:
        yield from (EMPTY_LINE, text_line(title, Style.HEADING))
        yield from lay_out_table(columns, rows, width=width)
