"""Results of emulating, :class:`Emulation`, its limits, :class:`Budget` and :class:`Sampling`; and traces as numpy columns: :class:`Trace`. Their
format is the same from the emulator and from recorders on a GPU.

A row is one *warp-level* access, branch or entry into a basic block. Rows are in the order in which they were executed; rows of one warp are
always in program order, rows of one block in the order in which its warps ran between barriers. Nothing says how blocks interleave: they are
independent.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord

TRACE_FORMAT = "gpa-lsp/trace/1"  # Name of the format, written into every saved trace; the dtypes below are part of it

MOST_BLOCKS = 1 << 32  # Blocks that have a number in a trace, the first of a grid; those beyond are never executed

# Columns of accesses; see :class:`Accesses`
ACCESS_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "instruction": np.dtype("<u4"),
    "execution": np.dtype("<u4"),
    "lane_mask": np.dtype("<u4"),
    "bytes": np.dtype("u1"),
    "space": np.dtype("u1"),
    "first_address": np.dtype("<u8"),
}

# Columns of branches; see :class:`Branches`
BRANCH_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "instruction": np.dtype("<u4"),
    "execution": np.dtype("<u4"),
    "active_mask": np.dtype("<u4"),
    "taken_mask": np.dtype("<u4"),
}

# Columns of entries into basic blocks; see :class:`Entries`
ENTRY_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "basic_block": np.dtype("<u4"),
    "lane_mask": np.dtype("<u4"),
}


class Buffer(Struct, frozen=True, kw_only=True):
    """An array the kernel was given, or a variable of the module."""

    name: str  # of the argument or variable
    space: Space  # GLOBAL or CONST, TEXTURE
    base: int  # its first virtual address. Buffers are aligned to 512 bytes, as ``cudaMalloc`` aligns to 256 at least.
    size_bytes: int  # of it
    element_bytes: int  # of one element; 1 when unknown
    argument: int | None  # index of the kernel's parameter; None for variables


class Accesses(ColumnRecord, frozen=True, kw_only=True):
    """n warp-level accesses with m lane addresses; see :data:`ACCESS_DTYPES`."""

    block: npt.NDArray[np.uint32]  # uint32[n], linear index of the thread block, x fastest
    warp: npt.NDArray[np.uint16]  # uint16[n], warp within its block
    instruction: npt.NDArray[np.uint32]  # uint32[n], :attr:`StaticInstruction.index`
    # uint32[n], how often this warp had executed this instruction before, with any lanes
    execution: npt.NDArray[np.uint32]
    lane_mask: npt.NDArray[np.uint32]  # uint32[n], lanes that accessed (predicated-off lanes are not in it); never 0
    bytes: npt.NDArray[np.uint8]  # uint8[n], bytes per lane
    # uint8[n], :class:`~gpa_lsp.code.ptx.model.Space`, never GENERIC: resolved by the addresses. An access whose lanes went to several spaces is
    # several rows.
    space: npt.NDArray[np.uint8]
    # uint64[n], index of the row's first address in ``addresses``; the others follow, by ascending lane
    first_address: npt.NDArray[np.uint64]
    # uint64[m], of each active lane's first byte. Global and constant: virtual addresses, see :class:`Buffer`. Shared: bytes from the start of the
    # block's shared memory. Local: bytes from the start of the thread's local memory.
    addresses: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


class Branches(ColumnRecord, frozen=True, kw_only=True):
    """n executions of conditional branches by warps; see :data:`BRANCH_DTYPES`."""

    block: npt.NDArray[np.uint32]  # uint32[n]
    warp: npt.NDArray[np.uint16]  # uint16[n]
    instruction: npt.NDArray[np.uint32]  # uint32[n]
    execution: npt.NDArray[np.uint32]  # uint32[n], as in :class:`Accesses`
    active_mask: npt.NDArray[np.uint32]  # uint32[n], lanes that executed it
    # uint32[n], those of them that jumped. For ``brx.idx`` lanes that left the most common target of their warp.
    taken_mask: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


class Entries(ColumnRecord, frozen=True, kw_only=True):
    """n entries of warps into basic blocks; see :data:`ENTRY_DTYPES`."""

    block: npt.NDArray[np.uint32]  # uint32[n]
    warp: npt.NDArray[np.uint16]  # uint16[n]
    # uint32[n], number of the PTX basic block, over all functions in the order of :class:`StaticInstruction`
    basic_block: npt.NDArray[np.uint32]
    lane_mask: npt.NDArray[np.uint32]  # uint32[n], lanes that entered together

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


class Trace(ColumnRecord, frozen=True, kw_only=True):
    """A trace, or one piece of a longer one (pieces hold whole blocks and are analysed one after the other)."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # blocks in x, y, z
    block_threads: tuple[int, int, int]  # threads of a block in x, y, z
    instructions: tuple[StaticInstruction, ...]  # all static instructions, by index
    buffers: tuple[Buffer, ...]  # by ascending base
    accesses: Accesses  # warp-level accesses
    branches: Branches  # warp-level conditional branches
    entries: Entries  # entries into basic blocks; empty unless they were asked for
    # uint32[k], linear indexes of the blocks that were traced, ascending: a sample, or all
    traced_blocks: npt.NDArray[np.uint32]
    # False when rows were dropped because a limit was reached; what is there is whole blocks or a prefix, and says so
    is_complete: bool = True
    # of an instruction by a warp, as many accesses are there at most, the first ones, and no other row was dropped; None where the trace is complete,
    # or lacks others
    most_executions: int | None = None
    origin: str = "emulated"  # what wrote it: ``emulated``, or a recorder's name


def join_pieces(pieces: Sequence[Trace]) -> Trace:
    """One trace of pieces of different blocks, in order.

    Args:
        pieces: at least one; the instructions of a later one begin with those of an earlier one.
    """
    if len(pieces) == 1:
        return pieces[0]
    every = [piece.accesses for piece in pieces]
    starts = np.cumsum([0, *(len(one.addresses) for one in every[:-1])]).astype(np.uint64)
    accesses = {name: np.concatenate([getattr(one, name) for one in every]) for name in ACCESS_DTYPES}
    accesses["first_address"] = np.concatenate(
        [one.first_address + start for one, start in zip(every, starts, strict=True)]
    )
    branches = {name: np.concatenate([getattr(piece.branches, name) for piece in pieces]) for name in BRANCH_DTYPES}
    entries = {name: np.concatenate([getattr(piece.entries, name) for piece in pieces]) for name in ENTRY_DTYPES}
    cut = {piece.most_executions for piece in pieces if not piece.is_complete}
    return replace(
        pieces[-1],
        accesses=Accesses(**accesses, addresses=np.concatenate([one.addresses for one in every])),
        branches=Branches(**branches),
        entries=Entries(**entries),
        traced_blocks=np.sort(np.concatenate([piece.traced_blocks for piece in pieces])),
        is_complete=all(piece.is_complete for piece in pieces),
        most_executions=cut.pop() if len(cut) == 1 else None,
    )


def keep_blocks(trace: Trace, blocks: Sequence[int]) -> Trace | None:
    """The accesses in some blocks, without branches and entries; None where the trace has none of the blocks."""
    traced = np.intersect1d(trace.traced_blocks, np.array(blocks, dtype=np.int64)).astype(np.uint32)
    if not len(traced):
        return None
    rows = trace.accesses
    kept = np.isin(rows.block, traced)
    ends = np.append(rows.first_address[1:], np.uint64(len(rows.addresses))).astype(np.int64)
    lengths: npt.NDArray[np.int64] = ends - rows.first_address.astype(np.int64)
    columns: dict[str, Any] = {name: getattr(rows, name)[kept] for name in ACCESS_DTYPES}
    columns["first_address"] = (np.cumsum(lengths[kept]) - lengths[kept]).astype(np.uint64)
    return replace(
        trace,
        accesses=Accesses(**columns, addresses=rows.addresses[np.repeat(kept, lengths)]),
        branches=Branches(**{name: np.zeros(0, dtype) for name, dtype in BRANCH_DTYPES.items()}),
        entries=Entries(**{name: np.zeros(0, dtype) for name, dtype in ENTRY_DTYPES.items()}),
        traced_blocks=traced,
    )


class Budget(Struct, frozen=True, kw_only=True):
    """Limits of an emulation; the first one reached ends it with a fault, and everything executed until then counts."""

    # processor time, the sink's included: the less of it is left, the less is recorded of a batch
    seconds: float = 20.0
    memory_bytes: int = 2 << 30  # buffers, registers, shared and local memory and trace together
    warp_instructions: int = 2_000_000_000  # executed, over all warps
    trace_bytes: int = 512 << 20  # of trace columns kept in memory; what goes to a sink is not kept
    call_depth: int = 64  # nested device calls


class SamplingKind(StrEnum):
    """Ways to choose the blocks that are executed."""

    ALL = "all"
    WAVE = "wave"  # The first blocks that the whole GPU holds at once
    CHOSEN = "chosen"
    SPREAD = "spread"  # ``count`` blocks spread evenly over the grid, its first and last ones included


class Sampling(Struct, frozen=True, kw_only=True):
    """Choice of the blocks that are executed; the results of others stay unwritten."""

    kind: SamplingKind = SamplingKind.ALL  # how they are chosen
    blocks: tuple[int, ...] = ()  # linear indexes for CHOSEN
    count: int = 0  # blocks for WAVE and SPREAD


class TraceSettings(Struct, frozen=True, kw_only=True):
    """Events that a trace records."""

    accesses: bool = True  # warp-level accesses of global, shared, local and constant memory and textures
    branches: bool = True  # conditional branches
    entries: bool = False  # entries into basic blocks
    spaces_left_out: frozenset[int] = frozenset()  # numbers of spaces that are not recorded
    # of an instruction by a warp, as many accesses are recorded, the first ones; None for all
    most_executions: int | None = None


class TraceSink(Protocol):
    """Takes pieces of a trace as they are made, so that none of it need be kept."""

    def add(self, piece: Trace) -> None:
        """Take one piece: all rows of some whole blocks."""


class FaultKind(StrEnum):
    """Kinds of faults of an emulated program, and reasons for the end of its emulation; the values are names for people."""

    OUT_OF_BOUNDS = "out-of-bounds access"
    MISALIGNED = "misaligned access"
    SHARED_RACE = "race on shared memory"
    WARP_RACE = "race on shared memory within a warp"  # Lanes of one warp without ``__syncwarp`` between them
    CLUSTER_RACE = "race on shared memory of a cluster"
    GLOBAL_RACE = "race on global memory between blocks"
    DIVERGENT_BARRIER = "barrier in divergent code"
    UNINITIALISED = "read of shared memory nobody wrote"
    WRITE_TO_CONSTANT = "store to constant memory"
    DIVISION_BY_ZERO = "integer division by zero"
    TRAP = "trap"
    CLUSTER_BARRIER = (
        "barrier of a cluster out of order"  # A wait without an arrival, or two arrivals without a wait between them
    )
    DEADLOCK = "deadlock"  # Every warp waits
    TIME_BUDGET = "time budget reached"
    INSTRUCTION_BUDGET = "instruction budget reached"
    MEMORY_BUDGET = "memory budget reached"
    TRACE_BUDGET = "trace budget reached"
    CALL_DEPTH = "calls nested too deeply"
    UNSUPPORTED = "unsupported instruction"
    BAD_LAUNCH = "launch that no GPU accepts"


class DeviceError(StrEnum):
    """Errors with which a GPU ends a kernel where the emulator notes a fault and goes on; the values are names of ``cudaError_t``.

    Source: CUDA Runtime API, data types.
    """

    ILLEGAL_ADDRESS = "cudaErrorIllegalAddress"
    MISALIGNED_ADDRESS = "cudaErrorMisalignedAddress"
    INVALID_PC = "cudaErrorInvalidPc"
    LAUNCH_FAILURE = "cudaErrorLaunchFailure"


FAILED_ASSERTION = "assertion"  # What the message of a trap by ``assert`` begins with


class PassedEnd(Struct, frozen=True, kw_only=True):
    """Target of an access out of bounds."""

    array: str = ""  # whose end it passed, most likely; empty where none is near
    offset_bytes: int = 0  # from the beginning of that array, below zero in front of it
    size_bytes: int = 0  # of the array


class Fault(Struct, frozen=True, kw_only=True):
    """One thing found, once per instruction and kind."""

    kind: FaultKind  # what
    message: str  # one sentence with the values that show it (address, array, lane), without its place
    instruction: int | None = None  # index of the static instruction; None when it is about the launch as a whole
    chain: InlineChain | None = None  # its source line with the inline chain, innermost first; None when unknown
    other_chain: InlineChain | None = None  # of the other access of a race; None otherwise
    count: int = 1  # lane-level occurrences; at least 1
    block: int | None = None  # linear index of the first block it happened in; None when of no block
    thread: tuple[int, int, int] | None = None  # thread within the block, x, y, z; None when of no block
    is_fatal: bool = False  # the lanes it happened to, or the whole emulation, went no further
    passed: PassedEnd | None = None  # of an access out of bounds of global memory; None for all others
    # of one source line that it stands for, see :func:`~gpa_lsp.execution.prediction.predict_launch.group_faults`
    instructions: int = 1


class Counts(ColumnRecord, frozen=True, kw_only=True):
    """Executions of each of n static instructions, over the executed blocks."""

    warp_executions: npt.NDArray[np.int64]  # int64[n], by warps, with at least one lane
    lane_executions: npt.NDArray[np.int64]  # int64[n], by lanes whose guard was true


class Emulation(ColumnRecord, frozen=True, kw_only=True):
    """Results of an emulation."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # of the launch
    block_threads: tuple[int, int, int]  # of the launch
    instructions: tuple[StaticInstruction, ...]  # all static instructions, by index
    counts: Counts  # how often each was executed
    executed_blocks: npt.NDArray[np.uint32]  # uint32[k], linear indexes, ascending
    is_complete: bool  # every chosen block ran to its end
    faults: tuple[Fault, ...]  # most serious first, then by instruction
    trace: Trace | None  # None when none was asked for or all of it went to a sink
    # by argument or variable name, what the arrays hold at the end, with the dtype of their elements
    arrays: dict[str, npt.NDArray[np.generic]]
    warp_instructions: int  # executed, in all
    seconds: float  # processor time of the execution, without what the sink took
    peak_bytes: int  # most memory held at once by the emulator's own account
    printed: str = ""  # what the kernel printed with ``printf``, at most 64 KiB; empty when nothing
    sink_seconds: float = 0.0  # what the sink took


_MOST_SPREAD = 1 << 24

# Linear indexes, ascending. A range where they are the first ones: grids may have more blocks than memory holds numbers.
Blocks = range | npt.NDArray[np.uint32]


def choose_blocks(block_count: int, sampling: Sampling) -> Blocks:
    """The blocks to execute.

    Raises:
        InputError: a chosen block is not in the grid, or the number of blocks is none.

    >>> choose_blocks(100, Sampling(kind=SamplingKind.SPREAD, count=3)).tolist()
    [0, 50, 99]
    """
    whole_count, block_count = block_count, min(block_count, MOST_BLOCKS)
    if sampling.kind is SamplingKind.CHOSEN:
        found = np.unique(np.array(sampling.blocks, np.int64))
        if len(found) and not 0 <= found[0] <= found[-1] < block_count:
            wrong = found[-1] if found[0] >= 0 else found[0]
            which = "" if whole_count == block_count else f", whose first {format_count(block_count)} can be executed"
            raise InputError(
                f"block {wrong} of a grid of {format_count(whole_count)}{which}",
                remedy=f"choose 0 to {format_count(block_count - 1)}",
            )
        return found.astype(np.uint32)
    if sampling.kind is SamplingKind.ALL:
        return range(block_count)
    if sampling.count < 1:
        raise InputError(f"a sample of {sampling.count} blocks", remedy="say how many, at least 1")
    count = min(sampling.count, block_count)
    if sampling.kind is SamplingKind.WAVE or count == block_count:
        return range(count)
    if count > _MOST_SPREAD:
        raise InputError(
            f"a sample of {format_count(count)} blocks",
            remedy=f"spread at most {format_count(_MOST_SPREAD)}, or take a wave",
        )
    return np.unique(np.round(np.linspace(0, block_count - 1, count)).astype(np.int64)).astype(np.uint32)
