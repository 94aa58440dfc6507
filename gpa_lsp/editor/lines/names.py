"""What a measured line is called in lists and sentences: where it is now, and what it says."""

from lsprotocol.types import Location

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.places import Place, name_file
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.visible_text import shorten
from gpa_lsp.report.measured_files import MeasuredFile

_LONGEST_TEXT = 60


def name_line(shown: VisibleKernel, place: Place, current_line: int) -> str:
    """``line 12: x[i]``, or ``m.h:12: x[i]`` in another file than the kernel's own; without the text where it is not known.

    Args:
        current_line: where the line is now, 1-based.
    """
    home = shown.kernel.body[0] if shown.kernel.body is not None else place[0]
    where = f"line {current_line}" if place[0] == home else f"{name_file(place[0])}:{current_line}"
    text = read_text(shown, place)
    return f"{where}: {text}" if text else where


def name_place(view: DocumentView, shown: VisibleKernel, place: Place | None) -> str:
    """A place in a sentence, by the line it is on now: ``line 12``, or ``m.h:12`` in another document than the reader is in.

    Args:
        place: as measured; None for code without lines.
    """
    if place is None:
        return "code without lines"
    file = shown.profile.files.get(place[0])
    if file is not None and file.local_path == view.local_path:
        line = _find_here(view, file, place)
        return "a line edited since" if line is None else f"line {line}"
    location = view.places.locate(shown, place)
    if location is not None:
        return name_location(view, place, location)
    where = f"{name_file(place[0])}:{place[1]}"
    return where if file is None else f"{where} as measured"


def name_location(view: DocumentView, place: Place, location: Location) -> str:
    """The same for a place that was found."""
    line = location.range.start.line + 1
    return f"line {line}" if location.uri == view.uri else f"{name_file(place[0])}:{line}"


def name_briefly(view: DocumentView, shown: VisibleKernel, place: Place, location: Location | None) -> str:
    """A place in a few characters: as in a sentence where it was found, and as compiled where its file is not here; empty where it was edited away.

    Args:
        location: where it is now; None where nobody can tell.
    """
    if location is not None:
        return name_location(view, place, location)
    file = shown.profile.files.get(place[0])
    return f"{name_file(place[0])}:{place[1]}" if file is None else ""


def locate_from(view: DocumentView, shown: VisibleKernel, place: Place) -> Location | None:
    """Where a measured place is now, seen from a document: in it by its own lines, elsewhere as far as it can be found."""
    file = shown.profile.files.get(place[0])
    if file is None or file.local_path != view.local_path:
        return view.places.locate(shown, place)
    line = _find_here(view, file, place)
    return None if line is None else Location(uri=view.uri, range=view.positions.find_text(line))


def _find_here(view: DocumentView, file: MeasuredFile, place: Place) -> int | None:
    """The line of the document, 1-based, that a place in its file is on now; None where it was edited away."""
    line = view.finder.find(file, place[1])
    return line if line is not None and 1 <= line <= len(view.positions.lines) else None


def read_text(shown: VisibleKernel, place: Place) -> str:
    """What a line says, as it was measured, white space made small and cut to a list's width; empty when it is not known."""
    file = shown.profile.files.get(place[0])
    if file is None or file.lines is None or not 1 <= place[1] <= len(file.lines):
        return ""
    return shorten_text(file.lines[place[1] - 1])


def shorten_text(text: str) -> str:
    """A line for a list.

    >>> shorten_text("    y[i]  =\\tx[i];")
    'y[i] = x[i];'
    """
    plain = " ".join(text.split())
    return shorten(plain, _LONGEST_TEXT)
