"""What a measured line is called in lists and sentences: where it is now, and what it says."""

from gpa_lsp.lsp.places import Place, PlaceFinder, name_file
from gpa_lsp.lsp.session import VisibleKernel

_LONGEST_TEXT = 60


def name_line(shown: VisibleKernel, place: Place, current_line: int) -> str:
    """``line 12: x[i]``, or ``m.h:12: x[i]`` in another file than the kernel's own; without the text where it is not known.

    Args:
        shown: the kernel.
        place: as measured.
        current_line: where the line is now, 1-based.
    """
    home = shown.kernel.body[0] if shown.kernel.body is not None else place[0]
    where = f"line {current_line}" if place[0] == home else f"{name_file(place[0])}:{current_line}"
    text = read_text(shown, place)
    return f"{where}: {text}" if text else where


def name_place_now(places: PlaceFinder, shown: VisibleKernel, place: Place | None, own_uri: str) -> str:
    """A place in a sentence, by the line it is on now: ``line 12``, or ``m.h:12`` in another document than the reader is in.

    Args:
        places: finds it.
        shown: the kernel.
        place: as measured; None for code without lines.
        own_uri: the document the reader is in.
    """
    if place is None:
        return "code without lines"
    location = places.locate(shown, place)
    if location is not None:
        line = location.range.start.line + 1
        return f"line {line}" if location.uri == own_uri else f"{name_file(place[0])}:{line}"
    is_here = place[0] in shown.profile.files
    return f"a line of {name_file(place[0])} edited since" if is_here else f"{name_file(place[0])}:{place[1]}"


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
    return plain if len(plain) <= _LONGEST_TEXT else plain[: _LONGEST_TEXT - 1] + "…"
