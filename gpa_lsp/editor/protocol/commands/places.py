"""Commands of from a line to its causes, its instructions and other places."""

from lsprotocol.types import Location

from gpa_lsp.editor.lines.positions import span_line
from gpa_lsp.editor.protocol.commands import Arguments, JsonObject
from gpa_lsp.editor.protocol.plain_json import (
    ArgumentsError,
    encode_item,
    encode_jump,
    encode_link,
    encode_location,
    encode_spot,
    need_place,
    read_place,
    read_text,
)
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.sass.library import LANGUAGE_ID, is_sass_uri
from gpa_lsp.editor.snapshot import VisibleKernel

_MOST_LINES = 1 << 31


def find_line_causes(session: Session, arguments: Arguments) -> list[JsonObject]:
    """List what the place in the arguments is stalled on, most samples first."""
    from gpa_lsp.editor.jumps import find_causes

    return [encode_jump(jump) for jump in find_causes(session, *need_place(arguments))]


def find_line_victims(session: Session, arguments: Arguments) -> list[JsonObject]:
    """List what is stalled on the place in the arguments, most samples first."""
    from gpa_lsp.editor.jumps import find_victims

    return [encode_jump(jump) for jump in find_victims(session, *need_place(arguments))]


def go_to_cause(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show the first cause of the place in the arguments: its line, or its instruction where the line is the one we come from.

    For editors that have keys for commands and nothing else of ours.

    Returns:
        The jump; None when the line is not known to wait for another one, which a message says.
    """
    from gpa_lsp.editor.jumps import find_causes

    place = need_place(arguments)
    jumps = find_causes(session, *place)
    if not jumps:
        session.client.inform("this line is not known to be stalled on another one")
        return None
    jump = jumps[0]
    is_same_line = (jump.location.uri, jump.location.range.start.line + 1) == place
    session.client.show_location(jump.sass if is_same_line and jump.sass is not None else jump.location)
    return encode_jump(jump)


def find_chain(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The lines one step from a place, most samples first.

    For clients that show def-use chains themselves: items of a call hierarchy that ``callHierarchy/incomingCalls`` and ``…/outgoingCalls`` open.
    """
    from gpa_lsp.editor.jumps import list_chain

    place, direction = need_place(arguments), read_text(arguments, 2)
    if direction not in ("incoming", "outgoing"):
        raise ArgumentsError("argument 3 is neither incoming nor outgoing")
    steps = list_chain(session, *place, is_incoming=direction == "incoming")
    return [{"item": encode_item(step.item), "text": step.text, "ratio": step.ratio} for step in steps]


def find_linked(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The same code on the other side: SASS of a source line, or source lines of an instruction."""
    from gpa_lsp.editor.sass.links import find_links

    return [encode_link(link) for link in find_links(session, *need_place(arguments))]


def list_ties(session: Session, arguments: Arguments) -> list[JsonObject]:
    """List the lines of the source in the arguments with their lines of the SASS document there, both open, each with the number of a
    colour; none where they have no code in common.
    """
    from gpa_lsp.editor.sass.links import find_ties

    sass_uri, source_uri = read_text(arguments), read_text(arguments, 1)
    if sass_uri is None or source_uri is None:
        raise ArgumentsError("it takes the URIs of a SASS document and of a source")
    return [
        {
            "line": tie.line - 1,
            "colour": tie.colour,
            "ranges": [{"first": first - 1, "last": last - 1} for first, last in tie.stretches],
        }
        for tie in find_ties(session, sass_uri, source_uri)
    ]


def list_spots(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The hottest lines of the document in the arguments; of all where there is none."""
    from gpa_lsp.editor.hot_spots import list_hot_spots

    return [encode_spot(spot) for spot in list_hot_spots(session, read_text(arguments))]


def list_instructions(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The instructions of the SASS document in the arguments, largest first by the column named there, by their samples where none is."""
    from gpa_lsp.editor.sass.hot_rows import sort_rows

    uri = read_text(arguments)
    view = None if uri is None else session.sass.view(uri)
    if view is None:
        return []
    rows = sort_rows(view, read_text(arguments, 1) or "share")
    return [
        {**encode_location(one.location), "value": one.value, "name": one.text, "detail": one.detail} for one in rows
    ]


def open_place(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show a line of a source as the compiler named it, wherever that is on this machine now. Pages send their places here.

    Args:
        arguments: path as compiled, and 1-based line.

    Returns:
        Where that is; None when no loaded profile has the place, or it is not on this machine any more, which is said.

    Raises:
        ArgumentsError: something else was sent.
    """
    file = read_text(arguments)
    line = arguments[1] if len(arguments) > 1 else None
    if file is None or isinstance(line, bool) or not isinstance(line, int) or not 0 < line < _MOST_LINES:
        raise ArgumentsError("it takes a file as it was compiled and the number of a line from 1")
    for shown in session.snapshot.visible:
        location = session.places.locate(shown, (file, line)) if file in shown.profile.files else None
        if location is not None:
            session.client.show_location(location)
            return encode_location(location)
    session.client.inform("this line is not on this machine, or was edited since it was measured")
    return None


def open_sass(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show the instruction of a place that matters most, or the beginning of a kernel's document.

    Returns:
        Where that is; None when there is nothing to show, which is said.
    """
    place = read_place(arguments)
    location = _find_kernel(session, read_text(arguments)) if place is None else _find_line(session, *place)
    if location is None:
        session.client.inform("no loaded profile has instructions of this " + ("kernel" if place is None else "line"))
        return None
    session.client.show_location(location)
    return encode_location(location)


def _find_line(session: Session, uri: str, line: int) -> Location | None:
    """The instruction of a line; the kernel's document for the line a kernel's lens stands on."""
    from gpa_lsp.editor.sass.links import find_links

    if is_sass_uri(uri):
        return None if session.sass.find_kernel(uri) is None else Location(uri=uri, range=span_line(line))
    links = find_links(session, uri, line)
    if links:
        return links[0].location
    view = session.view(uri)
    anchors = () if view is None else view.anchors
    return next((_begin_document(session, anchor.shown) for anchor in anchors if anchor.line == line), None)


def _find_kernel(session: Session, mangled: str | None) -> Location | None:
    kernels = (shown for shown in session.snapshot.visible if shown.kernel.report.mangled_name == mangled)
    return next((_begin_document(session, shown) for shown in kernels), None)


def _begin_document(session: Session, shown: VisibleKernel) -> Location:
    return Location(uri=session.sass.find_uri(shown), range=span_line(1))


def read_document(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """The text and language of a SASS document, for clients that cannot ask for ``workspace/textDocumentContent``.

    Returns:
        None when the argument is no SASS document of a loaded profile.
    """
    uri = read_text(arguments)
    if uri is None or not is_sass_uri(uri):
        return None
    document = session.sass.make(uri)
    return None if document is None else {"text": document.text, "languageId": LANGUAGE_ID}


COMMANDS = {
    "gpaLsp.findCauses": find_line_causes,
    "gpaLsp.findVictims": find_line_victims,
    "gpaLsp.goToCause": go_to_cause,
    "gpaLsp.findChain": find_chain,
    "gpaLsp.findLinked": find_linked,
    "gpaLsp.listTies": list_ties,
    "gpaLsp.listHotSpots": list_spots,
    "gpaLsp.listInstructions": list_instructions,
    "gpaLsp.openPlace": open_place,
    "gpaLsp.openSass": open_sass,
    "gpaLsp.readDocument": read_document,
}
