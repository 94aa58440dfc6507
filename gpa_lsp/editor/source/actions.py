"""What can be done about lines of a source: fixes that edit the code, and the ways to cause, SASS and kernel for editors that have no keys of
ours; blocks that are predicted to be faster, and descriptions of launches to begin with.

Edits come whole and at once, so that every editor that can preview them does. What the compiler makes of a fix stands in its title as soon as it is
known; while it is not, a client that asks for the edits of what is looked at gets both then.
"""

from collections.abc import Callable, Iterator, Sequence

from lsprotocol.types import Command

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.model import Action, ActionKind, Verification
from gpa_lsp.editor.predicted.actions import list_description_actions, list_kernel_heads, list_trial_actions
from gpa_lsp.editor.source.fixes import FixVerifier, OfferedFix, find_fixes
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.fixes.results import PENDING, FixState


def list_actions(
    view: DocumentView, first: int, last: int, is_wanted: Callable[[ActionKind], bool], verifier: FixVerifier
) -> list[Action]:
    """What can be done about some lines.

    Args:
        first: first line, 1-based.
    """
    found: list[Action] = []
    if is_wanted(ActionKind.QUICK_FIX):
        for offered in verifier.offer(view, find_fixes(view, first, last)):
            is_late = verifier.may_leave_edits and offered.verdict is PENDING
            found.append(make_fix_action(offered, has_edits=not is_late))
    if is_wanted(ActionKind.REWRITE):
        found.extend(list_trial_actions(view, first, last))
        found.extend(list_description_actions(view, first, last))
        found.extend(list_simulation_actions(view, first, last))
    if is_wanted(ActionKind.WAY) and not view.abilities.heat:
        found.extend(_list_ways(view, first))
    return found


def make_fix_action(offered: OfferedFix, *, has_edits: bool = True) -> Action:
    """A fix as an action, with what is known of it."""
    from gpa_lsp.document.advice_words import (
        show_estimate,  # needs numpy, which the answer to initialize must not wait for
    )

    fix, verdict = offered.fix, offered.verdict
    rewrite = fix.rewrite
    title = rewrite.title.replace("`", "")
    is_useless = verdict.state in (FixState.SAME, FixState.FAILED)
    notes = [] if is_useless else [f"up to {show_estimate(fix.speedup)} estimated"]
    notes += ["results may change"] if rewrite.changes_results else []
    words = f": {verdict.words}" if verdict.words else ""
    return Action(
        title=f"{title}{words} ({'; '.join(notes)})" if notes else f"{title}{words}",
        kind=ActionKind.QUICK_FIX,
        edits={offered.uri: fix.edits} if has_edits else None,
        is_preferred=rewrite.is_preferred and not is_useless and not verdict.is_doubtful,
        verification=_describe_verification(offered, title, notes) if offered.key else None,
    )


def _describe_verification(offered: OfferedFix, title: str, notes: Sequence[str]) -> Verification:
    verdict = offered.verdict
    nothing = "It is being compiled." if verdict is PENDING else "It was not compiled."
    return Verification(
        key=offered.key,
        state=verdict.state.value,
        title=title,
        sentences=(*(verdict.details or (nothing,)), *(f"{one[0].upper()}{one[1:]}." for one in notes)),
        is_doubtful=verdict.is_doubtful,
    )


def _list_ways(view: DocumentView, line: int) -> Iterator[Action]:
    place = (view.uri, line - 1)
    causes = view.cause_lines.get(line, ())
    if causes and causes[0].causes.waits:
        yield _make_way("Go to what this line waits for", "gpaLsp.goToCause", place)
    shown = causes[0].shown if causes else next((hot.shown for hot in view.hot_lines.get(line, ())), None)
    if shown is None:
        return
    yield _make_way("Show what is known of this line", "gpaLsp.showLine", place)
    yield _make_way("Open the SASS of this line", "gpaLsp.openSass", place)
    yield _make_way(f"Show {shown.name}", "gpaLsp.showKernel", (shown.kernel.report.mangled_name,))


def _make_way(title: str, command: str, arguments: tuple[object, ...]) -> Action:
    call = Command(title=title, command=command, arguments=arguments)
    return Action(title=title, kind=ActionKind.WAY, command=call)


def list_simulation_actions(view: DocumentView, first: int, last: int) -> Iterator[Action]:
    """An action to simulate each kernel of some lines (1-based) whose launch is described, or said by host code in the same file."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return
    result = predicted.result
    for head in list_kernel_heads(view):
        if not (first <= head.end and last >= head.line):
            continue
        is_described = bool(result.job.launches_text) and head.mangled_name not in result.undescribed
        if not is_described and find_bare_name(head.mangled_name) not in view.once(_list_launched):
            continue
        title = f"Simulate {'the described launches' if is_described else 'a launch'} of {shorten_name(head.name)}"
        command = Command(title=title, command="gpaLsp.simulate", arguments=(view.uri, head.mangled_name))
        yield Action(title=title, kind=ActionKind.REWRITE, command=command)


def _list_launched(view: DocumentView) -> frozenset[str]:
    """Plain names of the kernels whose grid and block host code in this document says."""
    launches = find_host_launches(view.local_path, view.text)
    return frozenset(one.kernel for one in launches if one.grid is not None and one.block is not None)
