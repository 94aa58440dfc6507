"""A program that ran without a GPU, as text: a few lines per kernel, heaviest first."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.document.allocation_text import render_memory, render_origins
from gpa_lsp.document.layout import EMPTY_LINE, Line, Style, hang, text_line
from gpa_lsp.document.prediction_text import render_problem, show_path
from gpa_lsp.execution.emulator.model import Fault
from gpa_lsp.execution.programs.examine import ExaminedKernel
from gpa_lsp.execution.programs.model import AllocationSite, KernelRuns, ProgramRun
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
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
    format_seconds,
)
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.kernel.names import shorten_name

_MOST_SHAPES = 2
_MOST_FAULTS = 4
_MOST_ROWS = 3
_WASTED = 1.25  # Sectors or wavefronts beside what they could be, from which on a line is told


def render_program(
    run: ProgramRun, kernels: Sequence[ExaminedKernel], width: int | None = None, *, folder: Path | None = None
) -> Iterator[Line]:
    """Kernels, and what was not done as a GPU would do it.

    Args:
        run: the program.
        kernels: its kernels.
        width: characters per line; None for as many as it takes.
        folder: paths below it are shown relative to it.
    """
    launches = sum(kernel.launches for kernel in run.kernels)
    yield text_line(
        f"{format_launches(launches)} of {format_count_of(len(run.kernels), 'kernel')} in {format_seconds(run.seconds)}, "
        f"on an emulated {run.machine}; nothing was measured",
        Style.DIM,
    )
    for why in run.refused:
        yield from hang((("not run ", Style.DIM), (f"{why}.", Style.WARNING)), width)
    left_out = _describe_left_out(run)
    if left_out:
        yield from hang((("not run ", Style.DIM), (left_out, Style.WARNING)), width)
    ordered = sorted(kernels, key=lambda one: -one.runs.warp_instructions)
    for kernel in ordered:
        yield EMPTY_LINE
        yield from _render_kernel(kernel, run.memory.sites, width, folder)
    yield from render_memory(run, width, folder)
    if run.notes:
        yield EMPTY_LINE
        for note in run.notes:
            yield from hang((("note   ", Style.DIM), (f"{note}.", Style.PLAIN)), width)


def _describe_left_out(run: ProgramRun) -> str:
    """What was not computed that the program takes for computed; empty where all was."""
    parts = [
        f"{format_launches(run.skipped)} did nothing" if run.skipped else "",
        f"{format_launches(run.cut_short)} {'was' if run.cut_short == 1 else 'were'} cut short"
        if run.cut_short
        else "",
    ]
    said = " and ".join(filter(None, parts))
    return said and f"{said}: what the program computed from their results may be wrong"


def _render_kernel(
    kernel: ExaminedKernel, sites: Sequence[AllocationSite], width: int | None, folder: Path | None
) -> Iterator[Line]:
    runs = kernel.runs
    yield text_line(
        f"{shorten_name(runs.name)}   {format_launches(runs.launches)}   {format_count(runs.warp_instructions)} warp instructions",
        Style.TITLE,
    )
    yield from _row("shape", _describe_shapes(runs), width)
    for fault in runs.faults[:_MOST_FAULTS]:
        yield from _row("fault", _describe_fault(fault, folder), width, Style.WARNING)
    if len(runs.faults) > _MOST_FAULTS:
        yield from _row("", f"and {format_count_of(len(runs.faults) - _MOST_FAULTS, 'more fault')}", width)
    if runs.skipped:
        yield from _row("left", f"{format_launches(runs.skipped)} did nothing: beyond the limit", width)
    for end in runs.unfinished:
        yield from _row("ended", end, width, Style.WARNING)
    yield from _render_lines(kernel, width, folder)
    for label, text in render_origins(runs, sites, folder):
        yield from _row(label, text, width)
    for problem in kernel.problems:
        yield from render_problem(problem, width)


def _render_lines(kernel: ExaminedKernel, width: int | None, folder: Path | None) -> Iterator[Line]:
    """What one launch of a kernel does, by line."""
    runs = kernel.runs
    prediction = kernel.prediction
    if prediction is None and runs.unrecorded:
        yield from _row("lines", f"not known: {runs.unrecorded}", width, Style.DIM)
    elif prediction is not None:
        volumes = prediction.volumes
        if volumes is not None:
            time = (
                "" if volumes.duration_ns is None else f"at least {format_duration_ns(volumes.duration_ns)} predicted"
            )
            limiter = "" if volumes.limiter is None else f"limited by {volumes.limiter.value}"
            if time or limiter:
                yield from _row("time", ", ".join(filter(None, (time, limiter))) + _tell_launch(runs), width)
        for access in _find_wasteful(prediction.accesses):
            yield from _row("memory", _describe_access(access, folder), width)
        for branch in _find_divergent(prediction.branches):
            yield from _row("diverge", _describe_branch(branch, folder), width)


def _row(label: str, text: str, width: int | None, style: Style = Style.PLAIN) -> Iterator[Line]:
    return hang(((f"  {label:<8}", Style.DIM), (text, style)), width)


def _tell_launch(runs: KernelRuns) -> str:
    """Which launch it was, where there are several."""
    if runs.recorded is None or runs.launches == 1:
        return ""
    heaviest = ", the heaviest that was kept" if runs.recorded.is_heaviest else ""
    return f" (launch {format_count(runs.recorded.number)}{heaviest})"


def _describe_shapes(runs: KernelRuns) -> str:
    parts = []
    for shape in runs.shapes[:_MOST_SHAPES]:
        shared = f", {format_bytes(shape.shared_bytes)} of shared memory" if shape.shared_bytes else ""
        times = f" ({format_launches(shape.launches)})" if len(runs.shapes) > 1 else ""
        parts.append(f"{format_dim3(shape.grid)} blocks of {format_dim3(shape.block)}{shared}{times}")
    more = len(runs.shapes) - _MOST_SHAPES
    return "; ".join(parts) + (f"; and {format_count_of(more, 'more shape')}" if more > 0 else "")


def _describe_fault(fault: Fault, folder: Path | None) -> str:
    place = ""
    if fault.chain:
        own = choose_frame(fault.chain)
        place = f"{write_place(show_path(Path(own.file), folder), own.line)}  "
    times = f" ({format_count_of(fault.count, 'time')})" if fault.count > 1 else ""
    return f"{place}{fault.kind.value}: {fault.message}{times}"


def _waste(fact: AccessLineFact) -> float:
    if fact.space is Space.SHARED:
        return fact.requests * (fact.wavefronts_per_request - fact.ideal_wavefronts_per_request)
    return fact.requests * (fact.sectors_per_request - fact.ideal_sectors_per_request)


def _find_wasteful(facts: Sequence[AccessLineFact]) -> list[AccessLineFact]:
    found = []
    for fact in facts:
        is_shared = fact.space is Space.SHARED
        cost = fact.wavefronts_per_request if is_shared else fact.sectors_per_request
        ideal = fact.ideal_wavefronts_per_request if is_shared else fact.ideal_sectors_per_request
        if not fact.is_nested and ideal and cost >= _WASTED * ideal:
            found.append(fact)
    return sorted(found, key=lambda fact: -_waste(fact))[:_MOST_ROWS]


def _describe_access(fact: AccessLineFact, folder: Path | None) -> str:
    is_shared = fact.space is Space.SHARED
    cost = fact.wavefronts_per_request if is_shared else fact.sectors_per_request
    ideal = fact.ideal_wavefronts_per_request if is_shared else fact.ideal_sectors_per_request
    unit = "wavefronts" if is_shared else "sectors"
    what = fact.write_arrays("`{}`".format) or f"{fact.space.name.lower()} memory"
    place = write_place(show_path(Path(fact.file), folder), fact.line)
    return f"{place}  {fact.kind.value} of {what}: {format_number(cost)} {unit} per request where {format_number(ideal)} would do"


def _find_divergent(facts: Sequence[BranchLineFact]) -> list[BranchLineFact]:
    found = [fact for fact in facts if fact.divergent and not fact.is_nested]
    return sorted(found, key=lambda fact: -fact.divergent)[:_MOST_ROWS]


def _describe_branch(fact: BranchLineFact, folder: Path | None) -> str:
    place = write_place(show_path(Path(fact.file), folder), fact.line)
    return f"{place}  {format_percent(fact.divergent_ratio)} of {format_count(fact.executions)} branches went both ways"
