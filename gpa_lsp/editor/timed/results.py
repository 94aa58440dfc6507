"""What the server and the process that times launches say to each other. Plain data without numpy: this module is imported before the client has its
answer to initialize.
"""

from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.editor.predicted.results import PredictedJob

_SPARE_S = 240.0
"""For starting Python and a context, loading code and filling arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookJob:
    """Whether there is a GPU to time on."""

    @property
    def most_s(self) -> float:
        """After this time the process hangs."""
        return _SPARE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LookResult:
    """The name of the GPU; empty where there is none, and then why."""

    gpu: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """Launches of a source to time.

    Attributes:
        base: the source, and the description of its launches.
        kept: a file of ours where what was timed is written, so that another process can sample it.
    """

    base: PredictedJob
    kept: Path

    @property
    def most_s(self) -> float:
        """After this time the process hangs: compiling, and each launch has a limit of its own that comes sooner."""
        return self.base.limit_s + 10 * self.base.seconds + _SPARE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleJob:
    """One launch more of each that was timed, sampled.

    Attributes:
        kept: what was timed, see :class:`TimedJob`.
        target: the profile to write.
    """

    kept: Path
    target: Path

    @property
    def most_s(self) -> float:
        """After this time the process hangs."""
        return _SPARE_S


Job = LookJob | TimedJob | SampleJob


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTime:
    """How long one launch took.

    Attributes:
        mangled_name: of the kernel.
        name: readable.
        shape: grid and block, as a person reads them.
        gpu: name of the product.
        median_ns: of the launches that count.
        error_ns: half of the interval of 95 % around it; None where there are too few launches to say.
        launches: that count.
        code: a digest of what was loaded.
        launch: a digest of what was described.
    """

    mangled_name: str
    name: str
    shape: str
    gpu: str
    median_ns: float
    error_ns: float | None
    launches: int
    code: str
    launch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedResult:
    """What became of a job.

    Attributes:
        job: what was asked.
        times: in the order of the description.
        problems: what was not timed, and why, a sentence each.
        failure: why nothing was timed, a line; empty otherwise.
    """

    job: TimedJob
    times: tuple[LaunchTime, ...] = ()
    problems: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResult:
    """What became of sampling.

    Attributes:
        samples: of all launches; 0 where none was sampled, and nothing written.
        reason: why not.
    """

    samples: int = 0
    reason: str = ""
