"""What emulating gives: :class:`Emulation`; and what bounds it: :class:`Budget`, :class:`Sampling`."""

from dataclasses import field
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.emulator.trace import StaticInstruction, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What an emulation may use; whatever is reached first ends it with a finding, and what was executed until then counts.

    Attributes:
        seconds: processor time, the sink's included: the less of it is left, the less is recorded of a batch.
        memory_bytes: buffers, registers, shared and local memory and trace together.
        warp_instructions: executed, over all warps.
        trace_bytes: of trace columns kept in memory; what goes to a sink is not kept.
        call_depth: nested device calls.
    """

    seconds: float = 20.0
    memory_bytes: int = 2 << 30
    warp_instructions: int = 2_000_000_000
    trace_bytes: int = 512 << 20
    call_depth: int = 64


class SamplingKind(StrEnum):
    """Which blocks are executed."""

    ALL = "all"
    WAVE = "wave"
    """The first blocks that the whole GPU holds at once."""
    CHOSEN = "chosen"
    SPREAD = "spread"
    """``count`` blocks spread evenly over the grid, its first and last ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Which blocks are executed. Blocks that are not executed leave their results unwritten.

    Attributes:
        kind: how they are chosen.
        blocks: linear indexes for CHOSEN.
        count: blocks for WAVE and SPREAD.
    """

    kind: SamplingKind = SamplingKind.ALL
    blocks: tuple[int, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """What is recorded.

    Attributes:
        accesses: warp-level accesses of global, shared, local and constant memory and textures.
        branches: conditional branches.
        entries: entries into basic blocks.
        spaces_left_out: numbers of spaces that are not recorded.
        most_executions: of an instruction by a warp, as many accesses are recorded, the first ones; None for all.
    """

    accesses: bool = True
    branches: bool = True
    entries: bool = False
    spaces_left_out: frozenset[int] = frozenset()
    most_executions: int | None = None


class TraceSink(Protocol):
    """Takes pieces of a trace as they are made, so that none of it need be kept."""

    def add(self, piece: Trace) -> None:
        """Take one piece: all rows of some whole blocks."""


class FaultKind(StrEnum):
    """What an emulated program did wrong, or what ended its emulation; the values are names for people."""

    OUT_OF_BOUNDS = "out-of-bounds access"
    MISALIGNED = "misaligned access"
    SHARED_RACE = "race on shared memory"
    WARP_RACE = "race on shared memory within a warp"
    """Lanes of one warp without ``__syncwarp`` between them."""
    GLOBAL_RACE = "race on global memory between blocks"
    DIVERGENT_BARRIER = "barrier in divergent code"
    UNINITIALISED = "read of shared memory nobody wrote"
    WRITE_TO_CONSTANT = "store to constant memory"
    DIVISION_BY_ZERO = "integer division by zero"
    TRAP = "trap"
    DEADLOCK = "deadlock"
    """Every warp waits."""
    TIME_BUDGET = "time budget reached"
    INSTRUCTION_BUDGET = "instruction budget reached"
    MEMORY_BUDGET = "memory budget reached"
    TRACE_BUDGET = "trace budget reached"
    CALL_DEPTH = "calls nested too deeply"
    UNSUPPORTED = "unsupported instruction"
    BAD_LAUNCH = "launch that no GPU accepts"


class DeviceError(StrEnum):
    """What a GPU ends a kernel with where the emulator notes a fault and goes on; the values are the names of ``cudaError_t``.

    Source: CUDA Runtime API, data types.
    """

    ILLEGAL_ADDRESS = "cudaErrorIllegalAddress"
    MISALIGNED_ADDRESS = "cudaErrorMisalignedAddress"
    INVALID_PC = "cudaErrorInvalidPc"
    LAUNCH_FAILURE = "cudaErrorLaunchFailure"


FAILED_ASSERTION = "assertion"
"""What the message of a trap by ``assert`` begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedEnd:
    """Where an access out of bounds went.

    Attributes:
        array: whose end it passed, most likely; empty where none is near.
        offset_bytes: from the beginning of that array, below zero in front of it.
        size_bytes: of the array.
    """

    array: str = ""
    offset_bytes: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing found, once per instruction and kind.

    Attributes:
        kind: what.
        message: one sentence with the values that show it (address, array, lane), without its place.
        instruction: index of the static instruction; None when it is about the launch as a whole.
        chain: its source line with the inline chain, innermost first; None when unknown.
        other_chain: of the other access of a race; None otherwise.
        count: lane-level occurrences; at least 1.
        block: linear index of the first block it happened in; None when of no block.
        thread: thread within the block, x, y, z; None when of no block.
        is_fatal: the lanes it happened to, or the whole emulation, went no further.
        passed: of an access out of bounds of global memory; None for all others.
        instructions: of one source line that it stands for, see :func:`~gpa_lsp.prediction.predict_launch.group_faults`.
    """

    kind: FaultKind
    message: str
    instruction: int | None = None
    chain: InlineChain | None = None
    other_chain: InlineChain | None = None
    count: int = 1
    block: int | None = None
    thread: tuple[int, int, int] | None = None
    is_fatal: bool = False
    passed: PassedEnd | None = None
    instructions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often each of n static instructions was executed, over the executed blocks.

    Attributes:
        warp_executions: int64[n], by warps, with at least one lane.
        lane_executions: int64[n], by lanes whose guard was true.
    """

    warp_executions: npt.NDArray[np.int64]
    lane_executions: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """What happened.

    Attributes:
        kernel: mangled name.
        grid: of the launch.
        block_threads: of the launch.
        instructions: all static instructions, by index.
        counts: how often each was executed.
        executed_blocks: uint32[k], linear indexes, ascending.
        is_complete: every chosen block ran to its end.
        faults: most serious first, then by instruction.
        trace: None when none was asked for or all of it went to a sink.
        arrays: by argument or variable name, what the arrays hold at the end, with the dtype of their elements.
        warp_instructions: executed, in all.
        seconds: processor time of the execution, without what the sink took.
        peak_bytes: most memory held at once by the emulator's own account.
        printed: what the kernel printed with ``printf``, at most 64 KiB; empty when nothing.
        sink_seconds: what the sink took.
        is_compiled: whether the compiled core executed it, but for what it does not know; else numpy did.
    """

    kernel: str
    grid: tuple[int, int, int]
    block_threads: tuple[int, int, int]
    instructions: tuple[StaticInstruction, ...] = field(repr=False)
    counts: Counts = field(repr=False)
    executed_blocks: npt.NDArray[np.uint32] = field(repr=False)
    is_complete: bool
    faults: tuple[Fault, ...]
    trace: Trace | None = field(repr=False)
    arrays: dict[str, npt.NDArray[np.generic]] = field(repr=False)
    warp_instructions: int
    seconds: float
    peak_bytes: int
    printed: str = ""
    sink_seconds: float = 0.0
    is_compiled: bool = False
