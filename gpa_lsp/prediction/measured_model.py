"""What was measured of a launch beside what was emulated of it: :class:`CountComparison` of :class:`ComparedAccess`."""

from collections.abc import Mapping
from dataclasses import field

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.model import AccessGroupKind

AGREED_RATIO = 0.02
"""Counts that differ by no more agree: counters that are read in several passes are of several runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPair:
    """One count of a launch.

    Attributes:
        measured: on the GPU.
        emulated: by us, for the whole launch.
    """

    measured: float
    emulated: float

    @property
    def agrees(self) -> bool:
        """They are the same, but for what counters differ by from run to run."""
        return abs(self.measured - self.emulated) <= AGREED_RATIO * max(self.measured, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAccess:
    """An access of the PTX and the machine instructions it became.

    Attributes:
        ptx: the instruction.
        ptx_line: of the PTX in the image, from 1.
        file: of its source line, as compiled; None without a line.
        line: from 1; None without a line.
        kind: loads, stores or atomics.
        space: it goes to.
        instructions: function and offset in bytes of each machine instruction.
        executions: by warps.
        threads: that executed it with their guard true; None where that was not collected.
        sectors: None where they were not collected, and for shared memory.
        wavefronts: None where they were not collected, and for all but shared memory.
    """

    ptx: str
    ptx_line: int
    file: str | None
    line: int | None
    kind: AccessGroupKind
    space: Space
    instructions: tuple[tuple[str, int], ...]
    executions: CountPair
    threads: CountPair | None
    sectors: CountPair | None
    wavefronts: CountPair | None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CountComparison:
    """All accesses of a launch.

    Attributes:
        launch: its position in the report, from 0.
        accesses: in the order of the PTX.
        counted_blocks: of which the emulated counts are; 0 when none was counted to its end.
        grid_blocks: of the launch.
        added: machine instructions that access memory for no access of the PTX, such as spills.
        merged: accesses of the PTX that were emulated and became no machine instruction of their own.
        unmapped: machine instructions that access memory and have no line of the PTX.
        why: nothing was compared; empty where something was.
    """

    launch: int
    accesses: tuple[ComparedAccess, ...] = field(repr=False, default=())
    counted_blocks: int = 0
    grid_blocks: int = 0
    added: int = 0
    merged: int = 0
    unmapped: int = 0
    why: str = ""
