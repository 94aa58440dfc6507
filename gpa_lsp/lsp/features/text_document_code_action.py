"""``textDocument/codeAction``: fixes that edit the code, and the ways to cause, SASS and kernel for editors that have no keys of ours; blocks
that are predicted to be faster, and descriptions of launches to begin with.

Edits come whole and at once, so that every editor that can preview them does; nothing is left to a second request.
"""

from collections.abc import Iterator, Sequence

from lsprotocol import types

from gpa_lsp.basis.numbers import format_speedup
from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.features import Method, RequestFeature
from gpa_lsp.lsp.fixes import Fix, find_fixes
from gpa_lsp.lsp.lines.positions import read_lines
from gpa_lsp.lsp.predicted_actions import KIND, list_description_actions, list_trial_actions


def answer_code_action(view: DocumentView, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """What can be done about the lines of a range."""
    first, last = read_lines(params.range)
    wanted = params.context.only
    found: list[types.CodeAction] = []
    if _is_wanted(types.CodeActionKind.QuickFix, wanted):
        found.extend(_offer_fix(view, fix, params.context.diagnostics) for fix in find_fixes(view, first, last))
    if _is_wanted(KIND, wanted):
        found.extend(list_trial_actions(view, first, last))
        found.extend(list_description_actions(view, first, last))
    if _is_wanted(types.CodeActionKind.Empty, wanted) and not view.abilities.heat:
        found.extend(_list_ways(view, first))
    return found or None


def _is_wanted(kind: types.CodeActionKind, wanted: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Kinds are a hierarchy by dots; the empty kind holds all, and is asked for only by who asks for everything."""
    if wanted is None:
        return True
    names = [str(getattr(one, "value", one)) for one in wanted]
    return any(name in ("", kind.value) or kind.value.startswith(f"{name}.") for name in names)


def _offer_fix(view: DocumentView, fix: Fix, diagnostics: Sequence[types.Diagnostic]) -> types.CodeAction:
    rewrite = fix.rewrite
    remark = "; results may change" if rewrite.changes_results else ""
    lines = {edit.range.start.line for edit in fix.edits}
    answered = [one for one in diagnostics if one.source == "gpa-lsp" and one.range.start.line in lines]
    return types.CodeAction(
        title=f"{rewrite.title} (up to {format_speedup(fix.speedup.estimate)} estimated{remark})",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=answered or None,
        is_preferred=rewrite.is_preferred or None,
        edit=types.WorkspaceEdit(changes={view.uri: list(fix.edits)}),
    )


def _list_ways(view: DocumentView, line: int) -> Iterator[types.CodeAction]:
    place = [view.uri, line - 1]
    causes = view.cause_lines.get(line, ())
    if causes and causes[0].causes.waits:
        yield _make_way("Go to what this line waits for", "gpaLsp.goToCause", place)
    shown = causes[0].shown if causes else next((hot.shown for hot in view.hot_lines.get(line, ())), None)
    if shown is None:
        return
    yield _make_way("Open the SASS of this line", "gpaLsp.openSass", place)
    yield _make_way(f"Show {shown.name}", "gpaLsp.showKernel", [shown.kernel.report.mangled_name])


def _make_way(title: str, command: str, arguments: list[object]) -> types.CodeAction:
    return types.CodeAction(title=title, command=types.Command(title=title, command=command, arguments=arguments))


FEATURE = RequestFeature(
    method=Method[types.CodeActionParams, Sequence[types.Command | types.CodeAction] | None](
        types.TEXT_DOCUMENT_CODE_ACTION
    ),
    answer=answer_code_action,
    options=types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, KIND, types.CodeActionKind.Empty], resolve_provider=False
    ),
)
