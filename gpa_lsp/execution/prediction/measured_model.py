"""What was measured of a launch beside what was emulated of it: :class:`CountComparison` of :class:`ComparedAccess`."""

from collections.abc import Mapping

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.traces.model import AccessGroupKind

AGREED_RATIO = 0.02  # Counts that differ by no more agree: counters that are read in several passes are of several runs


class CountPair(Struct, frozen=True, kw_only=True):
    """One count of a launch."""

    measured: float  # on the GPU
    emulated: float  # by us, for the whole launch

    @property
    def agrees(self) -> bool:
        """They are the same, but for what counters differ by from run to run."""
        return abs(self.measured - self.emulated) <= AGREED_RATIO * max(self.measured, 1.0)


class ComparedAccess(Struct, frozen=True, kw_only=True):
    """An access of the PTX and the machine instructions it became."""

    ptx: str  # the instruction
    ptx_line: int  # of the PTX in the image, from 1
    file: str | None  # of its source line, as compiled; None without a line
    line: int | None  # from 1; None without a line
    kind: AccessGroupKind  # loads, stores or atomics
    space: Space  # it goes to
    instructions: tuple[tuple[str, int], ...]  # function and offset in bytes of each machine instruction
    executions: CountPair  # by warps
    threads: CountPair | None  # that executed it with their guard true; None where that was not collected
    sectors: CountPair | None  # None where they were not collected, and for shared memory
    wavefronts: CountPair | None  # None where they were not collected, and for all but shared memory

    @property
    def pairs(self) -> Mapping[str, CountPair | None]:
        """All counts by name."""
        return {
            "executions": self.executions,
            "threads": self.threads,
            "sectors": self.sectors,
            "wavefronts": self.wavefronts,
        }

    @property
    def is_executed_alike(self) -> bool:
        """As often by warps, or by threads: the compiler may guard what PTX branches around, or the other way about."""
        return self.executions.agrees or (self.threads is not None and self.threads.agrees)

    @property
    def agrees(self) -> bool:
        """Nothing that was counted differs."""
        others = (self.sectors, self.wavefronts)
        return self.is_executed_alike and all(one is None or one.agrees for one in others)


class CountComparison(Struct, frozen=True, kw_only=True):
    """All accesses of a launch."""

    launch: int  # its position in the report, from 0
    accesses: tuple[ComparedAccess, ...] = ()  # in the order of the PTX
    counted_blocks: int = 0  # of which the emulated counts are; 0 when none was counted to its end
    grid_blocks: int = 0  # of the launch
    added: int = 0  # machine instructions that access memory for no access of the PTX, such as spills
    merged: int = 0  # accesses of the PTX that were emulated and became no machine instruction of their own
    unmapped: int = 0  # machine instructions that access memory and have no line of the PTX
    why: str = ""  # nothing was compared; empty where something was
