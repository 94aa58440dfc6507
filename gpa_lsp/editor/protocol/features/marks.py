"""Marks on lines: heat, hints, lenses, diagnostics and the hover."""

import math
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.marks import list_marks
from gpa_lsp.editor.lines.positions import read_line, read_lines
from gpa_lsp.editor.model import Freshness, Mark, Origin
from gpa_lsp.editor.protocol.features import Method, PushFeature, RequestFeature
from gpa_lsp.editor.sass import hints as sass_hints
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hints import list_hints
from gpa_lsp.editor.source.hover import describe_hover
from gpa_lsp.editor.source.lenses import list_lenses

LEVELS = 10

_MOST_MARKS = 4096  # Of one document, the hottest ones: a message of more than a megabyte holds up what comes behind it


def list_heat(view: DocumentView) -> tuple[Mark, ...]:
    """The marks of a document, ascending, then its stale lines."""
    marks = list_marks(view, view.settings.least_share_ratio)
    if len(marks) > _MOST_MARKS:
        hottest = sorted(marks, key=lambda one: -one.share_ratio)[:_MOST_MARKS]
        marks = tuple(sorted(hottest, key=lambda one: one.line))
    return (*marks, *(Mark(line=line, freshness=Freshness.STALE) for line in view.stale))


def list_sass_heat(view: SassView) -> tuple[Mark, ...]:
    """The marks of a SASS document, ascending; the text the client holds was not edited."""
    from gpa_lsp.editor.sass.hot_rows import mark_rows

    rows = mark_rows(view.document, view.settings.least_share_ratio, view.settings.metric)
    return tuple(sorted((mark for _, mark in rows), key=lambda mark: mark.line))


def scale_ratio(share_ratio: float) -> float:
    """A share on the scale people see: its square root, so that a twentieth of the time is a fifth of the colour and not a trace of it.

    >>> scale_ratio(0.05), scale_ratio(0.64), scale_ratio(1.0)
    (0.2236, 0.8, 1.0)
    """
    return round(math.sqrt(min(max(share_ratio, 0.0), 1.0)), 4)


def _wrap_heat(uri: str, version: int | None, items: tuple[Mark, ...]) -> dict[str, Any]:
    def list_lines(are: Freshness | Origin) -> list[int]:
        return [mark.line - 1 for mark in items if are in (mark.freshness, mark.origin)]

    return {
        "uri": uri,
        "version": version,
        "marks": [_encode_mark(mark) for mark in items if mark.freshness is not Freshness.STALE],
        "stale": list_lines(Freshness.STALE),
        "unverified": list_lines(Freshness.UNVERIFIED),
        "simulated": list_lines(Origin.SIMULATED),
    }


def _encode_mark(mark: Mark) -> dict[str, Any]:
    ratio = scale_ratio(mark.share_ratio)
    return {
        "line": mark.line - 1,
        "ratio": ratio,
        "level": min(LEVELS - 1, int(ratio * LEVELS)),
        "kind": mark.kind.value,
        "kernel": mark.kernel,
        "text": mark.text,
    }


# How hot each line is, for clients that colour lines. One mark per line, and the lines that were edited since.
HEAT = PushFeature(
    method=Method[dict[str, Any], None]("gpaLsp/heat"),
    list_items=list_heat,
    list_sass_items=list_sass_heat,
    wrap=_wrap_heat,
    is_wanted=lambda abilities: abilities.heat,
)


def answer_inlay_hint(view: DocumentView, params: types.InlayHintParams) -> list[types.InlayHint]:
    """A hint for each line of the requested range whose share is above the user's threshold, or that was edited since it was measured; then those
    of the emulation.
    """
    return _pad_hints(list_hints(view, *read_lines(params.range)))


def answer_sass_inlay_hint(view: SassView, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The hints of the requested lines."""
    return _pad_hints(sass_hints.list_hints(view, *read_lines(params.range)))


def _pad_hints(hints: list[types.InlayHint]) -> list[types.InlayHint]:
    """Keep hints at a distance from the text before them."""
    for hint in hints:
        hint.padding_left = True
    return hints


# Share and stall reason at the end of each hot line, with a way to its cause; what was emulated of a line, in a hint
# of its own; in SASS documents, what waits for what
INLAY_HINT = RequestFeature(
    method=Method[types.InlayHintParams, Sequence[types.InlayHint] | None](types.TEXT_DOCUMENT_INLAY_HINT),
    answer=answer_inlay_hint,
    answer_sass=answer_sass_inlay_hint,
    refresh_method=types.WORKSPACE_INLAY_HINT_REFRESH,
    refresh_capability="workspace.inlay_hint.refresh_support",
    is_held=True,
)


def answer_code_lens(view: DocumentView, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of the document's kernels, and of their loops and calls with advice."""
    del params
    # asked for again with every change of the cursor's line in some editors, and by every window
    return view.once(list_lenses)


# Complete lenses, with nothing left to resolve
CODE_LENS = RequestFeature(
    method=Method[types.CodeLensParams, Sequence[types.CodeLens] | None](types.TEXT_DOCUMENT_CODE_LENS),
    answer=answer_code_lens,
    options=types.CodeLensOptions(resolve_provider=False),
    refresh_method=types.WORKSPACE_CODE_LENS_REFRESH,
    refresh_capability="workspace.code_lens.refresh_support",
)


def _wrap_publish_diagnostics(
    uri: str, version: int | None, items: tuple[types.Diagnostic, ...]
) -> types.PublishDiagnosticsParams:
    return types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=list(items))


# What a person should know of a source's lines, in the client's list of problems. Pushed and not pulled, because
# results come when an analysis is done.
PUBLISH_DIAGNOSTICS = PushFeature(
    method=Method[types.PublishDiagnosticsParams, None](types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS),
    list_items=list_diagnostics,
    wrap=_wrap_publish_diagnostics,
)


def answer_hover(view: DocumentView, params: types.HoverParams) -> types.Hover | None:
    """The hover of the line under the cursor."""
    line = read_line(params.position)
    text = describe_hover(view, line)
    content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=text or "")
    return None if text is None else types.Hover(contents=content, range=view.positions.find_text(line))


def answer_sass_hover(view: SassView, params: types.HoverParams) -> types.Hover | None:
    """The hover of the instruction under the cursor."""
    from gpa_lsp.editor.sass.hover import describe_hover  # needs numpy, which initialize must not wait for

    return describe_hover(view, params.position)


# The stall table of a hot line, what it waits for and who waits for it; nothing away from such lines, where other
# servers have their say
HOVER = RequestFeature(
    method=Method[types.HoverParams, types.Hover | None](types.TEXT_DOCUMENT_HOVER),
    answer=answer_hover,
    answer_sass=answer_sass_hover,
)


FEATURES = (HEAT, INLAY_HINT, CODE_LENS, PUBLISH_DIAGNOSTICS, HOVER)
