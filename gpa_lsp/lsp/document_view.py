"""One open document with the measurements that belong to its lines as they are now. Features answer from it and from nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpa_lsp.lsp.abilities import Abilities
from gpa_lsp.lsp.anchors import choose_anchor, find_definitions
from gpa_lsp.lsp.cause_lines import CauseLine, RemedyAnchor, collect_cause_lines, place_remedies
from gpa_lsp.lsp.line_finder import LineFinder
from gpa_lsp.lsp.places import PlaceFinder
from gpa_lsp.lsp.positions import Positions, UnitCounter
from gpa_lsp.lsp.session import MeasuredFile, Snapshot, VisibleKernel
from gpa_lsp.lsp.settings import Settings
from gpa_lsp.lsp.stale_lines import find_stale_lines
from gpa_lsp.report.line_map import split_lines

if TYPE_CHECKING:
    from gpa_lsp.report.model import LineRow


@dataclass(frozen=True, slots=True, kw_only=True)
class HotLine:
    """What one kernel says of one line of the document.

    Attributes:
        shown: the kernel and its profile.
        row: samples of the line.
        file: the measured file the line stands in.
        share_ratio: of the kernel's samples, those with this line anywhere in their inline chain, and the estimate of those in functions
            called from it.
        is_edited: other lines of the document changed since the measurement.
    """

    shown: VisibleKernel
    row: "LineRow"
    file: MeasuredFile
    share_ratio: float
    is_edited: bool

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAnchor:
    """A kernel and the line its lens stands on.

    Attributes:
        line: 1-based, in the document now.
        shown: the kernel and its profile.
        is_edited: the document changed since the measurement.
        is_withheld: the document may not be what was measured, so that nothing is shown on its lines.
    """

    line: int
    shown: VisibleKernel
    is_edited: bool
    is_withheld: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentView:
    """A document and its measurements.

    Attributes:
        uri: as the client writes it.
        local_path: links resolved.
        positions: translates lines for the client.
        hot_lines: current line → what the kernels say of it, hottest first; every line with samples.
        cause_lines: current line → what the kernels' stalls have to do with it, costliest first; every line that waits or is waited for.
        anchors: kernels whose body is in this document, by line and then longest first.
        remedies: loops and calls in this document that carry advice, by line, then largest gain first.
        stale: lines that were changed since they were measured, ascending; they carry no numbers.
        finder: maps measured lines to the document's.
        settings: the options.
        abilities: what the client wants to be sent.
        places: finds measured places, in this document and elsewhere.
        snapshot: where it comes from.
    """

    uri: str
    local_path: str
    positions: Positions
    hot_lines: Mapping[int, tuple[HotLine, ...]]
    cause_lines: Mapping[int, tuple[CauseLine, ...]]
    anchors: tuple[KernelAnchor, ...]
    remedies: tuple[RemedyAnchor, ...]
    stale: tuple[int, ...]
    finder: LineFinder
    settings: Settings
    abilities: Abilities
    places: PlaceFinder
    snapshot: Snapshot

    def find_current_lines(self) -> Mapping[tuple[str, int], int]:
        """Where measured lines of this document are now: file as compiled and line → current line; lines edited away are left out."""
        hot = {
            (hot.row.file, hot.row.line): line
            for line, entries in self.hot_lines.items()
            for hot in entries
            if hot.row.file is not None and hot.row.line is not None
        }
        return hot | {cause.place: line for line, entries in self.cause_lines.items() for cause in entries}

    def find_costliest_lines(self) -> tuple[tuple[int, CauseLine], ...]:
        """Lines that cause at least the user's threshold, each with the kernel it costs most, costliest first."""
        above = [
            (line, causes[0])
            for line, causes in self.cause_lines.items()
            if causes[0].share_ratio >= self.settings.min_share_ratio
        ]
        return tuple(sorted(above, key=lambda found: (-found[1].share_ratio, found[0])))

    def find_hottest_lines(self) -> tuple[tuple[int, HotLine], ...]:
        """Lines at or above the user's threshold with their hottest kernel, hottest first."""
        above = [
            (line, lines[0])
            for line, lines in self.hot_lines.items()
            if lines[0].share_ratio >= self.settings.min_share_ratio
        ]
        return tuple(sorted(above, key=lambda found: (-found[1].share_ratio, found[0])))


def build_view(
    snapshot: Snapshot,
    *,
    uri: str,
    local_path: str,
    text: str,
    opened: str,
    units: UnitCounter,
    settings: Settings,
    abilities: Abilities,
    places: PlaceFinder,
) -> DocumentView | None:
    """The view of a document; None when no profile mentions it.

    Args:
        snapshot: what is known.
        uri: as the client writes it.
        local_path: the document's file, links resolved.
        text: as the editor holds it now.
        opened: as it was opened.
        units: counts columns for the client.
        settings: the options.
        abilities: what the client wants to be sent.
        places: finds measured places.
    """
    kernels = snapshot.by_file.get(local_path, ())
    if not kernels:
        return None
    lines = split_lines(text)
    finder = LineFinder(
        lines,
        opened=lines if opened == text else split_lines(opened),
        shows_unverified=settings.shows_unverified_lines,
    )
    hot_lines = _collect_hot_lines(kernels, local_path, finder)
    cause_lines = collect_cause_lines(kernels, local_path, finder)
    measured = hot_lines.keys() | cause_lines.keys()
    return DocumentView(
        uri=uri,
        local_path=local_path,
        positions=Positions(lines=lines, units=units),
        hot_lines=hot_lines,
        cause_lines=cause_lines,
        anchors=_place_anchors(kernels, local_path, text, finder, settings),
        remedies=place_remedies(kernels, local_path, finder),
        stale=find_stale_lines(kernels, local_path, finder, lines=lines, settings=settings, measured=measured),
        finder=finder,
        settings=settings,
        abilities=abilities,
        places=places,
        snapshot=snapshot,
    )


def _collect_hot_lines(
    kernels: Sequence[VisibleKernel], local_path: str, finder: LineFinder
) -> Mapping[int, tuple[HotLine, ...]]:
    found: dict[int, list[HotLine]] = {}
    for shown in kernels:
        total = shown.kernel.report.total_samples
        files = {path: file for path, file in shown.profile.files.items() if file.local_path == local_path}
        for row in shown.kernel.report.lines:
            file = files.get(row.file) if row.file is not None else None
            if file is None or not row.line or not (row.inclusive_samples or row.called_samples):
                continue
            line = finder.find(file, row.line)
            if line is not None:
                cost_samples = row.inclusive_samples + row.called_samples
                hot = HotLine(
                    shown=shown,
                    row=row,
                    file=file,
                    share_ratio=min(1.0, cost_samples / total) if total else 0.0,
                    is_edited=finder.is_edited(file),
                )
                found.setdefault(line, []).append(hot)
    return {line: tuple(sorted(hot, key=_order_by_heat)) for line, hot in sorted(found.items())}


def _order_by_heat(hot: HotLine) -> tuple[float, str]:
    return (-hot.share_ratio, hot.shown.kernel.report.mangled_name)


def _place_anchors(
    kernels: Sequence[VisibleKernel], local_path: str, text: str, finder: LineFinder, settings: Settings
) -> tuple[KernelAnchor, ...]:
    definitions = find_definitions(text)
    anchors: list[KernelAnchor] = []
    for shown in kernels:
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
                    is_withheld=not file.is_verified and not settings.shows_unverified_lines,
                )
            )
    return tuple(sorted(anchors, key=lambda anchor: anchor.line))
