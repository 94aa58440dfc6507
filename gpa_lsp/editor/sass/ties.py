"""What ties a source and a SASS document that are open side by side: every line's instructions, and a colour that both are given."""

from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.foundation.ownership import find_frame_in

if TYPE_CHECKING:
    from gpa_lsp.editor.document_view import DocumentView
    from gpa_lsp.editor.sass.model import SassDocument

COLOURS = 8  # As many as people tell apart beside each other


class Tie(Struct, frozen=True, kw_only=True):
    """A line of a source, and what it was compiled to."""

    line: int  # of the source as it is now, 1-based
    colour: int  # number of its colour, from 0; lines that follow each other in the source differ
    stretches: tuple[tuple[int, int], ...]  # first and last lines of the SASS document, 1-based, ascending


def find_ties(session: SessionView, sass_uri: str, source_uri: str) -> list[Tie]:
    """The ties of two open documents, by line of the source.

    An instruction belongs to the innermost frame of its inline chain that is in this source: what was inlined from elsewhere is tied to the line that
    called it.
    """
    sass, source = session.sass.view(sass_uri), session.view(source_uri)
    if sass is None or source is None:
        return []
    stretches: dict[int, list[tuple[int, int]]] = {}
    lines = _place_chains(sass.document, source)
    columns = sass.document.shown.kernel.report.instructions
    before: int | None = None
    for place, chain in zip(sass.document.line_of_row.tolist(), columns.chain_index.tolist(), strict=True):
        line = lines[chain] if chain >= 0 else None
        if line is not None:
            own = stretches.setdefault(line, [])
            if line == before:
                own[-1] = (own[-1][0], place)  # what stands between them, such as a quote, goes with them
            else:
                own.append((place, place))
        before = line
    return [
        Tie(line=line, colour=number % COLOURS, stretches=tuple(stretches[line]))
        for number, line in enumerate(sorted(stretches))
    ]


def _place_chains(document: "SassDocument", source: "DocumentView") -> list[int | None]:
    """For each inline chain the line of the source it belongs to now."""
    shown = document.shown
    files = {path: file for path, file in shown.profile.files.items() if file.local_path == source.local_path}
    known: dict[tuple[str, int], int | None] = {}
    lines: list[int | None] = []
    for chain in shown.kernel.report.instructions.chains:
        frame = find_frame_in(chain, files.__contains__)
        if frame is None:
            lines.append(None)
            continue
        place = (frame.file, frame.line)
        if place not in known:
            known[place] = source.finder.find(files[frame.file], frame.line)
        lines.append(known[place])
    return lines
