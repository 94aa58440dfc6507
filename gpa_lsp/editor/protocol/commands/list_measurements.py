"""``gpaLsp.listMeasurements``: the measurements of a kernel in all profiles, newest first, for lists to choose from."""

from gpa_lsp.editor.measurements import describe_measurement
from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import find_mangled
from gpa_lsp.editor.protocol.session import Session


def list_them(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The measurements of the kernel that a mangled name or a place (``uri, line``) names; none where there is no such kernel."""
    mangled = find_mangled(session, arguments)
    shown = {one.profile.path for one in session.snapshot.visible if one.kernel.report.mangled_name == mangled}
    return [
        {
            "mangled": mangled,
            "profile": str(path),
            "text": describe_measurement(profile, kernel),
            "isShown": path in shown,
        }
        for path, (profile, kernel) in session.snapshot.list_measurements(mangled or "").items()
    ]


COMMAND = Command(name="gpaLsp.listMeasurements", run=list_them)
