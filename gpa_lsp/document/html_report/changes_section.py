"""Sections of a page: changes of a kernel since an earlier profile, and its history."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpa_lsp.document.blocks import Block, Figure, Paragraph, Part, Table, tabulate
from gpa_lsp.document.charts.themes import SCHEMA, STALL_COLOURS, Spec, nominal, quantitative, tell
from gpa_lsp.document.comparison_view import (
    VERDICT_WORDS,
    build_changes,
    describe_both_times,
    is_named_alike,
    list_remarks,
)
from gpa_lsp.document.layout import Span, Style, left, right
from gpa_lsp.document.time_course_words import (
    choose_named_ticks,
    choose_span,
    describe_course,
    describe_step,
    draw_blocks,
    format_measured,
    name_commit,
    write_range,
    write_time,
)
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import UNKNOWN, format_count, format_count_of, format_speedup
from gpa_lsp.foundation.prose import say
from gpa_lsp.kernel.names import shorten_distinctly, shorten_name
from gpa_lsp.profile.stall_reasons import ISSUED, MEMORY, THROTTLE
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.compare import KernelComparison
from gpa_lsp.report.history.model import TimeCourse, TimedRun


class ChangeSection(Struct, frozen=True, kw_only=True):
    """A kernel before and after."""

    brief: str  # for the list of kernels
    speedup: float  # to sort by; 0 where unknown
    tone: str  # ``good``, ``warning`` or empty
    text: str  # time before and after, and the verdict
    range: str  # what may differ besides the code, what the speedup lies between, what limits the kernel, and that stalls are unknown; may be empty
    blocks: Sequence[Block]  # what changed, advice given before, stall reasons, lines


def build_change(found: KernelComparison) -> ChangeSection:
    """The section of one kernel."""
    words, _ = VERDICT_WORDS[found.verdict]
    tone = {Verdict.FASTER: "good", Verdict.SLOWER: "warning"}.get(found.verdict, "")
    blocks: list[Block] = []
    renamed = "" if is_named_alike(found) else f"named {shorten_name(found.before.name)} in the earlier profile"
    if found.verdict not in (Verdict.SAME_CODE, Verdict.UNKNOWN, Verdict.OTHER_WORK):
        files = shorten_paths({change.name for change in found.lines})
        blocks = build_changes(found, lambda change, line: write_place(files[change.name], line))
    return ChangeSection(
        brief=format_speedup(found.time.speedup) if tone and found.time is not None else words.partition(":")[0],
        speedup=found.time.speedup if found.time is not None else 0.0,
        tone=tone,
        text=f"{describe_both_times(found.verdict, found.time, (found.before.duration_ns, found.after.duration_ns))} {words}".strip(),
        range="; ".join(filter(None, (renamed, *(text for text, _ in list_remarks(found))))),
        blocks=blocks,
    )


def build_history_section(course: TimeCourse) -> Part:
    """History of a kernel: trend, chart of times, and runs, newest first."""
    summary = describe_course(course) or say("One run")
    blocks: list[Block] = [_tabulate_runs(course)]
    if len(course.timed) > 1:
        words = f"Time over runs: {summary}"
        chart = build_course_chart(course, words)
        blocks.insert(
            0, Figure(title="Time over runs", words=f"{words}. The table below holds its numbers.", chart=chart)
        )
    hidden = course.run_count - len(course.runs)
    if hidden > 0:
        rest = f"{format_count_of(hidden, 'run')} more, older or of another size: gpa-lsp history --limit 0"
        blocks.append(Paragraph(text=rest, style=Style.DIM))
    return Part(title="History", summary=summary, blocks=blocks)


class KernelPast(Struct, frozen=True, kw_only=True):
    """A kernel that was measured."""

    name: str  # readable name
    facts: tuple[str, ...]  # the GPU, the launch and where the kernel is, as far as they are known
    course: TimeCourse  # its runs


_LEGEND = (
    "A regression (▲) is slower than the run before by more than the spread of the launches explains. With fewer than three launches, 3 % and the "
    "launch overhead count as noise. A vertical bar is the range of a time; a dashed line, or a notch at the top, is where another commit was "
    "checked out."
)


def build_history_page(kernels: Sequence[KernelPast]) -> tuple[str, str, list[Block]]:
    """Title, lead and blocks of the history page."""
    runs = sum(len(kernel.course.runs) for kernel in kernels)
    lead = f"{format_count_of(len(kernels), 'kernel')}, {format_count_of(runs, 'run')}"
    return "History of GPU kernels", lead, _build_history(kernels)


def _build_history(kernels: Sequence[KernelPast]) -> list[Block]:
    """Regressed kernels, then each kernel with its times, ranges, regressions and commits."""
    if not kernels:
        words = (
            "No measurement is recorded. `gpa-lsp history --record PROFILE` records one; editors record what they load."
        )
        return [Paragraph(text=words, style=Style.WARNING)]
    names = shorten_distinctly(kernel.name for kernel in kernels)
    slower = [names[one.name] for one in kernels if one.course.runs and one.course.runs[-1].is_regression]
    blocks: list[Block] = []
    if slower:
        head: Span = ("▲ Slower in the newest run: ", Style.WARNING)
        blocks.append(Paragraph(text=(head, (", ".join(slower), Style.CODE)), style=Style.WARNING))
    return [
        *blocks,
        Paragraph(text=_LEGEND, style=Style.DIM),
        *(_build_past(one, names[one.name]) for one in kernels),
    ]


def _build_past(kernel: KernelPast, name: str) -> Part:
    section = build_history_section(kernel.course)
    texts = ("" if kernel.name == name else kernel.name, " · ".join(filter(None, kernel.facts)))
    blocks = [*(Paragraph(text=text, style=Style.DIM) for text in texts if text), *section.blocks]
    title = ((name, Style.CODE), (f" {draw_blocks(kernel.course)}", Style.DIM))
    return Part(title=title, summary=section.summary, blocks=blocks)


def _tabulate_runs(course: TimeCourse) -> Table:
    def show_step(run: TimedRun) -> Span:
        style = Style.WARNING if run.is_regression else Style.NOTE if run.is_gain else Style.PLAIN
        mark = "▲ " if run.is_regression else "▼ " if run.is_gain else ""
        return f"{mark}{describe_step(run)}", style

    return tabulate(
        reversed(course.runs),
        [
            (right("run"), lambda run: f"{run.number}{' (baseline)' if run.is_baseline else ''}"),
            (left("measured"), lambda run: format_measured(run.measured_ns // 10**9)),
            (right("time"), lambda run: UNKNOWN if run.time is None else write_time(course, run.time)),
            (left("range"), lambda run: (write_range(course, run), Style.DIM)),
            (right("launches"), lambda run: format_count(run.launch_count) if run.launch_count else UNKNOWN),
            (left("since the run before"), show_step),
            (left("commit"), lambda run: "" if run.commit is None else name_commit(run.commit)),
        ],
        "Runs",
    )


_HEIGHT = 190
_UNITS_NS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_LINE = STALL_COLOURS[MEMORY]
# What became of a time: how its mark looks
_KINDS = {
    "as before": ("circle", _LINE),
    "slower": ("triangle-up", STALL_COLOURS[THROTTLE]),
    "faster": ("triangle-down", STALL_COLOURS[ISSUED]),
}
_NARROW_PIXELS = 230
_LABEL_PIXELS = 62  # A commit's name and a gap: names are left out where they would touch in the narrowest window
_NOTCH_PIXELS = 10  # Of a commit without a name: lines as high as the chart would hide the times


def build_course_chart(course: TimeCourse, description: str) -> Spec:
    """Times of a kernel with their ranges, regressions by shape and colour, commits as ticks; at least one run must have a time."""
    low, high = choose_span(course)
    size, unit = _choose_unit(course, high)
    rows = [_describe_run(course, run, size) for run in course.timed]
    # every range lies between the ends of the axis
    ends = [min([low / size, *(row["low"] for row in rows)]), max([high / size, *(row["high"] for row in rows)])]
    x = {
        "field": "run",
        "type": "ordinal",
        "title": "run",
        "scale": {"domain": [str(run.number) for run in course.runs]},
        "axis": {"labelAngle": 0, "labelOverlap": True, "grid": False},
    }
    y = quantitative("time", title=f"time per launch, {unit}", scale={"domain": ends, "zero": False, "nice": True})
    return {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "height": _HEIGHT,
        "data": {"values": rows},
        "layer": [*_draw_ticks(course, x), *_draw_times(x, y), _draw_runs(x, y)],
    }


def _choose_unit(course: TimeCourse, high: float) -> tuple[float, str]:
    """Divisor and unit of the time axis."""
    if course.unit == "cycles":
        return 1.0, "cycles"
    return next(((size, unit) for size, unit in _UNITS_NS if high >= size), _UNITS_NS[-1])


def _describe_run(course: TimeCourse, run: TimedRun, size: float) -> Spec:
    assert run.time is not None
    return {
        "time": run.time / size,
        "low": (run.time if run.low is None else run.low) / size,
        "high": (run.time if run.high is None else run.high) / size,
        "run": str(run.number),
        "kind": "slower" if run.is_regression else "faster" if run.is_gain else "as before",
        "at": format_measured(run.measured_ns // 10**9),
        "words": write_time(course, run.time),
        "range": write_range(course, run),
        "step": describe_step(run),
        "commit": name_commit(run.commit),
    }


def _draw_ticks(course: TimeCourse, x: Spec) -> Iterator[Spec]:
    """A labelled line at each change of commit; a notch where there is no room for the label."""
    named = choose_named_ticks(course, _LABEL_PIXELS * len(course.runs) / _NARROW_PIXELS)
    ticks = [
        {
            "run": str(run.number),
            "commit": name_commit(run.commit),
            "label": run.commit.short if position in named else "",
        }
        for position, run in enumerate(course.runs)
        if run.commit is not None and course.begins_commit(position)
    ]
    if not ticks:
        return
    at = {"x": x, "tooltip": nominal("commit", title="commit")}
    rule = {"type": "rule", "style": "now", "opacity": 0.5}
    long = {"values": [tick for tick in ticks if tick["label"]]}
    short = {"values": [tick for tick in ticks if not tick["label"]]}
    yield {"data": long, "mark": rule, "encoding": at}
    if short["values"]:
        notch = {"y": {"value": 0}, "y2": {"value": _NOTCH_PIXELS}}
        yield {"data": short, "mark": rule, "encoding": {**at, **notch}}
    label = {"type": "text", "style": "peak-label", "align": "left", "baseline": "bottom", "dx": -3, "dy": -2, "y": 0}
    yield {"data": long, "mark": label, "encoding": {**at, "text": nominal("label")}}


def _draw_times(x: Spec, y: Spec) -> Iterator[Spec]:
    """The line from run to run, and the range of each time."""
    looks = {"strokeWidth": 2, "color": _LINE}
    yield {"mark": {"type": "line", **looks}, "encoding": {"x": x, "y": y}}
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    yield {"mark": {"type": "rule", **looks, "opacity": 0.55}, "encoding": {"x": x, **ends}}


def _draw_runs(x: Spec, y: Spec) -> Spec:
    shapes, colours = ([look[part] for look in _KINDS.values()] for part in (0, 1))
    shape = {"scale": {"domain": list(_KINDS), "range": shapes}, "legend": {"orient": "bottom"}}
    tooltip = ("run", ("at", "measured"), ("words", "time"), "range", ("step", "since the run before"), "commit")
    return {
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 90},
        "encoding": {
            "x": x,
            "y": y,
            "shape": nominal("kind", title=None, **shape),
            "color": nominal("kind", title=None, scale={"domain": list(_KINDS), "range": colours}),
            "tooltip": tell(*tooltip),
        },
    }
