"""The lines of a document that cause stalls or carry advice, by where they are now."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.lines.index import CauseEntry
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.model import Advice, Region
    from gpa_lsp.report.kernel_lines import LineCauses
    from gpa_lsp.report.pairs import LinePair

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
        """Of the kernel's samples, the stalls blamed on this line; without the estimate of what it calls."""
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
