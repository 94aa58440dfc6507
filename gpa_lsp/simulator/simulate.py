"""From what warps execute to stall samples: :func:`simulate_kernel`. All of it is simulated, nothing measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes, format_count
from gpa_lsp.dataflow.accesses import count_access_bytes
from gpa_lsp.device.model import Machine
from gpa_lsp.native.shared_library import find_core
from gpa_lsp.rows.model import Kernel
from gpa_lsp.simulator.accuracy import find_unchecked
from gpa_lsp.simulator.machine import MemoryFacts, SmModel, Traffic, build_model
from gpa_lsp.simulator.program import SassProgram, read_program
from gpa_lsp.simulator.reasons import REASONS
from gpa_lsp.simulator.streams import Streams, build_streams
from gpa_lsp.simulator.throughputs import measure_throughputs
from gpa_lsp.simulator.traffic import find_traffic
from gpa_lsp.simulator.warp_walk import KernelWalk
from gpa_lsp.simulator.waves import GridShape, SimulatedSm, count_simulated, simulate_grid

PERIOD_CYCLES = 32
"""The shortest period the profiler samples at: what is simulated is known exactly, so that no more is rounded than need be."""

_MOST_ISSUES, _MOST_PLAIN_ISSUES = 2_000_000, 150_000
"""In the compiled core, and without one: half a second, and a second. Where loops are shortened much, what is left of blocks is their beginnings and
ends, which meet in the queues of memory more often than they would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLaunch:
    """A launch as the model says it would go.

    Attributes:
        kernel: mangled name.
        cycles: of the SM's clock, from the launch to its end.
        active_cycles: mean over all SMs of those in which they had a block.
        duration_ns: the same in time.
        all_samples: int64[rows, reasons], in the order of :data:`~gpa_lsp.simulator.reasons.REASONS`.
        latency_samples: of them, those in cycles without issue.
        blocks_per_sm: resident.
        simulated_blocks: of one SM.
        issued: warp instructions simulated one by one.
        left_out: share of a block's executions that turns of loops simulated stand for.
        model: what the SM was.
        throughputs: the profiler's metrics of how busy the parts of the GPU were, and of what they held and moved.
        unchecked: why no time of such a launch was checked; empty where some were.
    """

    kernel: str
    cycles: float
    active_cycles: float
    duration_ns: float
    all_samples: npt.NDArray[np.int64]
    latency_samples: npt.NDArray[np.int64]
    blocks_per_sm: int
    simulated_blocks: int
    issued: int
    left_out: float
    model: SmModel
    throughputs: Mapping[str, float | str]
    unchecked: str = ""


def simulate_kernel(
    kernel: Kernel,
    walk: KernelWalk,
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    *,
    own_blocks: Sequence[int] = (),
    array_bytes: int | None = None,
    most_issues: int | None = None,
    changes: Mapping[str, float] | None = None,
) -> SimulatedLaunch:
    """Simulate one launch.

    Args:
        kernel: its code.
        walk: what its warps execute.
        architecture: of the GPU.
        machine: the GPU at its clocks.
        memory: of the GPU.
        own_blocks: linear indexes of the walked blocks that run on one SM; the others show what blocks share. Empty for all.
        array_bytes: of the arrays it is given; None where that is not known.
        most_issues: warp instructions to simulate about; None for as many as are quickly simulated.
        changes: other values of the model's fields, to see what they do; None for those of the tables.

    Raises:
        InputError: nothing was walked, an SM holds no block, or too little is known of the GPU.
    """
    scene = _set_up(
        kernel,
        walk,
        architecture,
        machine,
        memory,
        own_blocks=own_blocks,
        array_bytes=array_bytes,
        most_issues=most_issues,
    )
    shape, program = scene.shape, scene.program
    model = replace(scene.model, **changes) if changes else scene.model  # type: ignore[arg-type]
    run = simulate_grid(program, model, scene.streams, shape, most_issues=scene.most_issues)
    all_samples, latency_samples = _take_samples(run, shape)
    cycles = run.cycles + model.launch_cycles
    return SimulatedLaunch(
        kernel=walk.kernel,
        cycles=cycles,
        active_cycles=run.active_cycles * shape.active_sms / shape.sm_count,
        duration_ns=cycles / (machine.clocks.sm_hz or 1e9) * 1e9,
        all_samples=all_samples,
        latency_samples=latency_samples,
        blocks_per_sm=shape.resident,
        simulated_blocks=run.simulated_blocks,
        issued=run.issued,
        left_out=scene.streams.reduction.left_out,
        model=model,
        unchecked=find_unchecked(scene.traffic, memory.l2_bytes),
        throughputs=measure_throughputs(
            program, walk, run, shape, architecture=architecture, machine=machine, facts=memory, cycles=cycles
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What is simulated: the instructions, what blocks execute, what they move, the SM, and the grid."""

    program: SassProgram
    streams: Streams
    traffic: Traffic
    model: SmModel
    shape: GridShape
    most_issues: int


def _set_up(
    kernel: Kernel,
    walk: KernelWalk,
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    *,
    own_blocks: Sequence[int],
    array_bytes: int | None,
    most_issues: int | None,
) -> _Scene:
    if not walk.walks:
        reason = walk.not_simulated[0].reason if walk.not_simulated else "no block was executed"
        raise InputError(f"not simulated: {reason}")
    shape = _find_shape(walk, architecture, machine, memory)
    program = read_program(kernel.rows, architecture)
    own = find_places(walk.grid, [one for one in walk.sampled_blocks if one in own_blocks] or walk.sampled_blocks)
    walks = [one for one in walk.walks if one.block in own]
    if most_issues is None:
        most_issues = _MOST_PLAIN_ISSUES if find_core() is None else _MOST_ISSUES
    count = count_simulated(shape, sum(map(len, walks)) // len(own), most_issues)
    widths = kernel.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    concurrent = shape.resident * shape.sm_count
    traffic = find_traffic(walk, program, widths, own[0], array_bytes, resident_blocks=concurrent)
    return _Scene(
        program=program,
        streams=build_streams(walks, max(1, most_issues // count)),
        traffic=traffic,
        model=build_model(
            architecture,
            machine,
            memory,
            traffic,
            active_sms=shape.active_sms,
            shared_bytes_per_sm=shape.resident * walk.shared_bytes,
        ),
        shape=shape,
        most_issues=most_issues,
    )


def find_places(grid: tuple[int, int, int], blocks: Sequence[int]) -> list[tuple[int, int, int]]:
    """Coordinates of blocks by linear index, x fastest."""
    return [(one % grid[0], one // grid[0] % grid[1], one // (grid[0] * grid[1])) for one in blocks]


def _find_shape(walk: KernelWalk, architecture: Architecture, machine: Machine, memory: MemoryFacts) -> GridShape:
    threads = walk.block_threads[0] * walk.block_threads[1] * walk.block_threads[2]
    block = BlockShape(threads=threads, registers_per_thread=walk.registers, shared_bytes=walk.shared_bytes)
    occupancy = find_occupancy(architecture, block, memory.carveout_bytes)
    if occupancy.blocks_per_sm < 1:
        needs = f"{format_count(threads)} threads, {format_count(walk.registers)} registers each, {format_bytes(walk.shared_bytes)} of shared memory"
        raise InputError(f"not simulated: no SM of the {machine.name} holds a block of it ({needs})")
    if machine.sm_count is None:
        raise InputError(f"not simulated: how many SMs the {machine.name} has is not known")
    blocks = walk.grid[0] * walk.grid[1] * walk.grid[2]
    return GridShape(blocks=blocks, sm_count=machine.sm_count, resident=occupancy.blocks_per_sm)


def _take_samples(run: SimulatedSm, shape: GridShape) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All samples, and those in cycles without issue, of the whole GPU."""
    active = run.active_cycles * shape.active_sms
    scale = active / PERIOD_CYCLES / max(1e-9, float(run.all_cycles.sum()))
    return _round(run.all_cycles * scale, run.idle_cycles * scale)


def _round(
    all_cycles: npt.NDArray[np.float64], idle_cycles: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Whole samples; what would fall on the row behind the last one falls on the last."""
    folded = all_cycles[:-1].copy()
    idle = idle_cycles[:-1].copy()
    folded[-1] += all_cycles[-1]
    idle[-1] += idle_cycles[-1]
    whole = np.rint(folded).astype(np.int64)
    part = np.minimum(np.rint(idle).astype(np.int64), whole)
    part[:, REASONS.index("selected")] = 0
    return whole, part
