"""Index of the measurements of one file, by line as measured.

Made once for each new knowledge, so that a keystroke only has to find out where the lines are now. Kernels that were measured on the same text
share an index, whatever profiles they come from.
"""

from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Generic, TypeVar

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


class KernelLine(Struct, frozen=True, kw_only=True):
    """Measurement of one kernel on one line."""

    shown: VisibleKernel  # the kernel and its profile
    file: MeasuredFile  # the measured file the line stands in
    place: tuple[str, int]  # the line as measured: file as compiled, and number
    share_ratio: float  # of the kernel's samples, or of all there is in it of the metric that is shown
    is_edited: bool = False  # other lines of the document changed since the measurement


class HotLine(KernelLine, frozen=True, kw_only=True):
    """Samples of a line: its share counts those with this line anywhere in their inline chain, and the estimate of those in functions it calls."""

    row: "LineRow"  # samples of the line

    @property
    def is_mostly_called(self) -> bool:
        """More of the line's cost lies in functions it calls than in itself."""
        return self.row.called_samples > self.row.inclusive_samples

    @property
    def unexplained_ratio(self) -> float:
        """Share of the kernel's samples taken on this line without a known cause; all of the line's where nothing was attributed."""
        kernel = self.shown.kernel
        if not kernel.causes:
            return self.share_ratio
        causes = kernel.causes.get(self.place)
        total = kernel.report.total_samples
        return causes.blame.unattributed_samples / total if causes is not None and total else 0.0

    @property
    def hottest(self) -> tuple[int, ...]:
        """Indices of the line's hottest instructions in the kernel's columns."""
        return self.shown.kernel.hottest.get(self.place, ())


_LEAST_VICTIM_RATIO = 0.02  # Of what a line causes; a place that suffers less is not worth a reader's jump


class CauseLine(KernelLine, frozen=True, kw_only=True):
    """Stalls that have to do with a line: its share counts those blamed on it and on what is inlined into it, and the samples of what it calls."""

    causes: "LineCauses"  # what it is stalled on and what is stalled on it

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
        known = kernel.report.advice
        return () if known is None else tuple(known.advice[one] for one in kernel.remedies.get(self.place, ()))


class ValueLine(KernelLine, frozen=True, kw_only=True):
    """Value of a line in the metric that is shown."""

    value: MetricValue  # with its number


_Line = TypeVar("_Line", bound=KernelLine)

# Metrics that are read elsewhere
_OWN_ROWS = (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE, MetricKind.EMULATED, MetricKind.PREDICTED)

# Of each kernel: a flat one has no line above anybody's threshold, and a reader wants to know where to begin all the same
LEADING_LINES = 3

# of what the hottest of them has: a line with less does not lead, and carries a number only above the user's threshold
_LEAST_LEADING_RATIO = 0.1


class LineTable(Struct, Generic[_Line], frozen=True, kw_only=True):
    """Entries by measured line."""

    by_line: Mapping[int, Sequence[_Line]]  # line → entries, largest share first
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
    hot: LineTable[HotLine]  # samples
    causes: LineTable[CauseLine]  # stalls
    values: LineTable[ValueLine]  # of the metric that is shown, where that is neither of those


class _Draft(Struct):
    file: MeasuredFile
    hot: dict[int, list[HotLine]] = field(default_factory=dict)
    causes: dict[int, list[CauseLine]] = field(default_factory=dict)
    values: dict[int, list[ValueLine]] = field(default_factory=dict)
    leading: set[int] = field(default_factory=set)
    causing: set[int] = field(default_factory=set)
    largest: set[int] = field(default_factory=set)


def _make_table(by_line: dict[int, list[_Line]], leading: frozenset[int] = frozenset()) -> LineTable[_Line]:
    for entries in by_line.values():
        entries.sort(key=order_entry)
    ranked = sorted(((entries[0].share_ratio, line) for line, entries in by_line.items()), reverse=True)
    return LineTable(by_line=by_line, ranked=ranked, leading=leading)


def index_lines(
    kernels: Sequence[VisibleKernel], local_path: str, metric: LineMetric = USUAL
) -> tuple[MeasuredText, ...]:
    """Index the measurements of some kernels on a file, one index per text that was measured."""
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
        entries = list(list_hot(shown, files))
        for path, entry in entries:
            files[path].hot.setdefault(entry.row.line or 0, []).append(entry)
        for path, line in _choose_leading(shown, [entry for _, entry in entries]):
            files[path].leading.add(line)
        causes = list(list_causes(shown, files))
        for path, cause in causes:
            files[path].causes.setdefault(cause.place[1], []).append(cause)
        for path, cause in _list_largest(causes):
            files[path].causing.add(cause.place[1])
        values = list(list_values(shown, files, metric))
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


def _list_largest(entries: Sequence[tuple[str, _Line]]) -> list[tuple[str, _Line]]:
    """The few with the largest shares, as far as they are comparable to the first."""
    largest = nlargest(LEADING_LINES, entries, key=lambda one: one[1].share_ratio)
    return [one for one in largest if one[1].share_ratio >= _LEAST_LEADING_RATIO * largest[0][1].share_ratio]


def list_values(shown: VisibleKernel, files: Container[str], metric: LineMetric) -> Iterator[tuple[str, ValueLine]]:
    """List the values of lines in a metric that is read nowhere else, with the file of each."""
    values = None if metric.kind in _OWN_ROWS else measure_values(shown.kernel, metric)
    for place, value in ({} if values is None else values.by_line).items():
        if place[0] in files and value.ratio > 0:
            yield (
                place[0],
                ValueLine(
                    shown=shown,
                    file=shown.profile.files[place[0]],
                    place=place,
                    share_ratio=value.ratio,
                    value=value,
                ),
            )


def _choose_leading(shown: VisibleKernel, entries: Sequence[HotLine]) -> Iterator[tuple[str, int]]:
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


def order_entry(entry: KernelLine) -> tuple[float, str]:
    """Largest share first; alike ones by name, so that nothing depends on the order of loading."""
    return (-entry.share_ratio, entry.shown.kernel.report.mangled_name)


def list_hot(shown: VisibleKernel, files: Container[str]) -> Iterator[tuple[str, HotLine]]:
    """List the samples of a kernel on the lines of some files, with the file of each."""
    for row in shown.kernel.report.lines:
        samples = row.inclusive_samples + row.called_samples
        if row.file is not None and row.file in files and row.line and samples:
            file, place = shown.profile.files[row.file], (row.file, row.line)
            line = HotLine(shown=shown, file=file, place=place, share_ratio=_share(shown, samples), row=row)
            yield row.file, line


def _share(shown: VisibleKernel, samples: float) -> float:
    total = shown.kernel.report.total_samples
    return min(1.0, samples / total) if total else 0.0


def list_causes(shown: VisibleKernel, files: Container[str]) -> Iterator[tuple[str, CauseLine]]:
    """List the stalls of a kernel that begin or end on the lines of some files, with the file of each."""
    for place, causes in shown.kernel.causes.items():
        if place[0] in files:
            file, share = shown.profile.files[place[0]], _share(shown, causes.caused_samples + causes.called_samples)
            yield place[0], CauseLine(shown=shown, file=file, place=place, share_ratio=share, causes=causes)


_LEAST_LENS_SPEEDUP = 1.03  # What gains less is on the kernel's page; it is not worth a line among the code

_LENS_SCOPES = ("loop", "call")  # Kinds of scopes that get a lens of their own


class RemedyAnchor(Struct, frozen=True, kw_only=True):
    """A loop or a call that carries advice, and the line it stands on."""

    line: int  # 1-based, in the document now
    shown: VisibleKernel  # the kernel and its profile
    advice: "Advice"  # what to do
    region: "Region"  # the loop or call
    is_edited: bool  # the document changed since the measurement


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
