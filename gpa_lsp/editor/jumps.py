"""Jumps from a line to its stalls' causes and victims: in sources by line, in SASS documents by instruction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol.types import CallHierarchyIncomingCall, CallHierarchyOutgoingCall, Location

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.line_words import name_line
from gpa_lsp.editor.lines.index import CauseLine
from gpa_lsp.editor.lines.places import Counterpart, describe_counterpart, gather_counterparts
from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.model import Jump
from gpa_lsp.editor.sass import jumps as of_instructions
from gpa_lsp.editor.sass.jumps import InstructionStep, list_jumps
from gpa_lsp.editor.sass.library import SassDocument, SassDocuments, is_same_code, is_sass_uri
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.source import chains as of_lines
from gpa_lsp.editor.source.chains import ChainStep
from gpa_lsp.foundation.numbers import format_percent

if TYPE_CHECKING:
    from gpa_lsp.report.pairs import LinePair

_MOST_JUMPS = 20  # Nobody chooses among more

# Of the samples of the line's main cause; lesser ones would only make editors ask which of them was meant
_LEAST_PART = 0.2

_MOST_DOCUMENTS = 2  # SASS documents made for one answer: each may take a third of a second


def find_causes(session: SessionView, uri: str, line: int) -> list[Jump]:
    """Find what a line (1-based) of a source or SASS document is stalled on, most samples first."""
    return _find(session, uri, line, is_cause=True)


def find_victims(session: SessionView, uri: str, line: int) -> list[Jump]:
    """Find what is stalled on a line (1-based) of a source or SASS document, most samples first."""
    return _find(session, uri, line, is_cause=False)


def _find(session: SessionView, uri: str, line: int, *, is_cause: bool) -> list[Jump]:
    if is_sass_uri(uri):
        sass = session.sass.view(uri)
        instruction = None if sass is None else sass.document.find_row(line)
        return [] if sass is None or instruction is None else list_jumps(sass, instruction, is_cause=is_cause)
    view = session.view(uri)
    if view is None:
        return []
    found = _rank_counterparts(view, line, is_cause=is_cause)
    rows = _RowFinder(session.sass, view.positions.units)
    names_kernel = len({id(cause.shown) for cause, _ in found}) > 1
    jumps: dict[tuple[str, int], Jump] = {}
    for cause, counterpart in found:
        pair = counterpart.heaviest
        row = pair.def_row if is_cause else pair.use_row
        place = _locate(session, cause.shown, counterpart, rows, row)
        if place is None or (place.uri, place.range.start.line) in jumps:
            continue  # another kernel has more samples of that line
        jump = Jump(
            location=place,
            text=_describe(cause, counterpart, place, names_kernel=names_kernel),
            ratio=_measure(cause, counterpart),
            samples=counterpart.samples,
            sass=rows.locate(cause.shown, row),
        )
        jumps[(place.uri, place.range.start.line)] = jump
        if len(jumps) == _MOST_JUMPS:
            break
    return list(jumps.values())


def _rank_counterparts(view: DocumentView, line: int, *, is_cause: bool) -> list[tuple[CauseLine, Counterpart]]:
    """The other ends of a line in all kernels, most samples first."""
    found = [
        (cause, counterpart)
        for cause in view.cause_lines.get(line, ())
        for counterpart in gather_counterparts(_list_pairs(cause, is_cause=is_cause))
    ]
    return sorted(found, key=lambda one: -one[1].samples)


def _list_pairs(cause: CauseLine, *, is_cause: bool) -> "tuple[LinePair, ...]":
    return cause.causes.waits if is_cause else cause.causes.waiters


def _locate(
    session: SessionView, shown: VisibleKernel, counterpart: Counterpart, rows: "_RowFinder", row: int
) -> Location | None:
    """The line; the instruction itself where it has none, or none any more; None where the source is not on this machine."""
    place = counterpart.place
    if place is not None and place[0] not in shown.profile.files:
        return None
    location = None if place is None else session.places.locate(shown, place)
    return location or rows.locate(shown, row)


def _describe(cause: CauseLine, counterpart: Counterpart, location: Location, *, names_kernel: bool) -> str:
    """``line 5 · 60 % · 60 samples of long_scoreboard through R2 · y[i] = x[i];``: the code last, which a status bar cuts."""
    place, code = counterpart.place, ""
    if is_sass_uri(location.uri):
        name = "code without lines" if place is None else "a line edited since"
    else:
        assert place is not None  # without a line there is no place in a source
        name, _, code = name_line(cause.shown, place, location.range.start.line + 1).partition(": ")
    said = (name, format_percent(_measure(cause, counterpart)), describe_counterpart(counterpart))
    kernel = f" in {cause.shown.name}" if names_kernel else ""
    return " · ".join(filter(None, (*said[:-1], f"{said[-1]}{kernel}", code)))


def _measure(cause: CauseLine, counterpart: Counterpart) -> float:
    total = cause.shown.kernel.report.total_samples
    return min(1.0, counterpart.samples / total) if total else 0.0


def find_awaited_lines(view: DocumentView, line: int) -> list[Location]:
    """The lines that a line (1-based) of a source waits for, most samples first; those of little weight are left out."""
    found: list[Location] = []
    for cause in view.cause_lines.get(line, ())[:1]:
        counterparts = gather_counterparts(cause.causes.waits)
        for counterpart in counterparts:
            is_light = counterpart.samples < _LEAST_PART * counterparts[0].samples
            if counterpart.place is None or counterpart.place == cause.place or is_light:
                continue
            location = view.places.locate(cause.shown, counterpart.place)
            if location is not None:
                found.append(location)
    return found


class _RowFinder:
    """Finds instructions in SASS documents, and makes no more than a few of those for one answer."""

    def __init__(self, library: SassDocuments, units: UnitCounter) -> None:
        self._library = library
        self._units = units
        self._made: dict[str, SassDocument | None] = {}

    def locate(self, shown: VisibleKernel, row: int) -> Location | None:
        """The text of an instruction; None when the document would be one too many."""
        uri = self._library.find_uri(shown)
        if uri not in self._made:
            if len(self._made) == _MOST_DOCUMENTS:
                return None
            opened = self._library.view(uri)
            self._made[uri] = opened.document if opened is not None else self._library.make(uri)
        document = self._made[uri]
        if document is None or not is_same_code(document.shown, shown):
            return None  # the client holds the text of an earlier build
        positions = Positions(lines=document.lines, units=self._units)
        return Location(uri=uri, range=positions.find_span(*document.find_place(row)))


def list_incoming(session: SessionView, data: object) -> list[CallHierarchyIncomingCall] | None:
    """List what an item's line or instruction is stalled on, most samples first; None for an item of others, or one that is gone."""
    found = of_instructions.list_incoming(session, data)
    return of_lines.list_incoming(session, data) if found is None else found


def list_outgoing(session: SessionView, data: object) -> list[CallHierarchyOutgoingCall] | None:
    """Lines and instructions that wait for an item's, most samples first; None for an item that is none of ours or is not there any more."""
    found = of_instructions.list_outgoing(session, data)
    return of_lines.list_outgoing(session, data) if found is None else found


def list_chain(
    session: SessionView, uri: str, line: int, *, is_incoming: bool
) -> Sequence[ChainStep | InstructionStep]:
    """List what a line (1-based) is stalled on, or what is stalled on it, most samples first."""
    if is_sass_uri(uri):
        return of_instructions.list_chain(session, uri, line, is_incoming=is_incoming)
    view = session.view(uri)
    cause = None if view is None else of_lines.choose_kernel(view, line)
    if cause is None:
        return []
    return of_lines.list_steps(session.places, cause.shown, cause.place, is_incoming=is_incoming)
