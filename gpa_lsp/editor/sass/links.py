"""The same code on the other side: the instructions of a source line, and the source lines of an instruction."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lsprotocol.types import Location, Range
from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.line_words import name_line
from gpa_lsp.editor.lines.positions import Positions
from gpa_lsp.editor.sass.library import SassDocument, is_same_code, is_sass_uri
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.numbers import format_count_of, format_percent
from gpa_lsp.foundation.ownership import find_frame_in
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MOST_KERNELS = 8
_MOST_INSTRUCTIONS = 50_000  # Of the documents made for one answer: 20,000 take up to a third of a second


class Link(Struct, frozen=True, kw_only=True):
    """The same code on the other side."""

    uri: str  # the document
    ranges: tuple[Range, ...]  # its lines, ascending; lines that follow each other are one range
    primary: Range  # the line to go to
    kernel: str  # name of the kernel
    text: str  # a few words for a list to choose from

    @property
    def location(self) -> Location:
        """The line to go to."""
        return Location(uri=self.uri, range=self.primary)


def find_links(session: SessionView, uri: str, line: int) -> list[Link]:
    """The other side of a line (1-based) of a source or SASS document.

    For a source, a link per kernel, most samples on the line first, and no more kernels than anybody looks at; for an instruction, a link per
    frame of its inline chain that is on this machine, innermost first.
    """
    if is_sass_uri(uri):
        return list(_link_instruction(session, uri, line))
    view = session.view(uri)
    return [] if view is None else list(_link_line(session, view, line))


def find_row_near(document: SassDocument, line: int) -> int | None:
    """The instruction on a 1-based line, or the one below a heading or a quote; None behind the last one and in the header."""
    if not 1 <= line <= len(document.lines):
        return None
    header = int(document.sections[0].first_line) if document.sections else 1
    below = document.row_of_line[line - 1 :]
    rows = below[below >= 0]
    return int(rows[0]) if len(rows) and line >= header else None


def _link_instruction(session: SessionView, uri: str, line: int) -> Iterator[Link]:
    view = session.sass.view(uri)
    document = view.document if view is not None else session.sass.make(uri)
    row = None if document is None else find_row_near(document, line)
    if document is None or row is None:
        return
    shown = document.shown
    columns = shown.kernel.report.instructions
    chain = int(columns.chain_index[row])
    frames = columns.chains[chain] if chain >= 0 else ()
    for place in dict.fromkeys((frame.file, frame.line) for frame in frames):
        location = session.places.locate(shown, place)
        if location is not None:
            yield Link(
                uri=location.uri,
                ranges=(location.range,),
                primary=location.range,
                kernel=shown.name,
                text=name_line(shown, place, location.range.start.line + 1),
            )


class _Found(ColumnRecord, frozen=True, kw_only=True):
    """A kernel's instructions of a line."""

    shown: VisibleKernel  # the kernel
    rows: "npt.NDArray[np.int64]"  # int64[m], ascending; at least one
    samples: int  # on them


def _link_line(session: SessionView, view: DocumentView, line: int) -> Iterator[Link]:
    found = [one for shown in view.snapshot.by_file.get(view.local_path, ()) if (one := _find_rows(view, shown, line))]
    found.sort(key=lambda one: -one.samples)
    budget = _MOST_INSTRUCTIONS
    for index, one in enumerate(found[:_MOST_KERNELS]):
        budget -= len(one.shown.kernel.report.instructions)
        if index and budget < 0:
            return
        link = _make_link(session, view, one)
        if link is not None:
            yield link


def _find_rows(view: DocumentView, shown: VisibleKernel, line: int) -> _Found | None:
    """The instructions with the line in any frame of their inline chain; None when there are none."""
    import numpy as np

    files = {path: file for path, file in shown.profile.files.items() if file.local_path == view.local_path}
    columns = shown.kernel.report.instructions
    known: dict[tuple[str, int], bool] = {}
    chains: list[int] = []
    for number, chain in enumerate(columns.chains):
        for frame in chain:
            if frame.file not in files:
                continue
            place = (frame.file, frame.line)
            if place not in known:
                known[place] = view.finder.find(files[frame.file], frame.line) == line
            if known[place]:
                chains.append(number)
                break
    if not chains:
        return None
    rows = np.flatnonzero(np.isin(columns.chain_index, chains))
    return _Found(shown=shown, rows=rows, samples=int(columns.all_samples[rows].sum())) if len(rows) else None


def _make_link(session: SessionView, view: DocumentView, found: _Found) -> Link | None:
    uri = session.sass.find_uri(found.shown)
    opened = session.sass.view(uri)
    document = opened.document if opened is not None else session.sass.make(uri)
    if document is None or not is_same_code(document.shown, found.shown):
        return None  # the client holds the text of an earlier build
    positions = Positions(lines=document.lines, units=view.positions.units)
    count = format_count_of(len(found.rows), "instruction")
    report = found.shown.kernel.report
    share = f" · {format_percent(found.samples / report.total_samples)}" if found.samples else ""
    return Link(
        uri=uri,
        ranges=tuple(_merge(document, positions, found.rows)),
        primary=positions.find_span(*document.find_place(choose_primary(found.shown, found.rows))),
        kernel=found.shown.name,
        text=f"{found.shown.name} · {count}{share}",
    )


def choose_primary(shown: VisibleKernel, rows: "npt.NDArray[np.int64]") -> int:
    """Choose the instruction that matters most: the one that causes most samples, its own included; of equals, the one with most samples."""
    import numpy as np

    report = shown.kernel.report
    taken = report.instructions.all_samples[rows].sum(axis=1)
    if report.blame is None:
        return int(rows[np.lexsort((rows, -taken))[0]])
    edges = report.blame.edges
    caused = np.bincount(edges.def_row, weights=edges.all_samples, minlength=len(report.instructions))[rows]
    return int(rows[np.lexsort((rows, -taken, -caused))[0]])


def _merge(document: SassDocument, positions: Positions, rows: "npt.NDArray[np.int64]") -> Iterator[Range]:
    """Stretches of instructions that follow each other, as ranges of lines."""
    import numpy as np

    lines: Sequence[int] = document.line_of_row[rows].tolist()
    breaks = (np.flatnonzero(np.diff(rows) > 1) + 1).tolist()
    for start, end in zip([0, *breaks], [*breaks, len(rows)], strict=True):
        first, last = positions.find_text(lines[start]), positions.find_text(lines[end - 1])
        yield Range(start=first.start, end=last.end)


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
    """The current source line of each inline chain."""
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
