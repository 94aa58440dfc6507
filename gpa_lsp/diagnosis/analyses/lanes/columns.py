"""How many of the 32 lanes of each executed warp instruction do something, and why the others do not."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS
from gpa_lsp.profile.model import Dim3

Counts = npt.NDArray[np.int64]

_BRANCHES = (Flow.BRANCH, Flow.INDIRECT_BRANCH, Flow.CALL, Flow.INDIRECT_CALL, Flow.RETURN)
"""What counts as a branch where threads can part; an exit does not.

Source: in reports of compute capability 7.0 to 9.0, one minus divergent branches over executions of exactly these is
``smsp__sass_average_branch_targets_threads_uniform.pct`` to ten digits.
"""


class LaneColumns(ColumnRecord, frozen=True, kw_only=True):
    """The lanes of the n instructions of a kernel, summed over executions.

    A warp instruction has 32 lanes, so ``32 · executions`` of them pass. A lane *takes part* when its thread executes the instruction, and
    *works* when the guard holds, too.
    """

    executions: Counts  # int64[n], of warps
    part: Counts | None  # int64[n], lanes that took part; None when not collected
    work: Counts | None  # int64[n], lanes that worked; None when not collected
    divergent: Counts | None  # int64[n], executions of a branch whose threads parted; None when not collected
    is_branch: npt.NDArray[np.bool_]  # bool[n], branches, calls and returns
    # bool[n], these, exits, and whatever else decides where the warp goes on: a guard that does not hold there is a way not taken, and no lane lost
    is_control: npt.NDArray[np.bool_]

    @property
    def lanes(self) -> Counts:
        """int64[n], lanes that passed, busy or not."""
        return self.executions * WARP_THREADS

    @property
    def idle(self) -> Counts | None:
        """int64[n], lanes whose thread was elsewhere, had left, or never existed; None when unknown."""
        return None if self.part is None else np.maximum(self.lanes - self.part, 0)

    @property
    def switched_off(self) -> Counts | None:
        """int64[n], lanes that took part and whose guard did not hold; None when unknown."""
        if self.part is None or self.work is None:
            return None
        return np.where(self.is_control, 0, np.maximum(self.part - self.work, 0))

    @property
    def lost(self) -> Counts:
        """int64[n], lanes that were idle or switched off, as far as is known."""
        if self.part is None and self.work is not None:
            return np.where(self.is_control, 0, np.maximum(self.lanes - self.work, 0))
        idle, off = self.idle, self.switched_off
        known = np.zeros_like(self.executions) if idle is None else idle
        return known if off is None else known + off

    @property
    def uniform_ratio(self) -> float | None:
        """Share of the executed branches whose threads stayed together; None without branches or when not collected."""
        branches = int(self.executions[self.is_branch].sum())
        return None if self.divergent is None or branches == 0 else 1.0 - int(self.divergent.sum()) / branches


def read_lanes(facts: KernelFacts) -> LaneColumns | None:
    """The lanes of a kernel; None when executions, or both counters of threads, were not collected.

    Executions and threads are counted in different passes; code that spins can have more threads than lanes, which are cut.
    """
    executions = facts.read_executions()
    part, work = facts.read_counter("thread_executions"), facts.read_counter("thread_executions_true")
    if executions is None or (part is None and work is None):
        return None
    lanes = executions * WARP_THREADS
    part = None if part is None else np.minimum(part, lanes)
    work = None if work is None else np.minimum(work, lanes if part is None else part)
    return LaneColumns(
        executions=executions,
        part=part,
        work=work,
        divergent=facts.read_counter("divergent_branch_targets"),
        is_branch=facts.rows.mark_by_opcode(lambda opcode: opcode.flow in _BRANCHES),
        is_control=facts.rows.mark_by_opcode(lambda opcode: opcode.flow is not Flow.NONE),
    )


def measure_partial_warps(block: Dim3) -> float:
    """The share of lanes that never have a thread, because the last warp of each block is not full.

    >>> measure_partial_warps((128, 1, 1)), measure_partial_warps((48, 1, 1)), measure_partial_warps((1, 1, 1))
    (0.0, 0.25, 0.96875)
    """
    threads = block[0] * block[1] * block[2]
    lanes = -(-threads // WARP_THREADS) * WARP_THREADS
    return 1.0 - threads / lanes if lanes else 0.0
