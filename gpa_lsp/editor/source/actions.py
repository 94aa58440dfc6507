"""Code actions of a source: fixes that edit the code, and the ways to cause, SASS and kernel for editors that have no keys of
ours; blocks that are predicted to be faster, and descriptions of launches to begin with.

Edits come whole and at once, so that every editor that can preview them does. What the compiler makes of a fix stands in its title as soon as it is
known; while it is not, a client that asks for the edits of what is looked at gets both then.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from lsprotocol.types import (
    AnnotatedTextEdit,
    ChangeAnnotation,
    CodeAction,
    CodeActionKind,
    Command,
    Diagnostic,
    OptionalVersionedTextDocumentIdentifier,
    TextDocumentEdit,
    WorkspaceEdit,
)

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.predicted.actions import list_description_actions, list_kernel_heads, list_trial_actions
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.source.diagnostics import SOURCE
from gpa_lsp.editor.source.fixes import FixVerifier, OfferedFix, find_fixes
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.fixes.results import PENDING, FixState

_ANNOTATION = "verified"  # Of the edits of a fix: all of them have one

_HONOURS = "text_document.code_action.honors_change_annotations"
_KNOWS = "workspace.workspace_edit.change_annotation_support"


class Annotations(Enum):
    """Choice of the edits that carry an annotation."""

    NONE = "none"
    DOUBTS = "doubts"  # Those that nobody should make without a question
    ALL = "all"


def choose_annotations(session: SessionView) -> Annotations:
    """Every fix where the client shows what is said before it applies an edit; elsewhere what it should ask about, if it does.

    A client that shows it only afterwards would interrupt, for nothing.
    """
    if not session.can(_HONOURS) or not session.can(_KNOWS):
        return Annotations.NONE
    return Annotations.ALL if session.abilities.previews else Annotations.DOUBTS


def list_actions(
    view: DocumentView,
    first: int,
    last: int,
    is_wanted: Callable[[str], bool],
    verifier: FixVerifier,
    *,
    annotations: Annotations = Annotations.NONE,
    diagnostics: Sequence[Diagnostic] = (),
) -> list[CodeAction]:
    """List the code actions on some lines.

    Args:
        first: first line, 1-based.
        is_wanted: whether a kind of actions is asked for; empty for those that change nothing, but lead somewhere.
        diagnostics: that the client has there: a fix says which of ours it answers.
    """
    found: list[CodeAction] = []
    if is_wanted(CodeActionKind.QuickFix.value):
        for offered in verifier.offer(view, find_fixes(view, first, last)):
            is_late = verifier.may_leave_edits and offered.verdict is PENDING
            action = make_fix_action(offered, annotations, has_edits=not is_late)
            lines = () if is_late else {edit.range.start.line for edit in offered.fix.edits}
            own = [one for one in diagnostics if one.source == SOURCE and one.range.start.line in lines]
            action.diagnostics = own or None
            found.append(action)
    if is_wanted(CodeActionKind.RefactorRewrite.value):
        found.extend(list_trial_actions(view, first, last))
        found.extend(list_description_actions(view, first, last))
        found.extend(list_simulation_actions(view, first, last))
    if is_wanted("") and not view.abilities.heat:
        found.extend(_list_ways(view, first))
    return found


def make_fix_action(
    offered: OfferedFix, annotations: Annotations = Annotations.NONE, *, has_edits: bool = True
) -> CodeAction:
    """A fix as an action, with what is known of it; that stands beside its edits, too, as far as the client wants that."""
    from gpa_lsp.document.advice_words import (
        show_gain_range,  # needs numpy, which the answer to initialize must not wait for
    )

    fix, verdict = offered.fix, offered.verdict
    rewrite = fix.rewrite
    title = make_visible(rewrite.title.replace("`", ""))
    is_useless = verdict.state in (FixState.SAME, FixState.FAILED)
    notes = [] if is_useless else [f"estimated gain: {show_gain_range(fix.speedup)}"]
    notes += ["results may change"] if rewrite.changes_results else []
    words = f": {verdict.words}" if verdict.words else ""
    nothing = "It is being compiled." if verdict is PENDING else "It was not compiled."
    known = (*(verdict.details or (nothing,)), *(f"{one[0].upper()}{one[1:]}." for one in notes))
    sentences = [make_visible(one) for one in known]
    is_annotated = annotations is Annotations.ALL or (annotations is Annotations.DOUBTS and verdict.is_doubtful)
    edit = WorkspaceEdit(changes={offered.uri: fix.edits})
    if offered.key and is_annotated:
        edit = _annotate(offered, title, " ".join(sentences))
    data = {"fix": offered.key, "state": verdict.state.value, "title": title, "sentences": sentences}
    return CodeAction(
        title=f"{title}{words} ({'; '.join(notes)})" if notes else f"{title}{words}",
        kind=CodeActionKind.QuickFix,
        is_preferred=(rewrite.is_preferred and not is_useless and not verdict.is_doubtful) or None,
        edit=edit if has_edits else None,
        data=data if offered.key else None,
    )


def _annotate(offered: OfferedFix, title: str, description: str) -> WorkspaceEdit:
    """Edits that the client says something of before it makes them; doubtful ones it makes only after a question."""
    is_doubtful = offered.verdict.is_doubtful
    annotation = ChangeAnnotation(label=title, description=description, needs_confirmation=is_doubtful or None)
    change = TextDocumentEdit(
        text_document=OptionalVersionedTextDocumentIdentifier(uri=offered.uri),
        edits=[
            AnnotatedTextEdit(range=one.range, new_text=one.new_text, annotation_id=_ANNOTATION)
            for one in offered.fix.edits
        ],
    )
    return WorkspaceEdit(document_changes=[change], change_annotations={_ANNOTATION: annotation})


def _list_ways(view: DocumentView, line: int) -> Iterator[CodeAction]:
    place = (view.uri, line - 1)
    causes = view.cause_lines.get(line, ())
    if causes and causes[0].causes.waits:
        yield _make_way("Go to what this line is stalled on", "gpaLsp.goToCause", place)
    shown = causes[0].shown if causes else next((hot.shown for hot in view.hot_lines.get(line, ())), None)
    if shown is None:
        return
    yield _make_way("Show what is known of this line", "gpaLsp.showLine", place)
    yield _make_way("Open the SASS of this line", "gpaLsp.openSass", place)
    yield _make_way(f"Show {shown.name}", "gpaLsp.showKernel", (shown.kernel.report.mangled_name,))


def _make_way(title: str, command: str, arguments: tuple[object, ...]) -> CodeAction:
    call = Command(title=title, command=command, arguments=arguments)
    return CodeAction(title=title, command=call)


def list_simulation_actions(view: DocumentView, first: int, last: int) -> Iterator[CodeAction]:
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
        yield CodeAction(title=title, kind=CodeActionKind.RefactorRewrite, command=command)


def _list_launched(view: DocumentView) -> frozenset[str]:
    """Plain names of the kernels whose grid and block host code in this document says."""
    launches = find_host_launches(view.local_path, view.text)
    return frozenset(one.kernel for one in launches if one.grid is not None and one.block is not None)
