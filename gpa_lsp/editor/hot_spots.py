"""The hottest lines, of one document or of everything that is shown."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from lsprotocol.types import Location
from msgspec.structs import replace

from gpa_lsp.editor.line_words import read_text, shorten_text
from gpa_lsp.editor.lines.index import CauseLine, KernelLine, list_causes, list_hot, list_values
from gpa_lsp.editor.lines.marks import list_marks, make_mark
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.model import Mark
from gpa_lsp.editor.sass.hot_rows import list_hot_rows
from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import find_represented

_MOST_SPOTS = 200


HotSpot = tuple[Location, Mark]  # The whole text of the line, and what there is to say of it


def list_hot_spots(session: SessionView, uri: str | None = None) -> list[HotSpot]:
    """The lines above the user's threshold, each once by the kernel it is hottest in, hottest first, a few hundred at most.

    Of all files together, a line of the user's own stands for the lines of libraries that are inlined there.

    Args:
        uri: of the document; None for all files on this machine. What is emulated is known of open documents alone.
    """
    if uri is not None and is_sass_uri(uri):
        sass = session.sass.view(uri)
        return [] if sass is None else list_hot_rows(sass)
    metric = session.settings.metric
    if metric.is_from_emulation:
        return [] if uri is None else _list_emulated(session, uri)
    wanted = None if uri is None else _find_paths(session, uri)
    found = [one for shown in session.snapshot.visible for one in _list_lines(session, shown, wanted)]
    found.sort(key=lambda one: (-one.share_ratio, isinstance(one, CauseLine), one.place))
    spots: dict[tuple[str, int], HotSpot] = {}
    for one in found:
        location = session.places.locate(one.shown, one.place)
        if location is None or (location.uri, location.range.start.line) in spots:
            continue
        mark = make_mark(one, location.range.start.line + 1, metric)
        spots[location.uri, location.range.start.line] = _quote(location, mark, read_text(one.shown, one.place))
        if len(spots) == _MOST_SPOTS:
            break
    return list(spots.values())


def _quote(location: Location, mark: Mark, text: str) -> HotSpot:
    return location, replace(mark, text=f"{mark.text} · {text}") if text else mark


def _list_emulated(session: SessionView, uri: str) -> list[HotSpot]:
    view = session.view(uri)
    if view is None:
        return []
    spots = []
    for mark in list_marks(view, session.settings.min_share_ratio):
        location = Location(uri=view.uri, range=view.positions.find_text(mark.line))
        spots.append(_quote(location, mark, shorten_text(view.positions.lines[mark.line - 1])))
    return sorted(spots, key=lambda spot: -spot[1].share_ratio)[:_MOST_SPOTS]


def _find_paths(session: SessionView, uri: str) -> frozenset[str]:
    """The local paths a URI may mean; clients quote what needs no quoting."""
    view = session.view(uri)
    if view is not None:
        return frozenset((view.local_path,))
    return frozenset(path for path in session.snapshot.by_file if unquote(Path(path).as_uri()) == unquote(uri))


def _list_lines(session: SessionView, shown: VisibleKernel, wanted: frozenset[str] | None) -> Iterator[KernelLine]:
    files = {path for path, file in shown.profile.files.items() if wanted is None or file.local_path in wanted}
    if not shown.kernel.report.total_samples or not files:
        return
    least = session.settings.min_share_ratio
    represented = find_represented(shown.kernel.report.instructions.chains) if wanted is None else frozenset()
    for one in _list_in_metric(session.settings.metric, shown):
        is_named = SourceLine(file=one.place[0], line=one.place[1]) not in represented
        if one.place[0] in files and is_named and one.share_ratio >= least and one.share_ratio > 0:
            yield one


def _list_in_metric(metric: LineMetric, shown: VisibleKernel) -> Iterator[KernelLine]:
    files = shown.profile.files
    if metric.kind in (MetricKind.USUAL, MetricKind.TIME):
        yield from (one for _, one in list_hot(shown, files))
    if metric.kind in (MetricKind.USUAL, MetricKind.CAUSE):
        yield from (one for _, one in list_causes(shown, files))
    yield from (one for _, one in list_values(shown, files, metric))
