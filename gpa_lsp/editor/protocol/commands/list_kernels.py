"""``gpaLsp.listKernels``: every kernel that is shown, longest first, for lists to choose from."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_location
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.source.symbols import describe_time


def list_kernels(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The kernels, and where they are."""
    del arguments
    return [_describe(session, shown) for shown in session.snapshot.visible]


def _describe(session: Session, shown: VisibleKernel) -> JsonObject:
    from gpa_lsp.editor.kernels import find_source_place

    location = find_source_place(session, shown)
    return {
        "name": shown.name,
        "mangled": shown.kernel.report.mangled_name,
        "sassUri": session.sass.find_uri(shown),
        "location": None if location is None else encode_location(location),
        "text": describe_time(shown),
    }


COMMAND = Command(name="gpaLsp.listKernels", run=list_kernels)
