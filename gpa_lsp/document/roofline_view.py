"""VIEW: rooflines of a report: nearest ceilings, points, and the ceilings with their sources."""

from collections.abc import Collection, Sequence

from gpa_lsp.diagnosis.analyses.answers import Movement
from gpa_lsp.diagnosis.analyses.model import InstructionPoint, KernelRoofline, Point, Roofline
from gpa_lsp.document.advice_words import describe_limit_briefly
from gpa_lsp.document.answer_view import build_bars, list_answers, list_missing
from gpa_lsp.document.blocks import Block, Paragraph, Part, Table, holds_anything, tabulate
from gpa_lsp.document.charts.roofline_chart import RooflineView
from gpa_lsp.document.charts.roofline_rows import describe_transactions
from gpa_lsp.document.context_words import count_contexts, list_context_lines, name_contexts
from gpa_lsp.document.kernel_view import build_overview, list_kernels
from gpa_lsp.document.layout import Span, Style, flexible, left, right
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.roofline_text import (
    CLOCK_WORDS,
    choose_roofline,
    describe_clock_rates,
    describe_line,
    find_main_point,
    list_bars,
)
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_bytes,
    format_bytes_per_s,
    format_change,
    format_count,
    format_duration_ns,
    format_intensity,
    format_per_s,
    format_percent,
    format_speedup,
)
from gpa_lsp.gpu.device.model import Machine, OperationKind, explain_l2
from gpa_lsp.report.changes import Verdict, compare_measurements
from gpa_lsp.report.compare import measure_work
from gpa_lsp.report.model import KernelReport, Report

_MOST_LAUNCHES = 10
_SIDES = {True: "bandwidth", False: "peak", None: UNKNOWN}

NOT_PLACED = "its place in the roofline is unknown: the profile has neither the GPU nor the time of a launch"
NOT_ANALYSED = "its place in the roofline is unknown: this saved report has no analyses; give the profile itself"


def build_rooflines(
    report: Report,
    places: PlaceNames,
    *,
    before: Report | None = None,
    view: RooflineView = RooflineView.TIME,
    max_kernels: int | None = None,
) -> list[Block]:
    """Kernel by kernel, after an overview where there are several; then the problems.

    Args:
        report: what to show.
        places: how files are shown in problems.
        before: of an earlier profile, for what changed in kernels of the same linkage name.
        view: which points are listed.
        max_kernels: kernels shown one by one, of most time first; None shows all.
    """
    earlier = {} if before is None else {kernel.mangled_name: kernel for kernel in before.kernels}
    explained: dict[str, frozenset[OperationKind]] = {}

    def build(kernel: KernelReport, name: str) -> Part:
        parts = _list_parts(kernel, earlier.get(kernel.mangled_name), view, explained)
        return Part(title=name, style=Style.TITLE, blocks=parts)

    overview = build_overview(report.kernels, _OVERVIEW, _describe_nearest, every=report.kernels)
    return list_kernels(report, places, overview, build, max_kernels=max_kernels, before=before)


_OVERVIEW = (
    flexible("nearest ceiling", drop_order=3),
    right("used"),
    right("headroom", drop_order=2),
    left(drop_order=1),
)


def _describe_nearest(kernel: KernelReport) -> Sequence[Span]:
    line = _find_line(kernel)
    return (*_name_nearest(line), (describe_limit_briefly(kernel) if line is not None else "", Style.DIM))


def _name_nearest(line: Roofline | None) -> Sequence[Span]:
    """Nearest ceiling, its use, and the headroom."""
    nearest = None if line is None else line.tighter_unit or line.binding
    if nearest is None:
        return [(UNKNOWN, Style.PLAIN)] * 3
    cells = (nearest.name, format_percent(nearest.share_ratio), format_speedup(nearest.headroom))
    return [(cell, Style.PLAIN) for cell in cells]


def _find_line(kernel: KernelReport) -> Roofline | None:
    roofline = None if kernel.analyses is None else kernel.analyses.roofline
    return None if roofline is None else choose_roofline(roofline)


def _list_parts(
    kernel: KernelReport,
    before: KernelReport | None,
    view: RooflineView,
    explained: dict[str, frozenset[OperationKind]],
) -> list[Block]:
    """Parts of one kernel; where ceilings come from stands at the first kernel that has them (*explained*: GPU → types of operations so far)."""
    roofline = None if kernel.analyses is None else kernel.analyses.roofline
    line = None if roofline is None else choose_roofline(roofline)
    if roofline is None or line is None:
        return [Paragraph(text=NOT_ANALYSED if kernel.analyses is None else NOT_PLACED, style=Style.DIM)]
    machine = roofline.machine
    nearest, place = describe_line(line, machine)
    said: list[str] = [nearest if kernel.limiter is None else kernel.limiter.sentence, place]
    earlier = None if before is None else _find_line(before)
    if before is not None and earlier is not None:
        judgement = compare_measurements(measure_work(before), measure_work(kernel))
        is_other = judgement.verdict is Verdict.OTHER_WORK
        change = "before: not compared" if is_other else _describe_change(earlier, line)
        said.append(f"{change} ({judgement.note})" if judgement.note else change)
    is_time = view is RooflineView.TIME
    points = build_point_table(line) if is_time else build_instruction_table(line)
    kinds = frozenset(count.kind for count in line.operations if count.operations > 0)
    known = explained.get(machine.name)
    roofs = _list_roofs(machine, kinds) if known is None or not kinds <= known else []
    explained[machine.name] = kinds | (known or frozenset())
    listed: list[tuple[str, Sequence[Block]]] = [
        ("Ceilings, nearest first", [build_bars(list_bars(line, most=12))]),
        ("Points" if is_time else "Warp instructions per transaction", [points]),
        ("Launches", _list_launches(kernel, roofline)),
        (
            f"Ceilings of {machine.name}",
            [*roofs, *(Paragraph(text=one, style=Style.WARNING) for one in machine.doubts)],
        ),
        ("Unknown", [list_missing(line.missing)]),
    ]
    parts: list[Block] = [
        *(Paragraph(text=text) for text in said if text),
        *(Part(title=title, blocks=blocks) for title, blocks in listed if any(map(holds_anything, blocks))),
    ]
    return parts


def _describe_change(before: Roofline, now: Roofline) -> str:
    """Change of the main point since the earlier profile."""
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


def build_point_table(line: Roofline, title: str = "") -> Table:
    """Operations over bytes of each level of memory; points of other types than the dominant one are dimmed."""

    def show(point: Point, cell: str) -> Span:
        return cell, Style.PLAIN if point.kind is line.dominant else Style.DIM

    def show_reached(point: Point) -> Span:
        attainable = point.attainable_ops_per_s
        return show(point, format_percent(attainable and point.achieved_ops_per_s / attainable))

    return tabulate(
        line.points,
        [
            (left("operations"), lambda one: show(one, one.kind.value)),
            (left("over"), lambda one: show(one, one.level.value)),
            (
                right("per byte", drop_order=2),
                lambda one: show(one, format_intensity(one.intensity, f"{one.kind.operation}/B")),
            ),
            (
                right("achieved", drop_order=4),
                lambda one: show(one, format_per_s(one.achieved_ops_per_s, one.kind.operation)),
            ),
            (
                right("attainable", drop_order=3),
                lambda one: show(one, format_per_s(one.attainable_ops_per_s, one.kind.operation)),
            ),
            (right("of attainable"), show_reached),
            (left("lower ceiling", drop_order=1), lambda one: show(one, _SIDES[one.is_memory_side])),
        ],
        title,
    )


def build_instruction_table(line: Roofline, title: str = "") -> Table:
    """Warp instructions over transactions of each level of memory."""

    def show_reached(point: InstructionPoint) -> str:
        return format_percent(point.attainable_per_s and point.achieved_per_s / point.attainable_per_s)

    return tabulate(
        line.instruction_points,
        [
            (left("over"), lambda one: one.level.value),
            (right("warp instructions"), describe_transactions),
            (right("achieved"), lambda one: format_per_s(one.achieved_per_s, "inst")),
            (right("attainable"), lambda one: format_per_s(one.attainable_per_s, "inst")),
            (right("of attainable"), show_reached),
        ],
        title,
    )


def build_amount_table(line: Roofline, title: str = "") -> Table:
    """Operations and bytes with their sources."""
    found = [
        (one.kind.value, f"{format_count(one.operations)} operations", one.source, one.is_exact)
        for one in line.operations
        if one.operations
    ]
    found += [(one.level.value, format_bytes(one.bytes), one.source, one.is_exact) for one in line.traffic]
    return tabulate(
        found,
        [
            (left("what"), lambda row: row[0]),
            (right("amount"), lambda row: row[1]),
            (left("from"), lambda row: (row[2] if row[3] else f"{row[2]} (not exact)", Style.DIM)),
        ],
        title,
    )


def _list_launches(kernel: KernelReport, roofline: KernelRoofline) -> list[Block]:
    """Launches by their longest, launch contexts first; none where there is one launch."""
    if len(roofline.launches) < 2:
        return []
    contexts = list_context_lines(kernel)
    names = {
        index: name for name, one in zip(name_contexts(kernel), kernel.contexts, strict=True) for index in one.launches
    }
    known = {line.launch_index for _, line in contexts}
    shown = [*(line for _, line in contexts), *(line for line in roofline.launches if line.launch_index not in known)]
    table = tabulate(
        shown[:_MOST_LAUNCHES],
        [
            (
                flexible("launched with"),
                lambda one: names.get(one.launch_index or 0, "another context") if contexts else "",
            ),
            (right("launch", drop_order=1), lambda one: format_count(one.launch_index)),
            (right("time", drop_order=2), lambda one: format_duration_ns(one.duration_s * 1e9)),
            (left("nearest ceiling", drop_order=3), lambda one: _name_nearest(one)[0]),
            (right("used"), lambda one: _name_nearest(one)[1]),
            (right("headroom"), lambda one: _name_nearest(one)[2]),
        ],
    )
    text = f"The figures above are the sum of {count_contexts(kernel)}; each is listed by its longest launch first."
    blocks: list[Block] = [Paragraph(text=text)] if contexts else []
    rest = len(roofline.launches) + roofline.left_out - _MOST_LAUNCHES
    more = [Paragraph(text=f"and {format_count(rest)} more", style=Style.DIM)] if rest > 0 else []
    return [*blocks, table, *more]


def list_movements(kernel: KernelReport) -> list[Movement]:
    """Movements of the points by Starlight's suggestions; empty if its analysis was not run."""
    return [movement for answer in list_answers(kernel) for movement in answer.movements]


def build_roof_table(machine: Machine, kinds: Collection[OperationKind] | None = None) -> Table:
    """Peaks, of all types or of some, and bandwidths of a machine, with their sources."""
    found = [
        (peak.kind.value, format_per_s(peak.ops_per_s, peak.kind.operation), peak.citation)
        for peak in machine.peaks
        if kinds is None or peak.kind in kinds
    ]
    found += [(one.level.value, format_bytes_per_s(one.bytes_per_s), one.citation) for one in machine.bandwidths]
    if machine.issue_per_s is not None:
        found.append(("instruction issue", format_per_s(machine.issue_per_s, "inst"), "the architecture's table"))
    return tabulate(
        found,
        [
            (left("ceiling"), lambda row: row[0]),
            (right("at most"), lambda row: row[1]),
            (flexible("from", 16, drop_order=1), lambda row: (row[2], Style.DIM)),
        ],
    )


def describe_clocks(machine: Machine) -> str:
    """Clocks of the ceilings, and their source."""
    clocks, rates = machine.clocks, describe_clock_rates(machine.clocks)
    return f"at {CLOCK_WORDS[clocks.basis]}{': ' if rates else ''}{rates} ({clocks.source})"


def _list_roofs(machine: Machine, kinds: frozenset[OperationKind]) -> list[Block]:
    """Peaks of types in play and all bandwidths, with their sources; then the clocks."""
    notes = [Paragraph(text=text, style=Style.DIM) for text in (describe_clocks(machine), explain_l2(machine)) if text]
    return [build_roof_table(machine, kinds), *notes]
