"""VIEW: the history of kernels, changes between two runs, and the JSON of both."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpa_lsp.document.blocks import Block, Paragraph, Part, Table, tabulate
from gpa_lsp.document.comparison_view import (
    build_part_table,
    describe_instructions,
    describe_range,
    head_change,
    make_part,
    name_changed_line,
    say_all,
)
from gpa_lsp.document.launch_place_words import describe_times
from gpa_lsp.document.layout import Span, Style, flexible, left, right
from gpa_lsp.document.places import show_line, show_path
from gpa_lsp.document.time_course_words import format_moment
from gpa_lsp.foundation.json_records import pick
from gpa_lsp.foundation.numbers import UNKNOWN, format_change, format_count, format_duration_ns
from gpa_lsp.kernel.names import shorten_distinctly, shorten_name
from gpa_lsp.report.changes import PartChange, Verdict, order_changes
from gpa_lsp.report.history.model import Measurement, Run, RunChange
from gpa_lsp.report.history.past import RunRow, RunTime

Overview = Sequence[tuple[Sequence[RunRow], int]]  # of each kernel its runs, newest first, and how many there are


def build_history(overview: Overview, folder: Path | None = None) -> list[Block]:
    """Runs of each kernel, newest first; times of day are in the user's zone."""
    names = shorten_distinctly(rows[0].run.measurement.name for rows, _ in overview)
    blocks: list[Block] = []
    for rows, run_count in overview:
        newest = rows[0].run.measurement
        facts = [part for part in (show_path(newest.key.home, folder), newest.key.device) if part]
        title = ((names[newest.name], Style.TITLE), (f"  {'  '.join(facts)}", Style.DIM))
        inner: list[Block] = [_tabulate_runs(rows, folder)]
        hidden = run_count - len(rows)
        if hidden:
            inner.append(Paragraph(text=f"and {format_count(hidden)} older (--limit 0 shows all)", style=Style.DIM))
        blocks.append(Part(title=title, blocks=inner))
    nothing = "no measurement is recorded; gpa-lsp history --record PATH records one"
    return blocks or [Paragraph(text=nothing, style=Style.DIM)]


def _tabulate_runs(rows: Sequence[RunRow], folder: Path | None) -> Table:
    def show_baseline(row: RunRow) -> Span:
        return ("baseline", Style.TITLE) if row.run.is_baseline else _describe_time(row.baseline)

    return tabulate(
        [(row, row.run.measurement) for row in rows],
        [
            (right("run"), lambda row: str(row[0].run.number)),
            (left("measured"), lambda row: format_moment(row[1].measured_ns)),
            (right("time"), lambda row: _format_time(row[1])),
            (left("since previous"), lambda row: _describe_time(row[0].previous)),
            (left("since baseline"), lambda row: show_baseline(row[0])),
            (right("samples", drop_order=1), lambda row: format_count(row[1].total_samples)),
            (right("id"), lambda row: (f"@{row[0].run.run_id}", Style.DIM)),
            (flexible("suggestion", drop_order=1), lambda row: next((one.title for one in row[1].advice), "")),
            (
                flexible("profile", keeps_end=True, drop_order=1),
                lambda row: (show_path(row[1].profile or "", folder), Style.DIM),
            ),
        ],
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
    cycles, commit = measurement.times.cycles, measurement.commit
    return {
        **pick(run, "run_id=run number is_baseline"),
        "measured_unix_ns": measurement.measured_ns,
        "recorded_unix_ns": run.recorded_ns,
        **pick(measurement, "profile duration_ns"),
        "elapsed_cycles": None if cycles is None else cycles.mean,
        **pick(measurement, "total_samples latency_samples"),
        "by_reason": msgspec.to_builtins(measurement.by_reason),
        **pick(measurement, "executed_instructions code_digest"),
        "commit": None if commit is None else commit.digest,
        "commit_subject": None if commit is None else commit.subject,
        **msgspec.to_builtins(measurement.launch),
        "advice": [pick(piece, "optimizer title speedup") for piece in measurement.advice],
    }


def _make_time(found: RunTime | None) -> dict[str, Any] | None:
    if found is None:
        return None
    before, judgement = found
    return {"run": before.run_id, **pick(judgement, "verdict note"), "time": msgspec.to_builtins(judgement.time)}


_PLACE_KEYS = ("name", "before_ns", "after_ns")


def build_run_change(change: RunChange, folder: Path | None = None) -> Part:
    """Change between two runs: total, by stall reason and by line; times of day are in the user's zone."""
    before, after = change.before, change.after
    durations_ns = (before.measurement.duration_ns, after.measurement.duration_ns)
    title = head_change(shorten_name(after.measurement.name), change.verdict, change.time, durations_ns)
    moments = [f"run {run.number} of {format_moment(run.measurement.measured_ns)}" for run in (before, after)]
    is_other = change.verdict is Verdict.OTHER_WORK
    time = None if change.verdict is Verdict.SAME_CODE else change.time
    executed = describe_instructions(change.instructions_ratio)
    blocks = say_all(
        (" → ".join(moments), Style.DIM),
        ("" if time is None else describe_range(time), Style.DIM),
        (_describe_names(change), Style.WARNING),
        (change.note, Style.WARNING),
        ("" if is_other or "instructions" in change.note else executed, Style.PLAIN),
        ("" if is_other else change.no_stalls, Style.WARNING),
    )
    if is_other:
        return Part(title=title, blocks=blocks)
    lines = order_changes([*change.lines.values(), *change.gone])
    places = tabulate(
        change.places,
        [(flexible(keeps_end=True), lambda row: (row[0], Style.CODE)), (left(), lambda row: describe_times(*row[1:]))],
        "By place of launch",
    )
    return Part(
        title=title,
        blocks=[
            *blocks,
            build_part_table("By stall reason", change.reasons, lambda part: part.name),
            places,
            build_part_table("By line", lines, lambda part: _name_line(part, folder)),
        ],
    )


def _describe_names(change: RunChange) -> str:
    """Names of both kernels where they differ; else empty."""
    sides = [run.measurement for run in (change.before, change.after)]
    if len({one.key.mangled_name for one in sides}) == 1:
        return ""
    return f"the kernels differ: {' → '.join(shorten_name(one.name) for one in sides)}"


def _name_line(part: PartChange, folder: Path | None) -> str:
    return name_changed_line(part, lambda line: show_line(part.name, line, folder))


def make_run_change_document(change: RunChange) -> dict[str, Any]:
    """The change as JSON: ``gpa-lsp/run-change/1``."""
    return {
        "schema": "gpa-lsp/run-change/1",
        "before": make_run(change.before),
        "after": make_run(change.after),
        **pick(change, "verdict note"),
        "time": msgspec.to_builtins(change.time),
        **pick(change, "instructions_ratio no_stalls"),
        **({"places": [dict(zip(_PLACE_KEYS, one, strict=True)) for one in change.places]} if change.places else {}),
        "reasons": [make_part(part, "reason") for part in change.reasons],
        "lines": [make_part(part, "file") for part in order_changes([*change.lines.values(), *change.gone])],
    }
