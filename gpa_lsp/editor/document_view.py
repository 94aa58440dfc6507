"""One open document with the measurements that belong to its lines as they are now. Features answer from it and from nothing else."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.lines.index import (
    CauseLine,
    HotLine,
    KernelLine,
    LineTable,
    MeasuredText,
    RemedyAnchor,
    ValueLine,
    index_lines,
    order_entry,
    place_remedies,
)
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.predicted.view import PlacedPredictions, PredictedState, place_predictions
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.editor.static.view import PlacedStatics, StaticMark, StaticState, place_code_findings, place_statics
from gpa_lsp.editor.timed.view import TimedAnchor, TimedState, place_times
from gpa_lsp.foundation.files import Stamp
from gpa_lsp.foundation.records import SharedFacts
from gpa_lsp.kernel.line_waits import LineWait
from gpa_lsp.report.line_map import LineMap, split_lines
from gpa_lsp.report.measured_files import MeasuredFile
from gpa_lsp.report.saved.kept_allocations import AllocationNote, AllocationPlace, SourceAllocations


class PlacedAllocations(Struct, frozen=True, kw_only=True):
    """The findings on a document."""

    # current line → findings, largest first; their other places are where they are now
    notes: Mapping[int, tuple[AllocationNote, ...]]
    machine: str  # the GPU that the program saw
    doubt: str  # why the lines may not be those, as the rest of a sentence about the source; empty where they are

    @property
    def origin(self) -> str:
        """Source of the findings, and the reason why their lines may be wrong."""
        return f"from an emulated run on {self.machine}" + (f"; the source {self.doubt}" if self.doubt else "")


class KernelAnchor(Struct, frozen=True, kw_only=True):
    """A kernel and the line its lens stands on."""

    line: int  # 1-based, in the document now
    shown: VisibleKernel  # the kernel and its profile
    is_edited: bool  # the document changed since the measurement
    is_withheld: bool = False  # the document may not be what was measured, and nothing is shown on its lines
    is_unverified: bool = False  # it may not be, and what is shown on its lines is marked


_Line = TypeVar("_Line", bound=KernelLine)


class PlacedLines(Mapping[int, tuple[_Line, ...]], Generic[_Line]):
    """Current line → what kernels say of it, largest share first; lines in ascending order.

    Args:
        texts: what was measured.
        pick: of a text, what is wanted.
        finder: maps measured lines to the document's.
    """

    def __init__(
        self,
        texts: Sequence[MeasuredText],
        pick: Callable[[MeasuredText], LineTable[_Line]],
        finder: LineFinder,
    ) -> None:
        self._finder = finder
        self._made: dict[int, tuple[_Line, ...]] = {}
        self._lines: tuple[int, ...] | None = None
        self._parts: list[tuple[MeasuredFile, LineTable[_Line], Mapping[int, int]]] = [
            (text.file, pick(text), finder.map_back(text.file)) for text in texts
        ]

    def __getitem__(self, line: int) -> tuple[_Line, ...]:
        known = self._made.get(line)
        if known is None:
            known = self._made[line] = tuple(self._build(line))
        if not known:
            raise KeyError(line)
        return known

    def __contains__(self, line: object) -> bool:
        return isinstance(line, int) and any(
            measured_of.get(line) in table.by_line for _, table, measured_of in self._parts
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._list_lines())

    def __len__(self) -> int:
        return len(self._list_lines())

    def find_top(self, line: int) -> _Line | None:
        """Return the entry of the kernel with the largest share on a line, building no other; None for a line without measurements."""
        tops = [
            (entries[0], file)
            for file, table, measured_of in self._parts
            if (entries := table.by_line.get(measured_of.get(line, 0), ()))
        ]
        top = min(tops, key=lambda one: order_entry(one[0]), default=None)
        return None if top is None else self._date(*top)

    def _date(self, line: _Line, file: MeasuredFile) -> _Line:
        """Copy of a line that says whether other lines of its file were edited since."""
        return replace(line, is_edited=True) if self._finder.is_edited(file) else line

    def list_above(self, least_ratio: float) -> list[int]:
        """Lines of which some kernel has at least a share, ascending; nothing is made for the others."""
        found: set[int] = set()
        for file, table, _ in self._parts:
            found.update(
                line for measured in table.list_above(least_ratio) if (line := self._finder.find(file, measured))
            )
        return sorted(found)

    def measure_above(self, least_ratio: float) -> dict[int, float]:
        """The same lines with the largest share that some kernel has of each."""
        found: dict[int, float] = {}
        for file, table, _ in self._parts:
            for measured in table.list_above(least_ratio):
                line = self._finder.find(file, measured)
                if line:
                    found[line] = max(found.get(line, 0.0), table.by_line[measured][0].share_ratio)
        return found

    def list_leading(self) -> frozenset[int]:
        """Lines that are among the hottest of some kernel, however little that is."""
        return frozenset(
            line
            for file, table, _ in self._parts
            for measured in table.leading
            if (line := self._finder.find(file, measured))
        )

    def list_tops(self, least_ratio: float) -> list[tuple[int, _Line]]:
        """The same lines, each with what the kernel with the largest share says of it."""
        found = ((line, self.find_top(line)) for line in self.list_above(least_ratio))
        return [(line, top) for line, top in found if top is not None]

    def _list_lines(self) -> tuple[int, ...]:
        if self._lines is None:
            self._lines = tuple(
                sorted(
                    {
                        line
                        for _, table, measured_of in self._parts
                        for line, measured in measured_of.items()
                        if measured in table.by_line
                    }
                )
            )
        return self._lines

    def _build(self, line: int) -> Iterator[_Line]:
        """One text's entries are in order; those of several have to be put in order first."""
        found = [
            self._date(entry, file)
            for file, table, measured_of in self._parts
            for entry in table.by_line.get(measured_of.get(line, 0), ())
        ]
        return iter(sorted(found, key=order_entry) if len(self._parts) > 1 else found)


class DocumentView(Struct, SharedFacts, frozen=True, kw_only=True, dict=True, weakref=True):
    """A document and its measurements. What not every answer needs is found when it is asked for: after a keystroke somebody waits."""

    uri: str  # as the client writes it
    local_path: str  # links resolved
    text: str  # as the editor holds it now
    positions: Positions  # translates lines for the client
    # current line → what the kernels say of it, hottest first; every line with samples
    hot_lines: PlacedLines[HotLine]
    # current line → what the kernels' stalls have to do with it, costliest first; every line that waits or is waited for
    cause_lines: PlacedLines[CauseLine]
    # current line → what it is in the metric that is shown; empty where that is samples or causes, or emulated
    value_lines: PlacedLines[ValueLine]
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
    # what an emulated run found of its allocations; None when none ran
    allocations: PlacedAllocations | None = None
    unsimulated: str | None = (
        None  # why it was not simulated as it is now; None where it was, or nothing is said of that
    )

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

    def find_wait(self, line: int) -> LineWait | None:
        """Return the largest share of a kernel's samples that are stalled on a line (1-based); None where no kernel with causes was sampled on it."""
        kernels = [one.shown.kernel for one in (*self.hot_lines.get(line, ()), *self.cause_lines.get(line, ()))]
        explained = [kernel for kernel in kernels if kernel.causes]
        if not explained:
            return None
        waits = [(one.caused_ratio, one.shown.kernel.report.is_simulated) for one in self.cause_lines.get(line, ())]
        ratio, is_simulated = max(waits, default=(0.0, explained[0].report.is_simulated))
        return LineWait(ratio=ratio, is_simulated=is_simulated, file=self.uri, line=line)

    def find_costliest_lines(self) -> tuple[tuple[int, CauseLine], ...]:
        """Lines that cause at least the user's threshold, each with the kernel it costs most, costliest first."""
        above = self.cause_lines.list_tops(self.settings.min_share_ratio)
        return tuple(sorted(above, key=lambda found: (-found[1].share_ratio, found[0])))

    def find_hottest_lines(self) -> tuple[tuple[int, HotLine], ...]:
        """Lines at or above the user's threshold with their hottest kernel, hottest first."""
        above = self.hot_lines.list_tops(self.settings.min_share_ratio)
        return tuple(sorted(above, key=lambda found: (-found[1].share_ratio, found[0])))


class Knowledge(Struct, frozen=True, kw_only=True):
    """State of the session that answers about every document need."""

    snapshot: Snapshot  # what was measured
    settings: Settings  # the options
    abilities: Abilities  # what the client wants to be sent
    units: UnitCounter  # counts columns for it
    places: PlaceFinder  # finds measured places


class Findings(Struct, frozen=True, kw_only=True):
    """Results of background jobs for one document."""

    statics: StaticState | None = None  # what its code says; None when it was not compiled
    predicted: PredictedState | None = None  # what was emulated of it; None when it was not
    timed: TimedState | None = None  # how long its launches take; None when none was timed
    allocations: SourceAllocations | None = None  # what an emulated run found of its allocations; None when none ran
    unsimulated: str | None = (
        None  # why it was not simulated as it is now; None where it was, or nothing is said of that
    )


class OpenDocument(Findings, frozen=True, kw_only=True):
    """A document as its client has it, and what is known of it alone."""

    uri: str  # as the client writes it
    local_path: str  # its file, links resolved
    text: str  # as the editor holds it now
    saved: Mapping[Stamp | None, str]  # what it held when it was like the file on disk, see :class:`LineFinder`


def build_view(
    document: OpenDocument, known: Knowledge, texts: Sequence[MeasuredText] | None = None
) -> DocumentView | None:
    """The view of a document; None when no profile mentions it and nothing is known of its code.

    Args:
        texts: the index of the snapshot's lines in that file; None to make it.
    """
    local_path, settings, statics, predicted = document.local_path, known.settings, document.statics, document.predicted
    kernels = known.snapshot.by_file.get(local_path, ())
    allocations = document.allocations
    if not kernels and statics is None and predicted is None and document.timed is None and allocations is None:
        return None
    lines = split_lines(document.text)
    finder = LineFinder(lines, saved=document.saved, unverified=settings.unverified_lines)
    texts = index_lines(kernels, local_path, settings.metric) if texts is None else texts
    hot_lines = PlacedLines(texts, lambda text: text.hot, finder)
    cause_lines = PlacedLines(texts, lambda text: text.causes, finder)
    return DocumentView(
        uri=document.uri,
        local_path=local_path,
        text=document.text,
        positions=Positions(lines=lines, units=known.units),
        hot_lines=hot_lines,
        cause_lines=cause_lines,
        value_lines=PlacedLines(texts, lambda text: text.values, finder),
        texts=texts,
        finder=finder,
        settings=settings,
        abilities=known.abilities,
        places=known.places,
        snapshot=known.snapshot,
        statics=None if statics is None else place_statics(statics, finder, _list_measured(kernels)),
        predicted=None if predicted is None else place_predictions(predicted, local_path, finder),
        timed=() if document.timed is None else place_times(document.timed, finder),
        allocations=None if allocations is None else _place_allocations(allocations, finder),
        unsimulated=document.unsimulated,
    )


def _list_measured(kernels: Sequence[VisibleKernel]) -> frozenset[str]:
    """Mangled names of the kernels whose advice replaces static findings: a simulation ranks no arithmetic by what it costs."""
    reports = (shown.kernel.report for shown in kernels)
    return frozenset(report.mangled_name for report in reports if not report.is_simulated)


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
    anchors: list[KernelAnchor] = []
    for shown in view.snapshot.by_file.get(local_path, ()):
        if shown.kernel.body is None:
            continue
        compiled_path, measured_lines = shown.kernel.body
        file = shown.profile.files.get(compiled_path)
        if file is None or file.local_path != local_path:
            continue
        line = finder.find_kernel(shown.kernel.report.name, file, measured_lines)
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


# Lines that were changed since they were measured: they carry no numbers, and the editor says so instead of saying
# nothing.
#
# A line is stale when it stands in the place of a measured line that had something to say and cannot be found any
# more. Where a stretch of lines was replaced by as many, each stands for the one it replaced; else all lines of the
# stretch do. A stretch that was deleted leaves nothing to mark.


def find_stale_lines(
    texts: Sequence[MeasuredText],
    finder: LineFinder,
    *,
    lines: Sequence[str],
    settings: Settings,
    measured: Sequence[Container[int]],
) -> tuple[int, ...]:
    """The stale lines of a document, ascending and 1-based."""
    stale: set[int] = set()
    for text in texts:
        line_map = finder.map(text.file)
        if line_map is not None and not line_map.unchanged and finder.knows(text.file):
            stale.update(_mark_gaps(text, line_map, settings.least_share_ratio, lines))
    return tuple(line for line in sorted(stale) if not any(line in some for some in measured))


class Gap(Struct, frozen=True, kw_only=True):
    """A stretch of lines without partners; both spans are 1-based, half-open, and may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def list_gaps(line_map: LineMap, line_count: int) -> Iterator[Gap]:
    """The stretches between lines that were found again, where lines are missing on both sides.

    >>> one = LineMap(current_lines=(1, 0, 0, 4), unchanged=False)
    >>> [(gap.old_start, gap.old_end, gap.new_start, gap.new_end) for gap in list_gaps(one, 4)]
    [(2, 4, 2, 4)]
    """
    old_start, new_start = 1, 1
    for old_line, new_line in enumerate((*line_map.current_lines, line_count + 1), start=1):
        if not new_line:
            continue
        if old_start < old_line and new_start < new_line:
            yield Gap(old_start=old_start, old_end=old_line, new_start=new_start, new_end=new_line)
        old_start, new_start = old_line + 1, new_line + 1


def _mark_gaps(text: MeasuredText, line_map: LineMap, least_ratio: float, lines: Sequence[str]) -> Iterator[int]:
    hot = {*text.hot.list_above(least_ratio), *text.causes.list_above(least_ratio)}
    measured = text.file.lines
    for gap in list_gaps(line_map, len(lines)):
        lost = [line for line in range(gap.old_start, gap.old_end) if line in hot]
        if not lost:
            continue
        is_as_long = gap.old_end - gap.old_start == gap.new_end - gap.new_start
        shift = gap.new_start - gap.old_start
        standing = [line + shift for line in lost] if is_as_long else range(gap.new_start, gap.new_end)
        before = () if measured is None else {line.strip() for line in measured[gap.old_start - 1 : gap.old_end - 1]}
        for line in standing:
            now = lines[line - 1].strip()
            # A line that says what one of the lost lines said was not changed: there are several of it, and which one it is cannot be told.
            if now not in before and any(character.isalnum() for character in now):
                yield line


def _place_allocations(found: SourceAllocations, finder: LineFinder) -> PlacedAllocations:
    """Put findings on lines; those whose line was edited are left out."""
    notes: dict[int, list[AllocationNote]] = {}
    for note in found.notes:
        line = finder.find(found.file, note.line)
        if line is not None:
            related = tuple(_follow_related(note, found, finder))
            notes.setdefault(line, []).append(replace(note, line=line, related=related))
    return PlacedAllocations(
        notes={line: tuple(told) for line, told in notes.items()},
        machine=found.machine,
        doubt=found.file.describe_doubt(),
    )


def _follow_related(note: AllocationNote, found: SourceAllocations, finder: LineFinder) -> Iterator[AllocationPlace]:
    for path, line, words in note.related:
        now = finder.find(found.file, line) if path == found.file.local_path else line
        if now is not None:
            yield path, now, words
