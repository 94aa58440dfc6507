"""Times of an open source: jobs and results of the process that measures them, and how they are shown beside those before the last edit."""

from collections.abc import Iterator
from math import hypot
from pathlib import Path

from msgspec import Struct

from gpa_lsp.document.blocks import Block, Item, Items, Paragraph
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.foundation.numbers import format_count_of, format_percent, format_timed_ns
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile

_SPARE_S = 240.0  # For starting Python and a context, loading code and filling arrays


class LookJob(Struct, frozen=True, kw_only=True):
    """Whether there is a GPU to time on."""

    @property
    def most_s(self) -> float:
        """Time after which the process hangs."""
        return _SPARE_S


class LookResult(Struct, frozen=True, kw_only=True):
    """The name of the GPU; empty where there is none, and then why."""

    gpu: str = ""
    reason: str = ""


class TimedJob(Struct, frozen=True, kw_only=True):
    """Launches of a source to time."""

    base: PredictedJob  # the source, and the description of its launches
    kept: Path  # a file of ours where what was timed is written, so that another process can sample it

    @property
    def most_s(self) -> float:
        """Time after which the process hangs: compiling, and each launch has a limit of its own that comes sooner."""
        return self.base.limit_s + 10 * self.base.seconds + _SPARE_S


class SampleJob(Struct, frozen=True, kw_only=True):
    """One launch more of each that was timed, sampled."""

    kept: Path  # what was timed, see :class:`TimedJob`
    target: Path  # the profile to write

    @property
    def most_s(self) -> float:
        """Time after which the process hangs."""
        return _SPARE_S


Job = LookJob | TimedJob | SampleJob


class LaunchTime(Struct, frozen=True, kw_only=True):
    """Measured time of one launch."""

    mangled_name: str  # of the kernel
    name: str  # readable
    shape: str  # grid and block, as a person reads them
    gpu: str  # name of the product
    median_ns: float  # of the launches that count
    error_ns: float | None  # half of the interval of 95 % around it; None where there are too few launches to say
    launches: int  # that count
    code: str  # a digest of what was loaded
    launch: str  # a digest of what was described


class TimedResult(Struct, frozen=True, kw_only=True):
    """Result of timing."""

    job: TimedJob  # what was asked
    times: tuple[LaunchTime, ...] = ()  # in the order of the description
    problems: tuple[str, ...] = ()  # what was not timed, and why, a sentence each
    failure: str = ""  # why nothing was timed, a line; empty otherwise


class SampleResult(Struct, frozen=True, kw_only=True):
    """Result of sampling."""

    samples: int = 0  # of all launches; 0 where none was sampled, and nothing written
    reason: str = ""  # why not


class TimeChange(Struct, frozen=True, kw_only=True):
    """The time of a launch, and that of the code before."""

    time: LaunchTime  # now
    before: LaunchTime | None  # of the same launch with other code, the last there was; None where there was none

    @property
    def words(self) -> str:
        """``measured 41.2 µs ± 0.3, 12 % faster than before your edit``."""
        shown = f"measured {format_timed_ns(self.time.median_ns, self.time.error_ns)}"
        return f"{shown}, {compare(self.before, self.time)} your edit" if self.before is not None else shown


def compare(before: LaunchTime, now: LaunchTime) -> str:
    """Compare a time with that before an edit: ``12 % faster than before``. A difference within the noise of both is none."""
    gain_ns = before.median_ns - now.median_ns
    noise_ns = hypot(before.error_ns or 0.0, now.error_ns or 0.0)
    if abs(gain_ns) <= noise_ns or before.median_ns <= 0:
        return "as fast as before"
    return f"{format_percent(abs(gain_ns) / before.median_ns)} {'faster' if gain_ns > 0 else 'slower'} than before"


class TimedState(Struct, frozen=True, kw_only=True):
    """Times of one source."""

    file: MeasuredFile  # the text that was timed, for finding its lines
    changes: tuple[TimeChange, ...]  # in the order of the description


def make_state(result: TimedResult, known: TimedState | None) -> TimedState:
    """The state a result makes."""
    path = str(result.job.base.path)
    file = MeasuredFile(compiled_path=path, local_path=path, lines=split_lines(result.job.base.text))
    old = {_key(one.time): one for one in (() if known is None else known.changes)}
    return TimedState(file=file, changes=tuple(_follow(one, old.get(_key(one))) for one in result.times))


def _key(time: LaunchTime) -> tuple[str, str, str]:
    return time.mangled_name, time.launch, time.gpu


def _follow(time: LaunchTime, old: TimeChange | None) -> TimeChange:
    """A save without a change of the code compares with what was before the change that made it."""
    if old is None:
        return TimeChange(time=time, before=None)
    return TimeChange(time=time, before=old.before if old.time.code == time.code else old.time)


class TimedAnchor(Struct, frozen=True, kw_only=True):
    """A time and the line it stands on."""

    line: int  # 1-based, in the document now
    change: TimeChange  # what was measured
    is_edited: bool  # the document changed since
    has_others: bool  # other launches of the kernel were timed

    @property
    def words(self) -> str:
        """Text of the lens above the kernel."""
        return f"{self.change.time.shape} {self.change.words}" if self.has_others else self.change.words


def place_times(state: TimedState, finder: LineFinder) -> tuple[TimedAnchor, ...]:
    """Put the times on the lines of their kernels' definitions, by line."""
    names = [one.time.mangled_name for one in state.changes]
    found = []
    for one in state.changes:
        line = finder.find_kernel(one.time.name, state.file)
        if line is not None:
            has_others = names.count(one.time.mangled_name) > 1
            found.append(
                TimedAnchor(line=line, change=one, is_edited=finder.is_edited(state.file), has_others=has_others)
            )
    return tuple(sorted(found, key=lambda anchor: anchor.line))


def list_times(anchors: tuple[TimedAnchor, ...], line: int) -> list[Line]:
    """The times of the kernel that is defined on a line, each with the launch's shape."""
    return [
        ((anchor.change.time.shape, Style.CODE), (f" {describe_time(anchor)}", Style.PLAIN))
        for anchor in anchors
        if anchor.line == line
    ]


def build_times(anchors: tuple[TimedAnchor, ...], line: int) -> Iterator[Block]:
    """The same as a list with a heading; nothing where none was timed."""
    times = list_times(anchors, line)
    if times:
        head = " · described launches, on the GPU of this computer, with no profiler"
        yield Paragraph(text=(("Timed", Style.TITLE), (head, Style.PLAIN)))
        yield Items(items=[Item(text=one) for one in times])


def describe_time(anchor: TimedAnchor) -> str:
    """All that is known of a time, a clause."""
    time, before = anchor.change.time, anchor.change.before
    text = f"{anchor.change.words}: median of {format_count_of(time.launches, 'launch')} on {time.gpu}, L2 overwritten before each"
    if before is not None:
        text += f"; before {format_timed_ns(before.median_ns, before.error_ns)}"
    return f"{text}; before your edits" if anchor.is_edited else text
