"""Actions become what the protocol has for them."""

from lsprotocol import types

from gpa_lsp.editor.model import Action, ActionKind
from gpa_lsp.editor.protocol import protocol_types

THERE = types.Range(types.Position(1, 2), types.Position(3, 4))


def test_actions_edit_or_run_and_a_way_has_no_kind() -> None:
    edits = {"file:///k.cu": (types.TextEdit(range=THERE, new_text="x"),)}
    for kind in (ActionKind.QUICK_FIX, ActionKind.REWRITE):
        made = protocol_types.make_action(Action(title="do", kind=kind, edits=edits))
        assert made.kind is not None and types.CodeActionKind(made.kind).value == kind.value
        assert made.edit == types.WorkspaceEdit(changes=edits)
        assert made.command is None and made.is_preferred is None
    call = types.Command(title="go", command="gpaLsp.goToCause", arguments=("file:///k.cu", 3))
    way = protocol_types.make_action(Action(title="go", kind=ActionKind.WAY, command=call))
    assert way.kind is None and way.edit is None
    assert way.command == types.Command(title="go", command="gpaLsp.goToCause", arguments=("file:///k.cu", 3))


def test_the_legend_names_every_colour() -> None:
    from gpa_lsp.editor.protocol.features.text_document_semantic_tokens_full import FEATURE

    standard = {one.value for one in types.SemanticTokenTypes} | {"label"}
    assert set(FEATURE.options.token_types) <= standard
    own = {"hot", "warm"}
    assert set(FEATURE.options.token_modifiers) - own <= {one.value for one in types.SemanticTokenModifiers}
