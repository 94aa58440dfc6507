"""The time of a launch as the hybrid paper estimates it: :func:`estimate_launch`.

Of 30 launches of public reports six call functions or multiply matrices, for which the paper has no operation. The cycles of the other 24 are 64 %
off on average, those of half of them 26 % at most; the paper's own are 17 % off on average, on GPUs without L1 for global memory.
"""

from math import ceil, prod

import numpy as np

from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.device.model import Machine
from gpa_lsp.hybrid.addresses import place_arguments
from gpa_lsp.hybrid.caches import count_misses, find_hit_ratio
from gpa_lsp.hybrid.costs import find_costs
from gpa_lsp.hybrid.pipeline import list_uses, simulate_round
from gpa_lsp.hybrid.walk import KernelTrace, TracedLaunch, walk_kernel
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.ptx.model import PtxFunction, PtxModule

_MOST_VISITS = 200_000
_MOST_TRANSACTIONS = 5_000_000
_MOST_OPERATIONS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperEstimate:
    """What the paper says of a launch.

    Attributes:
        kernel: mangled name.
        cycles: T_kernel of Equation 8, of the SM's clock.
        duration_ns: the same in time.
        round_cycles: T_pipeline, of one round of active blocks.
        blocks_per_sm: N_awg, Equation 7; no more than an SM gets of the launch.
        trace_length: operations of a warp, mean over the warps of the round.
        hit_ratio: of the transactions to constant and global memory; None where there are none.
        unknown_ratio: of all transactions, those whose address depends on data; each thread is taken to miss alone.
        assumed_branches: that depend on data, and were taken both ways.
    """

    kernel: str
    cycles: float
    duration_ns: float
    round_cycles: float
    blocks_per_sm: int
    trace_length: float
    hit_ratio: float | None
    unknown_ratio: float
    assumed_branches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """What the compiler says of a kernel: rows 3 and 4 of Table II.

    Attributes:
        registers: of a thread.
        shared_bytes: of a block, static and dynamic.
    """

    registers: int
    shared_bytes: int


def estimate_launch(
    module: PtxModule,
    function: PtxFunction,
    launch: LaunchDescription,
    compiled: CompiledKernel,
    *,
    architecture: Architecture,
    machine: Machine,
    l2_bytes: float | None,
    seconds: float = 20.0,
) -> PaperEstimate:
    """Estimate one launch. Nothing is executed and no data is looked at.

    Args:
        module: with the kernel's variables.
        function: the kernel.
        launch: its shape and arguments.
        compiled: what it needs of an SM.
        architecture: of the GPU.
        machine: the GPU at its clocks.
        l2_bytes: of the GPU; None where that is not known.
        seconds: for the search of the trace.

    Raises:
        InputError: the paper has no answer, or too little is known of the GPU.
    """
    costs = find_costs(architecture, machine, l2_bytes)
    sm_count, sm_hz = machine.sm_count, machine.clocks.sm_hz
    assert sm_count is not None  # or its costs would not be known
    assert sm_hz is not None
    per_sm = ceil(prod(launch.grid) / sm_count)  # of a launch below a wave, no SM gets more than its share
    active = min(_count_resident(architecture, launch, compiled), per_sm)
    if active < 1:
        raise InputError(f"no SM of the {machine.name} holds a block of it")
    trace = _trace_round(module, function, launch, active, line_bytes=costs.line_bytes, seconds=seconds)
    outcomes = count_misses(trace, costs)
    uses = list_uses(trace, outcomes, costs, len(trace.lengths))
    cycles = simulate_round(uses, trace.warps_per_block)
    whole = cycles * per_sm / active  # Equation 8
    return PaperEstimate(
        kernel=function.name,
        cycles=whole,
        duration_ns=whole / sm_hz * 1e9,
        round_cycles=cycles,
        blocks_per_sm=active,
        trace_length=float(np.mean(trace.lengths)),
        hit_ratio=find_hit_ratio(outcomes),
        unknown_ratio=trace.unknown_ratio,
        assumed_branches=len(trace.assumed),
    )


def _trace_round(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription, active: int, *, line_bytes: int, seconds: float
) -> KernelTrace:
    """The traces of one round of active blocks, in the middle of the grid."""
    first = (prod(launch.grid) - active) // 2
    parameters, addresses = place_arguments(module, function, launch)
    return walk_kernel(
        function,
        TracedLaunch(
            grid=launch.grid,
            block=launch.block,
            parameters=parameters,
            addresses=addresses,
            chosen=range(first, first + active),
            line_bytes=line_bytes,
            most_visits=_MOST_VISITS,
            most_transactions=_MOST_TRANSACTIONS,
            most_operations=_MOST_OPERATIONS,
            seconds=seconds,
        ),
    )


def _count_resident(architecture: Architecture, launch: LaunchDescription, compiled: CompiledKernel) -> int:
    """Equations 1 to 7, as the vendor has them."""
    shape = BlockShape(
        threads=prod(launch.block), registers_per_thread=compiled.registers, shared_bytes=compiled.shared_bytes
    )
    return find_occupancy(architecture, shape).blocks_per_sm
