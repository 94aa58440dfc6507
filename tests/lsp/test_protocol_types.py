"""Records become what the protocol has for them, and every kind of a record has a kind there."""

import pytest
from lsprotocol import types

from gpa_lsp.editor.model import (
    Action,
    ActionKind,
    CommandCall,
    Diagnostic,
    DiagnosticSeverity,
    Fold,
    FoldKind,
    Highlight,
    HighlightKind,
    Location,
    Position,
    Range,
    RelatedPlace,
    Symbol,
    SymbolKind,
    TextChange,
    TextEdit,
)
from gpa_lsp.editor.protocol import protocol_types

SPAN = Range(Position(1, 2), Position(3, 4))
THERE = types.Range(types.Position(1, 2), types.Position(3, 4))


def test_what_is_sent_is_what_was_read() -> None:
    assert protocol_types.make_range(SPAN) == THERE
    assert protocol_types.read_range(THERE) == SPAN


@pytest.mark.parametrize("severity", DiagnosticSeverity)
def test_a_diagnostic_is_ours_and_as_loud_as_it_says(severity: DiagnosticSeverity) -> None:
    related = RelatedPlace(location=Location(uri="file:///k.h", range=SPAN), message="here")
    made = protocol_types.make_diagnostic(
        Diagnostic(range=SPAN, severity=severity, code="wait", message="text", related=(related,))
    )
    assert (made.source, made.code, made.message, made.range) == ("gpa-lsp", "wait", "text", THERE)
    assert made.severity is not None and made.severity.name.lower() == severity.value
    assert made.related_information == [
        types.DiagnosticRelatedInformation(location=types.Location("file:///k.h", THERE), message="here")
    ]
    alone = protocol_types.make_diagnostic(Diagnostic(range=SPAN, severity=severity, code=None, message="text"))
    assert alone.related_information is None


def test_actions_edit_or_run_and_a_way_has_no_kind() -> None:
    edits = {"file:///k.cu": (TextEdit(range=SPAN, new_text="x"),)}
    for kind in (ActionKind.QUICK_FIX, ActionKind.REWRITE):
        made = protocol_types.make_action(Action(title="do", kind=kind, edits=edits))
        assert made.kind is not None and types.CodeActionKind(made.kind).value == kind.value
        assert made.edit == types.WorkspaceEdit(changes={"file:///k.cu": [types.TextEdit(THERE, "x")]})
        assert made.command is None and made.is_preferred is None
    call = CommandCall(title="go", command="gpaLsp.goToCause", arguments=("file:///k.cu", 3))
    way = protocol_types.make_action(Action(title="go", kind=ActionKind.WAY, command=call))
    assert way.kind is None and way.edit is None
    assert way.command == types.Command(title="go", command="gpaLsp.goToCause", arguments=["file:///k.cu", 3])


def test_every_kind_has_one_in_the_protocol() -> None:
    symbols = [Symbol(name="s", detail=None, kind=kind, range=SPAN, selection_range=SPAN) for kind in SymbolKind]
    nest = Symbol(
        name="k",
        detail="1 ms",
        kind=SymbolKind.FUNCTION,
        range=SPAN,
        selection_range=SPAN,
        children=tuple(symbols),
    )
    kinds = [child.kind for child in protocol_types.make_symbol(nest).children or ()]
    assert kinds == [types.SymbolKind.Function, types.SymbolKind.Event, types.SymbolKind.Key]
    folds = [protocol_types.make_fold(Fold(start_line=0, end_line=1, kind=kind)) for kind in FoldKind]
    assert [fold.kind for fold in folds] == [types.FoldingRangeKind.Comment, types.FoldingRangeKind.Region]
    lights = [protocol_types.make_highlight(Highlight(range=SPAN, kind=kind)) for kind in HighlightKind]
    assert [str(one.kind and one.kind.name).lower() for one in lights] == [kind.value for kind in HighlightKind]


def test_a_whole_text_has_no_range() -> None:
    changes = [
        types.TextDocumentContentChangePartial(range=THERE, text="a"),
        types.TextDocumentContentChangeWholeDocument(text="b"),
    ]
    assert protocol_types.read_changes(changes) == [TextChange(range=SPAN, text="a"), TextChange(range=None, text="b")]


def test_the_legend_names_every_colour() -> None:
    from gpa_lsp.editor.protocol.features.text_document_semantic_tokens_full import FEATURE

    standard = {one.value for one in types.SemanticTokenTypes} | {"label"}
    assert set(FEATURE.options.token_types) <= standard
    own = {"hot", "warm"}
    assert set(FEATURE.options.token_modifiers) - own <= {one.value for one in types.SemanticTokenModifiers}
