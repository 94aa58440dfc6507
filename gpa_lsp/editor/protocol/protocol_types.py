"""The records that answers are made of, as types of the protocol, and what clients send as records. Nothing else turns the one into the other."""

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from lsprotocol import types
from pygls.uris import to_fs_path

from gpa_lsp.editor.model import (
    Action,
    ActionKind,
    ChainItem,
    ChainLink,
    CommandCall,
    Diagnostic,
    DiagnosticSeverity,
    Fold,
    FoldKind,
    Highlight,
    HighlightKind,
    Hint,
    Hover,
    KernelSymbol,
    LabelPart,
    Lens,
    Location,
    Position,
    Range,
    Symbol,
    SymbolKind,
    TextChange,
    TextEdit,
    Verification,
)
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.foundation.visible_text import make_visible

SOURCE = "gpa-lsp"  # Whose diagnostics ours are

_ANNOTATION = "verified"  # Of the edits of a fix: all of them have one


class Annotations(Enum):
    """Which edits are said something of."""

    NONE = "none"
    DOUBTS = "doubts"  # Those that nobody should make without a question
    ALL = "all"


_SEVERITIES = {
    DiagnosticSeverity.ERROR: types.DiagnosticSeverity.Error,
    DiagnosticSeverity.WARNING: types.DiagnosticSeverity.Warning,
    DiagnosticSeverity.INFORMATION: types.DiagnosticSeverity.Information,
    DiagnosticSeverity.HINT: types.DiagnosticSeverity.Hint,
}
_SYMBOL_KINDS = {
    SymbolKind.FUNCTION: types.SymbolKind.Function,
    SymbolKind.EVENT: types.SymbolKind.Event,
    SymbolKind.BLOCK: types.SymbolKind.Key,
}
_FOLD_KINDS = {FoldKind.COMMENT: types.FoldingRangeKind.Comment, FoldKind.REGION: types.FoldingRangeKind.Region}
_HIGHLIGHT_KINDS = {
    HighlightKind.TEXT: types.DocumentHighlightKind.Text,
    HighlightKind.READ: types.DocumentHighlightKind.Read,
    HighlightKind.WRITE: types.DocumentHighlightKind.Write,
}

# What clients send


def read_position(position: types.Position) -> Position:
    """A client's position."""
    return Position(position.line, position.character)


def read_range(span: types.Range) -> Range:
    """A client's range."""
    return Range(read_position(span.start), read_position(span.end))


def read_changes(changes: Iterable[types.TextDocumentContentChangeEvent]) -> list[TextChange]:
    """A client's changes of a text, one after the other."""
    return [
        TextChange(
            range=read_range(change.range) if isinstance(change, types.TextDocumentContentChangePartial) else None,
            text=change.text,
        )
        for change in changes
    ]


# What is answered


def make_position(position: Position) -> types.Position:
    """A position."""
    return types.Position(line=position.line, character=position.character)


def make_range(span: Range) -> types.Range:
    """A range."""
    return types.Range(start=make_position(span.start), end=make_position(span.end))


def make_location(location: Location) -> types.Location:
    """A location."""
    return types.Location(uri=location.uri, range=make_range(location.range))


def make_locations(locations: Sequence[Location] | None) -> list[types.Location] | None:
    """Several; None for an answer that is none."""
    return None if locations is None else [make_location(one) for one in locations]


def make_command(command: CommandCall) -> types.Command:
    """A command to run."""
    return types.Command(title=command.title, command=command.command, arguments=list(command.arguments))


def make_text_edit(edit: TextEdit) -> types.TextEdit:
    """An edit."""
    return types.TextEdit(range=make_range(edit.range), new_text=edit.new_text)


def make_lens(lens: Lens) -> types.CodeLens:
    """A lens."""
    return types.CodeLens(range=make_range(lens.range), command=make_command(lens.command))


def make_hint(hint: Hint) -> types.InlayHint:
    """A hint."""
    return types.InlayHint(
        position=make_position(hint.position),
        label=hint.label if isinstance(hint.label, str) else [_make_label_part(part) for part in hint.label],
        tooltip=hint.tooltip,
        padding_left=True,
    )


def _make_label_part(part: LabelPart) -> types.InlayHintLabelPart:
    location = None if part.location is None else make_location(part.location)
    return types.InlayHintLabelPart(value=part.value, tooltip=part.tooltip, location=location)


def make_hover(hover: Hover | None) -> types.Hover | None:
    """A hover; None where there is nothing to say."""
    if hover is None:
        return None
    content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=hover.text)
    return types.Hover(contents=content, range=make_range(hover.range))


def make_diagnostic(diagnostic: Diagnostic) -> types.Diagnostic:
    """A diagnostic."""
    related = [
        types.DiagnosticRelatedInformation(location=make_location(one.location), message=one.message)
        for one in diagnostic.related
    ]
    return types.Diagnostic(
        range=make_range(diagnostic.range),
        severity=_SEVERITIES[diagnostic.severity],
        source=SOURCE,
        code=diagnostic.code,
        message=diagnostic.message,
        related_information=related or None,
    )


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
        changes = {uri: [make_text_edit(one) for one in edits] for uri, edits in action.edits.items()}
        edit = types.WorkspaceEdit(changes=changes)
    data = None
    if said is not None:
        sentences = [make_visible(one) for one in said.sentences]
        data = {"fix": said.key, "state": said.state, "title": make_visible(said.title), "sentences": sentences}
    return types.CodeAction(
        title=action.title,
        kind=None if action.kind is ActionKind.WAY else types.CodeActionKind(action.kind.value),
        is_preferred=action.is_preferred or None,
        edit=edit,
        command=None if action.command is None else make_command(action.command),
        data=data,
    )


def _make_annotated_edit(edits: Mapping[str, Sequence[TextEdit]], said: Verification) -> types.WorkspaceEdit:
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
                types.AnnotatedTextEdit(range=make_range(one.range), new_text=one.new_text, annotation_id=_ANNOTATION)
                for one in made
            ],
        )
        for uri, made in edits.items()
    ]
    return types.WorkspaceEdit(document_changes=changes, change_annotations={_ANNOTATION: annotation})


def make_symbol(symbol: Symbol) -> types.DocumentSymbol:
    """A symbol, with those in it."""
    return types.DocumentSymbol(
        name=symbol.name,
        detail=symbol.detail,
        kind=_SYMBOL_KINDS[symbol.kind],
        range=make_range(symbol.range),
        selection_range=make_range(symbol.selection_range),
        children=[make_symbol(child) for child in symbol.children],
    )


def make_kernel_symbol(symbol: KernelSymbol) -> types.WorkspaceSymbol:
    """A kernel as a symbol of the workspace."""
    return types.WorkspaceSymbol(
        name=symbol.name,
        kind=types.SymbolKind.Function,
        location=make_location(symbol.location),
        container_name=symbol.container,
    )


def make_fold(fold: Fold) -> types.FoldingRange:
    """A fold."""
    return types.FoldingRange(start_line=fold.start_line, end_line=fold.end_line, kind=_FOLD_KINDS[fold.kind])


def make_highlight(highlight: Highlight) -> types.DocumentHighlight:
    """A highlight."""
    return types.DocumentHighlight(range=make_range(highlight.range), kind=_HIGHLIGHT_KINDS[highlight.kind])


def make_chain_item(item: ChainItem) -> types.CallHierarchyItem:
    """An item of a chain, as one of a call hierarchy."""
    return types.CallHierarchyItem(
        name=item.name,
        kind=types.SymbolKind.Event,
        uri=item.uri,
        range=make_range(item.range),
        selection_range=make_range(item.range),
        detail=item.detail,
        data=dict(item.data),
    )


def make_incoming_call(link: ChainLink) -> types.CallHierarchyIncomingCall:
    """A neighbour that an item waits for."""
    ranges = [make_range(one) for one in link.ranges]
    return types.CallHierarchyIncomingCall(from_=make_chain_item(link.item), from_ranges=ranges)


def make_outgoing_call(link: ChainLink) -> types.CallHierarchyOutgoingCall:
    """A neighbour that waits for an item."""
    ranges = [make_range(one) for one in link.ranges]
    return types.CallHierarchyOutgoingCall(to=make_chain_item(link.item), from_ranges=ranges)


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
