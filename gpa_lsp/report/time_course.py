"""A kernel's time from one measurement to the next: what a history tells the pages and pictures, which do not know where it is kept."""

from msgspec import Struct

from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.report.changes import Verdict

SHORT_DIGEST = 8  # Digits of a commit that are shown


class Commit(Struct, frozen=True, kw_only=True):
    """What git had checked out."""

    digest: str  # the name of the commit, in hexadecimal digits
    subject: str = ""  # the first line of its message; empty where nothing near tells it

    @property
    def short(self) -> str:
        """As people write it.

        >>> Commit(digest="8f3c2a91d0e4b7c6").short
        '8f3c2a91'
        """
        return self.digest[:SHORT_DIGEST]


class TimedRun(Struct, frozen=True, kw_only=True):
    """One measurement."""

    number: int  # of the run among those of its kernel, the oldest first
    measured_ns: int  # when, since 1970
    time: float | None  # per launch, in the unit of the course; None where unknown
    # lower end of the range the time lies in, as far as its launches tell; None where the time is unknown
    low: float | None
    high: float | None  # upper end
    launch_count: int  # launches the time is the mean of
    verdict: Verdict | None = None  # what became of the time since the run before; None for the first
    # what came or went, of the time before; None as ``verdict`` is, and where one has no time
    change_ratio: float | None = None
    note: Sentence = NOTHING  # what may differ from the run before besides the code; empty where nothing is known to
    commit: Commit | None = None  # what was checked out here when it was measured; None where unknown
    is_baseline: bool = False  # pinned

    @property
    def is_regression(self) -> bool:
        """Slower than the run before by more than the launches of the two leave in doubt, other code and nothing else."""
        return self.verdict is Verdict.SLOWER and not self.note

    @property
    def is_gain(self) -> bool:
        """Faster than the run before, as far as is known by nothing but other code."""
        return self.verdict is Verdict.FASTER and not self.note


class TimeCourse(Struct, frozen=True, kw_only=True):
    """Measurements of one kernel doing the same work, each compared with the one before."""

    unit: str  # of the times, ``ns`` or ``cycles``
    runs: tuple[TimedRun, ...]  # oldest first; the last one is what is shown
    run_count: int  # runs there are, with older ones and those of other work, which are not listed

    @property
    def timed(self) -> tuple[TimedRun, ...]:
        """The runs whose time is known."""
        return tuple(run for run in self.runs if run.time is not None)

    @property
    def regressions(self) -> tuple[TimedRun, ...]:
        """The runs that were slower than the one before, oldest first."""
        return tuple(run for run in self.runs if run.is_regression)

    def is_made_good(self, position: int) -> bool:
        """A later run is no slower than the one before this one was, as far as its launches tell."""
        limit = next((run.high for run in reversed(self.runs[:position]) if run.high is not None), None)
        later = (run.time for run in self.runs[position + 1 :] if run.time is not None)
        return limit is not None and any(time <= limit for time in later)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """Every commit that was measured, once, oldest first."""
        known = {run.commit.digest: run.commit for run in self.runs if run.commit is not None}
        return tuple(known.values())

    def begins_commit(self, position: int) -> bool:
        """Another commit was checked out than at the run before; the first run of a known commit begins it."""
        commit = self.runs[position].commit
        earlier = next((run.commit for run in reversed(self.runs[:position]) if run.commit is not None), None)
        return commit is not None and (earlier is None or earlier.digest != commit.digest)
