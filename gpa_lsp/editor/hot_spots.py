"""The hottest lines, of one document or of everything that is shown."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from msgspec import Struct

from gpa_lsp.editor.document_view import HotLine, ValueLine
from gpa_lsp.editor.lines.heat import HeatKind, label_cause, measure_heat
from gpa_lsp.editor.lines.index import CauseLine
from gpa_lsp.editor.lines.metric_values import label_value, measure_values
from gpa_lsp.editor.lines.names import read_text, shorten_text
from gpa_lsp.editor.lines.places import Place
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.model import Location
from gpa_lsp.editor.sass.hot_rows import list_hot_rows
from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import label_line
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import find_represented
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.report.measured_files import MeasuredFile

_MOST_SPOTS = 200


class HotSpot(Struct, frozen=True, kw_only=True):
    """One hot line."""

    location: Location  # the whole text of the line
    ratio: float  # of the kernel's samples, or of what else is shown
    kernel: str  # short name
    kind: HeatKind  # whether they were taken there or are blamed on it
    text: str  # a few words


class _Candidate(ColumnRecord, frozen=True, kw_only=True):
    place: Place
    ratio: float
    kind: HeatKind
    line: HotLine | CauseLine | ValueLine

    def label(self, metric: LineMetric) -> str:
        if isinstance(self.line, ValueLine):
            return label_value(metric, self.line.value)
        return label_line(self.line) if isinstance(self.line, HotLine) else label_cause(self.line)


def list_hot_spots(session: SessionView, uri: str | None = None) -> list[HotSpot]:
    """The lines above the user's threshold, each once by the kernel it is hottest in, hottest first, a few hundred at most.

    Of all files together, a line of the user's own stands for the lines of libraries that are inlined there.

    Args:
        uri: of the document; None for all files on this machine. What is emulated is known of open documents alone.
    """
    if uri is not None and is_sass_uri(uri):
        return _list_in_sass(session, uri)
    if session.settings.metric.is_from_emulation:
        return [] if uri is None else _list_emulated(session, uri)
    wanted = None if uri is None else _find_paths(session, uri)
    candidates = [one for shown in session.snapshot.visible for one in _list_candidates(session, shown, wanted)]
    candidates.sort(key=lambda one: (-one.ratio, one.kind is HeatKind.CAUSES, one.place))
    spots: dict[tuple[str, int], HotSpot] = {}
    for one in candidates:
        location = session.places.locate(one.line.shown, one.place)
        if location is None or (location.uri, location.range.start.line) in spots:
            continue
        label, text = one.label(session.settings.metric), read_text(one.line.shown, one.place)
        spots[(location.uri, location.range.start.line)] = HotSpot(
            location=location,
            ratio=one.ratio,
            kernel=one.line.shown.name,
            kind=one.kind,
            text=f"{label} · {text}" if text else label,
        )
        if len(spots) == _MOST_SPOTS:
            break
    return list(spots.values())


def _list_in_sass(session: SessionView, uri: str) -> list[HotSpot]:
    view = session.sass.view(uri)
    if view is None:
        return []
    return [
        HotSpot(location=location, ratio=ratio, kernel=view.document.shown.name, kind=kind, text=text)
        for location, ratio, kind, text in list_hot_rows(view)
    ]


def _list_emulated(session: SessionView, uri: str) -> list[HotSpot]:
    view = session.view(uri)
    if view is None:
        return []
    spots = (
        HotSpot(
            location=Location(uri=view.uri, range=view.positions.find_text(heat.line)),
            ratio=heat.share_ratio,
            kernel=heat.kernel,
            kind=heat.kind,
            text=f"{heat.text} · {shorten_text(view.positions.lines[heat.line - 1])}",
        )
        for heat in measure_heat(view, session.settings.min_share_ratio)
    )
    return sorted(spots, key=lambda spot: -spot.ratio)[:_MOST_SPOTS]


def _find_paths(session: SessionView, uri: str) -> frozenset[str]:
    """The local paths a URI may mean; clients quote what needs no quoting."""
    view = session.view(uri)
    if view is not None:
        return frozenset((view.local_path,))
    return frozenset(path for path in session.snapshot.by_file if unquote(Path(path).as_uri()) == unquote(uri))


def _list_candidates(session: SessionView, shown: VisibleKernel, wanted: frozenset[str] | None) -> Iterator[_Candidate]:
    files = {path: file for path, file in shown.profile.files.items() if wanted is None or file.local_path in wanted}
    total = shown.kernel.report.total_samples
    if not total or not files:
        return
    least = session.settings.min_share_ratio
    represented = find_represented(shown.kernel.report.instructions.chains) if wanted is None else frozenset()
    for one in _list_in_metric(session.settings.metric, shown, files, total):
        is_named = SourceLine(file=one.place[0], line=one.place[1]) not in represented
        if is_named and one.ratio >= least and one.ratio > 0:
            yield one


def _list_in_metric(
    metric: LineMetric, shown: VisibleKernel, files: Mapping[str, MeasuredFile], total: int
) -> Iterator[_Candidate]:
    if metric.kind in (MetricKind.USUAL, MetricKind.TIME):
        yield from _list_hot(shown, files, total)
    if metric.kind in (MetricKind.USUAL, MetricKind.CAUSE):
        yield from _list_causing(shown, files, total)
    if metric.kind in (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE):
        return
    values = measure_values(shown.kernel, metric)
    for place, value in ({} if values is None else values.by_line).items():
        file = files.get(place[0])
        if file is not None:
            line = ValueLine(shown=shown, file=file, place=place, value=value, is_edited=False)
            yield _Candidate(place=place, ratio=value.ratio, kind=HeatKind.SUFFERS, line=line)


def _list_hot(shown: VisibleKernel, files: Mapping[str, MeasuredFile], total: int) -> Iterator[_Candidate]:
    for row in shown.kernel.report.lines:
        file = files.get(row.file or "")
        if file is None or row.file is None or not row.line:
            continue
        ratio = min(1.0, (row.inclusive_samples + row.called_samples) / total)
        hot = HotLine(shown=shown, row=row, file=file, share_ratio=ratio, is_edited=False)
        yield _Candidate(place=(row.file, row.line), ratio=ratio, kind=HeatKind.SUFFERS, line=hot)


def _list_causing(shown: VisibleKernel, files: Mapping[str, MeasuredFile], total: int) -> Iterator[_Candidate]:
    for place, causes in shown.kernel.causes.items():
        file = files.get(place[0])
        if file is None:
            continue
        ratio = min(1.0, (causes.caused_samples + causes.called_samples) / total)
        cause = CauseLine(shown=shown, place=place, file=file, causes=causes, share_ratio=ratio, is_edited=False)
        yield _Candidate(place=place, ratio=ratio, kind=HeatKind.CAUSES, line=cause)
