"""Edits that append to a file beside a document, or make it."""

from typing import Any

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.commands.without_profile import build_append, can_edit


@pytest.mark.parametrize(
    ("text", "line", "character", "gap"),
    [
        ("a = 1\n", 1, 0, "\n"),
        ("a = 1", 0, 5, "\n\n"),
        ("# 𝄞", 0, 4, "\n\n"),
        ("", 0, 0, ""),
        ("\n\n", 2, 0, ""),
    ],
)
def test_an_addition_comes_behind_what_is_there(text: str, line: int, character: int, gap: str) -> None:
    changes = build_append("file:///k.toml", text, "new\n", PositionCodec()).changes
    assert changes is not None
    (edit,) = changes["file:///k.toml"]
    assert edit.range.start == edit.range.end == types.Position(line=line, character=character)
    assert edit.new_text == f"{gap}new\n"


def test_a_file_that_is_not_there_is_made() -> None:
    create, change = build_append("file:///k.toml", None, "new\n", PositionCodec()).document_changes or ()
    assert isinstance(create, types.CreateFile) and create.uri == "file:///k.toml"
    assert create.options is not None and create.options.ignore_if_exists
    assert isinstance(change, types.TextDocumentEdit) and len(change.edits) == 1


def make_editor(**workspace: Any) -> Client:
    class Wire:
        def notify(self, method: str, params: Any = None) -> None:
            raise AssertionError

        async def send_request_async(self, method: str, params: Any = None) -> Any:
            raise AssertionError

    capabilities = types.WorkspaceClientCapabilities(**workspace)
    return Client(Wire(), types.ClientCapabilities(workspace=capabilities))


def test_clients_are_asked_only_for_what_they_can() -> None:
    edits = types.WorkspaceEditClientCapabilities()
    creates = types.WorkspaceEditClientCapabilities(resource_operations=[types.ResourceOperationKind.Create])
    full, plain = (
        make_editor(apply_edit=True, workspace_edit=creates),
        make_editor(apply_edit=True, workspace_edit=edits),
    )
    assert can_edit(full, makes_file=True) and can_edit(plain, makes_file=False)
    assert not can_edit(plain, makes_file=True)
    assert not can_edit(make_editor(workspace_edit=creates), makes_file=False)
    assert not can_edit(make_editor(), makes_file=False)
