"""Lanes that stand at the same place, :class:`Fragment`, and what they execute: :class:`Segment`, :class:`BoundFunction`, :class:`Frame`.

Fragments are split, compacted, and put back onto more warps.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.execution.emulator.engine.accesses import Access
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.geometry import Blocks, Geometry, WarpSet
from gpa_lsp.execution.emulator.engine.layout import Piece
from gpa_lsp.execution.emulator.engine.private_memory import BatchMemory
from gpa_lsp.execution.emulator.engine.values import Value, find_active_rows, scatter_rows, take_rows

Registers = list[Value]


class ClosingKind(Enum):
    """How a segment ends."""

    JUMP = 1  # All lanes go to one place
    BRANCH = 2  # Some jump
    EXIT = 3  # All exit, or those whose guard holds
    BARRIER = 4  # All wait for all threads of their block
    GATE = 5  # All wait for the others of their warp


_FEWEST_WARPS = 16  # Smaller warp sets are not compacted: their arrays cost nothing
# Of the clock by each warp, before it runs faster: what measures, rather than waits, reads it less often
_PATIENT_READS = 1024
_HASTE = 64  # Each read of it then takes it on by this part of the time since the first

Step = Callable[["Fragment"], None]  # What fragments execute: one or a few instructions

# What ends a segment: sends the fragment on, parts it, parks it, or ends its lanes
End = Callable[["Dispatcher", "Fragment"], None]


class SharedWatch(Protocol):
    """Watches what threads do to shared memory; see :mod:`.shared_checks`."""

    def pass_barrier(self, slots: "npt.NDArray[np.bool_] | None") -> None:
        """Threads of some blocks (bool[k]; None for all) met."""
        ...

    def pass_warp_barrier(self, fragment: "Fragment") -> None:
        """Lanes of warps met."""
        ...

    def check_load(self, access: Access, fragment: "Fragment", index: Any, mask: Value) -> None:
        """Lanes read."""
        ...

    def check_store(self, access: Access, fragment: "Fragment", index: Any, mask: Value) -> None:
        """Lanes write."""
        ...

    def check_values(
        self, access: Access, fragment: "Fragment", index: Any, mask: Value, *, views: Any, values: Any
    ) -> None:
        """Lanes of a warp have written different values to one place."""
        ...


class Batch(Blocks):
    """Blocks that are executed together, with what belongs to them alone.

    Attributes:
        memory: shared and local memory.
        checks: of races on shared memory; None when they are off.
        clock: what ``%clock`` reads: warp instructions executed so far in the whole emulation, and what :meth:`read_clock` added.
    """

    __slots__ = ("_began", "_clock_reads", "checks", "clock", "memory")

    def __init__(self, geometry: Geometry, numbers: npt.NDArray[np.uint32], memory: BatchMemory) -> None:
        super().__init__(geometry, numbers)
        self.memory = memory
        self.checks: SharedWatch | None = None
        self.clock = 0
        self._began: int | None = None
        self._clock_reads = 0

    def read_clock(self, warps: int) -> int:
        """The clock for so many warps that read it together.

        Kernels that wait for it, as for 10 ms, would wait for millions of instructions: where warps have read it very often, it runs faster
        the longer they wait.
        """
        if self._began is None:
            self._began = self.clock
        self._clock_reads += warps
        if self._clock_reads > _PATIENT_READS * (all_warps := len(self.root.ids)):
            self.clock += (self.clock - self._began) * warps // (_HASTE * all_warps)
        return self.clock

    def close(self) -> None:
        """Give back what it holds, now: it and its warps hold each other, and the next batch needs as much."""
        self.memory.close()
        self.checks = None
        del self.root


class Barrier:
    """Where lanes wait for others; see :mod:`.barriers`."""

    __slots__ = ()


class Dispatcher(Protocol):
    """Takes fragments at the ends of segments; see :class:`.scheduler.Scheduler`."""

    @property
    def faults(self) -> FaultLog:
        """What went wrong."""
        ...

    def go(self, fragment: "Fragment", segment: "Segment") -> None:
        """Send a fragment on."""
        ...

    def retire(self, fragment: "Fragment") -> None:
        """The lanes of a fragment have exited."""
        ...

    def meet(self, barrier: Barrier, fragment: "Fragment") -> None:
        """A fragment has come to a barrier."""
        ...


class Closing(Struct, frozen=True, kw_only=True):
    """What ends a segment, where it is simple enough to be told."""

    kind: ClosingKind  # how
    taken: "Segment | None" = None  # where lanes go, or jump to; None for an exit
    fallen: "Segment | None" = None  # where lanes go that do not jump, or exit; None where all do
    guard: int | None = None  # slot of the predicate; None without one
    is_negated: bool = False  # they jump where it is false
    static: int = -1  # number of the instruction; -1 for none


class Segment:
    """Instructions that a fragment executes without stopping.

    Attributes:
        function: name of its function.
        order: its place in the order in which segments are run; lower first.
        steps: what it does.
        end: what comes then.
        live_in: slots that are read here or later before they are written.
        instructions: static numbers of its instructions.
        size: how many.
        returned: of a segment behind a call: for each result the parts that are read: (offset, bytes) → slot.
        is_polling: it reads memory in a way that is meant to see what others write: lanes may spin here.
        enters_block: number of the basic block that begins here; None for a later part of one.
        warp_executions: by warps, so far.
        lane_executions: by lanes, so far.
        parts: the steps by instruction, without those that only forget values; the instruction is None where the steps are of none.
        closing: what its end is; None where only that tells.
    """

    __slots__ = (
        "closing", "end", "enters_block", "function", "instructions", "is_polling", "lane_executions", "live_in", "order", "parts", "returned",
        "size", "steps", "warp_executions",
    )  # fmt: skip

    def __init__(self, function: str, live_in: tuple[int, ...]) -> None:
        self.function = function
        self.order = 0
        self.instructions: list[int] = []
        self.size = 0
        self.live_in = live_in
        self.steps: list[Step] = []
        self.end: End = _nowhere
        self.returned: list[dict[Piece, int]] = []
        self.is_polling = False
        self.enters_block: int | None = None
        self.warp_executions = 0
        self.lane_executions = 0
        self.parts: list[tuple[PtxInstruction | None, tuple[Step, ...]]] = []
        self.closing: Closing | None = None


def _nowhere(_scheduler: "Dispatcher", _fragment: "Fragment") -> None:
    raise AssertionError("a segment without an end")


class BoundFunction:
    """A function, ready to run.

    Attributes:
        name: mangled.
        segments: the first one is where it begins.
        template: what its register file begins with.
        dtypes: storage dtype of each slot.
        constants: slots of values that never change.
        parameters: for each parameter its parts: (offset, bytes) → slot.
        returns: for each returned value its parts: (offset, bytes) → slot.
        local_bytes: of its frame in local memory.
        most_live: registers that are live at once.
    """

    __slots__ = (
        "constants",
        "dtypes",
        "local_bytes",
        "most_live",
        "name",
        "parameters",
        "returns",
        "segments",
        "template",
    )

    def __init__(self, name: str, local_bytes: int) -> None:
        self.name = name
        self.local_bytes = local_bytes
        self.most_live = 0
        self.segments: list[Segment] = []
        self.template: list[Value] = []
        self.dtypes: list[np.dtype[Any]] = []
        self.constants: frozenset[int] = frozenset()
        self.parameters: list[dict[Piece, int]] = []
        self.returns: list[dict[Piece, int]] = []


class Frame:
    """A chain of calls. Lanes that came the same way share the very object.

    Attributes:
        function: the function that runs.
        parent: of the caller; None for the kernel.
        return_to: where the caller goes on; None for the kernel.
        call_instruction: static number of the call; -1 for the kernel.
        depth: 0 for the kernel.
        local_base: where the function's frame begins in each thread's local memory.
        prefix: of its place in the order of running: the orders of the callers' segments, outermost first.
    """

    __slots__ = ("_callees", "call_instruction", "depth", "function", "local_base", "parent", "prefix", "return_to")

    def __init__(
        self,
        function: BoundFunction,
        parent: "Frame | None" = None,
        return_to: Segment | None = None,
        *,
        order: int = 0,
        call_instruction: int = -1,
    ) -> None:
        self.function = function
        self.parent = parent
        self.return_to = return_to
        self.call_instruction = call_instruction
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.local_base = 0
        self.prefix: tuple[int, ...] = ()
        if parent is not None:
            self.local_base = parent.local_base + -(-parent.function.local_bytes // 16) * 16
            self.prefix = (*parent.prefix, order)
        self._callees: dict[tuple[int, str], Frame] = {}

    def call(self, function: BoundFunction, segment: Segment, return_to: Segment, instruction: int) -> "Frame":
        """The frame of a function called from the end of a segment, by an instruction."""
        key = (segment.order, function.name)
        found = self._callees.get(key)
        if found is None:
            found = self._callees[key] = Frame(
                function, self, return_to, order=segment.order, call_instruction=instruction
            )
        return found


class Link:
    """How a compacted fragment hangs on the warp set it came from.

    A register that is still the very object it was at the compaction need not be put back: the larger set has it already.

    Attributes:
        warps: the larger warp set.
        rows: int64[w], positions of the compacted warps in it.
        levels: register lists of the fragment that was compacted, outermost caller first.
        gathered: what the compacted fragment began with, outermost caller first.
        link: of the fragment that was compacted.
    """

    __slots__ = ("gathered", "levels", "link", "rows", "warps")

    def __init__(
        self, warps: WarpSet, rows: Any, levels: list[Registers], gathered: list[Registers], link: "Link | None"
    ) -> None:
        self.warps = warps
        self.rows = rows
        self.levels = levels
        self.gathered = gathered
        self.link = link


class Fragment:
    """Lanes of a warp set at the same place of the same chain of calls.

    Attributes:
        batch: the batch they are of.
        warps: the warp set its arrays lie over.
        mask: bool[n], contiguous: which lanes are its own; None for all.
        count: how many lanes are its own; at least 1.
        warp_count: warps with at least one of them.
        registers: of the function it is in, by slot.
        callers: registers of the callers, outermost first; never written into.
        frame: the chain of calls.
        link: None while it lies over all warps of its batch.
        segment: what it executes next.
    """

    __slots__ = ("batch", "callers", "count", "frame", "link", "mask", "registers", "segment", "warp_count", "warps")

    def __init__(
        self,
        *,
        batch: Batch,
        warps: WarpSet,
        mask: Value,
        count: int,
        registers: Registers,
        callers: tuple[Registers, ...],
        frame: Frame,
        link: Link | None,
    ) -> None:
        self.batch = batch
        self.warps = warps
        self.mask = mask
        self.count = count
        self.warp_count = len(warps.ids) if mask is None else int(np.count_nonzero(find_active_rows(mask)))
        self.registers = registers
        self.callers = callers
        self.frame = frame
        self.link = link
        self.segment: Segment = frame.function.segments[0]

    @property
    def levels(self) -> list[Registers]:
        """Its register lists, outermost caller first, its own last."""
        return [*self.callers, self.registers]

    def active(self) -> Value:
        """Its mask, as an array in any case."""
        return np.ones(self.warps.lanes, np.bool_) if self.mask is None else self.mask

    def merge_all(self, fragments: "list[Fragment]") -> "Fragment | None":
        """One fragment of the lanes of all of them, by a way of its own; None for the usual one."""
        return None

    def narrow(self, mask: Value, count: int, segment: Segment | None = None) -> "Fragment":
        """A fragment of some of its lanes.

        Args:
            mask: bool[n], a subset of its own lanes.
            count: how many; at least 1.
            segment: where they go: only what is live there need be kept. None keeps all registers, and all warps.
        """
        whole = count == self.warps.lanes
        child = Fragment(
            batch=self.batch,
            warps=self.warps,
            mask=None if whole else np.ascontiguousarray(mask),
            count=count,
            registers=self.registers.copy(),
            callers=self.callers,
            frame=self.frame,
            link=self.link,
        )
        child.segment = self.segment if segment is None else segment
        if segment is not None:
            compact(child)
        return child


def list_live_slots(fragment: Fragment) -> list[tuple[int, ...]]:
    """Slots that are still needed, of each level of the fragment's calls."""
    lives = [fragment.segment.live_in]
    frame = fragment.frame
    while frame.parent is not None and frame.return_to is not None:
        lives.append(frame.return_to.live_in)
        frame = frame.parent
    lives.reverse()
    return lives


def compact(fragment: Fragment) -> None:
    """Drop warps without a lane, if they are more than half. Registers that are not live at its segment are not kept."""
    total = len(fragment.warps.ids)
    if total < _FEWEST_WARPS or fragment.warp_count * 2 >= total or fragment.mask is None:
        return
    rows = np.flatnonzero(find_active_rows(fragment.mask))
    levels = fragment.levels
    gathered = [
        gather_live(registers, live, rows) for registers, live in zip(levels, list_live_slots(fragment), strict=True)
    ]
    fragment.link = Link(fragment.warps, rows, levels, gathered, fragment.link)
    fragment.warps = WarpSet(fragment.batch, fragment.warps.ids[rows])
    mask = take_rows(fragment.mask, rows)
    fragment.mask = None if fragment.count == fragment.warps.lanes else mask
    fragment.callers = tuple(registers.copy() for registers in gathered[:-1])
    fragment.registers = gathered[-1].copy()


def gather_live(registers: Registers, live: tuple[int, ...], rows: Any) -> Registers:
    """The live registers over some warps; the others hold a uniform value (constants) or zero."""
    out = [value if not value.ndim else value.dtype.type(0) for value in registers]
    for slot in live:
        out[slot] = take_rows(registers[slot], rows)
    return out


def lift(fragment: Fragment) -> Fragment:
    """The same lanes over the warp set the fragment was compacted from.

    Raises:
        AssertionError: it was never compacted.
    """
    link = fragment.link
    assert link is not None
    lanes = link.warps.lanes
    mask = np.zeros(lanes, np.bool_)
    mask.reshape(-1, 32)[link.rows] = True if fragment.mask is None else fragment.mask.reshape(-1, 32)
    levels: list[Registers] = []
    for depth, (registers, live) in enumerate(zip(fragment.levels, list_live_slots(fragment), strict=True)):
        known = depth < len(link.levels)
        lifted = [value if not value.ndim else value.dtype.type(0) for value in registers]
        for slot in live:
            value = registers[slot]
            if known and slot < len(link.gathered[depth]) and value is link.gathered[depth][slot]:
                lifted[slot] = link.levels[depth][slot]
            elif value.ndim:
                lifted[slot] = scatter_rows(value, link.rows, fragment.mask, value.dtype.type(0), lanes)
        levels.append(lifted)
    out = Fragment(
        batch=fragment.batch,
        warps=link.warps,
        mask=None if fragment.count == lanes else mask,
        count=fragment.count,
        registers=levels[-1],
        callers=tuple(levels[:-1]),
        frame=fragment.frame,
        link=link.link,
    )
    out.segment = fragment.segment
    return out
