"""What a blamer sees of one function: its instructions, control codes and samples, with the facts of each opcode looked up once."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import field

from gpa_lsp.code.binary.model import ControlCodes, Instructions
from gpa_lsp.code.binary.opcodes import Opcode, describe_mnemonic
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import ScoreboardKind
from gpa_lsp.kernel.model import FunctionSamples, Kernel


class FunctionView(ColumnRecord, frozen=True, kw_only=True):
    """One function section of a kernel, with n instructions and k reasons; rows are instruction numbers of the function."""

    name: str  # mangled name of the section's function
    instructions: Instructions  # decoded
    graph: FlowGraph  # blocks, loops, calls
    control: ControlCodes  # scheduling bits
    # its table; None when unknown: then no candidate is excluded by what a reason can mean
    architecture: Architecture | None
    reasons: tuple[str, ...]  # the k stall reasons
    all_samples: npt.NDArray[np.int64]  # int64[n, k]
    # int64[n, k]; zeros where they are unknown, which the kernel's blame then says
    latency_samples: npt.NDArray[np.int64]
    issue_counts: npt.NDArray[np.float64]  # float64[n], see :class:`~gpa_lsp.diagnosis.blame.model.IssueCounts`
    opcodes: tuple[Opcode, ...]  # facts of each distinct mnemonic (parallel to ``instructions.mnemonics``)
    # under which reason a wait for the result of each distinct mnemonic counts; None when not known
    scoreboards: tuple[ScoreboardKind | None, ...]
    # int64[n], the encoded stall count, at least 1: what an instruction adds to an encoded distance
    stall_cycles: npt.NDArray[np.int64]
    _mnemonic_of: list[int]
    # int64[n], by warps, -1 where an instruction has no count; None when none is known to have executed
    executions: npt.NDArray[np.int64] | None = None
    # name in :data:`~gpa_lsp.kernel.place.COUNTERS` → int64[n], -1 where an instruction has no value; those not collected are missing
    counters: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instructions)

    def opcode(self, row: int) -> Opcode:
        """Facts of the opcode of instruction ``row``."""
        return self.opcodes[self._mnemonic_of[row]]

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers of instruction ``row``."""
        return self.instructions.mnemonics[self._mnemonic_of[row]]

    def scoreboard(self, row: int) -> ScoreboardKind | None:
        """Under which reason a wait for instruction ``row`` counts; None when not known."""
        return self.scoreboards[self._mnemonic_of[row]]

    def reason_index(self, reason: str) -> int | None:
        """The column of a reason; None when the kernel has no sample of it."""
        return self.reasons.index(reason) if reason in self.reasons else None


def read_latency(function: FunctionSamples) -> npt.NDArray[np.int64]:
    """int64[n, k], a function's latency samples; zeros where the profile does not tell them from the others."""
    return np.zeros_like(function.all_samples) if function.latency_samples is None else function.latency_samples


def view_function(
    kernel: Kernel, function: FunctionSamples, issue_counts: npt.NDArray[np.float64]
) -> FunctionView | None:
    """The view of one function of a kernel; None when it has no instructions to look at.

    Args:
        issue_counts: float64[n] of this function's rows.
    """
    instructions, graph, control = function.instructions, function.graph, function.control
    if instructions is None or graph is None or control is None or len(instructions) == 0:
        return None
    architecture = kernel.architecture
    scoreboards: list[ScoreboardKind | None] = [None] * len(instructions.mnemonics)
    if architecture is not None:
        scoreboards = [architecture.find_scoreboard(mnemonic) for mnemonic in instructions.mnemonics]
    return FunctionView(
        name=function.name,
        instructions=instructions,
        graph=graph,
        control=control,
        architecture=architecture,
        reasons=kernel.reasons,
        all_samples=function.all_samples,
        latency_samples=read_latency(function),
        issue_counts=issue_counts,
        opcodes=tuple(describe_mnemonic(mnemonic) for mnemonic in instructions.mnemonics),
        scoreboards=tuple(scoreboards),
        stall_cycles=np.maximum(control.stall_cycles.astype(np.int64), 1),
        _mnemonic_of=instructions.mnemonic_index.tolist(),
        executions=function.executions if (function.executions > 0).any() else None,
        counters=function.counters,
    )
