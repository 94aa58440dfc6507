"""View of one function for blamers: instructions, control codes, samples, blocks as lists, distances along straight code; and the bound of the work
that graph searches spend.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.binary.model import ControlCodes, Instructions
from gpa_lsp.code.binary.opcodes import Opcode
from gpa_lsp.code.control_flow.graph import reverse_edges
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import ScoreboardKind
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.kernel.model import FunctionSamples, Kernel

WORK_PER_INSTRUCTION = 400  # Steps a function may cost per instruction; real kernels stay below 40

LEAST_WORK = 2_000_000  # Steps that any function may cost

STEPS_PER_BLOCK = 12  # What looking at one block costs a budget, where a step is some tenths of a microsecond

STEPS_PER_EDGE = 40  # What finding and pruning one edge of the dependency graph costs


class OutOfWorkError(Exception):
    """The function's budget is spent; the blamer gives up on the instruction it was looking at, and says so."""


class WorkBudget(Struct):
    """Steps left for a function. Searches call :meth:`spend` and stop, keeping what they have, when it says no."""

    remaining: int  # steps left; never negative
    is_exhausted: bool = False  # a search was refused

    @classmethod
    def for_function(cls, instruction_count: int) -> "WorkBudget":
        """The bound of a function of that size: linear in it.

        >>> WorkBudget.for_function(10).remaining == LEAST_WORK
        True
        """
        return cls(remaining=max(LEAST_WORK, WORK_PER_INSTRUCTION * instruction_count))

    def spend(self, steps: int) -> bool:
        """Take ``steps`` away; False, and nothing taken, when there are not so many left.

        >>> budget = WorkBudget(remaining=3)
        >>> budget.spend(2), budget.spend(2), budget.is_exhausted
        (True, False, True)
        """
        if steps > self.remaining:
            self.is_exhausted = True
            return False
        self.remaining -= steps
        return True

    def charge(self, steps: int) -> None:
        """Take ``steps`` away, for searches that have no part of an answer.

        Raises:
            OutOfWorkError: there are not so many left.
        """
        if not self.spend(steps):
            raise OutOfWorkError


class Distance(NamedTuple):
    """The length of a path, from the issue of one instruction to that of another, so that those of consecutive pieces add up.

    Of two distances the one with fewer cycles is the smaller.
    """

    cycles: int  # sum of the encoded stall counts of the first instruction and of all between: the earliest issue
    instructions: int  # from after the first up to and including the last; 1 where it follows directly

    def then(self, other: "Distance") -> "Distance":
        """Join this path and another one that begins at its end.

        >>> Distance(7, 2).then(Distance(1, 1))
        Distance(cycles=8, instructions=3)
        """
        return Distance(self.cycles + other.cycles, self.instructions + other.instructions)


NOWHERE = Distance(0, 0)  # From an instruction to itself


class Blocks:
    """The flow graph of a function as lists, for loops that look at one block after the other, and distances in constant time.

    Attributes:
        first, last: first and last instruction of each block, inclusive.
        block_of: block of each instruction.
        successors, predecessors: blocks that can follow each block, and that each can follow, ascending; calls are stepped over.
        cycles_before: sum of the stall counts of all instructions before each, by address.
    """

    __slots__ = ("block_of", "cycles_before", "first", "last", "predecessors", "successors")

    def __init__(self, flow: FunctionFlow, stall_cycles: npt.NDArray[np.int64]) -> None:
        self.first, self.last, self.block_of = flow.first, flow.last, flow.block_of
        self.successors = flow.graph.list_successors()
        self.predecessors = reverse_edges(self.successors)
        self.cycles_before: list[int] = [0, *np.cumsum(stall_cycles).tolist()]

    def count_instructions(self, block: int) -> int:
        """Instructions of a block."""
        return self.last[block] - self.first[block] + 1

    def straight(self, first_row: int, last_row: int) -> Distance:
        """Distance from one instruction to a later one in address order, all between them executed; ``last_row`` may be one past the last."""
        return Distance(self.cycles_before[last_row] - self.cycles_before[first_row], last_row - first_row)

    def across(self, block: int) -> Distance:
        """Distance from the first instruction of a block to the one that follows the block."""
        return self.straight(self.first[block], self.last[block] + 1)

    def to_end(self, row: int) -> Distance:
        """Distance from an instruction to the one that follows its block."""
        return self.straight(row, self.last[self.block_of[row]] + 1)

    def from_start(self, row: int) -> Distance:
        """Distance from the first instruction of its block to an instruction."""
        return self.straight(self.first[self.block_of[row]], row)


class FunctionView(ColumnRecord, frozen=True, kw_only=True, dict=True):
    """One function section of a kernel, with n instructions and k reasons; rows are instruction numbers of the function."""

    instructions: Instructions  # decoded
    graph: FlowGraph  # blocks, loops, calls
    flow: FunctionFlow  # both as lists
    control: ControlCodes  # scheduling bits
    # its table; None when unknown: then no candidate is excluded by what a reason can mean
    architecture: Architecture | None
    reasons: tuple[str, ...]  # the k stall reasons
    all_samples: npt.NDArray[np.int64]  # int64[n, k]
    # int64[n, k]; zeros where they are unknown, which the kernel's blame then says
    latency_samples: npt.NDArray[np.int64]
    issue_counts: npt.NDArray[np.float64]  # float64[n], see :class:`~gpa_lsp.diagnosis.blame.model.IssueCounts`
    # int64[n], the encoded stall count, at least 1: what an instruction adds to an encoded distance
    stall_cycles: npt.NDArray[np.int64]
    # int64[n], by warps, -1 where an instruction has no count; None when none is known to have executed
    executions: npt.NDArray[np.int64] | None = None
    # name in :data:`~gpa_lsp.kernel.place.COUNTERS` → int64[n], -1 where an instruction has no value; those not collected are missing
    counters: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instructions)

    @cached_property
    def is_sampled(self) -> npt.NDArray[np.bool_]:
        """bool[n], instructions with samples of any reason."""
        return np.asarray(self.all_samples.any(axis=1), dtype=np.bool_)

    @cached_property
    def blocks(self) -> Blocks:
        """The flow graph as lists."""
        return Blocks(self.flow, self.stall_cycles)

    def opcode(self, row: int) -> Opcode:
        """Facts of the opcode of instruction ``row``."""
        return self.flow.opcode(row)

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers of instruction ``row``."""
        return self.flow.mnemonic(row)

    def scoreboard(self, row: int) -> ScoreboardKind | None:
        """Reason under which a wait for the result of instruction ``row`` counts; None when not known."""
        return None if self.architecture is None else self.architecture.find_scoreboard(self.mnemonic(row))

    def reason_index(self, reason: str) -> int | None:
        """The column of a reason; None when the kernel has no sample of it."""
        return self.reasons.index(reason) if reason in self.reasons else None


def read_latency(function: FunctionSamples) -> npt.NDArray[np.int64]:
    """int64[n, k], a function's latency samples; zeros where the profile does not tell them from the others."""
    return np.zeros_like(function.all_samples) if function.latency_samples is None else function.latency_samples


def view_function(kernel: Kernel, index: int, issue_counts: npt.NDArray[np.float64]) -> FunctionView | None:
    """The view of one function of a kernel; None when it has no instructions to look at.

    Args:
        index: into the kernel's functions.
        issue_counts: float64[n] of this function's rows.
    """
    function, flow = kernel.functions[index], build_flow(kernel.rows, index)
    if flow is None or function.instructions is None or function.control is None:
        return None
    return FunctionView(
        instructions=function.instructions,
        graph=flow.graph,
        flow=flow,
        control=function.control,
        architecture=kernel.architecture,
        reasons=kernel.reasons,
        all_samples=function.all_samples,
        latency_samples=read_latency(function),
        issue_counts=issue_counts,
        stall_cycles=np.maximum(function.control.stall_cycles.astype(np.int64), 1),
        executions=function.executions if (function.executions > 0).any() else None,
        counters=function.counters,
    )
