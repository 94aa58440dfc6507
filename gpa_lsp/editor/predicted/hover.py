"""What the hover of a line says of the emulation: never mixed with what was measured, always under a heading of its own."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.document.layout import draw_bar
from gpa_lsp.document.markdown_text import begin_paragraph, mark_code
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.metric_values import measure_values
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.predicted.results import PredictedFault
from gpa_lsp.editor.predicted.view import PlacedPredictions
from gpa_lsp.foundation.numbers import format_count, format_number, format_number_of, format_percent
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.kernel.names import shorten_name

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact


_COUNTED = frozenset({"GLOBAL", "GENERIC", "LOCAL"})


def compare_with_measured(
    view: DocumentView, line: int, launch: int, accesses: "Sequence[AccessLineFact]"
) -> str | None:
    """The sectors of a line, measured and emulated, in one sentence; None where no such launch was measured, or its sectors were not.

    Args:
        line: of the document, 1-based.
    """
    own = [one for one in accesses if one.space.name in _COUNTED]
    if view.predicted is None or not own:
        return None
    emulated = view.predicted.find_launch(launch)
    if emulated.grid is None or emulated.emulated_ratio <= 0:
        return None
    for hot in view.hot_lines.get(line, ()):
        report = hot.shown.kernel.report
        shape = (report.configuration.grid, report.configuration.block)
        if report.mangled_name != emulated.mangled_name or shape != (emulated.grid, emulated.block):
            continue
        values = measure_values(hot.shown.kernel, LineMetric(kind=MetricKind.SECTORS))
        if values is None or not report.launches or hot.row.file is None or hot.row.line is None:
            continue
        value = values.by_line.get((hot.row.file, hot.row.line))
        if value is None:
            continue
        measured = value.number / len(report.launches)
        counted = sum(one.sectors for one in own) / emulated.emulated_ratio
        return _say(measured, counted, is_whole=emulated.emulated_ratio >= 1)
    return None


def _say(measured: float, emulated: float, *, is_whole: bool) -> str:
    from gpa_lsp.execution.prediction.model import CountPair  # it needs numpy

    shown = f"{format_count(round(measured))} sectors measured, {format_count(round(emulated))} emulated"
    if CountPair(measured=measured, emulated=emulated).agrees:
        return f"{shown}: they agree"
    if not is_whole:
        return f"{shown}, from a part of the blocks: **they differ**"
    return f"{shown}: **they differ**; are the arguments those of the measured launch?"


_MOST_ACCESSES = 6
_MOST_LAUNCHES = 4
_MOST_CALLERS = 4
_BAR_CELLS = 16
_LEAST_SHARE = 0.005


def describe_wait(view: DocumentView, line: int) -> str:
    """Whether what an access or a branch of a line costs is waited for, in one sentence behind a space; empty where that is unknown."""
    wait = view.find_wait(line)
    return "" if wait is None else f" {wait.describe()}"


def describe_predictions(view: DocumentView, line: int) -> str | None:
    """What was emulated of a line (1-based) as Markdown; None for a line without any."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return None
    accesses, branches = predicted.accesses.get(line, ()), predicted.branches.get(line, ())
    faults = predicted.faults.get(line, ())
    launches = sorted({found.launch for facts in (accesses, branches, faults) for found in facts})
    parts = []
    for launch in launches[:_MOST_LAUNCHES]:
        parts.append(_head(predicted, launch))
        parts.extend(f"* {begin_paragraph(describe_fault(one))}" for one in faults if one.launch == launch)
        own = [one.fact for one in accesses if one.launch == launch]
        for one in own[:_MOST_ACCESSES]:
            parts.extend(_describe_access(one))
        compared = compare_with_measured(view, line, launch, own)
        parts.extend(() if compared is None else (f"* {compared}",))
        wait = describe_wait(view, line).strip() if own or any(one.launch == launch for one in branches) else ""
        parts.extend((f"* {wait}",) if wait else ())
        if len(own) > _MOST_ACCESSES:
            parts.append(f"* and {len(own) - _MOST_ACCESSES} more accesses")
        own_branches = (one.fact for one in branches if one.launch == launch)
        parts.extend(f"* {describe_branch(one)}" for one in own_branches if not one.is_nested)
        parts.append("")
    if len(launches) > _MOST_LAUNCHES:
        parts.append(f"and {len(launches) - _MOST_LAUNCHES} more launches")
    return "\n".join(parts).rstrip() or None


def summarise_predictions(view: DocumentView, line: int) -> str:
    """What was emulated of a line (1-based) in one row: a fault, else its costliest access, else its branches; empty for a line without any."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return ""
    faults, branches = predicted.faults.get(line, ()), predicted.branches.get(line, ())
    accesses = sorted((one.fact for one in predicted.accesses.get(line, ())), key=lambda one: -one.excess_ratio)
    said = [describe_fault(one) for one in faults]
    said += [f"{name_access(one)}: **{count_cost(one)}**, {format_number(one.ideal)} at best" for one in accesses]
    said += [describe_branch(one.fact) for one in branches]
    if not said:
        return ""
    return f"**emulated** {begin_paragraph(said[0])}{f'; {len(said) - 1} more' if len(said) > 1 else ''}"


def _head(predicted: PlacedPredictions, launch: int) -> str:
    found = predicted.find_launch(launch)
    return f"**Emulated** · {mark_code(shorten_name(found.name))}, {make_one_line(found.what)}\n"


def _describe_access(access: "AccessLineFact") -> Iterator[str]:
    from gpa_lsp.execution.traces.words import (
        summarise_reuse,  # brings numpy, which the answer to initialize must not wait for
    )

    pattern = f", {access.pattern_words}" if access.pattern_words else ""
    reuse = () if access.reuse is None else tuple(summarise_reuse(access.reuse))
    yield f"* {name_access(access)}: **{count_cost(access)}**, {format_number(access.ideal)} at best{_count_lines(access)}{pattern};"
    hits = ((access.l1_hit_ratio, "L1"), (access.l2_hit_ratio, "L2"))
    known = [f"{format_percent(ratio)} in {where}" for ratio, where in hits if ratio is not None]
    details = [f"predicted hits {', '.join(known)}"] if known else []
    if access.repeated_ratio >= _LEAST_SHARE:
        details.append(f"{format_percent(access.repeated_ratio)} repeat an earlier one")
    details.append(f"{format_count(access.requests)} requests of {format_number(access.lanes_per_request)} lanes")
    if len(reuse) == 1:
        details.append(f"reuse: all {reuse[0][0]}")
    if access.callers:
        details.append(f"called from {_list_callers(access.callers[:_MOST_CALLERS])}")
    yield f"  {'; '.join(details)}"
    if len(reuse) > 1:
        yield from _draw_reuse(reuse)


def _list_callers(callers: tuple[tuple[str, float], ...]) -> str:
    if len(callers) == 1:
        return mark_code(callers[0][0])
    words = [f"{mark_code(path)} ({format_percent(ratio)})" for path, ratio in callers]
    others = 1 - sum(ratio for _, ratio in callers)
    return ", ".join([*words, *([f"others ({format_percent(others)})"] if others >= _LEAST_SHARE else [])])


def _draw_reuse(reuse: tuple[tuple[str, float], ...]) -> Iterator[str]:
    """Reuse distances in lines of 128 bytes, within a block."""
    width = max(len(words) for words, _ in reuse)
    yield ""
    yield "```text"
    for words, ratio in reuse:
        yield f"{words.ljust(width)}  {draw_bar(ratio, _BAR_CELLS).ljust(_BAR_CELLS)} {format_percent(ratio)}"
    yield "```"


def quote_code(text: str) -> str:
    """Markdown for where it is shown as it is.

    >>> quote_code("loads of `in`")
    'loads of “in”'
    """
    return re.sub(r"`([^`]*)`", r"“\1”", text)


def name_access(access: "AccessLineFact") -> str:
    """``loads of `in```, ``stores of shared memory``."""
    where = access.write_arrays(mark_code) or f"{access.space.name.lower()} memory"
    return f"{access.kind.value} of {where}{' in a function called here' if access.is_nested else ''}"


def count_cost(access: "AccessLineFact") -> str:
    """``8.0 sectors per request``."""
    return f"{format_number_of(access.cost, 'wavefront' if access.is_shared else 'sector')} per request"


def _count_lines(access: "AccessLineFact") -> str:
    return "" if access.is_shared else f", {format_number_of(access.lines_per_request, 'line')}"


def describe_branch(branch: "BranchLineFact") -> str:
    """How often its branches diverge."""
    return (
        f"branches: **{format_percent(branch.divergent_ratio)} diverge**, of {format_count(branch.executions)} executions with "
        f"{format_number(branch.lanes_per_execution)} lanes"
    )


def describe_fault(fault: PredictedFault) -> str:
    """What went wrong, where, and what to do."""
    where = "" if fault.place is None else f" (in {_name_file(fault.place[0])}:{fault.place[1]})"
    return f"{fault.kind[0].upper()}{fault.kind[1:]}{where}: {fault.message} {fault.remedy}".rstrip()


def _name_file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
