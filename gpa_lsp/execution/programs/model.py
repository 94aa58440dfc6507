"""Settings and results of program runs: :class:`RunSettings`, :class:`ProgramRun` of :class:`KernelRuns`."""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.emulator.model import Fault
from gpa_lsp.foundation.processes.watched_command import CommandEnd
from gpa_lsp.profile.model import HostFrame


class RunSettings(Struct, frozen=True, kw_only=True):
    """Options of a run."""

    machine: str  # the GPU it sees
    limit_s: float = 600.0  # seconds of processor time that it and the emulation of its launches may take, each
    launches_per_kernel: int | None = None  # that are emulated; later ones do nothing. None for all.
    memory_bytes: int = 4 << 30  # device memory it may allocate, and what the emulator may use besides
    checks_races: bool = False  # look for races on shared memory
    record_bytes: int = 256 << 20  # of the data of one launch; larger ones are not kept
    follows_memory: bool = True  # what is done with allocations; emulation takes up to twice as long then
    recorded_launch: int | None = None  # the launch of each kernel that is recorded, from 1; None for the heaviest


class LaunchShape(Struct, frozen=True, kw_only=True):
    """One shape a kernel was launched in."""

    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    shared_bytes: int  # dynamic shared memory
    launches: int  # how many had it


class RecordedLaunch(Struct, frozen=True, kw_only=True):
    """A launch that was kept."""

    description: Path  # the TOML, beside the files with its data
    module: Path  # the device code, a file beside it
    warp_instructions: int  # it executed
    number: int  # of the launch among those of its kernel, from 1
    source: Path | None = None  # the file its first line is in; None where no lines are known
    is_heaviest: bool = True  # of its kernel; otherwise that which was chosen


HostPath = tuple[HostFrame, ...]  # frames of the host, innermost first; empty where they are not known


class LaunchPath(Struct, frozen=True, kw_only=True):
    """One call path of the host that launched a kernel."""

    path: HostPath
    launches: int  # from there


class KernelRuns(Struct, frozen=True, kw_only=True):
    """All launches of one kernel."""

    mangled_name: str  # linkage name
    name: str  # for people
    launches: int  # that the program asked for
    emulated: int  # of them, those that ran to their end
    skipped: int  # of them, those beyond the limit, which did nothing
    warp_instructions: int  # executed in all
    seconds: float  # of the emulator
    shapes: tuple[LaunchShape, ...]  # most frequent first
    faults: tuple[Fault, ...]  # of all launches, once per instruction and kind
    unfinished: tuple[str, ...] = ()  # why launches were cut short, a sentence each
    recorded: RecordedLaunch | None = None  # the heaviest launch, or that which was chosen; None where none was kept
    unrecorded: str = ""  # why none was kept; empty otherwise
    others: tuple[RecordedLaunch, ...] = ()  # at even distances over all launches, less the one above
    paths: tuple[LaunchPath, ...] = ()  # from where it was launched, most frequent first


class FindingKind(StrEnum):
    """Unnecessary memory use of an allocation or copy."""

    UNUSED = "unused"
    PARTLY_USED = "partly used"
    EARLY = "allocated early"
    LATE = "freed late"
    NEVER_FREED = "never freed"  # by a program that frees others, or several times
    NEVER_READ = "copied and never read"
    UNCHANGED = "copied both ways unchanged"


class AllocationFinding(Struct, frozen=True, kw_only=True):
    """A finding about all allocations of one site, or some copies to or from them."""

    kind: FindingKind
    count: int  # allocations, or copies
    size_bytes: int  # of them
    # of those that launches accessed a part of: the part; of those that none accessed: what was copied to and from them
    part_bytes: int = 0
    path: HostPath = ()  # of the copies, or of the first or last use
    kernel: str = ""  # linkage name of that use; empty where it was a copy, or several
    launches: int = 0  # at least, between the allocation and its first use, or between its last one and the end
    is_freed: bool = True  # at all, before the program ended


class ArrayUse(Struct, frozen=True, kw_only=True):
    """Accesses of a kernel to the allocations of a site."""

    kernel: str  # linkage name
    name: str  # of the parameter; empty where its address came by another way
    launches: int  # that accessed one of them
    reads: bool
    writes: bool


class CopyRuns(Struct, frozen=True, kw_only=True):
    """Copies between the host and the allocations of a place."""

    path: HostPath
    is_to_device: bool
    copies: int
    size_bytes: int  # of all
    hosts: tuple[HostPath, ...] = ()  # that allocated the host's side, as far as they are known


class AllocationSite(Struct, frozen=True, kw_only=True):
    """All allocations of one place of the host."""

    path: HostPath
    allocations: int
    size_bytes: int  # of all
    read_bytes: int  # of them, by launches, each counted once; rounded up to words
    written_bytes: int
    uses: tuple[ArrayUse, ...]  # in the order of their first launches
    copies: tuple[CopyRuns, ...]
    findings: tuple[AllocationFinding, ...]


class MemoryUse(Struct, frozen=True, kw_only=True):
    """Allocations of a program, and their use."""

    sites: tuple[AllocationSite, ...] = ()
    peak_bytes: int = 0  # most that was allocated while something was used; 0 where it is not known
    lean_peak_bytes: int = 0  # the same if each allocation were there from its first use to its last
    unjudged: str = ""  # why nothing is said of them, a clause; empty where it is


class ProgramRun(Struct, frozen=True, kw_only=True):
    """Result of a program run."""

    end: CommandEnd  # how it ended
    machine: str  # the GPU it saw
    kernels: tuple[KernelRuns, ...]  # in the order of their first launches
    notes: tuple[str, ...] = ()  # what was not done as a GPU would do it, a sentence each
    seconds: float = 0.0  # from start to end
    peak_bytes: int = 0  # most device memory it had allocated
    refused: tuple[str, ...] = ()  # why kernels could not be launched at all, a sentence each
    crash: str = ""  # how a signal ended it, a sentence; empty where none did
    memory: MemoryUse = MemoryUse()  # allocations, and what was done with them
    built_ns: int = 0  # since 1970, when its file was written; when it was started, where that is no program of CUDA's but what starts one

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
