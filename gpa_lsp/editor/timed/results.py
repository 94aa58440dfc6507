"""Messages between the server and the process that times launches. Plain data without numpy: this module is imported before the client has
its answer to initialize.
"""

from pathlib import Path

from msgspec import Struct

from gpa_lsp.editor.predicted.results import PredictedJob

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
