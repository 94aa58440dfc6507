"""Predictions as a page that opens from disk."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.document.answer_view import build_answer
from gpa_lsp.document.blocks import Part, Table
from gpa_lsp.document.page import read_asset, render_page
from gpa_lsp.document.page.writer import PageWriter
from gpa_lsp.document.prediction_text import build_access_table, describe_execution, describe_launch
from gpa_lsp.execution.prediction.model import KernelPrediction, SourcePrediction
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.foundation.numbers import format_launches, format_number, format_percent
from gpa_lsp.foundation.ownership import find_frame_in
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.line_map import split_lines

_MOST_LINES = 20_000
_MUCH = 0.5  # Of sectors or wavefronts beyond the fewest: such a line is marked


class SourceRow(Struct, frozen=True, kw_only=True):
    """A line of the source."""

    number: int  # 1-based
    text: str  # without its end
    words: str  # what it does; empty for lines that do nothing to memory and do not branch
    tone: str  # ``hot`` where most of what it moves is in excess, or it faults; empty otherwise


def build_rows(kernel: KernelPrediction, file: str, text: str) -> Sequence[SourceRow]:
    """The source of a kernel, line by line; none where nothing of it is known."""
    accesses: dict[int, list[AccessLineFact]] = {}
    for fact in kernel.accesses:
        if fact.file == file:
            accesses.setdefault(fact.line, []).append(fact)
    branches = {fact.line: fact for fact in kernel.branches if fact.file == file and not fact.is_nested}
    named = [(find_frame_in(fault.chain, file.__eq__), fault) for fault in kernel.faults]
    faults = {frame.line: fault for frame, fault in named if frame is not None}
    if not accesses and not branches and not faults:
        return ()
    rows = []
    for number, line in enumerate(split_lines(text)[:_MOST_LINES], start=1):
        facts = accesses.get(number, [])
        parts = [describe_access(fact) for fact in facts]
        if number in branches:
            parts.append(describe_branch(branches[number]))
        if number in faults:
            parts.insert(0, f"{faults[number].kind.value}: {faults[number].message}")
        is_hot = number in faults or any(fact.excess_ratio >= _MUCH for fact in facts)
        rows.append(
            SourceRow(
                number=number,
                text=line,
                words="; ".join(part for part in parts if part),
                tone="hot" if is_hot else "",
            )
        )
    return rows


def describe_access(fact: AccessLineFact) -> str:
    """A line's accesses of one kind in a few words."""
    where = f" of {fact.write_arrays() or f'{fact.space.name.lower()} memory'}"
    through = " (called here)" if fact.is_nested else ""
    if fact.space is Space.SHARED:
        return f"{fact.kind.value}{where}{through}: {format_number(fact.wavefronts_per_request)} wavefronts/req"
    ideal = format_number(fact.ideal_sectors_per_request)
    return f"{fact.kind.value}{where}{through}: {format_number(fact.sectors_per_request)} sectors/req (ideal {ideal})"


def describe_branch(fact: BranchLineFact) -> str:
    """A line's branches in a few words; empty where none diverges."""
    return f"{format_percent(fact.divergent_ratio)} of branches diverge" if fact.divergent else ""


_PACKAGE = "gpa_lsp.document.prediction_page"
_REPORT = "gpa_lsp.document.html_report"


class KernelSection(Struct, frozen=True, kw_only=True):
    """One launch on the page."""

    key: str  # of its anchors
    name: str  # of the kernel, short
    full_name: str  # where it says more
    launch: str  # what was launched, a sentence
    execution: str  # how much was emulated, a sentence
    problems: Sequence[str]  # sentences
    answers: Sequence[Part]  # in order
    rows: Sequence[SourceRow]  # the source with what each line does; empty without one
    lines: Sequence[Table]  # all lines as a table; empty where there are none
    printed: str  # what the kernel printed


def render_prediction_page(prediction: SourcePrediction) -> str:
    """All kernels of a source, with the source.

    Args:
        prediction: what to show.

    Returns:
        HTML that loads nothing.
    """
    sections = [_build_section(f"k{number}", kernel, prediction) for number, kernel in enumerate(prediction.kernels)]
    for number, one in enumerate(prediction.comparisons, start=len(sections)):
        title = f"{shorten_name(one.name)}: {format_launches(one.launches)}"
        sections.append(_build_plain_section(f"k{number}", title, [one.answer]))
    counted = format_launches(len(prediction.kernels))
    return _render(
        title=f"Predictions for {prediction.path.name}",
        lead=f"{counted}, compiled by {prediction.statics.unit.compiler}; emulated and predicted, not measured",
        sections=sections,
        undescribed=[shorten_name(name) for name in prediction.undescribed],
        problems=[str(problem) for problem in prediction.problems],
    )


def render_answers_page(title: str, answers: Sequence[Answer], lead: str = "Predicted, not measured") -> str:
    """A few answers under one title; see :func:`render_prediction_page`."""
    section = _build_plain_section("k0", "", answers)
    return _render(title=title, lead=lead, sections=[section], undescribed=(), problems=[])


def render_comparison_page(name: str, answers: Sequence[Answer]) -> str:
    """Kernels as they were measured beside the same as they were simulated.

    Args:
        name: of the report.
        answers: one for each kernel, see :func:`~gpa_lsp.report.measured_simulation.answer_comparison`.
    """
    lead = (
        "What the profiler sampled beside what the model says of the same code, as shares of the samples of either side"
    )
    return render_answers_page(f"{name}: measured and simulated", answers, lead=lead)


def _build_plain_section(key: str, name: str, answers: Sequence[Answer]) -> KernelSection:
    """Answers that are of no one launch."""
    return KernelSection(
        key=key,
        name=name,
        full_name="",
        launch="",
        execution="",
        problems=(),
        answers=list(map(build_answer, answers)),
        rows=(),
        lines=(),
        printed="",
    )


def _build_section(key: str, kernel: KernelPrediction, prediction: SourcePrediction) -> KernelSection:
    table = build_access_table(kernel.accesses)
    return KernelSection(
        key=key,
        name=kernel.short_name,
        full_name="" if kernel.short_name == kernel.name else kernel.name,
        launch=describe_launch(kernel),
        execution=describe_execution(kernel.execution),
        problems=[str(problem) for problem in kernel.problems],
        answers=list(map(build_answer, kernel.answers)),
        rows=build_rows(kernel, str(prediction.path), prediction.statics.text),
        lines=[table] if table.rows else [],
        printed=kernel.execution.printed,
    )


def _render(*, title: str, **values: Any) -> str:
    return render_page(
        f"{_PACKAGE}/page.html.jinja",
        title=title,
        values={**values, "page": PageWriter(opens_tables=not any(one.name for one in values["sections"]))},
        styles=[read_asset(_REPORT, "report.css"), read_asset(_PACKAGE, "page.css")],
        scripts=[read_asset(_PACKAGE, "page.js")],
        draws_charts=True,
    )
