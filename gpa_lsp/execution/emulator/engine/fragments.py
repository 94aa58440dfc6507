"""Lanes at the same place, :class:`Fragment`; the code they execute, :class:`Segment`, :class:`BoundFunction`, :class:`Frame`; and the shared
memory of their blocks and local memory of their threads, :class:`BatchMemory`.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Register, Space
from gpa_lsp.execution.emulator.engine.arena import ACCESS_WORDS
from gpa_lsp.execution.emulator.engine.faults import Access, FaultLog
from gpa_lsp.execution.emulator.engine.geometry import (
    WARP_LANES,
    Blocks,
    Geometry,
    Value,
    WarpSet,
    pack_lanes,
    unpack_lanes,
)
from gpa_lsp.execution.emulator.engine.layout import Piece
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind
from gpa_lsp.execution.emulator.semantics.model import RANK_SHIFT
from gpa_lsp.foundation.numbers import format_count

_REGISTER_BYTES = 8
_GRANULE_BYTES = 1024  # shared and local memory come in pieces of at most this size; beyond them a GPU finds no memory
_LARGEST_LOCAL_BYTES = 512 << 10  # what the hardware gives a thread (CUDA C++ programming guide, compute capabilities)


class BatchMemory:
    """Bytes of shared memory, by block, and of local memory, by lane.

    Args:
        geometry: of the launch.
        block_count: of the batch.
        meter: counts what is held.
        faults: where bad accesses are noted.

    Attributes:
        geometry: of the launch.
        shared: shared memory, block after block.
        local: local memory, lane after lane; another array once it has grown.
        local_stride_bytes: local memory of each lane.
    """

    def __init__(self, geometry: Geometry, block_count: int, meter: Meter, faults: FaultLog) -> None:
        self.geometry = geometry
        self._meter = meter
        self._faults = faults
        self._lanes = block_count * geometry.lanes_per_block
        self._held_bytes = block_count * geometry.shared_stride_bytes
        meter.hold(self._held_bytes, "shared memory")
        self.shared: npt.NDArray[np.uint8] = np.zeros(max(self._held_bytes, 16), np.uint8)
        self.local: npt.NDArray[np.uint8] = np.zeros(16, np.uint8)
        self.local_stride_bytes = 0

    def close(self) -> None:
        """Give the memory back."""
        self._meter.release(self._held_bytes)
        self._held_bytes = 0

    def hold(self, size_bytes: int, what: str) -> None:
        """Account for more that the batch holds.

        Raises:
            BudgetReached: it is more than allowed.
        """
        self._meter.hold(size_bytes, what)
        self._held_bytes += size_bytes

    def reserve_local(self, size_bytes: int) -> None:
        """Make sure that each thread has so much local memory.

        Raises:
            BudgetReached: it is more than allowed.
        """
        if size_bytes <= self.local_stride_bytes:
            return
        stride = max(size_bytes, 2 * self.local_stride_bytes if self.local_stride_bytes else size_bytes)
        stride = min(-(-stride // 16) * 16, max(_LARGEST_LOCAL_BYTES, -(-size_bytes // 16) * 16))
        self.hold(self._lanes * (stride - self.local_stride_bytes), "local memory")
        grown = np.zeros(self._lanes * stride, np.uint8)
        if self.local_stride_bytes:
            old = self.local.reshape(self._lanes, -1)
            grown.reshape(self._lanes, stride)[:, : self.local_stride_bytes] = old
        self.local = grown
        self.local_stride_bytes = stride

    def read_local(self, lane: int, offset_bytes: int, limit: int) -> bytes:
        """Bytes of a thread's local memory, at most so many.

        Args:
            limit: how many at most.
        """
        start = lane * self.local_stride_bytes
        return self.local[start + offset_bytes : start + min(offset_bytes + limit, self.local_stride_bytes)].tobytes()

    def write_local(self, lane: int, offset_bytes: int, data: bytes) -> None:
        """Write to a thread's local memory, as far as it goes: see :meth:`read_local`."""
        start = lane * self.local_stride_bytes
        place = self.local[start + offset_bytes : start + min(offset_bytes + len(data), self.local_stride_bytes)]
        place[:] = np.frombuffer(data, np.uint8)[: len(place)]

    def write_shared(self, base: int, offset_bytes: int, data: bytes) -> None:
        """Write to a block's shared memory, as far as it goes; the block's begins at ``base``."""
        place = self.shared[base + offset_bytes : base + min(offset_bytes + len(data), self.geometry.shared_bytes)]
        place[:] = np.frombuffer(data, np.uint8)[: len(place)]

    def report(self, access: Access, space: Space, warps: WarpSet, lanes: Value, addresses: Value) -> None:
        """Note what is wrong with an access to shared or local memory.

        Args:
            lanes: int64[k] of the warps, which may not access what they want.
            addresses: uint64[k] of theirs, from where the memory begins.
        """
        size, owner, ranks = self.local_stride_bytes, "the thread's local", addresses & np.uint64(0)
        if space is Space.SHARED:
            size, owner = self.geometry.shared_bytes, "the block's shared"
            if self.geometry.cluster_blocks > 1:
                ranks, addresses = addresses >> np.uint64(RANK_SHIFT), addresses & np.uint64((1 << RANK_SHIFT) - 1)
        last = size - access.bytes
        outside = addresses > np.uint64(last) if last >= 0 else np.ones(len(addresses), np.bool_)
        outside |= ranks > self.geometry.cluster_blocks
        misaligned = ~outside & ((addresses & np.uint64(access.bytes - 1)) != 0)
        for kind, wrong in (
            (FaultKind.OUT_OF_BOUNDS, outside),
            (FaultKind.MISALIGNED, misaligned),
            (FaultKind.OUT_OF_BOUNDS, ~outside & ~misaligned),
        ):
            if not wrong.any():
                continue
            found, rank = addresses[wrong], int(ranks[wrong][0])
            what = f"{ACCESS_WORDS[access.kind]} of {access.bytes} bytes at byte {format_count(int(found[0]))}"
            if rank:
                what, owner = f"{what} of block {rank - 1} of the cluster", "its shared"
            reason = f"not a multiple of {access.bytes}"
            if kind is FaultKind.MISALIGNED:
                self._faults.end_on_gpu(DeviceError.MISALIGNED_ADDRESS)
            else:
                if rank or int(found.max()) + access.bytes > -(-size // _GRANULE_BYTES) * _GRANULE_BYTES:
                    self._faults.end_on_gpu(DeviceError.LAUNCH_FAILURE)
                reason = f"{owner} memory has {format_count(size)} bytes"
                if rank > self.geometry.cluster_blocks:
                    reason = f"it has {self.geometry.cluster_blocks} blocks"
                elif wrong is not outside:
                    reason = "that block has exited"
            self._faults.add_lanes(kind, f"{what}: {reason}", warps, lanes[wrong], instruction=access.instruction)


Parts = dict[Piece, int]  # Of a parameter, those that are written or read: (offset, bytes) → slot


class ClosingKind(Enum):
    """The end of a segment, where the core knows it."""

    JUMP = 1  # All lanes go to one place
    BRANCH = 2  # Some jump
    EXIT = 3  # All exit, or those whose guard holds
    BARRIER = 4  # All wait for all threads of their block
    GATE = 5  # All wait for the others of their warp
    CALL = 6  # All, or those whose guard holds, enter a function: they go to the entry of a :class:`CallEdge`
    RETURN = 7  # All, or those whose guard holds, go back to the caller


# What ends a segment: sends the fragment on, parts it, parks it, or ends its lanes
End = Callable[["Dispatcher", "Fragment"], None]


class SharedWatch(Protocol):
    """Checks of shared memory."""

    def pass_barrier(self, slots: "npt.NDArray[np.bool_]", *, is_of_cluster: bool = False) -> None:
        """Threads of some blocks met, those of each block or of each cluster: bool[k]."""
        ...

    def pass_warp_barrier(self, fragment: "Fragment") -> None:
        """Lanes of warps met."""
        ...


class Batch(Blocks):
    """Blocks that are executed together, with what belongs to them alone.

    Attributes:
        memory: shared and local memory.
        checks: of races on shared memory; None when they are off.
    """

    __slots__ = ("checks", "memory")

    def __init__(self, geometry: Geometry, numbers: npt.NDArray[np.uint32], memory: BatchMemory) -> None:
        super().__init__(geometry, numbers)
        self.memory = memory
        self.checks: SharedWatch | None = None

    def close(self) -> None:
        """Free its memory now: batch and warps refer to each other, and the next batch needs as much."""
        self.memory.close()
        self.checks = None
        del self.root


class Barrier:
    """A barrier; see :mod:`.barriers`."""

    __slots__ = ()


class Dispatcher(Protocol):
    """Takes fragments at the ends of segments."""

    @property
    def faults(self) -> FaultLog:
        """Faults so far."""
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
    """The end of a segment, where it is one of a few kinds."""

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
        end: what comes then, where :attr:`closing` does not tell.
        live_in: slots that are read here or later before they are written.
        instructions: static numbers of its instructions.
        size: how many.
        returned: of a segment behind a call: for each result the parts that are read.
        is_polling: it reads memory in a way that is meant to see what others write: lanes may spin here.
        enters_block: number of the basic block that begins here; None for a later part of one.
        warp_executions: by warps, so far.
        lane_executions: by lanes, so far.
        body: its instructions, but the one that ends it.
        closing: how it ends; None where only :attr:`end` tells.
    """

    __slots__ = (
        "body", "closing", "end", "enters_block", "function", "instructions", "is_polling", "lane_executions", "live_in", "order", "returned", "size",
        "warp_executions",
    )  # fmt: skip

    def __init__(self, function: str, live_in: tuple[int, ...]) -> None:
        self.function = function
        self.order = 0
        self.instructions: list[int] = []
        self.size = 0
        self.live_in = live_in
        self.end: End = _nowhere
        self.returned: list[Parts] = []
        self.is_polling = False
        self.enters_block: int | None = None
        self.warp_executions = 0
        self.lane_executions = 0
        self.body: list[PtxInstruction] = []
        self.closing: Closing | None = None


def _nowhere(*_: object) -> None:
    raise AssertionError("a segment without an end, or a batch that is not running")


class BoundFunction:
    """A function, ready to run.

    Attributes:
        name: mangled.
        segments: the first one is where it begins.
        dtypes: storage dtype of each slot.
        parameters: for each parameter its parts.
        returns: for each returned value its parts.
        edges: calls in it, one for each function that a call may be of.
        pieces: parts of its own parameters and of those it hands over, by variable.
        local_bytes: of its frame in local memory.
        most_live: registers that are live at once.
    """

    __slots__ = (
        "dtypes",
        "edges",
        "local_bytes",
        "most_live",
        "name",
        "parameters",
        "pieces",
        "returns",
        "segments",
    )

    def __init__(self, name: str, local_bytes: int) -> None:
        self.name = name
        self.local_bytes = local_bytes
        self.most_live = 0
        self.segments: list[Segment] = []
        self.dtypes: list[np.dtype[Any]] = []
        self.parameters: list[Parts] = []
        self.returns: list[Parts] = []
        self.edges: list[CallEdge] = []
        self.pieces: dict[str, Parts] = {}


class CallEdge(Struct, frozen=True, kw_only=True):
    """A call of a function at one place: what lanes run on the way into it, and on the way back."""

    callee: str  # name of the function
    arguments: list[Parts]  # of each argument what was stored of it, in order
    site: Segment  # that the call ends
    entry: Segment  # hands the arguments over; the function follows
    landing: Segment  # takes what the function returns; what is behind the call follows
    following: Segment  # behind the call
    joined: Segment  # what runs next behind the landing: others that call, or what follows
    static: int  # number of the call


class Frame:
    """A chain of calls. Lanes that came the same way share the very object.

    Args:
        function: the function that runs.
        parent: of the caller; None for the kernel.
        call_instruction: static number of the call; -1 for the kernel.

    Attributes:
        depth: 0 for the kernel.
        local_base: where the function's own variables begin in each thread's local memory.
    """

    __slots__ = ("call_instruction", "depth", "function", "local_base", "parent")

    def __init__(self, function: "BoundFunction", parent: "Frame | None" = None, *, call_instruction: int = -1) -> None:
        self.function = function
        self.parent = parent
        self.call_instruction = call_instruction
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.local_base: int = 0 if parent is None else parent.local_base + -(-parent.function.local_bytes // 16) * 16


class Registers(Protocol):
    """The registers of some warps, by slot: read where they lie, written back when the lanes go on."""

    def __getitem__(self, slot: int) -> Value:
        """The value of a register over the warps."""
        ...

    def __setitem__(self, slot: int, value: Value) -> None:
        """Give a register another value."""
        ...

    def copy(self) -> "Registers":
        """A copy, pending changes included."""
        ...

    def turn_to(self, rows: Value) -> "Registers":
        """Registers of other warps of the batch, by number."""
        ...

    def write_back(self, mask: Value) -> None:
        """Write pending changes where registers lie, for the lanes bool[n] or for all (None)."""
        ...


class Fragment:
    """Lanes that stand at the same place of the same chain of calls.

    Attributes:
        batch: the batch they are of.
        warps: those with a lane of it, and no others but where it was narrowed.
        mask: bool[n], contiguous: which lanes are its own; None for all.
        count: how many lanes are its own; at least 1.
        registers: of the function it is in, by slot.
        frame: the chain of calls.
        segment: what it executes, or executes next.
    """

    __slots__ = ("batch", "count", "frame", "mask", "registers", "segment", "warps")

    def __init__(
        self,
        *,
        batch: Batch,
        warps: WarpSet,
        mask: Value,
        count: int,
        registers: Registers,
        frame: Frame,
        segment: "Segment",
    ) -> None:
        self.batch = batch
        self.warps = warps
        self.mask = mask
        self.count = count
        self.registers = registers
        self.frame = frame
        self.segment = segment

    def active(self) -> Value:
        """The mask as an array: bool[n]."""
        return np.ones(self.warps.lanes, np.bool_) if self.mask is None else self.mask

    def narrow(self, mask: Value, count: int) -> "Fragment":
        """A fragment of a subset of the lanes, over the same warps.

        Args:
            mask: bool[n], a subset of its own lanes.
            count: how many; at least 1.
        """
        whole = count == self.warps.lanes
        return Fragment(
            batch=self.batch,
            warps=self.warps,
            mask=None if whole else np.ascontiguousarray(mask),
            count=count,
            registers=self.registers.copy(),
            frame=self.frame,
            segment=self.segment,
        )

    def merge(self, others: "list[Fragment]") -> "Fragment":
        """Join fragments of different lanes at the same place; their pending changes of registers are written back."""
        if not others:
            return self
        masks = np.zeros(len(self.batch.root.ids), np.uint32)
        for one in (self, *others):
            one.registers.write_back(one.mask)
            masks[one.warps.ids] |= pack_lanes(one.active())
        return build_fragment(self.batch, self.frame, self.segment, masks, self.registers)


def guarded_mask(fragment: Fragment, guard: Register | None) -> Value:
    """Lanes of a fragment whose guard holds: bool[n]."""
    if guard is None:
        return fragment.active()
    chosen = fragment.registers[guard.slot]
    found: Value = fragment.active() & (~chosen if guard.is_negated else chosen)
    return found


def build_fragment(
    batch: Batch, frame: Frame, segment: Segment, masks: npt.NDArray[np.uint32], registers: Registers
) -> Fragment:
    """The fragment of some lanes.

    Args:
        masks: uint32[warps of the batch], at least one lane.
        registers: of any warps in the frame.
    """
    rows = np.flatnonzero(masks)
    warps = batch.root if len(rows) == len(masks) else WarpSet(batch, batch.root.ids[rows])
    chosen = masks[rows]
    count = int(np.bitwise_count(chosen).sum())
    mask = None
    if count != len(rows) * WARP_LANES:
        mask = unpack_lanes(chosen).reshape(-1)
    return Fragment(
        batch=batch,
        warps=warps,
        mask=mask,
        count=count,
        registers=registers.turn_to(rows),
        frame=frame,
        segment=segment,
    )
