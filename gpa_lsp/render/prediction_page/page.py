"""The pages: :func:`render_prediction_page`, :func:`render_answers_page`."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_launches
from gpa_lsp.prediction.model import KernelPrediction, SourcePrediction
from gpa_lsp.render.html_report.answer_sections import AnswerSection, build_section
from gpa_lsp.render.html_report.tables import PageTable
from gpa_lsp.render.page.embedding import embed_compressed
from gpa_lsp.render.page.frame import read_asset, render_page
from gpa_lsp.render.prediction_page.source_lines import SourceRow, build_rows, tabulate_lines
from gpa_lsp.render.prediction_text import describe_execution, describe_launch
from gpa_lsp.report.names import shorten_name

_PACKAGE = "gpa_lsp.render.prediction_page"
_REPORT = "gpa_lsp.render.html_report"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSection:
    """One launch on the page.

    Attributes:
        key: of its anchors.
        name: of the kernel, short.
        full_name: where it says more.
        launch: what was launched, a sentence.
        execution: how much was emulated, a sentence.
        problems: sentences.
        answers: in order.
        rows: the source with what each line does; empty without one.
        lines: all lines as a table; None where there are none.
        printed: what the kernel printed.
    """

    key: str
    name: str
    full_name: str
    launch: str
    execution: str
    problems: Sequence[str]
    answers: Sequence[AnswerSection]
    rows: Sequence[SourceRow]
    lines: PageTable | None
    printed: str


def render_prediction_page(prediction: SourcePrediction) -> str:
    """All kernels of a source, with the source.

    Args:
        prediction: what to show.

    Returns:
        HTML that loads nothing.
    """
    charts: dict[str, Mapping[str, Any]] = {}
    sections = [
        _build_section(f"k{number}", kernel, prediction, charts) for number, kernel in enumerate(prediction.kernels)
    ]
    for number, one in enumerate(prediction.comparisons, start=len(sections)):
        title = f"{shorten_name(one.name)}: {format_launches(one.launches)}"
        sections.append(_build_plain_section(f"k{number}", title, [one.answer], charts))
    counted = format_launches(len(prediction.kernels))
    return _render(
        title=f"Predictions for {prediction.path.name}",
        lead=f"{counted}, compiled by {prediction.statics.unit.compiler}; emulated and predicted, not measured",
        sections=sections,
        undescribed=[shorten_name(name) for name in prediction.undescribed],
        problems=[str(problem) for problem in prediction.problems],
        charts=charts,
    )


def render_answers_page(title: str, answers: Sequence[Answer], lead: str = "Predicted, not measured") -> str:
    """A few answers under one title; see :func:`render_prediction_page`."""
    charts: dict[str, Mapping[str, Any]] = {}
    section = _build_plain_section("k0", "", answers, charts)
    return _render(title=title, lead=lead, sections=[section], undescribed=(), problems=[], charts=charts)


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


def _build_plain_section(
    key: str, name: str, answers: Sequence[Answer], charts: dict[str, Mapping[str, Any]]
) -> KernelSection:
    """Answers that are of no one launch."""
    return KernelSection(
        key=key,
        name=name,
        full_name="",
        launch="",
        execution="",
        problems=(),
        answers=[build_section(answer, None, charts) for answer in answers],
        rows=(),
        lines=None,
        printed="",
    )


def _build_section(
    key: str, kernel: KernelPrediction, prediction: SourcePrediction, charts: dict[str, Mapping[str, Any]]
) -> KernelSection:
    return KernelSection(
        key=key,
        name=kernel.short_name,
        full_name="" if kernel.short_name == kernel.name else kernel.name,
        launch=describe_launch(kernel),
        execution=describe_execution(kernel.execution),
        problems=[str(problem) for problem in kernel.problems],
        answers=[build_section(answer, None, charts) for answer in kernel.answers],
        rows=build_rows(kernel, str(prediction.path), prediction.statics.text),
        lines=tabulate_lines(kernel),
        printed=kernel.execution.printed,
    )


def _render(*, title: str, charts: Mapping[str, Mapping[str, Any]], **values: Any) -> str:
    without_schema = {
        number: {key: value for key, value in spec.items() if key != "$schema"} for number, spec in charts.items()
    }
    return render_page(
        f"{_PACKAGE}/page.html.jinja",
        title=title,
        values={**values, "data": embed_compressed(without_schema)},
        styles=[read_asset(_REPORT, "report.css"), read_asset(_PACKAGE, "page.css")],
        scripts=[read_asset(_PACKAGE, "page.js")],
        draws_charts=True,
    )
