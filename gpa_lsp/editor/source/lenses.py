"""The kernels of a source as lenses, a complete one above each definition and one per loop and call that carries advice, and as symbols.

Complete, because Neovim 0.12 asks twice and loses lenses whose resolving is under way; at column 0, because editors indent a lens by its
start; with a command of the server's own, because a lens without one cannot be clicked and a command of the client's exists in one editor only.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from lsprotocol.types import CodeLens, Command, DocumentSymbol, Range, SymbolKind

from gpa_lsp.editor.document_view import DocumentView, KernelAnchor
from gpa_lsp.editor.kernel_page import MOST_LENS_CHARS, describe_kernel_briefly, label_shown
from gpa_lsp.editor.line_words import find_top_reason, label_remedy
from gpa_lsp.editor.lines.index import RemedyAnchor
from gpa_lsp.editor.lines.metric_values import label_kernel, label_scope
from gpa_lsp.editor.metrics import LineMetric
from gpa_lsp.editor.predicted.view import PredictedAnchor
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.source.hints import thin_out
from gpa_lsp.editor.static.view import StaticAnchor
from gpa_lsp.editor.timed.view import TimedAnchor
from gpa_lsp.foundation.numbers import format_count_of, format_percent
from gpa_lsp.foundation.visible_text import shorten

_EDITED = "before your edits"

_MOST_ON_SCREEN = 4  # Lenses of loops and calls: each pushes the code down by a line

# A template has a kernel per instantiation; more lenses than this would hide the code. The way to the SASS of the first one has to fit in too.
_MAX_PER_LINE = 4


def list_lenses(view: DocumentView) -> list[CodeLens]:
    """The lenses of the document's kernels, and of their loops and calls with advice."""
    lenses: list[CodeLens] = []
    for line, timed in groupby(
        view.timed, key=lambda anchor: anchor.line
    ):  # the news first: Neovim cuts a line of lenses at its window
        lenses.extend(_place(view, line, (_show_time(view.uri, one) for one in islice(timed, _MAX_PER_LINE))))
    kernels = [(line, tuple(anchors)) for line, anchors in groupby(view.anchors, key=lambda anchor: anchor.line)]
    ends = [*(line for line, _ in kernels[1:]), len(view.positions.lines) + 1]
    for (line, anchors), end in zip(kernels, ends, strict=False):  # without kernels there is an end all the same
        stale = bisect_left(view.stale, end) - bisect_left(view.stale, line)
        lenses.extend(_place(view, line, _list_commands(view, anchors, stale)))
    for line, remedies in _choose_remedies(view):
        lenses.extend(_place(view, line, _list_remedies(remedies, view.settings.metric)))
    for line, group in groupby(() if view.statics is None else view.statics.anchors, key=lambda anchor: anchor.line):
        lenses.extend(_place(view, line, (_show_statics(view.uri, one) for one in islice(group, _MAX_PER_LINE))))
    timed_lines = {anchor.line for anchor in view.timed if not anchor.is_edited}
    launches = () if view.predicted is None else view.predicted.anchors
    launches = tuple(anchor for anchor in launches if anchor.line not in timed_lines)  # who has measured needs no bound
    for line, placed in groupby(launches, key=lambda anchor: anchor.line):
        lenses.extend(_place(view, line, (_show_launch(view.uri, one) for one in islice(placed, _MAX_PER_LINE))))
    if view.unsimulated and view.predicted is not None:
        kernels_of = {anchor.line: anchor.launch.mangled_name for anchor in reversed(view.predicted.anchors)}
        for line, kernel in sorted(kernels_of.items()):
            command = Command(title=view.unsimulated, command="gpaLsp.simulate", arguments=(view.uri, kernel))
            lenses.extend(_place(view, line, (command,)))
    return lenses


def _place(view: DocumentView, line: int, commands: Iterable[Command]) -> Iterator[CodeLens]:
    start = view.positions.find_start(line)
    span = Range(start=start, end=start)
    return (CodeLens(range=span, command=_fit(command)) for command in commands)


def _fit(command: Command) -> Command:
    command.title = shorten(command.title, MOST_LENS_CHARS)
    return command


def _join_title(title: str, *trust: str, is_edited: bool) -> str:
    """A title in a lens's room; never without what limits how far it can be trusted."""
    return shorten(title, MOST_LENS_CHARS, " · ".join([*filter(None, trust), *([_EDITED] if is_edited else [])]))


def _show_statics(uri: str, anchor: StaticAnchor) -> Command:
    """Lens with the resources of a kernel that no profile measured."""
    title = _join_title(anchor.kernel.words, "static", is_edited=anchor.is_edited)
    return Command(title=title, command="gpaLsp.showStatics", arguments=(uri, anchor.kernel.mangled_name))


def _show_launch(uri: str, anchor: PredictedAnchor) -> Command:
    """Lens with the prediction for a launch; it opens the page there."""
    title = _join_title(anchor.launch.words, anchor.launch.limits, is_edited=anchor.is_edited)
    return Command(title=title, command="gpaLsp.showPrediction", arguments=(uri, anchor.index))


def _show_time(uri: str, anchor: TimedAnchor) -> Command:
    """Lens with the time of a launch; it shows all times."""
    title = _join_title(anchor.words, is_edited=anchor.is_edited)
    return Command(title=title, command="gpaLsp.showTimes", arguments=(uri,))


def _choose_remedies(view: DocumentView) -> Iterator[tuple[int, Sequence[RemedyAnchor]]]:
    """The loops and calls with lenses, as many as a screen bears, those that gain most; the others are on the kernel's page."""
    by_line = {line: tuple(group) for line, group in groupby(view.remedies, key=lambda anchor: anchor.line)}
    gains = {line: max(anchor.region.speedup.estimate for anchor in anchors) for line, anchors in by_line.items()}
    for line in thin_out(gains, (), _MOST_ON_SCREEN if view.settings.most_hints_on_screen else 0):
        yield line, by_line[line]


def _list_remedies(anchors: Sequence[RemedyAnchor], metric: LineMetric) -> Iterator[Command]:
    """One remedy per line, the one that gains most, behind what the loop or call is in the metric that somebody chose; the kernel's page has the
    others.
    """
    best = max(anchors, key=lambda anchor: anchor.region.speedup.estimate)
    value = label_scope(best.shown.kernel, metric, best.region.scope)
    simulated = "simulated" if best.shown.kernel.report.is_simulated else ""
    title = _join_title(label_remedy(best, value), simulated, is_edited=best.is_edited)
    arguments = (best.shown.kernel.report.mangled_name,)
    yield Command(title=title, command="gpaLsp.showKernel", arguments=arguments)


def _remark(anchor: KernelAnchor, stale: int) -> str:
    """Remark on the text since: that some of what was measured is gone, or that something else was edited."""
    if anchor.is_withheld:
        return " · not this text was measured"
    doubt = " · source unverified" if anchor.is_unverified else ""
    if anchor.is_edited and stale:
        return f"{doubt} · {format_count_of(stale, 'line')} edited since"
    return f"{doubt} · {_EDITED}" if anchor.is_edited else doubt


def _say_unemulated(view: DocumentView, mangled_name: str) -> str:
    """A kernel that has no lens of a launch lacks what is emulated."""
    metric = view.settings.metric
    launches = () if view.predicted is None else view.predicted.anchors
    is_emulated = any(anchor.launch.mangled_name == mangled_name for anchor in launches)
    from gpa_lsp.execution.launches.read_launches import word_undescribed  # brings numpy

    return f"{metric.title}: {word_undescribed().lower()}" if metric.is_from_emulation and not is_emulated else ""


def _list_commands(view: DocumentView, anchors: Sequence[KernelAnchor], stale: int) -> Iterator[Command]:
    """The lenses of the kernels on one line."""
    shown = anchors if len(anchors) <= _MAX_PER_LINE else anchors[: _MAX_PER_LINE - 1]
    for anchor in shown:
        kernel = anchor.shown.kernel
        remark = _remark(anchor, stale)
        chosen = label_kernel(anchor.shown, view.settings.metric) or _say_unemulated(view, kernel.report.mangled_name)
        title = describe_kernel_briefly(anchor.shown, MOST_LENS_CHARS - len(remark), chosen) + remark
        yield Command(title=title, command="gpaLsp.showKernel", arguments=(kernel.report.mangled_name,))
    if len(shown) < len(anchors):
        rest = len(anchors) - len(shown)
        yield Command(title=f"and {rest} more kernels", command="gpaLsp.showReport")
    elif len(shown) < _MAX_PER_LINE:
        first = anchors[0].shown.kernel.report.mangled_name
        yield Command(title="SASS", command="gpaLsp.openSass", arguments=(first,))
    choosable = label_shown(anchors[0].shown) if len(anchors) == 1 else ""
    if choosable:
        mangled_name = anchors[0].shown.kernel.report.mangled_name
        yield Command(title=choosable, command="gpaLsp.chooseMeasurement", arguments=(mangled_name,))


_MOST_PER_LINE = 20  # A template has a kernel per instantiation; the longest are listed


def list_symbols(view: DocumentView) -> list[DocumentSymbol]:
    """The kernels whose body is in the document, by line, then longest first."""
    counts: dict[int, int] = {}
    symbols: list[DocumentSymbol] = []
    for anchor in view.anchors:
        counts[anchor.line] = counts.get(anchor.line, 0) + 1
        if counts[anchor.line] <= _MOST_PER_LINE:
            symbols.append(_make_symbol(view, anchor))
    return symbols


def describe_time(shown: VisibleKernel) -> str:
    """``6.19 ms · 63 % long_scoreboard``: what fits beside a name; empty for a kernel that was never measured."""
    from gpa_lsp.document import sampling_words  # it needs numpy, which the answer to initialize must not wait for

    report = shown.kernel.report
    parts = [] if report.duration_ns is None else [sampling_words.describe_time(report, report.duration_ns)]
    reason = find_top_reason(report.by_reason)
    if reason is not None:
        parts.append(f"{format_percent(report.by_reason[reason].all_samples / report.total_samples)} {reason}")
    return " · ".join(parts)


def _make_symbol(view: DocumentView, anchor: KernelAnchor) -> DocumentSymbol:
    """Symbol from a kernel's definition to the last line of its body that is still there; its children must lie inside it."""
    children = _list_children(view, anchor)
    last = max(
        [_find_last_line(view, anchor.shown) or 0, anchor.line, *(child.range.end.line + 1 for child in children)]
    )
    return DocumentSymbol(
        name=anchor.shown.name,
        detail=describe_time(anchor.shown),
        kind=SymbolKind.Function,
        range=Range(start=view.positions.find_start(anchor.line), end=view.positions.find_end(last)),
        selection_range=view.positions.find_text(anchor.line),
        children=tuple(children),
    )


def _find_last_line(view: DocumentView, shown: VisibleKernel) -> int | None:
    """The last line of a kernel's body now; None when all of it was edited away."""
    if shown.kernel.body is None:
        return None
    file = shown.profile.files.get(shown.kernel.body[0])
    if file is None:
        return None
    lines = (view.finder.find(file, line) for line in reversed(shown.kernel.body[1]))
    return next((line for line in lines if line is not None), None)


def _list_children(view: DocumentView, anchor: KernelAnchor) -> list[DocumentSymbol]:
    """Loops and calls of the kernel below its definition, the best advice of each."""
    best: dict[int, RemedyAnchor] = {}
    for remedy in view.remedies:
        if remedy.shown is anchor.shown and remedy.line >= anchor.line:
            best.setdefault(remedy.line, remedy)
    return [_make_child(view, remedy) for remedy in best.values()]


def _make_child(view: DocumentView, remedy: RemedyAnchor) -> DocumentSymbol:
    from gpa_lsp.document.advice_words import (
        show_gain_range,  # needs numpy, which the answer to initialize must not wait for
    )

    scope = remedy.region.scope
    file = None if scope.file is None else remedy.shown.profile.files.get(scope.file)
    last = view.finder.find(file, scope.last_line) if file is not None and scope.last_line else None
    return DocumentSymbol(
        name=f"{scope.kind.value} in line {remedy.line}",
        detail=f"{remedy.advice.title}: {show_gain_range(remedy.region.speedup)}",
        kind=SymbolKind.Event,
        range=Range(
            start=view.positions.find_start(remedy.line), end=view.positions.find_end(max(last or 0, remedy.line))
        ),
        selection_range=view.positions.find_text(remedy.line),
    )
