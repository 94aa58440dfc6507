"""Results of emulating, :class:`Emulation`, and its limits, :class:`Budget` and :class:`Sampling`."""

from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.trace import MOST_BLOCKS, Trace
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord


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
