"""What running a program gives: :class:`ProgramRun` of :class:`KernelRuns`; and how it is run: :class:`RunSettings`."""

from dataclasses import field
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.model import Fault
from gpa_lsp.processes.watched_command import CommandEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a program is run.

    Attributes:
        machine: the GPU it sees.
        limit_s: seconds of processor time that it and the emulation of its launches may take, each.
        launches_per_kernel: that are emulated; later ones do nothing. None for all.
        memory_bytes: device memory it may allocate, and what the emulator may use besides.
        checks_races: look for races on shared memory.
        record_bytes: of the data of one launch; larger ones are not kept.
        recorded_launch: the launch of each kernel that is recorded, from 1; None for the heaviest.
    """

    machine: str
    limit_s: float = 600.0
    launches_per_kernel: int | None = None
    memory_bytes: int = 4 << 30
    checks_races: bool = False
    record_bytes: int = 256 << 20
    recorded_launch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """One shape a kernel was launched in.

    Attributes:
        grid: blocks in x, y, z.
        block: threads in x, y, z.
        shared_bytes: dynamic shared memory.
        launches: how many had it.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLaunch:
    """A launch that was kept.

    Attributes:
        description: the TOML, beside the files with its data.
        module: the device code, a file beside it.
        warp_instructions: it executed.
        number: of the launch among those of its kernel, from 1.
        source: the file its first line is in; None where no lines are known.
        is_heaviest: of its kernel; otherwise that which was chosen.
    """

    description: Path
    module: Path
    warp_instructions: int
    number: int
    source: Path | None = None
    is_heaviest: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRuns:
    """All launches of one kernel.

    Attributes:
        mangled_name: linkage name.
        name: for people.
        launches: that the program asked for.
        emulated: of them, those that ran to their end.
        skipped: of them, those beyond the limit, which did nothing.
        warp_instructions: executed in all.
        seconds: of the emulator.
        shapes: most frequent first.
        faults: of all launches, once per instruction and kind.
        unfinished: why launches were cut short, a sentence each.
        recorded: the heaviest launch, or that which was chosen; None where none was kept.
        unrecorded: why none was kept; empty otherwise.
    """

    mangled_name: str
    name: str
    launches: int
    emulated: int
    skipped: int
    warp_instructions: int
    seconds: float
    shapes: tuple[LaunchShape, ...]
    faults: tuple[Fault, ...]
    unfinished: tuple[str, ...] = ()
    recorded: RecordedLaunch | None = None
    unrecorded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """A program that ran.

    Attributes:
        end: how it ended.
        machine: the GPU it saw.
        kernels: in the order of their first launches.
        notes: what was not done as a GPU would do it, a sentence each.
        seconds: from start to end.
        peak_bytes: most device memory it had allocated.
        refused: why kernels could not be launched at all, a sentence each.
        crash: how a signal ended it, a sentence; empty where none did.
    """

    end: CommandEnd
    machine: str
    kernels: tuple[KernelRuns, ...]
    notes: tuple[str, ...] = field(default=())
    seconds: float = 0.0
    peak_bytes: int = 0
    refused: tuple[str, ...] = ()
    crash: str = ""

    @property
    def skipped(self) -> int:
        """Launches that did nothing."""
        return sum(kernel.skipped for kernel in self.kernels)

    @property
    def cut_short(self) -> int:
        """Launches that did not run to their end."""
        return sum(kernel.launches - kernel.emulated - kernel.skipped for kernel in self.kernels)

    @property
    def has_faults(self) -> bool:
        """Whether a kernel did something wrong."""
        return any(kernel.faults for kernel in self.kernels)
