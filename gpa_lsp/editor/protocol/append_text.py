"""Edits that append to a file beside a document, or make it."""

from lsprotocol import types

from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.report.line_map import split_lines


def build_append(uri: str, text: str | None, addition: str, units: UnitCounter) -> types.WorkspaceEdit:
    """The edit.

    Args:
        text: what it holds; None for a file that is to be made.
    """
    if text is None:
        document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None)
        start = types.Position(0, 0)
        insertion = types.TextEdit(range=types.Range(start, start), new_text=addition)
        create = types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=True))
        return types.WorkspaceEdit(
            document_changes=[create, types.TextDocumentEdit(text_document=document, edits=[insertion])]
        )
    end = find_end(text, units)
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    insertion = types.TextEdit(range=types.Range(end, end), new_text=f"{gap}{addition}")
    return types.WorkspaceEdit(changes={uri: [insertion]})


def find_end(text: str, units: UnitCounter) -> types.Position:
    """The place behind the last character of a text."""
    lines = split_lines(text)
    return Positions(lines=lines, units=units).find_place(len(lines), len(lines[-1]))


async def append_text(
    client: Client, uri: str, text: str | None, addition: str, *, label: str, units: UnitCounter
) -> bool:
    """Let the client make the edit and show the file; where it cannot make files, show what is to be put there.

    Args:
        text: what it holds; None where there is none.
    """
    if not can_edit(client, makes_file=text is None):
        client.show_document(label, f"```toml\n{addition}```\n")
        return False
    params = types.ApplyWorkspaceEditParams(edit=build_append(uri, text, addition, units), label=label)
    answer = await client.ask(types.WORKSPACE_APPLY_EDIT, params, limit_s=None)
    is_applied = bool(getattr(answer, "applied", False))
    if is_applied:
        end = types.Position(0, 0) if text is None else find_end(text, units)
        client.show_location(types.Location(uri=uri, range=types.Range(end, end)))
    return is_applied


def can_edit(client: Client, *, makes_file: bool) -> bool:
    """Whether a client takes such an edit from us. Neovim makes files and does not say that it knows changes of documents, which come with them."""
    kinds = client.read("workspace.workspace_edit.resource_operations") or ()
    return client.can("workspace.apply_edit") and (not makes_file or types.ResourceOperationKind.Create in kinds)
