"""``textDocument/inlayHint``: share and stall reason at the end of each hot line; in SASS documents, what waits for what."""

from lsprotocol import types

from gpa_lsp.lsp.document_view import DocumentView, HotLine
from gpa_lsp.lsp.features import RequestFeature
from gpa_lsp.lsp.positions import read_lines
from gpa_lsp.lsp.sass.hints import answer_sass
from gpa_lsp.lsp.stall_table import label_line
from gpa_lsp.render.numbers import format_share


def answer_inlay_hint(view: DocumentView, params: types.InlayHintParams) -> list[types.InlayHint]:
    """A hint for each line of the requested range whose share is above the user's threshold."""
    if not view.settings.show_inlay_hints:
        return []
    first, last = read_lines(params.range)
    return [
        _make_hint(view, line, hot)
        for line, hot in sorted(view.find_hottest_lines(), key=_order)
        if first <= line <= last
    ]


def _order(found: tuple[int, HotLine]) -> int:
    return found[0]


def _make_hint(view: DocumentView, line: int, hot: HotLine) -> types.InlayHint:
    """Its tooltip is short: all hints of a file are asked for with every edit, and the stall table is what the line's hover is for."""
    report = hot.shown.kernel.report
    share = format_share(report.share_of(hot.row.inclusive_samples))
    return types.InlayHint(
        position=view.positions.find_end(line),
        label=label_line(hot),
        tooltip=f"{share} of the samples of {hot.shown.name}",
        padding_left=True,
    )


FEATURE = RequestFeature(
    method=types.TEXT_DOCUMENT_INLAY_HINT,
    answer=answer_inlay_hint,
    answer_sass=answer_sass,
    refresh_method=types.WORKSPACE_INLAY_HINT_REFRESH,
    refresh_capability="workspace.inlay_hint.refresh_support",
)
