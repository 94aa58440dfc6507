"""What the kernels measured on one file say of its lines, by the line as it was measured.

Made once for each new knowledge, so that a keystroke only has to find out where the lines are now. Kernels that were measured on the same text
share an index, whatever profiles they come from.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.lines.metric_values import MetricValue, measure_values
from gpa_lsp.editor.metrics import USUAL, LineMetric, MetricKind
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.model import Advice, Region
    from gpa_lsp.report.kernel_lines import LineCauses
    from gpa_lsp.report.model import LineRow
    from gpa_lsp.report.pairs import LinePair


class HotEntry(NamedTuple):
    """Samples of a line in one kernel."""

    share_ratio: float  # of the kernel's samples, with those of what is inlined into the line or called from it
    shown: VisibleKernel  # the kernel
    file: MeasuredFile  # with the line
    row: "LineRow"  # the line


class CauseEntry(NamedTuple):
    """Stalls of one kernel that have to do with a line."""

    share_ratio: float  # of the kernel's samples, the stalls blamed on the line and the samples of what it calls
    shown: VisibleKernel  # the kernel
    file: MeasuredFile  # with the line
    place: tuple[str, int]  # the line as measured
    causes: "LineCauses"  # what it is stalled on and what is stalled on it


class ValueEntry(NamedTuple):
    """What a line is in the metric that is shown, in one kernel."""

    share_ratio: float  # of all there is in the kernel
    shown: VisibleKernel  # the kernel
    file: MeasuredFile  # with the line
    place: tuple[str, int]  # the line as measured
    value: MetricValue  # with its number


Entry = HotEntry | CauseEntry | ValueEntry
_Entry = TypeVar("_Entry", HotEntry, CauseEntry, ValueEntry)

# Metrics that are read elsewhere
_OWN_ROWS = (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE, MetricKind.EMULATED, MetricKind.PREDICTED)

# Of each kernel: a flat one has no line above anybody's threshold, and a reader wants to know where to begin all the same
LEADING_LINES = 3

# of what the hottest of them has: a line with less does not lead, and carries a number only above the user's threshold
_LEAST_LEADING_RATIO = 0.1


class LineTable(Struct, Generic[_Entry], frozen=True, kw_only=True):
    """Entries by measured line."""

    by_line: Mapping[int, Sequence[_Entry]]  # line → entries, largest share first
    ranked: Sequence[tuple[float, int]]  # (largest share, line), largest first
    # lines that are among the hottest of some kernel, however little that is; they always carry a number
    leading: frozenset[int] = frozenset()

    def list_above(self, least_ratio: float) -> list[int]:
        """Lines of which some kernel has at least a share, largest first."""
        count = bisect_right(self.ranked, -least_ratio, key=lambda one: -one[0])
        return [line for _, line in self.ranked[:count]]


class MeasuredText(Struct, frozen=True, kw_only=True):
    """One text of the file, and what was measured on it."""

    file: MeasuredFile  # with that text; any of those that have it
    hot: LineTable[HotEntry]  # samples
    causes: LineTable[CauseEntry]  # stalls
    values: LineTable[ValueEntry]  # of the metric that is shown, where that is neither of those


class _Draft(Struct):
    file: MeasuredFile
    hot: dict[int, list[HotEntry]] = field(default_factory=dict)
    causes: dict[int, list[CauseEntry]] = field(default_factory=dict)
    values: dict[int, list[ValueEntry]] = field(default_factory=dict)
    leading: set[int] = field(default_factory=set)
    causing: set[int] = field(default_factory=set)
    largest: set[int] = field(default_factory=set)


def _make_table(by_line: dict[int, list[_Entry]], leading: frozenset[int] = frozenset()) -> LineTable[_Entry]:
    for entries in by_line.values():
        entries.sort(key=order_entry)
    ranked = sorted(((entries[0].share_ratio, line) for line, entries in by_line.items()), reverse=True)
    return LineTable(by_line=by_line, ranked=ranked, leading=leading)


def index_lines(
    kernels: Sequence[VisibleKernel], local_path: str, metric: LineMetric = USUAL
) -> tuple[MeasuredText, ...]:
    """What some kernels say of the lines of a file, by the texts it had when they were measured."""
    drafts: dict[tuple[tuple[str, ...] | None, bool], _Draft] = {}
    drafts_by_file: dict[
        int, _Draft
    ] = {}  # by identity: hashing a text for every kernel would take longer than all the rest
    for shown in kernels:
        files: dict[str, _Draft] = {}
        for path, file in shown.profile.files.items():
            if file.local_path != local_path:
                continue
            if id(file) not in drafts_by_file:
                drafts_by_file[id(file)] = drafts.setdefault((file.lines, file.is_verified), _Draft(file=file))
            files[path] = drafts_by_file[id(file)]
        entries = list(_list_hot(shown, files))
        for path, entry in entries:
            files[path].hot.setdefault(entry.row.line or 0, []).append(entry)
        for path, line in _choose_leading(shown, [entry for _, entry in entries]):
            files[path].leading.add(line)
        causes = list(_list_causes(shown, files))
        for path, cause in causes:
            files[path].causes.setdefault(cause.place[1], []).append(cause)
        for path, cause in _list_largest(causes):
            files[path].causing.add(cause.place[1])
        values = list(_list_values(shown, files, metric))
        for path, value in values:
            files[path].values.setdefault(value.place[1], []).append(value)
        for path, value in _list_largest(values):
            files[path].largest.add(value.place[1])
    return tuple(
        MeasuredText(
            file=draft.file,
            hot=_make_table(draft.hot, frozenset(draft.leading)),
            causes=_make_table(draft.causes, frozenset(draft.causing)),
            values=_make_table(draft.values, frozenset(draft.largest)),
        )
        for draft in drafts.values()
    )


def _list_largest(entries: Sequence[tuple[str, _Entry]]) -> list[tuple[str, _Entry]]:
    """The few with the largest shares, as far as they are comparable to the first."""
    largest = nlargest(LEADING_LINES, entries, key=lambda one: one[1].share_ratio)
    return [one for one in largest if one[1].share_ratio >= _LEAST_LEADING_RATIO * largest[0][1].share_ratio]


def _list_values(
    shown: VisibleKernel, files: Mapping[str, object], metric: LineMetric
) -> Iterator[tuple[str, ValueEntry]]:
    values = None if metric.kind in _OWN_ROWS else measure_values(shown.kernel, metric)
    for place, value in ({} if values is None else values.by_line).items():
        if place[0] in files and value.ratio > 0:
            yield place[0], ValueEntry(value.ratio, shown, shown.profile.files[place[0]], place, value)


def _choose_leading(shown: VisibleKernel, entries: Sequence[HotEntry]) -> Iterator[tuple[str, int]]:
    """The hottest lines of a kernel, as far as they are among some entries: of the file its body is in, its hottest lines there.

    Of other files only what is hottest in all of the kernel: a header is shared by many.
    """
    home = shown.kernel.body[0] if shown.kernel.body is not None else None
    ranked = sorted(entries, key=lambda entry: (-entry.share_ratio, entry.row.line or 0))
    at_home = [entry for entry in ranked if entry.row.file == home][:LEADING_LINES]
    at_home = [entry for entry in at_home if entry.share_ratio >= _LEAST_LEADING_RATIO * at_home[0].share_ratio]
    lines = (row for row in shown.kernel.report.lines if row.line)
    rows = nlargest(LEADING_LINES, lines, key=lambda row: row.inclusive_samples + row.called_samples)
    least = _LEAST_LEADING_RATIO * max((row.inclusive_samples + row.called_samples for row in rows), default=0.0)
    hottest = {(row.file, row.line) for row in rows if row.inclusive_samples + row.called_samples >= least}
    elsewhere = [entry for entry in ranked if (entry.row.file, entry.row.line) in hottest]
    for entry in (*at_home, *elsewhere):
        if entry.row.file is not None and entry.row.line:
            yield entry.row.file, entry.row.line


def order_entry(entry: Entry) -> tuple[float, str]:
    """Largest share first; alike ones by name, so that nothing depends on the order of loading."""
    return (-entry.share_ratio, entry.shown.kernel.report.mangled_name)


def _list_hot(shown: VisibleKernel, files: Mapping[str, object]) -> Iterator[tuple[str, HotEntry]]:
    total = shown.kernel.report.total_samples
    for row in shown.kernel.report.lines:
        samples = row.inclusive_samples + row.called_samples
        if row.file is not None and row.file in files and row.line and samples:
            share_ratio = min(1.0, samples / total) if total else 0.0
            yield row.file, HotEntry(share_ratio, shown, shown.profile.files[row.file], row)


def _list_causes(shown: VisibleKernel, files: Mapping[str, object]) -> Iterator[tuple[str, CauseEntry]]:
    total = shown.kernel.report.total_samples
    for place, causes in shown.kernel.causes.items():
        if place[0] in files:
            samples = causes.caused_samples + causes.called_samples
            share_ratio = min(1.0, samples / total) if total else 0.0
            yield place[0], CauseEntry(share_ratio, shown, shown.profile.files[place[0]], place, causes)


_LEAST_VICTIM_RATIO = 0.02  # Of what a line causes; a place that suffers less is not worth a reader's jump

_LEAST_LENS_SPEEDUP = 1.03  # What gains less is on the kernel's page; it is not worth a line among the code

_LENS_SCOPES = ("loop", "call")  # Kinds of scopes that get a lens of their own


class CauseLine(Struct, frozen=True, kw_only=True):
    """What one kernel's stalls have to do with one line of the document."""

    shown: VisibleKernel  # the kernel and its profile
    place: tuple[str, int]  # file as compiled, and line
    file: MeasuredFile  # the measured file the line stands in
    causes: "LineCauses"  # what it is stalled on and what is stalled on it
    share_ratio: float  # of the kernel's samples, the stalls blamed on this line, with everything inlined into it, and the samples of what it calls
    is_edited: bool  # other lines of the document changed since the measurement

    @property
    def caused_ratio(self) -> float:
        """Share of the kernel's samples that are stalls blamed on this line, without the estimate of what it calls."""
        total = self.shown.kernel.report.total_samples
        return min(1.0, self.causes.caused_samples / total) if total else 0.0

    @property
    def victims(self) -> "tuple[LinePair, ...]":
        """The places of other lines that wait for this one, most samples first; those that hardly do are left out."""
        least = _LEAST_VICTIM_RATIO * self.causes.caused_samples
        return tuple(
            pair
            for pair in self.causes.waiters
            if pair.place is not None and (pair.place.file, pair.place.line) != self.place and pair.samples >= least
        )

    @property
    def remedies(self) -> "tuple[Advice, ...]":
        """The advice that names this line, best first."""
        kernel = self.shown.kernel
        return tuple(kernel.advice[number] for number in kernel.remedies.get(self.place, ()))


class RemedyAnchor(Struct, frozen=True, kw_only=True):
    """A loop or a call that carries advice, and the line it stands on."""

    line: int  # 1-based, in the document now
    shown: VisibleKernel  # the kernel and its profile
    advice: "Advice"  # what to do
    region: "Region"  # the loop or call
    is_edited: bool  # the document changed since the measurement


def make_cause_line(entry: CauseEntry, is_edited: bool) -> CauseLine:
    """What an entry of the index says of its line."""
    return CauseLine(
        shown=entry.shown,
        place=entry.place,
        file=entry.file,
        causes=entry.causes,
        share_ratio=entry.share_ratio,
        is_edited=is_edited,
    )


def place_remedies(kernels: Sequence[VisibleKernel], local_path: str, finder: LineFinder) -> tuple[RemedyAnchor, ...]:
    """Advice about loops and calls; what is about the whole kernel stands on the kernel's own lens."""
    anchors: list[RemedyAnchor] = []
    for shown in kernels:
        for advice in shown.kernel.advice:
            for region in advice.regions:
                scope = region.scope
                file = shown.profile.files.get(scope.file) if scope.file is not None else None
                if scope.kind.value not in _LENS_SCOPES or file is None or file.local_path != local_path:
                    continue
                if region.speedup.estimate < _LEAST_LENS_SPEEDUP:
                    continue
                line = finder.find(file, scope.line) if scope.line else None
                if line is not None:
                    edited = finder.is_edited(file)
                    anchors.append(RemedyAnchor(line=line, shown=shown, advice=advice, region=region, is_edited=edited))
    return tuple(sorted(anchors, key=lambda anchor: (anchor.line, -anchor.region.speedup.estimate)))
