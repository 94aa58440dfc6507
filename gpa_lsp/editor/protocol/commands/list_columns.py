"""``gpaLsp.listColumns``: what can stand beside the instructions of a SASS document."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session


def list_columns(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The columns of the document in the arguments, those that are chosen first and in their order; of the longest kernel without one."""
    from gpa_lsp.editor.sass.columns import USUAL_COLUMNS, ColumnKind, describe_reason, fill_column, list_kinds

    uri = read_text(arguments)
    shown = next(iter(session.snapshot.visible), None) if uri is None else session.sass.find_kernel(uri)
    if shown is None:
        return []
    chosen = USUAL_COLUMNS if session.sass.columns is None else session.sass.columns
    kinds = {kind.name: kind for kind in list_kinds(shown.kernel.report)}
    first = [kinds.pop(name) if name in kinds else describe_reason(name) for name in chosen]

    def encode(kind: ColumnKind, *, is_shown: bool) -> JsonObject:
        is_known = fill_column(shown, kind.name).width > 0
        return {
            "name": kind.name,
            "title": kind.title,
            "detail": kind.detail if is_known else f"{kind.detail}: nothing in this profile",
            "isShown": is_shown,
            "isNumber": kind.is_number,
        }

    return [*(encode(kind, is_shown=True) for kind in first), *(encode(one, is_shown=False) for one in kinds.values())]


COMMAND = Command(name="gpaLsp.listColumns", run=list_columns)
