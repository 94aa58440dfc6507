"""The history as text for a terminal, and as rows of JSON."""

import math
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

import msgspec

from gpa_lsp.document.changes_text import make_time
from gpa_lsp.document.layout import EMPTY_LINE, Align, Column, Line, Span, Style, hang, lay_out_table, text_line
from gpa_lsp.document.moments import format_moment
from gpa_lsp.foundation.numbers import UNKNOWN, format_change, format_count, format_duration_ns, format_speedup
from gpa_lsp.kernel.names import shorten_distinctly
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import Measurement, Run
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
