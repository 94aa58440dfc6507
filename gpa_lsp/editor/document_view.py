"""One open document with the measurements that belong to its lines as they are now. Features answer from it and from nothing else."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.lines.anchors import choose_anchor, find_definitions
from gpa_lsp.editor.lines.causes import CauseLine, RemedyAnchor, make_cause_line, place_remedies
from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.lines.index import CauseEntry, HotEntry, MeasuredText, ValueEntry, index_lines
from gpa_lsp.editor.lines.metric_values import MetricValue
from gpa_lsp.editor.lines.placed import PlacedLines
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.lines.stale import find_stale_lines
from gpa_lsp.editor.predicted.view import PlacedPredictions, PredictedState, place_predictions
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.editor.static.results import StaticMark
from gpa_lsp.editor.static.view import PlacedStatics, StaticState, place_code_findings, place_statics
from gpa_lsp.editor.timed.view import TimedAnchor, TimedState, place_times
from gpa_lsp.foundation.file_stamps import Stamp
from gpa_lsp.foundation.shared_facts import SharedFacts
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:
    from gpa_lsp.report.model import LineRow


class HotLine(Struct, frozen=True, kw_only=True):
    """What one kernel says of one line of the document."""

    shown: VisibleKernel  # the kernel and its profile
    row: "LineRow"  # samples of the line
    file: MeasuredFile  # the measured file the line stands in
    # of the kernel's samples, those with this line anywhere in their inline chain, and the estimate of those in functions called from it
    share_ratio: float
    is_edited: bool  # other lines of the document changed since the measurement

    @property
    def is_mostly_called(self) -> bool:
        """More of the line's cost lies in functions it calls than in itself."""
        return self.row.called_samples > self.row.inclusive_samples

    @property
    def unexplained_ratio(self) -> float:
        """Of the kernel's samples, those taken on this line that have no known cause; all of the line's where nothing was blamed."""
        kernel = self.shown.kernel
        if not kernel.causes:
            return self.share_ratio
        causes = kernel.causes.get((self.row.file or "", self.row.line or 0))
        total = kernel.report.total_samples
        return causes.blame.unattributed_samples / total if causes is not None and total else 0.0

    @property
    def hottest(self) -> tuple[int, ...]:
        """Indices of the line's hottest instructions in the kernel's columns."""
        return self.shown.kernel.hottest.get((self.row.file or "", self.row.line or 0), ())


class ValueLine(Struct, frozen=True, kw_only=True):
    """What a line of the document is in the metric that is shown, in one kernel."""

    shown: VisibleKernel  # the kernel and its profile
    file: MeasuredFile  # the measured file the line stands in
    place: tuple[str, int]  # the line as measured
    value: MetricValue  # with its number
    is_edited: bool  # other lines of the document changed since the measurement


class KernelAnchor(Struct, frozen=True, kw_only=True):
    """A kernel and the line its lens stands on."""

    line: int  # 1-based, in the document now
    shown: VisibleKernel  # the kernel and its profile
    is_edited: bool  # the document changed since the measurement
    is_withheld: bool = False  # the document may not be what was measured, and nothing is shown on its lines
    is_unverified: bool = False  # it may not be, and what is shown on its lines is marked


class DocumentView(Struct, SharedFacts, frozen=True, kw_only=True, dict=True, weakref=True):
    """A document and its measurements. What not every answer needs is found when it is asked for: after a keystroke somebody waits."""

    uri: str  # as the client writes it
    local_path: str  # links resolved
    text: str  # as the editor holds it now
    positions: Positions  # translates lines for the client
    # current line → what the kernels say of it, hottest first; every line with samples
    hot_lines: PlacedLines[HotEntry, HotLine]
    # current line → what the kernels' stalls have to do with it, costliest first; every line that waits or is waited for
    cause_lines: PlacedLines[CauseEntry, CauseLine]
    # current line → what it is in the metric that is shown; empty where that is samples or causes, or emulated
    value_lines: PlacedLines[ValueEntry, ValueLine]
    texts: Sequence[MeasuredText]  # what was measured on its file, by the text it had then
    finder: LineFinder  # maps measured lines to the document's
    settings: Settings  # the options
    abilities: Abilities  # what the client wants to be sent
    places: PlaceFinder  # finds measured places, in this document and elsewhere
    snapshot: Snapshot  # where it comes from
    # what the code of the document says where no profile does; None when it was not compiled
    statics: PlacedStatics | None = None
    # what was emulated of it, or what is wrong with it as a description of launches; None when it was not emulated
    predicted: PlacedPredictions | None = None
    timed: tuple[TimedAnchor, ...] = ()  # how long its described launches take, by line
    unsimulated: str = ""  # why it was not simulated as it is now; empty where it was, or nothing is said of that

    @property
    def anchors(self) -> tuple[KernelAnchor, ...]:
        """Kernels whose body is in this document, by line and then longest first."""
        return self.once(_place_anchors)

    @property
    def remedies(self) -> tuple[RemedyAnchor, ...]:
        """Loops and calls in this document that carry advice, by line, then largest gain first."""
        return self.once(_place_remedies)

    @property
    def static_marks(self) -> Mapping[int, tuple[StaticMark, ...]]:
        """Current line → what the code alone says of it: of kernels that no profile measured, and where a profile did not count."""
        return self.once(_list_static_marks)

    @property
    def stale(self) -> tuple[int, ...]:
        """Lines that were changed since they were measured, ascending; they carry no numbers."""
        return self.once(_find_stale)

    def find_costliest_lines(self) -> tuple[tuple[int, CauseLine], ...]:
        """Lines that cause at least the user's threshold, each with the kernel it costs most, costliest first."""
        above = self.cause_lines.list_tops(self.settings.min_share_ratio)
        return tuple(sorted(above, key=lambda found: (-found[1].share_ratio, found[0])))

    def find_hottest_lines(self) -> tuple[tuple[int, HotLine], ...]:
        """Lines at or above the user's threshold with their hottest kernel, hottest first."""
        above = self.hot_lines.list_tops(self.settings.min_share_ratio)
        return tuple(sorted(above, key=lambda found: (-found[1].share_ratio, found[0])))


class Knowledge(Struct, frozen=True, kw_only=True):
    """What there is to say and how, whatever document it is said of."""

    snapshot: Snapshot  # what was measured
    settings: Settings  # the options
    abilities: Abilities  # what the client wants to be sent
    units: UnitCounter  # counts columns for it
    places: PlaceFinder  # finds measured places


class OpenDocument(Struct, frozen=True, kw_only=True):
    """A document as its client has it, and what is known of it alone."""

    uri: str  # as the client writes it
    local_path: str  # its file, links resolved
    text: str  # as the editor holds it now
    saved: Mapping[Stamp | None, str]  # what it held when it was like the file on disk, see :class:`LineFinder`
    statics: StaticState | None = None  # what its code says; None when it was not compiled
    predicted: PredictedState | None = None  # what was emulated of it; None when it was not
    timed: TimedState | None = None  # how long its launches take; None when none was timed
    unsimulated: str = ""  # why it was not simulated as it is now; empty where it was


def build_view(
    document: OpenDocument, known: Knowledge, texts: Sequence[MeasuredText] | None = None
) -> DocumentView | None:
    """The view of a document; None when no profile mentions it and nothing is known of its code.

    Args:
        texts: the index of the snapshot's lines in that file; None to make it.
    """
    local_path, settings, statics, predicted = document.local_path, known.settings, document.statics, document.predicted
    kernels = known.snapshot.by_file.get(local_path, ())
    if not kernels and statics is None and predicted is None and document.timed is None:
        return None
    lines = split_lines(document.text)
    finder = LineFinder(lines, saved=document.saved, unverified=settings.unverified_lines)
    texts = index_lines(kernels, local_path, settings.metric) if texts is None else texts
    hot_lines = PlacedLines(texts, lambda text: text.hot, finder, _make_hot_line)
    cause_lines = PlacedLines(texts, lambda text: text.causes, finder, make_cause_line)
    return DocumentView(
        uri=document.uri,
        local_path=local_path,
        text=document.text,
        positions=Positions(lines=lines, units=known.units),
        hot_lines=hot_lines,
        cause_lines=cause_lines,
        value_lines=PlacedLines(texts, lambda text: text.values, finder, _make_value_line),
        texts=texts,
        finder=finder,
        settings=settings,
        abilities=known.abilities,
        places=known.places,
        snapshot=known.snapshot,
        statics=None if statics is None else place_statics(statics, document.text, finder, _list_measured(kernels)),
        predicted=None if predicted is None else place_predictions(predicted, local_path, document.text, finder),
        timed=() if document.timed is None else place_times(document.timed, document.text, finder),
        unsimulated=document.unsimulated,
    )


def _list_measured(kernels: Sequence[VisibleKernel]) -> frozenset[str]:
    """Mangled names of the kernels whose advice replaces static findings: a simulation ranks no arithmetic by what it costs."""
    reports = (shown.kernel.report for shown in kernels)
    return frozenset(report.mangled_name for report in reports if not report.is_simulated)


def _make_hot_line(entry: HotEntry, is_edited: bool) -> HotLine:
    return HotLine(
        shown=entry.shown, row=entry.row, file=entry.file, share_ratio=entry.share_ratio, is_edited=is_edited
    )


def _make_value_line(entry: ValueEntry, is_edited: bool) -> ValueLine:
    return ValueLine(shown=entry.shown, file=entry.file, place=entry.place, value=entry.value, is_edited=is_edited)


def _place_remedies(view: DocumentView) -> tuple[RemedyAnchor, ...]:
    return place_remedies(view.snapshot.by_file.get(view.local_path, ()), view.local_path, view.finder)


def _list_static_marks(view: DocumentView) -> Mapping[int, tuple[StaticMark, ...]]:
    found = {} if view.statics is None else {line: list(marks) for line, marks in view.statics.marks.items()}
    for line, mark in place_code_findings(view.snapshot.by_file.get(view.local_path, ()), view.local_path, view.finder):
        if all((one.check, one.message) != (mark.check, mark.message) for one in found.get(line, ())):
            found.setdefault(line, []).append(mark)
    return {line: tuple(marks) for line, marks in found.items()}


def _find_stale(view: DocumentView) -> tuple[int, ...]:
    return find_stale_lines(
        view.texts,
        view.finder,
        lines=view.positions.lines,
        settings=view.settings,
        measured=(view.hot_lines, view.cause_lines),
    )


def _place_anchors(view: DocumentView) -> tuple[KernelAnchor, ...]:
    local_path, finder = view.local_path, view.finder
    definitions = find_definitions(view.text)
    anchors: list[KernelAnchor] = []
    for shown in view.snapshot.by_file.get(local_path, ()):
        if shown.kernel.body is None:
            continue
        compiled_path, measured_lines = shown.kernel.body
        file = shown.profile.files.get(compiled_path)
        if file is None or file.local_path != local_path:
            continue
        current_lines = (finder.find(file, line) for line in measured_lines)
        topmost = next((line for line in current_lines if line is not None), None)
        line = choose_anchor(definitions, shown.kernel.report.name, topmost)
        if line is not None:
            anchors.append(
                KernelAnchor(
                    line=line,
                    shown=shown,
                    is_edited=finder.is_edited(file),
                    is_withheld=not finder.knows(file),
                    is_unverified=not file.is_verified,
                )
            )
    return tuple(sorted(anchors, key=lambda anchor: anchor.line))
