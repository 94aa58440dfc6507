"""Changes of times and of parts, in the same words and tables wherever two measurements are compared; nothing here needs a report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gpa_lsp.document.layout import Align, Column, Line, Span, Style, lay_out_table, text_line
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_count,
    format_duration_ns,
    format_percent,
    format_points,
    format_speedup,
)
from gpa_lsp.report.changes import PartChange, TimeChange, Verdict

LEAST_CHANGE_RATIO = 0.01  # Parts that moved by less than this share of the kernel's old time are not shown

_MOST_PARTS = 10

VERDICT_WORDS: Mapping[Verdict, tuple[str, Style]] = {
    Verdict.FASTER: ("faster", Style.TITLE),
    Verdict.SLOWER: ("slower", Style.WARNING),
    Verdict.NO_CHANGE: ("no change beyond the noise", Style.DIM),
    Verdict.SAME_CODE: ("no change: same instructions, same launch", Style.DIM),
    Verdict.UNKNOWN: ("no time to compare", Style.WARNING),
    Verdict.OTHER_WORK: ("not compared", Style.WARNING),
}


def describe_time(time: TimeChange | None) -> str:
    """``6.19 ms → 3.48 ms  1.78×``, in cycles where both have them."""
    if time is None:
        return ""
    if time.unit == "ns":
        return f"{format_duration_ns(time.before)} → {format_duration_ns(time.after)}  {format_speedup(time.speedup)}"
    return f"{format_count(time.before)} → {format_count(time.after)} cycles  {format_speedup(time.speedup)}"


def describe_both_times(
    verdict: Verdict, time: TimeChange | None, durations_ns: tuple[float | None, float | None]
) -> str:
    """Both times; with their ratio where they are compared."""
    if verdict is not Verdict.OTHER_WORK:
        return describe_time(time)
    before_ns, after_ns = durations_ns
    return f"{format_duration_ns(before_ns)}, {format_duration_ns(after_ns)}"


def describe_range(time: TimeChange) -> str:
    """``between 1.94× and 2.06× (3 and 3 launches)``."""
    return f"between {format_speedup(time.low)} and {format_speedup(time.high)} ({time.basis})"


def name_changed_line(part: PartChange, show: Callable[[int | None], str]) -> str:
    """A line's place, and whether it is gone, new, or stood elsewhere; ``show`` writes the place of a line number."""
    shown = show(part.before_line if part.after_line is None else part.after_line)
    if part.after_line is None:
        return f"{shown} (gone)"
    if part.before_line is None:
        return f"{shown} (new)"
    return shown if part.before_line == part.after_line else f"{shown} (was {part.before_line})"


def render_parts(
    title: str, changes: Sequence[PartChange], name: Callable[[PartChange], str], width: int | None
) -> Iterator[Line]:
    """Parts of a kernel that changed notably, as a table.

    Args:
        title: above it.
        changes: largest first.
        name: what a part is called.
        width: characters per line; None for as many as it takes.
    """
    shown = [change for change in changes if _is_notable(change, changes)][:_MOST_PARTS]
    if not shown:
        return
    yield text_line(f"  {title}", Style.HEADING)
    columns = (
        Column(title="before", align=Align.RIGHT),
        Column(title="after", align=Align.RIGHT),
        Column(title="change", align=Align.RIGHT),
        Column(title="", can_shrink=True, min_chars=12),
    )
    rows: list[tuple[Span, ...]] = []
    for change in shown:
        old, new, delta = _format_part(change)
        rows.append(((old, Style.PLAIN), (new, Style.PLAIN), (delta, Style.PLAIN), (name(change), Style.PLAIN)))
    yield from lay_out_table(columns, rows, width=width, indent=4)


def _is_notable(change: PartChange, changes: Sequence[PartChange]) -> bool:
    if change.before_ns is None or change.after_ns is None:
        return abs(change.after_ratio - change.before_ratio) >= LEAST_CHANGE_RATIO
    whole = max((one.before_ns / one.before_ratio for one in changes if one.before_ns and one.before_ratio), default=0)
    return abs(change.after_ns - change.before_ns) >= LEAST_CHANGE_RATIO * whole


def _format_part(change: PartChange) -> tuple[str, str, str]:
    if change.before_ns is None or change.after_ns is None:
        difference_ratio = change.after_ratio - change.before_ratio
        return format_percent(change.before_ratio), format_percent(change.after_ratio), format_points(difference_ratio)
    difference = change.after_ns - change.before_ns
    sign = "+" if difference > 0 else "−"
    return (
        format_duration_ns(change.before_ns) if change.before_ns else UNKNOWN,
        format_duration_ns(change.after_ns) if change.after_ns else UNKNOWN,
        f"{sign}{format_duration_ns(abs(difference))}",
    )


def make_time(time: TimeChange | None) -> dict[str, Any] | None:
    """A change of time as JSON."""
    found: dict[str, Any] | None = msgspec.to_builtins(time)
    return found


def make_part(change: PartChange, key: str) -> dict[str, Any]:
    """A part's change as JSON, its name under ``key``."""
    row: dict[str, Any] = {key: change.name}
    if key == "file":
        row.update(before_line=change.before_line, after_line=change.after_line)
    return {
        **row,
        "before_ns": change.before_ns,
        "after_ns": change.after_ns,
        "before_ratio": change.before_ratio,
        "after_ratio": change.after_ratio,
    }
