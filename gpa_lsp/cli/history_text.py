"""The history as text for a terminal, and as rows of JSON."""

import math
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

import msgspec

from gpa_lsp.document.comparison_view import (
    LEAST_CHANGE_RATIO,
    VERDICT_WORDS,
    build_part_table,
    describe_both_times,
    describe_range,
    make_part,
    make_time,
    name_changed_line,
)
from gpa_lsp.document.launch_place_words import describe_times
from gpa_lsp.document.layout import EMPTY_LINE, Align, Column, Line, Span, Style, hang, lay_out_table, text_line
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.document.time_course_words import format_moment
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import UNKNOWN, format_change, format_count, format_duration_ns, format_speedup
from gpa_lsp.kernel.names import shorten_distinctly, shorten_name
from gpa_lsp.report.changes import PartChange, Verdict, order_changes
from gpa_lsp.report.history.model import Measurement, Run, RunChange
from gpa_lsp.report.history.past import RunRow, RunTime

Overview = Sequence[tuple[Sequence[RunRow], int]]  # of each kernel its runs, newest first, and how many there are

_COLUMNS = (
    Column(title="run", align=Align.RIGHT),
    Column(title="measured"),
    Column(title="time", align=Align.RIGHT),
    Column(title="since previous"),
    Column(title="since baseline"),
    Column(title="samples", align=Align.RIGHT, drop_order=1),
    Column(title="id", align=Align.RIGHT),
    Column(title="best advice", can_shrink=True, drop_order=1),
    Column(title="profile", can_shrink=True, keeps_end=True, drop_order=1),
)


def render_history(
    overview: Overview, folder: Path | None = None, width: int | None = None, zone: tzinfo | None = None
) -> Iterator[Line]:
    """Kernel by kernel its runs, newest first.

    Args:
        width: characters per line; None for as many as it takes.
        zone: None for the user's.
    """
    names = shorten_distinctly(rows[0].run.measurement.name for rows, _ in overview)
    for position, (rows, run_count) in enumerate(overview):
        if position:
            yield EMPTY_LINE
        newest = rows[0].run.measurement
        facts = "  ".join(part for part in (show_path(newest.key.home, folder), newest.key.device) if part)
        yield from hang(((names[newest.name], Style.TITLE), (f"  {facts}", Style.DIM)), width)
        yield from lay_out_table(_COLUMNS, [_make_row(row, folder, zone) for row in rows], width=width)
        hidden = run_count - len(rows)
        if hidden:
            yield text_line(f"  and {format_count(hidden)} older (--limit 0 shows all)", Style.DIM)
    if not overview:
        yield text_line("no measurement is recorded; gpa-lsp history --record PATH records one", Style.DIM)


def _make_row(row: RunRow, folder: Path | None, zone: tzinfo | None) -> tuple[Span, ...]:
    run = row.run
    measurement = run.measurement
    baseline = ("baseline", Style.TITLE) if run.is_baseline else _describe_time(row.baseline)
    return (
        (str(run.number), Style.PLAIN),
        (format_moment(measurement.measured_ns, zone), Style.PLAIN),
        (_format_time(measurement), Style.PLAIN),
        _describe_time(row.previous),
        baseline,
        (format_count(measurement.total_samples), Style.PLAIN),
        (f"@{run.run_id}", Style.DIM),
        (_describe_advice(measurement), Style.PLAIN),
        (show_path(measurement.profile or "", folder), Style.DIM),
    )


def _format_time(measurement: Measurement) -> str:
    if measurement.duration_ns is None and measurement.times.cycles is not None:
        return f"{format_count(measurement.times.cycles.mean)} cycles"
    return format_duration_ns(measurement.duration_ns)


def _describe_time(found: RunTime | None) -> Span:
    if found is None:
        return "", Style.PLAIN
    _, judgement = found
    time, verdict = judgement.time, judgement.verdict
    doubt = f" ({judgement.note.partition(':')[0]})" if judgement.note else ""
    if verdict is Verdict.OTHER_WORK:
        return f"not compared{doubt}", Style.DIM
    if verdict is Verdict.SAME_CODE:
        return "same code", Style.DIM
    if time is None:
        return UNKNOWN, Style.DIM
    if verdict is Verdict.NO_CHANGE:
        return f"no change{doubt}", Style.DIM
    style = Style.DIM if doubt else Style.TITLE if verdict is Verdict.FASTER else Style.WARNING
    return f"{format_change(time.after / time.before - 1)}{doubt}", style


def _describe_advice(measurement: Measurement) -> str:
    if not measurement.advice:
        return ""
    best = measurement.advice[0]
    return f"{format_speedup(best.speedup)} {best.title}"


def show_path(path: str, folder: Path | None) -> str:
    """A path of this machine, relative when it is below the folder."""
    if folder is None or not path:
        return path
    try:
        return str(Path(path).relative_to(folder))
    except ValueError:
        return path


def make_history_document(overview: Overview, database: Path) -> dict[str, Any]:
    """The history as JSON: ``gpa-lsp/history/1``."""
    return {
        "schema": "gpa-lsp/history/1",
        "database": str(database),
        "kernels": [_make_kernel(rows, run_count) for rows, run_count in overview],
    }


def _make_kernel(rows: Sequence[RunRow], run_count: int) -> dict[str, Any]:
    newest = rows[0].run.measurement
    capability = newest.key.compute_capability
    return {
        "mangled_name": newest.key.mangled_name,
        "name": newest.name,
        "home": newest.key.home,
        "device": newest.key.device or None,
        "compute_capability": None if capability is None else list(capability),
        "run_count": run_count,
        "runs": [
            {
                **make_run(row.run),
                "since_previous": _make_time(row.previous),
                "since_baseline": _make_time(row.baseline),
            }
            for row in rows
        ],
    }


def make_run(run: Run) -> dict[str, Any]:
    """A run as JSON."""
    measurement = run.measurement
    cycles = measurement.times.cycles
    return {
        "run": run.run_id,
        "number": run.number,
        "is_baseline": run.is_baseline,
        "measured_unix_ns": measurement.measured_ns,
        "recorded_unix_ns": run.recorded_ns,
        "profile": measurement.profile,
        "duration_ns": measurement.duration_ns,
        "elapsed_cycles": None if cycles is None else cycles.mean,
        "total_samples": measurement.total_samples,
        "latency_samples": measurement.latency_samples,
        "by_reason": msgspec.to_builtins(measurement.by_reason),
        "executed_instructions": measurement.executed_instructions,
        "code_digest": measurement.code_digest,
        "commit": None if measurement.commit is None else measurement.commit.digest,
        "commit_subject": None if measurement.commit is None else measurement.commit.subject,
        **msgspec.to_builtins(measurement.launch),
        "advice": [
            {"optimizer": piece.optimizer, "title": piece.title, "speedup": _keep_finite(piece.speedup)}
            for piece in measurement.advice
        ],
    }


def _keep_finite(value: float) -> float | None:
    """None for a speedup without limit, which JSON has no word for."""
    return value if math.isfinite(value) else None


def _make_time(found: RunTime | None) -> dict[str, Any] | None:
    if found is None:
        return None
    before, judgement = found
    return {
        "run": before.run_id,
        "verdict": judgement.verdict.value,
        "note": judgement.note,
        "time": make_time(judgement.time),
    }


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
    lines = order_changes([*change.lines.values(), *change.gone])
    yield from write_terminal([build_part_table("By stall reason", change.reasons, lambda part: part.name)], width)
    yield from _render_places(change, width)
    yield from write_terminal([build_part_table("By line", lines, lambda part: _name_line(part, folder))], width)


def _render_places(change: RunChange, width: int | None) -> Iterator[Line]:
    """Render the change of each place that launches the kernel."""
    if not change.places:
        return
    yield text_line("  By place of launch", Style.DIM)
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
