"""What the process that times launches is asked, and what it answers."""

from msgspec import Struct

from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.local_gpu.timing import LaunchTiming, TimingSettings


class GreetJob(Struct, frozen=True, kw_only=True):
    """Which GPU there is."""


class TimingJob(Struct, frozen=True, kw_only=True):
    """A launch to be timed."""

    image: bytes  # what is loaded: a cubin, or PTX that the driver assembles
    ptx: str  # of the same code, which says what the parameters are
    function: str  # mangled name of the kernel
    launch: LaunchDescription  # grid, block and arguments
    settings: TimingSettings  # how it is timed
    memory_bytes: int  # of all arrays


Job = GreetJob | TimingJob


class Greeting(Struct, frozen=True, kw_only=True):
    """The GPU."""

    name: str = ""  # of the product; empty where there is none
    compute_capability: tuple[int, int] = (0, 0)  # of it
    failure: str = ""  # what the driver refused
    # what is not there: its name, what needs it, how to get it; None for nothing
    missing: tuple[str, str, str] | None = None


class TimingAnswer(Struct, frozen=True, kw_only=True):
    """What became of a job."""

    timing: LaunchTiming | None = None  # None where it failed
    failure: str = ""  # why; a sentence
    is_spent: bool = False  # the process can use its GPU no more
