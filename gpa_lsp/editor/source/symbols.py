"""The kernels of a source as its symbols, with their times; loops and calls with advice below them."""

from lsprotocol.types import DocumentSymbol, Range, SymbolKind

from gpa_lsp.editor.document_view import DocumentView, KernelAnchor
from gpa_lsp.editor.line_words import find_top_reason
from gpa_lsp.editor.lines.index import RemedyAnchor
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.numbers import format_percent

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
