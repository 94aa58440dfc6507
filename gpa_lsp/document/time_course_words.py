"""Times of a kernel over its runs in words: a line of block characters, one sentence, and cells of a list of runs."""

from datetime import UTC, datetime, timedelta, tzinfo

from gpa_lsp.foundation.numbers import format_change, format_count, format_duration_ns, format_duration_range_ns
from gpa_lsp.foundation.prose import NOTHING, Part, Sentence, count, cycles, duration, join, say
from gpa_lsp.foundation.visible_text import shorten
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import Commit, TimeCourse, TimedRun

BLOCKS = "▁▂▃▄▅▆▇█"
UNTIMED = "·"
REGRESSION = "▲"
TICK = "╎"
OLDER = "…"

MOST_BLOCKS = 32  # Runs in a line of blocks, the newest

_MOST_TICKS = 8  # Commits that a line of blocks tells apart: more would hide the times

# Of the longest time: what a line of blocks, or an axis, spans at least, so that noise does not look like mountains
_LEAST_SPAN_RATIO = 0.2

_MOST_SUBJECT_CHARS = 48


def choose_span(course: TimeCourse) -> tuple[float, float]:
    """Lowest and highest time of a picture; at least one run must have a time."""
    times = [run.time for run in course.runs if run.time is not None]
    low, high = min(times), max(times)
    missing = max(0.0, _LEAST_SPAN_RATIO * high - (high - low))
    return max(0.0, low - missing / 2), high + missing / 2


def draw_blocks(course: TimeCourse) -> str:
    """Times as block characters, oldest first, with a triangle before a regression and a stroke at a change of commit.

    The lowest block is the shortest time, unless all lie close together; a dot is a run whose time is unknown. Of many runs the newest are drawn,
    and of many commits none.
    """
    if not course.timed:
        return ""
    low, high = choose_span(course)
    ticks = _list_ticks(course)
    older = max(0, len(course.runs) - MOST_BLOCKS)
    marks = [OLDER] if older else []
    for position, run in list(enumerate(course.runs))[older:]:
        if position in ticks:
            marks.append(TICK)
        if run.is_regression:
            marks.append(REGRESSION)
        marks.append(UNTIMED if run.time is None else _choose_block((run.time - low) / (high - low)))
    return "".join(marks)


def _list_ticks(course: TimeCourse) -> set[int]:
    """Positions of the runs before which :func:`draw_blocks` draws a stroke."""
    first = max(1, len(course.runs) - MOST_BLOCKS)
    found = {position for position in range(first, len(course.runs)) if course.begins_commit(position)}
    return found if len(found) <= _MOST_TICKS else set()


def _choose_block(ratio: float) -> str:
    """Block of a relative height, rounded half up, robust against the last digit of a division."""
    return BLOCKS[int(round(ratio, 6) * (len(BLOCKS) - 1) + 0.5)]


def choose_named_ticks(course: TimeCourse, gap: float) -> set[int]:
    """Positions of runs whose commit is named in a picture, at least *gap* runs apart; regressions have precedence."""
    ticks = [position for position in range(len(course.runs)) if course.begins_commit(position)]
    chosen: set[int] = set()
    for position in sorted(ticks, key=lambda position: not course.runs[position].is_regression):
        if all(abs(position - other) >= gap for other in chosen):
            chosen.add(position)
    return chosen


def describe_course(course: TimeCourse, *, with_marks: bool = False) -> Sentence:
    """Trend of the time in one sentence; empty where fewer than two runs have a time.

    Args:
        course: the runs.
        with_marks: name what :func:`draw_blocks` draws.
    """
    timed = course.timed
    if len(timed) < 2:
        return NOTHING
    parts = [
        say(
            "{before} → {after} over {runs}",
            before=_measure(course, timed[0]),
            after=_measure(course, timed[-1]),
            runs=count(len(course.runs), "run"),
        ),
        _describe_regressions(course, f"{REGRESSION} " if with_marks else ""),
    ]
    if any(run.note for run in course.runs):
        parts.append(say("work or clocks may differ"))
    if len(course.commits) > 1:
        is_ticked = with_marks and bool(_list_ticks(course))
        parts.append(
            say("{tick}{commits}", tick=f"{TICK} " if is_ticked else "", commits=count(len(course.commits), "commit"))
        )
    return join([part for part in parts if part], "; ")


def _describe_regressions(course: TimeCourse, mark: str) -> Sentence:
    found = course.regressions
    if not found:
        return say("no regression")
    last = found[-1]
    fate = ", recovered since" if course.is_made_good(course.runs.index(last)) else ""
    where = say(
        "run {number} ({change}{commit}){fate}",
        number=str(last.number),
        change=_write_change(last),
        commit="" if last.commit is None else f", {name_commit(last.commit)}",
        fate=fate,
    )
    if len(found) == 1:
        return join([say("{mark}slower in", mark=mark), where])
    return join(
        [say("{mark}{regressions}, the last in", mark=mark, regressions=count(len(found), "regression")), where]
    )


def name_commit(commit: Commit | None) -> str:
    """A commit in a few words; ``unknown`` for None.

    >>> name_commit(Commit(digest="8f3c2a91d0", subject="Unroll the loop")), name_commit(None)
    ('8f3c2a91 “Unroll the loop”', 'unknown')
    """
    if commit is None:
        return "unknown"
    subject = shorten(commit.subject, _MOST_SUBJECT_CHARS)
    return f"{commit.short} “{subject}”" if subject else commit.short


def write_time(course: TimeCourse, value: float | None) -> str:
    """A time of a course."""
    if course.unit == "cycles":
        return f"{format_count(value)} cycles"
    return format_duration_ns(value)


def write_range(course: TimeCourse, run: TimedRun) -> str:
    """Range of a run's time; empty where it is unknown."""
    if run.low is None or run.high is None:
        return ""
    if course.unit == "cycles":
        return f"{format_count(run.low)} to {format_count(run.high)} cycles"
    return format_duration_range_ns(run.low, run.high)


def describe_step(run: TimedRun) -> str:
    """Change since the previous run; empty for the first.

    >>> first = TimedRun(number=1, measured_ns=0, time=2.0, low=1.9, high=2.1, launch_count=1)
    >>> describe_step(first)
    ''
    """
    if run.verdict is None:
        return ""
    if run.note:
        return ", ".join(filter(None, (_write_change(run), run.note)))
    if run.verdict in (Verdict.SLOWER, Verdict.FASTER):
        return f"{_write_change(run)}, {run.verdict.value}"
    return {Verdict.NO_CHANGE: "no change beyond the noise", Verdict.SAME_CODE: "same code"}.get(
        run.verdict, "no time to compare"
    )


def _write_change(run: TimedRun) -> str:
    return "" if run.change_ratio is None else format_change(run.change_ratio)


def _measure(course: TimeCourse, run: TimedRun) -> Part:
    return cycles(run.time) if course.unit == "cycles" else duration(run.time)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_moment(unix_ns: int, zone: tzinfo | None = None) -> str:
    """Day and minute, in the user's zone where *zone* is None.

    >>> format_moment(1_763_733_720_000_000_000, UTC)
    '2025-11-21 14:02'
    """
    return f"{_convert(unix_ns, zone):%Y-%m-%d %H:%M}"


def format_measured(unix_s: int | None) -> str:
    """Time of a measurement in UTC, the same on every machine; empty when it is unknown or no date.

    >>> format_measured(1_763_733_720), format_measured(10**15)
    ('2025-11-21 14:02 UTC', '')
    """
    try:
        return "" if unix_s is None else f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def format_moment_briefly(unix_ns: int, now_ns: int, zone: tzinfo | None = None) -> str:
    """The minute of a moment today, the day of an earlier one.

    Args:
        unix_ns: since 1970.
        now_ns: the present, since 1970.
        zone: None for the user's.

    >>> now_ns = 1_763_740_000_000_000_000
    >>> [format_moment_briefly(now_ns - hours * 3_600_000_000_000, now_ns, UTC) for hours in (1, 24, 24 * 365)]
    ['14:46', '20 Nov', '2024-11-21']
    """
    moment, now = _convert(unix_ns, zone), _convert(now_ns, zone)
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    if moment.year == now.year:
        return f"{moment.day} {_MONTHS[moment.month - 1]}"
    return f"{moment:%Y-%m-%d}"


def _convert(unix_ns: int, zone: tzinfo | None) -> datetime:
    moment = _EPOCH + timedelta(microseconds=unix_ns // 1000)
    try:
        return moment.astimezone(zone)
    except (OverflowError, OSError, ValueError):
        return moment  # what the system cannot convert is centuries away
