"""What can be done about lines of a source: fixes that edit the code, and the ways to cause, SASS and kernel for editors that have no keys of
ours; blocks that are predicted to be faster, and descriptions of launches to begin with.

Edits come whole and at once, so that every editor that can preview them does; nothing is left to a second request.
"""

from collections.abc import Callable, Iterator

from gpa_lsp.basis.numbers import format_speedup
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.model import Action, ActionKind, CommandCall
from gpa_lsp.editor.predicted.actions import list_description_actions, list_trial_actions
from gpa_lsp.editor.source.fixes import Fix, find_fixes


def list_actions(view: DocumentView, first: int, last: int, is_wanted: Callable[[ActionKind], bool]) -> list[Action]:
    """What can be done about some lines.

    Args:
        view: the document.
        first: first line, 1-based.
        last: last line.
        is_wanted: whether a kind of actions was asked for; what nobody asked for is not looked for.
    """
    found: list[Action] = []
    if is_wanted(ActionKind.QUICK_FIX):
        found.extend(_offer_fix(view, fix) for fix in find_fixes(view, first, last))
    if is_wanted(ActionKind.REWRITE):
        found.extend(list_trial_actions(view, first, last))
        found.extend(list_description_actions(view, first, last))
    if is_wanted(ActionKind.WAY) and not view.abilities.heat:
        found.extend(_list_ways(view, first))
    return found


def _offer_fix(view: DocumentView, fix: Fix) -> Action:
    rewrite = fix.rewrite
    remark = "; results may change" if rewrite.changes_results else ""
    return Action(
        title=f"{rewrite.title.replace('`', '')} (up to {format_speedup(fix.speedup.estimate)} estimated{remark})",
        kind=ActionKind.QUICK_FIX,
        edits={view.uri: fix.edits},
        is_preferred=rewrite.is_preferred,
    )


def _list_ways(view: DocumentView, line: int) -> Iterator[Action]:
    place = (view.uri, line - 1)
    causes = view.cause_lines.get(line, ())
    if causes and causes[0].causes.waits:
        yield _make_way("Go to what this line waits for", "gpaLsp.goToCause", place)
    shown = causes[0].shown if causes else next((hot.shown for hot in view.hot_lines.get(line, ())), None)
    if shown is None:
        return
    yield _make_way("Open the SASS of this line", "gpaLsp.openSass", place)
    yield _make_way(f"Show {shown.name}", "gpaLsp.showKernel", (shown.kernel.report.mangled_name,))


def _make_way(title: str, command: str, arguments: tuple[object, ...]) -> Action:
    call = CommandCall(title=title, command=command, arguments=arguments)
    return Action(title=title, kind=ActionKind.WAY, command=call)
