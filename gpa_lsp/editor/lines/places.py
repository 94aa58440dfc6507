"""Current places of measured lines on this machine: in an open document, in a file on disk, in a SASS document."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lsprotocol.types import Location

from gpa_lsp.editor.lines.finder import LineFinder, may_show_unverified
from gpa_lsp.editor.lines.positions import Positions, UnitCounter, span_line
from gpa_lsp.editor.settings import UnverifiedChoice
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import Stamp, open_regular_file, read_stamp
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.records import ColumnRecord, IdentityCache
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:
    from gpa_lsp.report.pairs import LinePair

Place = tuple[str, int]  # File as compiled, and line

_KEPT_FILES = 64
_LONGEST_PATH = 8192
_LONGEST_NAME = 100
_MAX_SOURCE_BYTES = 8 << 20
_MAX_KEPT_BYTES = 32 << 20


class OpenText(Protocol):
    """An open document as its client has it."""

    @property
    def uri(self) -> str:
        """URI as the client writes it."""
        ...

    @property
    def positions(self) -> Positions:
        """Translation of its lines."""
        ...

    @property
    def finder(self) -> LineFinder:
        """Maps measured lines to its own."""
        ...


class PlaceFinder:
    """Finds places for jumps, links and related information.

    A file that is not open is read (once per state of it), because it may have been edited since it was measured.

    Args:
        units: counts columns for the client.
        find_open: local path → the open document there; None when it is not open.
        unverified: which files that may not be what was measured are taken for it.
    """

    def __init__(
        self,
        units: UnitCounter,
        find_open: Callable[[str], OpenText | None],
        unverified: UnverifiedChoice = UnverifiedChoice.FITTING,
    ) -> None:
        self._units = units
        self._find_open = find_open
        self._unverified = unverified
        self._closed: OrderedDict[str, tuple[Stamp, Positions, LineFinder]] = OrderedDict()

    def locate(self, shown: VisibleKernel, place: Place) -> Location | None:
        """The line a measured place is on now, as the range of its text; None when it is not on this machine or was edited away.

        A file we may not read is believed to be as it was, and its line's range is empty.
        """
        file = shown.profile.files.get(place[0])
        if file is None:
            return None
        if (file.lines is None or file.is_outside) and self._find_open(file.local_path) is None:
            uri = Path(file.local_path).as_uri()
            may_show = file.is_verified or may_show_unverified(file, self._unverified)
            return Location(uri=uri, range=span_line(place[1])) if may_show else None
        uri, positions, finder = self._read(file)
        if positions is None or finder is None:
            return None
        line = finder.find(file, place[1])
        if line is None or not 1 <= line <= len(positions.lines):
            return None
        return Location(uri=uri, range=positions.find_text(line))

    def _read(self, file: MeasuredFile) -> tuple[str, Positions | None, LineFinder | None]:
        opened = self._find_open(file.local_path)
        if opened is not None:
            return opened.uri, opened.positions, opened.finder
        uri = Path(file.local_path).as_uri()
        stamp = read_stamp(file.local_path)
        if stamp is None or stamp.size_bytes > _MAX_SOURCE_BYTES:
            return uri, None, None
        known = self._closed.get(file.local_path)
        if known is None or known[0] != stamp:
            known = self._read_closed(file.local_path, stamp)
            if known is None:
                return uri, None, None
            self._closed[file.local_path] = known
        self._closed.move_to_end(file.local_path)
        self._drop_oldest()
        return uri, known[1], known[2]

    def _drop_oldest(self) -> None:
        kept_bytes = sum(stamp.size_bytes for stamp, _, _ in self._closed.values())
        while len(self._closed) > 1 and (len(self._closed) > _KEPT_FILES or kept_bytes > _MAX_KEPT_BYTES):
            _, (stamp, _, _) = self._closed.popitem(last=False)
            kept_bytes -= stamp.size_bytes

    def _read_closed(self, local_path: str, stamp: Stamp) -> tuple[Stamp, Positions, LineFinder] | None:
        try:
            source, _ = open_regular_file(Path(local_path))
            with source:  # read as far as was promised and no further
                lines = split_lines(source.read(_MAX_SOURCE_BYTES).decode("utf-8", errors="replace"))
        except (OSError, InputError):
            return None
        return stamp, Positions(lines=lines, units=self._units), LineFinder(lines, unverified=self._unverified)


def name_file(path: str) -> str:
    """The last part of a path as compiled, on whichever system that was; as much of it as fits, and as one line."""
    name = make_visible(path[-_LONGEST_PATH:].replace("\\", "/").rpartition("/")[2])
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


_ALL_RATIO = 0.95  # Of the samples of a place: a pair with as many speaks for all of them


class Counterpart(ColumnRecord, frozen=True, kw_only=True):
    """One place at the other end."""

    place: Place | None  # None for all code without lines together
    samples: float  # of all pairs with that place
    heaviest: "LinePair"  # the pair with most of them


def gather_for_reason(pairs: "tuple[LinePair, ...]", reason: str) -> tuple[Counterpart, ...]:
    """Gather the places of those pairs of a line that have one stall reason, most samples first."""
    return _gather(tuple(pair for pair in pairs if pair.reason == reason))


def _gather(pairs: "tuple[LinePair, ...]") -> tuple[Counterpart, ...]:
    sums: dict[Place | None, float] = {}
    heaviest: dict[Place | None, LinePair] = {}
    for pair in pairs:
        place = None if pair.place is None else (pair.place.file, pair.place.line)
        sums[place] = sums.get(place, 0.0) + pair.samples
        heaviest.setdefault(place, pair)
    ranked = sorted(sums, key=lambda place: -sums[place])
    return tuple(Counterpart(place=place, samples=sums[place], heaviest=heaviest[place]) for place in ranked)


# (pairs of one line) → their places, most samples first
gather_counterparts: "IdentityCache[tuple[LinePair, ...], tuple[Counterpart, ...]]" = IdentityCache(_gather)


def describe_counterpart(counterpart: Counterpart) -> str:
    """``60 samples of long_scoreboard through R2``: what connects the two; ``60 samples, mostly …`` where other things do as well."""
    from gpa_lsp.code.binary.model import name_resource  # needs numpy, which the answer to initialize must not wait for

    pair = counterpart.heaviest
    count = round(counterpart.samples)
    link = ", mostly" if pair.samples < _ALL_RATIO * counterpart.samples else " of"
    text = f"{format_count_of(count, 'sample')}{link} {pair.reason}"
    return text if pair.resource is None else f"{text} through {name_resource(pair.resource)}"
