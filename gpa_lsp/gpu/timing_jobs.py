"""What the process that times launches is asked, and what it answers."""

from dataclasses import field

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.gpu.timing import LaunchTiming, TimingSettings
from gpa_lsp.launches.launch import LaunchDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetJob:
    """Which GPU there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingJob:
    """A launch to be timed.

    Attributes:
        image: what is loaded: a cubin, or PTX that the driver assembles.
        ptx: of the same code, which says what the parameters are.
        function: mangled name of the kernel.
        launch: grid, block and arguments.
        settings: how it is timed.
        memory_bytes: of all arrays.
    """

    image: bytes = field(repr=False)
    ptx: str = field(repr=False)
    function: str
    launch: LaunchDescription
    settings: TimingSettings
    memory_bytes: int


Job = GreetJob | TimingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """The GPU.

    Attributes:
        name: of the product; empty where there is none.
        compute_capability: of it.
        failure: what the driver refused.
        missing: what is not there: its name, what needs it, how to get it; None for nothing.
    """

    name: str = ""
    compute_capability: tuple[int, int] = (0, 0)
    failure: str = ""
    missing: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingAnswer:
    """What became of a job.

    Attributes:
        timing: None where it failed.
        failure: why; a sentence.
        is_spent: the process can use its GPU no more.
    """

    timing: LaunchTiming | None = None
    failure: str = ""
    is_spent: bool = False
