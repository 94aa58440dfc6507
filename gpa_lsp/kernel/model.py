"""A :class:`Kernel`: what was measured, laid over the instructions it was measured on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpa_lsp.arch.model import Architecture
from gpa_lsp.binary.model import ControlCodes, Cubin, Function, Instructions, LineTable
from gpa_lsp.profile.model import Device, Launch, Module
from gpa_lsp.program.model import FlowGraph

OUTSIDE_MODULE = "<outside this module>"
"""Name of the pseudo-function that holds samples of code the module does not contain (the driver's printf, system calls)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSamples:
    """Samples of one function section, summed over launches, one row per instruction.

    Attributes:
        name: mangled name of the section's function, or :data:`OUTSIDE_MODULE`.
        function: its metadata and code; None for code the profile does not hold.
        instructions: decoded; None without a disassembler or without code.
        graph: its blocks, loops and calls; None without instructions.
        control: scheduling bits; None without code. Known without a disassembler.
        lines: its line table; None when it has none.
        chain_index: int32[n] into ``lines.chains``; -1 without a line, as in local functions that have no rows of their own.
        routine_index: int32[n], 0 for the section's own function, i + 1 for its i-th local one.
        pc_offsets: int64[n]: every instruction of the section, or, without code, the sampled and executed offsets (from the function's load
            address; absolute addresses for :data:`OUTSIDE_MODULE`).
        all_samples: int64[n, k], by instruction and reason.
        latency_samples: int64[n, k], the subset without issue.
        executions: int64[n], warp-level executions; -1 where the counter was not collected.
        counters: name of :mod:`gpa_lsp.kernel.counters` → int64[n], summed over launches; -1 where an instruction has no value (memory
            counters list memory instructions only). Counters that were not collected at all are missing.
    """

    name: str
    function: Function | None
    instructions: Instructions | None
    graph: FlowGraph | None
    control: ControlCodes | None
    lines: LineTable | None
    chain_index: npt.NDArray[np.int32]
    routine_index: npt.NDArray[np.int32]
    pc_offsets: npt.NDArray[np.int64]
    all_samples: npt.NDArray[np.int64]
    latency_samples: npt.NDArray[np.int64]
    executions: npt.NDArray[np.int64]
    counters: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    @property
    def total_samples(self) -> int:
        """All samples in the function."""
        return int(self.all_samples.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """All launches of one kernel in one profile, joined with its code.

    Attributes:
        mangled_name: linkage name.
        name: the most readable name the profile has.
        profile_path: the profile's file; None for bytes from elsewhere.
        module: the loaded image it is in; None when the profile has none.
        cubin: the decoded image; None when there is none or it cannot be read.
        device: the GPU.
        architecture: its table; None when the compute capability is unknown or has no table.
        launches: in profile order, failed ones included.
        reasons: the k stall reasons, sorted; the union over launches.
        functions: the kernel first, then device functions by name, then :data:`OUTSIDE_MODULE` if anything was sampled there.
    """

    mangled_name: str
    name: str
    profile_path: Path | None
    module: Module | None
    cubin: Cubin | None
    device: Device
    architecture: Architecture | None
    launches: tuple[Launch, ...]
    reasons: tuple[str, ...]
    functions: tuple[FunctionSamples, ...]

    @property
    def total_samples(self) -> int:
        """All samples of all launches."""
        return sum(function.total_samples for function in self.functions)
