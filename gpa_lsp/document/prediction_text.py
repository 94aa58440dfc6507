"""Predictions and kept traces as text for a terminal or a file."""

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.document.answer_view import build_answer
from gpa_lsp.document.blocks import Part, Table
from gpa_lsp.document.layout import EMPTY_LINE, Align, Column, Line, Span, Style, hang, text_line, wrap
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.execution.launches.read_launches import explain_undescribed
from gpa_lsp.execution.prediction.model import Execution, KernelPrediction, SourcePrediction
from gpa_lsp.execution.traces.line_facts import AccessLineFact
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_ns,
    format_launches,
    format_number,
    format_percent,
)
from gpa_lsp.kernel.names import shorten_name

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.predict_expressions import ExpressionPrediction
    from gpa_lsp.execution.prediction.saved_trace import SavedTrace

MOST_LINES = 12  # Of the table of accesses where the reader set no limit


def render_prediction(
    prediction: SourcePrediction, width: int | None = None, *, max_rows: int | None = None, folder: Path | None = None
) -> Iterator[Line]:
    """All kernels of a source.

    Args:
        prediction: what to show.
        width: characters per line; None for as many as it takes.
        max_rows: longest table; None for a few lines each.
        folder: paths below it are shown relative to it.
    """
    for number, kernel in enumerate(prediction.kernels):
        if number:
            yield EMPTY_LINE
        yield from render_kernel_prediction(kernel, width, max_rows=max_rows, folder=folder)
    for one in prediction.comparisons:
        yield EMPTY_LINE
        yield text_line(f"{shorten_name(one.name)}, {format_launches(one.launches)}", Style.TITLE)
        yield from write_terminal([build_answer(one.answer)], width, max_rows=max_rows)
    if prediction.undescribed:
        if prediction.kernels:
            yield EMPTY_LINE
        yield from describe_undescribed(prediction, width, folder)


def describe_undescribed(prediction: SourcePrediction, width: int | None, folder: Path | None) -> Iterator[Line]:
    """The kernels without a described launch, and what to do about it."""
    names = [shorten_name(name) for name in prediction.undescribed]
    missing = explain_undescribed(prediction.path, names, prediction.launches_path, folder=folder)
    yield from wrap(missing.message, width, indent=0)


def render_kernel_prediction(
    kernel: KernelPrediction, width: int | None = None, *, max_rows: int | None = None, folder: Path | None = None
) -> Iterator[Line]:
    """One launch: what was emulated, the answers, and its lines."""
    yield text_line(kernel.short_name, Style.TITLE)
    if kernel.short_name != kernel.name:
        yield from wrap(kernel.name, width, style=Style.DIM)
    yield from wrap(describe_launch(kernel), width)
    yield from wrap(describe_execution(kernel.execution), width, style=Style.DIM)
    for problem in kernel.problems:
        yield from render_problem(problem, width)
    yield from _write_parts(kernel.answers, kernel.accesses, width, max_rows, folder)
    if kernel.execution.printed:
        yield EMPTY_LINE
        yield text_line("What the kernel printed", Style.HEADING)
        yield from (text_line(f"  {line}") for line in kernel.execution.printed.expandtabs().splitlines())


def render_problem(problem: Problem, width: int | None) -> Iterator[Line]:
    """A problem with its severity."""
    yield from hang((("  ", Style.PLAIN), (f"{problem.severity.value}: {problem}", Style.WARNING)), width)


def describe_launch(kernel: KernelPrediction) -> str:
    """The launch and what one SM holds of it."""
    parts = [
        f"grid {format_dim3(kernel.launch.grid)}, block {format_dim3(kernel.launch.block)}",
        *(() if kernel.registers is None else (format_count_of(kernel.registers, "register"),)),
        *((f"{format_bytes(kernel.shared_bytes)} of shared memory",) if kernel.shared_bytes else ()),
        *(() if kernel.warps_per_sm is None else (f"{format_count_of(kernel.warps_per_sm, 'warp')} per SM",)),
    ]
    title = f"“{kernel.launch.title}”: " if kernel.launch.title else ""
    machine = f"; predicted for the {kernel.machine}" if kernel.machine else ""
    return f"{title}{', '.join(parts)}{machine}"


_TOLD_SHARE = 0.05  # Analyses that took less than this part of the time are not told of


def describe_execution(execution: Execution) -> str:
    """How much was emulated, in one sentence.

    >>> describe_execution(Execution(grid_blocks=8, executed_blocks=8, is_complete=True, warp_instructions=1000, lane_instructions=32000,
    ...     seconds=0.002, peak_bytes=0, why="all blocks"))
    'emulated: all blocks (8), 1,000 warp instructions with 32 active lanes on average, in 2.00 ms'
    """
    counted = format_count(execution.executed_blocks)
    if not execution.is_complete:
        counted = f"{counted} of {format_count_of(execution.grid_blocks, 'block')}, and no further"
    elif execution.executed_blocks == execution.grid_blocks:
        counted = f"{execution.why} ({counted})"
    else:
        counted = f"{execution.why} ({counted} of {format_count(execution.grid_blocks)})"
    lanes = execution.lane_instructions / max(1, execution.warp_instructions)
    text = (
        f"emulated: {counted}, {format_count(execution.warp_instructions)} warp instructions with "
        f"{format_number(lanes)} active lanes on average, in {format_duration_ns(execution.seconds * 1e9)}"
    )
    if execution.analysis_seconds >= _TOLD_SHARE * execution.seconds:
        text += f"; analysed in {format_duration_ns(execution.analysis_seconds * 1e9)}"
    return text


_COLUMNS = (
    Column(title="line", keeps_end=True, can_shrink=True, min_chars=12),
    Column(title="access"),
    Column(title="array", can_shrink=True, min_chars=6),
    Column(title="requests", align=Align.RIGHT),
    Column(title="lines/req", align=Align.RIGHT),
    Column(title="sectors/req", align=Align.RIGHT),
    Column(title="ideal", align=Align.RIGHT),
    Column(title="wavefronts/req", align=Align.RIGHT),
    Column(title="L1 hits", align=Align.RIGHT),
    Column(title="L2 hits", align=Align.RIGHT, drop_order=1),
    Column(title="pattern", can_shrink=True, min_chars=10),
)


def build_access_table(facts: Sequence[AccessLineFact], folder: Path | None = None) -> Table:
    """What lines do to memory, those with most sectors or wavefronts first; lines that only call what does it are left out.

    Args:
        folder: paths below it are shown relative to it.
    """
    own = [fact for fact in facts if not fact.is_nested]
    own.sort(key=lambda one: (-_count_traffic(one), one.file, one.line))
    return Table(columns=_COLUMNS, rows=[_make_row(fact, folder) for fact in own], most_rows=MOST_LINES)


def _write_parts(
    answers: Sequence[Answer],
    facts: Sequence[AccessLineFact],
    width: int | None,
    max_rows: int | None,
    folder: Path | None,
) -> Iterator[Line]:
    """The answers, and the lines where any is known."""
    parts = list(map(build_answer, answers))
    if facts:
        parts.append(Part(title="Lines (emulated)", blocks=[build_access_table(facts, folder)]))
    for part in parts:
        yield from (EMPTY_LINE, *write_terminal([part], width, max_rows=max_rows))


def _count_traffic(fact: AccessLineFact) -> float:
    return fact.requests * fact.wavefronts_per_request if fact.space is Space.SHARED else fact.sectors


def _make_row(fact: AccessLineFact, folder: Path | None) -> Sequence[Span]:
    is_shared = fact.space is Space.SHARED
    style = Style.WARM if fact.excess_ratio >= 0.5 else Style.PLAIN
    ideal = fact.ideal_wavefronts_per_request if is_shared else fact.ideal_sectors_per_request
    return (
        (write_place(show_path(Path(fact.file), folder), fact.line), Style.PATH),
        (f"{fact.space.name.lower()} {fact.kind.value}", Style.PLAIN),
        (", ".join(fact.arrays), Style.PLAIN),
        (format_count(fact.requests), Style.PLAIN),
        ("" if is_shared else format_number(fact.lines_per_request), Style.PLAIN),
        ("" if is_shared else format_number(fact.sectors_per_request), style),
        (format_number(ideal), Style.DIM),
        (format_number(fact.wavefronts_per_request) if is_shared else "", style),
        ("" if fact.l1_hit_ratio is None else format_percent(fact.l1_hit_ratio), Style.PLAIN),
        ("" if fact.l2_hit_ratio is None else format_percent(fact.l2_hit_ratio), Style.PLAIN),
        (fact.pattern_words, Style.DIM),
    )


def show_path(path: Path, folder: Path | None) -> str:
    """A path, relative where it lies below a folder."""
    if folder is not None and path.is_absolute() and path.is_relative_to(folder):
        return str(path.relative_to(folder))
    return str(path)


def render_saved_trace(
    saved: "SavedTrace", width: int | None = None, *, max_rows: int | None = None, folder: Path | None = None
) -> Iterator[Line]:
    """Its answers, and its lines.

    Args:
        saved: what to show.
        width: characters per line; None for as many as it takes.
        max_rows: longest table; None for a few lines each.
        folder: paths below it are shown relative to it.
    """
    yield text_line(saved.short_name, Style.TITLE)
    if saved.short_name != saved.name:
        yield from wrap(saved.name, width, style=Style.DIM)
    yield from wrap(describe_saved_trace(saved), width)
    for problem in saved.problems:
        yield from render_problem(problem, width)
    yield from _write_parts(saved.answers, saved.accesses, width, max_rows, folder)


def describe_saved_trace(saved: "SavedTrace") -> str:
    """The launch, how much of it was traced, and for which GPU."""
    text = (
        f"grid {format_dim3(saved.grid)}, block {format_dim3(saved.block)}; {'a' if saved.is_complete else 'an incomplete'} trace ({saved.origin}) "
        f"of {format_count(saved.traced_blocks)} of {format_count_of(prod(saved.grid), 'block')}"
    )
    return f"{text}; predicted for the {saved.machine}" if saved.machine else text


def render_expression_prediction(
    prediction: "ExpressionPrediction", width: int | None = None, *, max_rows: int | None = None
) -> Iterator[Line]:
    """What was predicted from address expressions.

    Args:
        prediction: what to show.
        width: characters per line; None for as many as it takes.
        max_rows: longest table; None for a few lines each.
    """
    yield text_line(prediction.volumes.kernel, Style.TITLE)
    yield from wrap(describe_expressions(prediction), width)
    for problem in prediction.problems:
        yield from render_problem(problem, width)
    yield EMPTY_LINE
    yield from write_terminal([build_answer(prediction.answer)], width, max_rows=max_rows)


def describe_expressions(prediction: "ExpressionPrediction") -> str:
    """The launch, and what one SM holds of it."""
    written, volumes = prediction.written, prediction.volumes
    launch = written.launch
    parts = [
        f"grid {format_dim3(launch.grid)}, block {format_dim3(launch.block)}",
        *((f"{format_dim3(launch.fold)} updates per thread",) if launch.updates_per_thread > 1 else ()),
        format_count_of(written.registers, "register"),
        *((f"{format_bytes(written.shared_bytes)} of shared memory",) if written.shared_bytes else ()),
        f"{format_count_of(len(written.accesses.accesses), 'access')} per thread",
        f"{format_count_of(volumes.blocks_per_sm, 'block')} per SM",
    ]
    return f"{', '.join(parts)}; predicted for the {volumes.device.name}"
