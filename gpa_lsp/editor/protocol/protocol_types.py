"""Actions as the protocol has them, with as much of what is known of each as the client shows; and paths of documents."""

import os
from collections.abc import Mapping, Sequence
from enum import Enum

from lsprotocol import types
from pygls.uris import to_fs_path

from gpa_lsp.editor.model import Action, ActionKind, Verification
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.foundation.visible_text import make_visible

_ANNOTATION = "verified"  # Of the edits of a fix: all of them have one


class Annotations(Enum):
    """Which edits are said something of."""

    NONE = "none"
    DOUBTS = "doubts"  # Those that nobody should make without a question
    ALL = "all"


def make_action(action: Action, annotations: Annotations = Annotations.NONE) -> types.CodeAction:
    """An action; what is known of it stands beside its edits as far as the client wants that."""
    said = action.verification
    is_annotated = said is not None and (
        annotations is Annotations.ALL or (annotations is Annotations.DOUBTS and said.is_doubtful)
    )
    edit = None
    if action.edits is not None and said is not None and is_annotated:
        edit = _make_annotated_edit(action.edits, said)
    elif action.edits is not None:
        edit = types.WorkspaceEdit(changes=action.edits)
    data = None
    if said is not None:
        sentences = [make_visible(one) for one in said.sentences]
        data = {"fix": said.key, "state": said.state, "title": make_visible(said.title), "sentences": sentences}
    return types.CodeAction(
        title=action.title,
        kind=None if action.kind is ActionKind.WAY else types.CodeActionKind(action.kind.value),
        is_preferred=action.is_preferred or None,
        edit=edit,
        command=action.command,
        data=data,
    )


def _make_annotated_edit(edits: Mapping[str, Sequence[types.TextEdit]], said: Verification) -> types.WorkspaceEdit:
    """Edits that the client says something of before it makes them; doubtful ones it makes only after a question."""
    annotation = types.ChangeAnnotation(
        label=make_visible(said.title),
        description=make_visible(" ".join(said.sentences)),
        needs_confirmation=said.is_doubtful or None,
    )
    changes = [
        types.TextDocumentEdit(
            text_document=types.OptionalVersionedTextDocumentIdentifier(uri=uri),
            edits=[
                types.AnnotatedTextEdit(range=one.range, new_text=one.new_text, annotation_id=_ANNOTATION)
                for one in made
            ],
        )
        for uri, made in edits.items()
    ]
    return types.WorkspaceEdit(document_changes=changes, change_annotations={_ANNOTATION: annotation})


_LOCAL_HOST = "//localhost/"


def read_path(uri: str) -> str | None:
    """The absolute path of a ``file:`` URI; None for everything else, and for what can be no path on this system.

    >>> read_path("file:///tmp/a%20b.cu")
    '/tmp/a b.cu'
    >>> [read_path(uri) for uri in ("untitled:x", "file:///a%00b", "file://[", "file:relative", "file:///\\ud800")]
    [None, None, None, None, None]
    """
    try:
        path = to_fs_path(uri)
        if path is None or "\0" in path:
            return None
        if os.name == "posix" and path.startswith("//"):  # a host: its files are not ours to look for
            path = path[len(_LOCAL_HOST) - 1 :] if path.startswith(_LOCAL_HOST) else ""
        os.fsencode(path)
    except ValueError:
        return None
    return path if os.path.isabs(path) else None  # noqa: PTH117 - a Path could not be made of every text


_HONOURS = "text_document.code_action.honors_change_annotations"
_KNOWS = "workspace.workspace_edit.change_annotation_support"


def choose_annotations(session: SessionView) -> Annotations:
    """Every fix where the client shows what is said before it applies an edit; elsewhere what it should ask about, if it does.

    A client that shows it only afterwards would interrupt, for nothing.
    """
    if not session.can(_HONOURS) or not session.can(_KNOWS):
        return Annotations.NONE
    return Annotations.ALL if session.abilities.previews else Annotations.DOUBTS
