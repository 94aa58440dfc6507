"""Words about a kernel's past: half a line for its lens, a sentence for a line's hover, a paragraph for its page."""

import time
from datetime import tzinfo

from gpa_lsp.document.blocks import Block, Item, Items, Paragraph
from gpa_lsp.document.launch_place_words import describe_times
from gpa_lsp.document.layout import Style
from gpa_lsp.document.time_course_words import describe_course, draw_blocks, format_moment_briefly
from gpa_lsp.foundation.numbers import format_change, format_count, format_count_of, format_duration_ns, format_percent
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.changes import Place, TimeChange, Verdict
from gpa_lsp.report.history.model import KernelHistory, RunChange

_MOST_PLACES = 8


def describe_change_briefly(
    history: KernelHistory | None, now_ns: int | None = None, zone: tzinfo | None = None
) -> str:
    """Describe the change since the last run and since the baseline, to stand behind a kernel's time.

    Args:
        history: None where nothing is remembered.
        now_ns: since 1970; None for now.
        zone: None for the user's.

    Returns:
        ``−18 % since 14:02 · −31 % since baseline``; empty where there is nothing to compare with.
    """
    if history is None:
        return ""
    now_ns = time.time_ns() if now_ns is None else now_ns
    parts = []
    previous, baseline = history.previous, history.baseline
    is_same = previous is not None and baseline is not None and previous.before.run_id == baseline.before.run_id
    if previous is not None and not is_same:
        parts.append(_describe(previous, _name_moment(previous, now_ns, zone)))
    if baseline is not None:
        moment = f"baseline {_name_moment(baseline, now_ns, zone)}" if is_same else "baseline"
        parts.append(_describe(baseline, moment))
    if history.is_baseline:
        parts.append("this is the baseline")
    if history.other_device is not None:
        parts.append(f"first run on this GPU, before on {history.other_device}")
    return " · ".join(parts)


def describe_line_change(history: KernelHistory | None, place: Place) -> str:
    """Describe the change of a line since the last run, for its hover.

    Args:
        history: of the kernel; None where nothing is remembered.

    Returns:
        ``this line: 182 µs → 96 µs since the last run``; empty where nothing is known, or the code is the same and so is the line.
    """
    change = history.find_line_change(place) if history is not None else None
    if history is None or history.previous is None or change is None:
        return ""
    if history.previous.verdict is Verdict.SAME_CODE:
        return ""
    if change.before_ns is not None and change.after_ns is not None:
        before, after = (
            format_duration_ns(value) if value else "nothing" for value in (change.before_ns, change.after_ns)
        )
    else:
        before, after = (
            format_percent(ratio) if ratio else "nothing" for ratio in (change.before_ratio, change.after_ratio)
        )
        after += " of the kernel"
    if change.before_line is None:
        return f"this line is new since the last run: {after}"
    if change.is_clear is False:
        return f"this line: {after}, {before} in the last run (too few samples to tell a change)"
    return f"this line: {before} → {after} since the last run"


def build_course(history: KernelHistory | None) -> list[Block]:
    """A kernel's time over its runs, as a line of blocks and one sentence; nothing without an earlier run.

    ``**history** ▁▂▂▲▇▃ 2.10 ms → 1.20 ms over 6 runs; ▲ slower in run 12 (+34 %, 8f3c2a91)``

    Args:
        history: of the kernel; None where nothing is remembered.
    """
    course = None if history is None else history.course
    said = describe_course(course, with_marks=True) if course is not None else ""
    if course is None or not said:
        return []
    spans = (("history", Style.TITLE), (f" {draw_blocks(course)} ", Style.PLAIN), (said, Style.PLAIN))
    return [Paragraph(text=spans)]


def build_past(history: KernelHistory | None, now_ns: int | None = None, zone: tzinfo | None = None) -> list[Block]:
    """A kernel's course, then each comparison with its range and what that rests on; nothing without a past."""
    if history is None:
        return []
    now_ns = time.time_ns() if now_ns is None else now_ns
    items = []
    for title, change in (("the last run", history.previous), ("the baseline", history.baseline)):
        if change is not None:
            moment = _name_moment(change, now_ns, zone)
            below = [Items(items=[Item(text=words) for words in _list_place_changes(change)])] if change.places else []
            items.append(Item(text=f"since {title} ({moment}): {_describe_fully(change)}", below=below))
    if history.is_baseline:
        items.append(Item(text="this run is the baseline"))
    if not items:
        return []
    items.append(Item(text=f"{format_count_of(history.run_count, 'run')} of this kernel on this GPU"))
    return [*build_course(history), Items(items=items)]


def _list_place_changes(change: RunChange) -> list[str]:
    """Change of the time of each of several launch sites."""
    return [
        f"launched from {name}: {describe_times(before_ns, after_ns)}"
        for name, before_ns, after_ns in change.places[:_MOST_PLACES]
    ]


def _name_moment(change: RunChange, now_ns: int, zone: tzinfo | None) -> str:
    return format_moment_briefly(change.before.measurement.measured_ns, now_ns, zone)


def _describe(change: RunChange, since: str) -> str:
    difference = _describe_difference(change)
    if change.verdict is Verdict.OTHER_WORK:
        return f"not compared since {since}{difference}"
    if change.verdict is Verdict.SAME_CODE:
        return f"same code as {_refer(since)}{_describe_drift(change.time)}"
    if change.time is None:
        return f"no time to compare since {since}"
    if change.verdict is Verdict.NO_CHANGE:
        return f"no change since {since} (within {_format_noise(change.time)} noise){difference}"
    return f"{format_change(_measure_change(change.time))} since {since}{difference}"


def _describe_difference(change: RunChange) -> str:
    """Other differences between the two runs: template arguments and work."""
    old, new = (shorten_name(run.measurement.name) for run in (change.before, change.after))
    parts = [f"was {old}"] if old != new and "<" in old else []
    if change.note:
        parts.append(change.note)
    return f" ({', '.join(parts)})" if parts else ""


def _refer(since: str) -> str:
    """Completion of "same code as": the baseline, a time of today, or another day."""
    if since.startswith("baseline"):
        return f"the {since}"
    return f"at {since}" if ":" in since else f"on {since}"


def _describe_drift(time: TimeChange | None) -> str:
    """Time change of unchanged code, whose data or clocks differ then; empty within the noise."""
    if time is None or time.low <= 1 <= time.high:
        return ""
    return f", yet {format_change(_measure_change(time))}"


def _describe_fully(change: RunChange) -> str:
    time = change.time
    if change.verdict is Verdict.OTHER_WORK:
        return f"not compared{_describe_difference(change)}"
    if time is None:
        return "the same code" if change.verdict is Verdict.SAME_CODE else "one of the two has no time"
    if time.unit == "ns":
        times = f"{format_duration_ns(time.before)} → {format_duration_ns(time.after)}"
    else:
        times = f"{format_count(time.before)} → {format_count(time.after)} cycles"
    words = {
        Verdict.NO_CHANGE: f"no change beyond {_format_noise(time)} noise",
        Verdict.SAME_CODE: f"the same code, launched the same way{_describe_drift(time)}",
    }
    found = words.get(change.verdict, format_change(_measure_change(time)))
    return f"{times}: {found}{_describe_difference(change)}; {time.basis}"


def _measure_change(time: TimeChange) -> float:
    """Relative change of the time: -0.1 for 10 % less."""
    return time.after / time.before - 1


def _format_noise(time: TimeChange) -> str:
    return format_percent(time.high / time.speedup - 1)
