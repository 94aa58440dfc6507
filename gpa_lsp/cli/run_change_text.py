"""Two remembered runs side by side, as text and as JSON."""

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

from gpa_lsp.cli.history_text import make_run, show_path
from gpa_lsp.document.changes_text import (
    LEAST_CHANGE_RATIO,
    VERDICT_WORDS,
    describe_both_times,
    describe_range,
    make_part,
    make_time,
    name_changed_line,
    render_parts,
)
from gpa_lsp.document.launch_place_words import describe_times
from gpa_lsp.document.layout import Line, Style, hang, text_line
from gpa_lsp.document.moments import format_moment
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_speedup
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.changes import PartChange, Verdict, order_changes
from gpa_lsp.report.history.model import RunChange

_PLACE_KEYS = ("name", "before_ns", "after_ns")


def render_run_change(
    change: RunChange, folder: Path | None = None, width: int | None = None, zone: tzinfo | None = None
) -> Iterator[Line]:
    """What changed, in total, by stall reason and by line.

    Args:
        width: characters per line; None for as many as it takes.
        zone: None for the user's.
    """
    before, after = change.before, change.after
    words, style = VERDICT_WORDS[change.verdict]
    name = shorten_name(after.measurement.name)
    times = describe_both_times(
        change.verdict, change.time, (before.measurement.duration_ns, after.measurement.duration_ns)
    )
    yield from hang(((name, Style.TITLE), (f"  {times}", Style.PLAIN), (f"  {words}", style)), width)
    moments = [f"run {run.number} of {format_moment(run.measurement.measured_ns, zone)}" for run in (before, after)]
    yield from hang(((f"  {' → '.join(moments)}", Style.DIM),), width)
    if change.time is not None and change.verdict is not Verdict.SAME_CODE:
        yield from hang(((f"  {describe_range(change.time)}", Style.DIM),), width)
    yield from _render_warnings(change, width)
    if change.verdict is Verdict.OTHER_WORK:
        return
    ratio = change.instructions_ratio
    if ratio is not None and abs(ratio - 1) >= LEAST_CHANGE_RATIO:
        yield text_line(f"  executes {format_speedup(ratio)} the instructions")
    if change.no_stalls:
        yield text_line(f"  {change.no_stalls}", Style.WARNING)
    yield from render_parts("by stall reason", change.reasons, lambda part: part.name, width)
    yield from _render_places(change, width)
    lines = order_changes([*change.lines.values(), *change.gone])
    yield from render_parts("by line", lines, lambda part: _name_line(part, folder), width)


def _render_places(change: RunChange, width: int | None) -> Iterator[Line]:
    """By where the kernel was launched from."""
    if not change.places:
        return
    yield text_line("  by place of launch")
    for name, before_ns, after_ns in change.places:
        yield from hang(((f"    {name}  {describe_times(before_ns, after_ns)}", Style.PLAIN),), width)


def _render_warnings(change: RunChange, width: int | None) -> Iterator[Line]:
    old, new = change.before.measurement, change.after.measurement
    if old.key.mangled_name != new.key.mangled_name:
        names = [shorten_name(measurement.name) for measurement in (old, new)]
        yield from hang(((f"  the kernels differ: {' → '.join(names)}", Style.WARNING),), width)
    if change.note:
        yield from hang(((f"  {change.note}", Style.WARNING),), width)


def _name_line(part: PartChange, folder: Path | None) -> str:
    return name_changed_line(part, lambda line: write_place(show_path(part.name, folder), line))


def make_run_change_document(change: RunChange) -> dict[str, Any]:
    """The change as JSON: ``gpa-lsp/run-change/1``."""
    return {
        "schema": "gpa-lsp/run-change/1",
        "before": make_run(change.before),
        "after": make_run(change.after),
        "verdict": change.verdict.value,
        "note": change.note,
        "time": make_time(change.time),
        "instructions_ratio": change.instructions_ratio,
        "no_stalls": change.no_stalls,
        **({"places": [dict(zip(_PLACE_KEYS, one, strict=True)) for one in change.places]} if change.places else {}),
        "reasons": [make_part(part, "reason") for part in change.reasons],
        "lines": [make_part(part, "file") for part in order_changes([*change.lines.values(), *change.gone])],
    }
