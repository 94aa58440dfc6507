"""A comparison of two reports, as text and as rows of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpa_lsp.basis.numbers import UNKNOWN, format_percent, format_speedup
from gpa_lsp.render.changes_text import (
    LEAST_CHANGE_RATIO,
    VERDICT_WORDS,
    describe_range,
    describe_time,
    make_part,
    make_time,
    render_parts,
)
from gpa_lsp.render.findings import name_kernels
from gpa_lsp.render.layout import EMPTY_LINE, Align, Column, Line, Span, Style, hang, lay_out_table, text_line
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.changes import PartChange, Verdict
from gpa_lsp.report.comparison import (
    AdviceFate,
    AdviceOutcome,
    Comparison,
    KernelComparison,
)
from gpa_lsp.report.model import KernelReport

_FATES: Mapping[AdviceFate, str] = {
    AdviceFate.TAKEN: "taken",
    AdviceFate.PARTLY_TAKEN: "partly taken",
    AdviceFate.OPEN: "still open",
}


def render_comparison(comparison: Comparison, places: PlaceNames, width: int | None = None) -> Iterator[Line]:
    """Kernel by kernel what changed, then the kernels that are in one report only.

    Args:
        comparison: what to show.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
    """
    everyone = [kernel for found in comparison.kernels for kernel in (found.before, found.after)]
    names = name_kernels([*everyone, *comparison.only_before, *comparison.only_after])
    for position, found in enumerate(comparison.kernels):
        if position:
            yield EMPTY_LINE
        yield from _render_kernel(found, names[found.before.name], places, width)
    for title, kernels in (("only before", comparison.only_before), ("only after", comparison.only_after)):
        for kernel in kernels:
            yield from hang(((f"{title}: ", Style.DIM), (names[kernel.name], Style.TITLE)), width)
    if not comparison.kernels:
        yield text_line("no kernel is in both reports", Style.DIM)


def _render_kernel(found: KernelComparison, name: str, places: PlaceNames, width: int | None) -> Iterator[Line]:
    words, style = VERDICT_WORDS[found.verdict]
    yield from hang(
        ((name, Style.TITLE), (f"  {describe_time(found.time)}", Style.PLAIN), (f"  {words}", style)), width
    )
    if found.time is not None and found.verdict not in (Verdict.SAME_CODE,):
        yield from hang(((f"  {describe_range(found.time)}", Style.DIM),), width)
    if found.instructions_ratio is not None and abs(found.instructions_ratio - 1) >= LEAST_CHANGE_RATIO:
        yield from hang(
            ((f"  executes {format_speedup(found.instructions_ratio)} the instructions", Style.PLAIN),), width
        )
    if found.verdict in (Verdict.SAME_CODE, Verdict.UNKNOWN):
        return
    yield from _render_outcomes(found.outcomes, width)
    yield from render_parts("by stall reason", found.reasons, lambda change: change.name, width)
    yield from render_parts("by line", found.lines, lambda change: _name_line(found, change, places), width)
    for advice in found.new_advice:
        text = f"  new advice: {advice.title}, {format_speedup(advice.speedup.estimate)}"
        yield from hang(((text, Style.PLAIN),), width)


def _render_outcomes(outcomes: Sequence[AdviceOutcome], width: int | None) -> Iterator[Line]:
    if not outcomes:
        return
    yield text_line("  advice given before", Style.HEADING)
    columns = (
        Column(title="advice", can_shrink=True, min_chars=12),
        Column(title=""),
        Column(title="estimated", align=Align.RIGHT),
        Column(title="achieved", align=Align.RIGHT),
        Column(title="its stalls before", align=Align.RIGHT),
        Column(title="now", align=Align.RIGHT),
    )
    rows: list[tuple[Span, ...]] = [
        (
            (outcome.advice.title, Style.PLAIN),
            (_FATES[outcome.fate], Style.DIM if outcome.fate is AdviceFate.OPEN else Style.TITLE),
            (format_speedup(outcome.estimate), Style.PLAIN),
            (UNKNOWN if outcome.achieved is None else format_speedup(outcome.achieved), Style.PLAIN),
            (format_percent(outcome.before_ratio), Style.PLAIN),
            (format_percent(outcome.after_ratio), Style.PLAIN),
        )
        for outcome in outcomes
    ]
    yield from lay_out_table(columns, rows, width=width, indent=4)
    yield from hang((("    (stalls as shares of the old time; achieved by all changes together)", Style.DIM),), width)


def _name_line(found: KernelComparison, change: PartChange, places: PlaceNames) -> str:
    kernel: KernelReport = found.after if change.after_line is not None else found.before
    line = change.after_line if change.after_line is not None else change.before_line
    shown = places.show_line(kernel, change.name, line or 0)
    if change.after_line is None:
        return f"{shown} (gone)"
    if change.before_line is None:
        return f"{shown} (new)"
    return shown if change.before_line == change.after_line else f"{shown} (was {change.before_line})"


def make_comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON: ``gpa-lsp/comparison/1``."""
    return {
        "schema": "gpa-lsp/comparison/1",
        "kernels": [_make_kernel(found) for found in comparison.kernels],
        "only_before": [kernel.mangled_name for kernel in comparison.only_before],
        "only_after": [kernel.mangled_name for kernel in comparison.only_after],
    }


def _make_kernel(found: KernelComparison) -> dict[str, Any]:
    return {
        "before": found.before.mangled_name,
        "after": found.after.mangled_name,
        "verdict": found.verdict.value,
        "time": make_time(found.time),
        "instructions_ratio": found.instructions_ratio,
        "reasons": [make_part(change, "reason") for change in found.reasons],
        "lines": [make_part(change, "file") for change in found.lines],
        "advice": [
            {
                "optimizer": outcome.advice.optimizer,
                "fate": outcome.fate.value,
                "estimate": outcome.estimate,
                "achieved": outcome.achieved,
                "before_ratio": outcome.before_ratio,
                "after_ratio": outcome.after_ratio,
            }
            for outcome in found.outcomes
        ],
        "new_advice": [advice.optimizer for advice in found.new_advice],
    }
