"""Words about the emulation of a line in its hover: never mixed with measurements, always under a heading of their own."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.document.blocks import Block, Gauge, Item, Items, Paragraph, make_line, tabulate
from gpa_lsp.document.layout import Line, Style, left, right
from gpa_lsp.document.markdown import mark_code
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.kernel_page import head
from gpa_lsp.editor.lines.metric_values import measure_values
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.predicted.results import PredictedFault
from gpa_lsp.foundation.numbers import format_count, format_number, format_number_of, format_percent
from gpa_lsp.kernel.names import shorten_name

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact


_COUNTED = frozenset({"GLOBAL", "GENERIC", "LOCAL"})


def compare_with_measured(view: DocumentView, line: int, launch: int, accesses: "Sequence[AccessLineFact]") -> Line:
    """The sectors of a line, measured and emulated, in one sentence; empty where no such launch was measured, or its sectors were not.

    Args:
        line: of the document, 1-based.
    """
    own = [one for one in accesses if one.space.name in _COUNTED]
    if view.predicted is None or not own:
        return ()
    emulated = view.predicted.find_launch(launch)
    if emulated.grid is None or emulated.emulated_ratio <= 0:
        return ()
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
    return ()


def _say(measured: float, emulated: float, *, is_whole: bool) -> Line:
    from gpa_lsp.execution.prediction.model import CountPair  # it needs numpy

    shown = f"{format_count(round(measured))} sectors measured, {format_count(round(emulated))} emulated"
    if CountPair(measured=measured, emulated=emulated).agrees:
        return make_line(f"{shown}: they agree")
    rest = "; are the arguments those of the measured launch?" if is_whole else ""
    part = "" if is_whole else ", from a part of the blocks"
    return (f"{shown}{part}: ", Style.PLAIN), ("they differ", Style.WARNING), (rest, Style.PLAIN)


_MOST_ACCESSES = 6
_MOST_LAUNCHES = 4
_MOST_CALLERS = 4
_BAR_CELLS = 16
_LEAST_SHARE = 0.005


def describe_wait(view: DocumentView, line: int) -> str:
    """Whether what an access or a branch of a line costs is waited for, in one sentence behind a space; empty where that is unknown."""
    wait = view.find_wait(line)
    return "" if wait is None else f" {wait.describe()}"


def build_predictions(view: DocumentView, line: int) -> Iterator[Block]:
    """Build what was emulated on a line (1-based), launch by launch."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return
    accesses, branches = predicted.accesses.get(line, ()), predicted.branches.get(line, ())
    faults = predicted.faults.get(line, ())
    launches = sorted({found.launch for facts in (accesses, branches, faults) for found in facts})
    for launch in launches[:_MOST_LAUNCHES]:
        found = predicted.find_launch(launch)
        name = (shorten_name(found.name), Style.CODE)
        yield Paragraph(text=(("Emulated", Style.TITLE), (" · ", Style.PLAIN), name, (f", {found.what}", Style.PLAIN)))
        own = [one.fact for one in accesses if one.launch == launch]
        ways = [one.fact for one in branches if one.launch == launch]
        yield Items(items=[Item(text=describe_fault(one)) for one in faults if one.launch == launch])
        for access in own[:_MOST_ACCESSES]:
            yield from _build_access(access)
        more = len(own) - _MOST_ACCESSES
        said: list[str | Line] = [
            compare_with_measured(view, line, launch, own),
            describe_wait(view, line).strip() if own or ways else "",
            f"and {more} more accesses" if more > 0 else "",
            *(_describe_branch(one) for one in ways if not one.is_nested),
        ]
        yield Items(items=[Item(text=one) for one in said if one])
    if len(launches) > _MOST_LAUNCHES:
        yield Paragraph(text=f"and {len(launches) - _MOST_LAUNCHES} more launches")


def summarise_predictions(view: DocumentView, line: int) -> Line:
    """Summarise the emulation of a line (1-based) in one row: a fault, else its costliest access, else its branches; empty without any."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return ()
    accesses = sorted((one.fact for one in predicted.accesses.get(line, ())), key=lambda one: -one.excess_ratio)
    said = [describe_fault(one) for one in predicted.faults.get(line, ())]
    said += [one.words for one in accesses]
    said += [_describe_branch(one.fact) for one in predicted.branches.get(line, ())]
    return head("emulated", f"{said[0]}; {len(said) - 1} more" if len(said) > 1 else "".join(said))


def _describe_branch(branch: "BranchLineFact") -> str:
    return f"{branch.words}, with {format_number(branch.lanes_per_execution)} lanes"


def _build_access(access: "AccessLineFact") -> Iterator[Block]:
    from gpa_lsp.execution.traces.words import (
        summarise_reuse,  # brings numpy, which the answer to initialize must not wait for
    )

    pattern = f", {access.pattern_words}" if access.pattern_words else ""
    reuse = () if access.reuse is None else tuple(summarise_reuse(access.reuse))
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
    lines = "" if access.is_shared else f", {format_number_of(access.lines_per_request, 'line')}"
    below = [Paragraph(text="; ".join(details))]
    yield Items(items=[Item(text=f"{access.words}{lines}{pattern}", below=below)])
    if len(reuse) > 1:  # distances in lines of 128 bytes, within a block
        bars = (left(""), lambda one: (Gauge(one[1], _BAR_CELLS), Style.PLAIN))
        ratios = (right(""), lambda one: format_percent(one[1]))
        yield tabulate(reuse, [(left(""), lambda one: one[0]), bars, ratios])


def _list_callers(callers: tuple[tuple[str, float], ...]) -> str:
    if len(callers) == 1:
        return mark_code(callers[0][0])
    words = [f"{mark_code(path)} ({format_percent(ratio)})" for path, ratio in callers]
    others = 1 - sum(ratio for _, ratio in callers)
    return ", ".join([*words, *([f"others ({format_percent(others)})"] if others >= _LEAST_SHARE else [])])


def describe_fault(fault: PredictedFault) -> str:
    """Describe a fault, its place and its remedy."""
    where = "" if fault.place is None else f" (in {name_file(fault.place[0])}:{fault.place[1]})"
    return f"{fault.kind[0].upper()}{fault.kind[1:]}{where}: {fault.message} {fault.remedy}".rstrip()
