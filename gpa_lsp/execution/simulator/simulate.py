"""Stall samples of a launch from what its warps execute: :func:`simulate_kernel`. All of it is simulated, nothing measured."""

from collections.abc import Mapping, Sequence
from math import ceil, prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.execution.accesses.l2_traffic import L2Cache, place_block
from gpa_lsp.execution.simulator.machine import SmModel, build_model, find_traffic
from gpa_lsp.execution.simulator.program import FP64_UNIT, LSU, PIPE_NAMES, SUB_CORES, XU, SassProgram, read_program
from gpa_lsp.execution.simulator.reasons import REASON_COUNT, SELECTED, Moment, SmRun
from gpa_lsp.execution.simulator.regimes import find_unchecked
from gpa_lsp.execution.simulator.warp_walk import KernelWalk, Streams, build_streams
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes, format_count
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.device.model import Machine, MemoryFacts, MemoryLevel, OperationKind
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES, WARP_THREADS, count_access_bytes
from gpa_lsp.kernel.model import Kernel

_MOST_WAVES = 12  # Of a grid with more waves, those that are simulated at most
_FEWEST_WAVES = 2
# Warp instructions up to which blocks are simulated to their end even where their loops could not be shortened to what was asked for
_MOST_WHOLE = 4_000_000
_STEADY_MOMENTS = 3  # A run with blocks that followed others has a beginning, an end, and a steady state between them

Floats = npt.NDArray[np.float64]


class GridShape(Struct, frozen=True, kw_only=True):
    """Layout of a launch's blocks on the SMs of a GPU."""

    blocks: int  # of the grid
    sm_count: int  # SMs
    resident: int  # blocks an SM holds at once

    @property
    def most_per_sm(self) -> int:
        """Blocks of the busiest SM."""
        return ceil(self.blocks / self.sm_count)

    @property
    def active_sms(self) -> int:
        """SMs that get a block."""
        return min(self.blocks, self.sm_count)

    @property
    def sharing_sms(self) -> float:
        """SMs such as the busiest one that all blocks would fill.

        Its share of a bandwidth is that of its blocks, since SMs with fewer blocks leave it theirs when they have ended.

        >>> GridShape(blocks=128, sm_count=108, resident=4).sharing_sms
        64.0
        """
        return self.blocks / self.most_per_sm

    @property
    def mean_load(self) -> float:
        """Blocks of an SM that has any, over those of the busiest one."""
        return self.blocks / self.active_sms / self.most_per_sm

    @property
    def busiest_ratio(self) -> float:
        """Part of the SMs with a block that have as many as the busiest one; the others have one less.

        >>> round(GridShape(blocks=1024, sm_count=170, resident=6).busiest_ratio * 170)
        4
        """
        return self.blocks / self.active_sms - self.most_per_sm + 1


class SimulatedSm(ColumnRecord, frozen=True, kw_only=True):
    """Result of an SM for a launch, from its first block to its last: the mean of those with a block, but for the time of the busiest one."""

    all_cycles: Floats  # float64[rows + 1, reasons], warp cycles
    idle_cycles: Floats  # of them, those in which the scheduler issued nothing
    cycles: float  # the busiest one took
    active_cycles: float  # they took on average
    moved: Floats  # as in :class:`~gpa_lsp.execution.simulator.reasons.Moment`
    simulated_blocks: int  # of the busiest SM's
    issued: int  # warp instructions that were simulated
    is_cut: bool  # the simulation ended before its blocks did


def count_simulated(shape: GridShape, executions: int, most_issues: int) -> int:
    """Blocks of an SM that are simulated.

    >>> count_simulated(GridShape(blocks=1000, sm_count=10, resident=4), executions=100, most_issues=10_000)
    48
    >>> count_simulated(GridShape(blocks=1000, sm_count=10, resident=4), executions=1000, most_issues=10_000)
    8
    """
    resident = min(shape.resident, shape.most_per_sm)
    waves = max(_FEWEST_WAVES, min(_MOST_WAVES, most_issues // max(1, executions * resident)))
    if shape.most_per_sm <= resident * waves:
        return shape.most_per_sm
    return resident * (waves - 1) + (shape.most_per_sm % resident or resident)


def simulate_grid(
    program: SassProgram,
    model: SmModel,
    streams: Streams,
    shape: GridShape,
    *,
    most_issues: int,
) -> SimulatedSm:
    """Simulate the busiest SM of a launch, and one with a block less where that is all it has."""
    resident = min(shape.resident, shape.most_per_sm)
    count = count_simulated(shape, max(len(one.rows) for one in streams.blocks), most_issues)
    places = [number * len(streams.blocks) // count for number in range(count)]
    blocks = [replace(streams.blocks[place], repetition=number) for number, place in enumerate(places)]
    executions = sum(len(one.rows) for one in blocks)
    most = max(2 * most_issues, min(executions, _MOST_WHOLE))
    from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm  # llvmlite takes .1 s to import

    run = simulate_sm(program, model, blocks, resident, most)
    total = _extrapolate(run, executions, count, shape.most_per_sm - count)
    mean, issued = total * shape.mean_load, run.issued
    if count == shape.most_per_sm > 1 and shape.mean_load < 1 and not run.is_cut:
        # what the last block of some SMs does alone is little of what is sampled
        fewer = simulate_sm(program, model, blocks[:-1], min(resident, count - 1), most)
        mean = total * shape.busiest_ratio + _join(fewer.moments[-1]) * (1.0 - shape.busiest_ratio)
        issued += fewer.issued
    size = len(run.moments[-1].all_cycles)
    return SimulatedSm(
        all_cycles=mean[:size].reshape(-1, REASON_COUNT),
        idle_cycles=mean[size : 2 * size].reshape(-1, REASON_COUNT),
        cycles=float(total[-1]) * run.dilation,
        active_cycles=float(mean[-1]) * run.dilation,
        moved=mean[2 * size : -1] * run.dilation,
        simulated_blocks=count,
        issued=issued,
        is_cut=run.is_cut,
    )


def _extrapolate(run: SmRun, executions: int, count: int, left: int) -> Floats:
    """Sums of the SM's whole work: blocks that were not simulated go as those of the steady state."""
    last = run.moments[-1]
    total = _join(last)
    if run.is_cut:
        return total * (executions / run.issued * (count + left) / count)
    if left > 0:
        steady, done = total, last.blocks_done
        # between the first and the last block that followed others, where one ended in between; else over the whole run
        if len(run.moments) == _STEADY_MOMENTS and run.moments[1].blocks_done > run.moments[0].blocks_done:
            first, end = run.moments[:2]
            steady, done = _join(end) - _join(first), end.blocks_done - first.blocks_done
        total = total + steady * (left / max(1, done))
    return total


def _join(moment: Moment) -> Floats:
    """All sums of a moment as one column, the time last."""
    return np.concatenate([moment.all_cycles, moment.idle_cycles, [*moment.moved, moment.time]])


_PERCENT = 100.0
_SUFFIX = ".avg.pct_of_peak_sustained_elapsed"
_SM, _MEMORY = "sm__throughput", "gpu__compute_memory_throughput"
_ISSUED = "sm__inst_issued"
_PIPE = "sm__inst_executed_pipe_{}"


def measure_throughputs(
    program: SassProgram,
    walk: KernelWalk,
    run: SimulatedSm,
    shape: GridShape,
    *,
    architecture: Architecture,
    machine: Machine,
    facts: MemoryFacts,
    cycles: float,
) -> Mapping[str, float | str]:
    """Percent of the peak of DRAM, L2, L1, shared memory and the pipes of the SMs over the whole launch; units of unknown peak are left out.

    Also which of them make up the throughput of the SM and of the memory, warps that were resident, and sectors asked of L2.

    Args:
        cycles: of the launch.
    """
    requests = float(walk.executed[np.array(program.unit) == LSU].sum()) / (shape.sm_count * cycles)
    memory = _measure_memory(run, shape, machine, facts, cycles)
    memory[_PIPE.format("lsu")] = requests * architecture.sm.memory_accept_interval_cycles.value
    pipes = {
        name: held / (SUB_CORES * shape.sm_count * cycles) for name, held in _list_held(program, walk).items() if held
    }
    found: dict[str, float | str] = {}
    for whole, parts in ((_SM, pipes), (_MEMORY, memory)):
        if parts:
            found[f"breakdown:{whole}{_SUFFIX}"] = ", ".join(f"{name}{_SUFFIX}" for name in parts)
            found[f"{whole}{_SUFFIX}"] = _to_percent(max(parts.values()))
            found |= {f"{name}{_SUFFIX}": _to_percent(ratio) for name, ratio in parts.items()}
    return found | _measure_residency(walk, run, shape, architecture)


def _measure_residency(
    walk: KernelWalk, run: SimulatedSm, shape: GridShape, architecture: Architecture
) -> dict[str, float]:
    """Waves of blocks, time of the busiest SM, warps that fit and that are resident while an SM has any, bytes of DRAM and sectors asked of L2."""
    warps = float(run.all_cycles.sum()) / max(1.0, run.active_cycles)
    return {
        "launch__waves_per_multiprocessor": shape.blocks / (shape.sm_count * shape.resident),
        "sm__cycles_active.max": round(run.cycles),
        "sm__maximum_warps_per_active_cycle_pct": _to_percent(
            shape.resident
            * -(-prod(walk.block_threads) // WARP_THREADS)
            / architecture.occupancy.max_warps_per_sm.value
        ),
        "sm__warps_active.avg.pct_of_peak_sustained_active": _to_percent(
            warps / architecture.occupancy.max_warps_per_sm.value
        ),
        "dram__bytes.sum": round(run.moved[0] * shape.active_sms),
        "lts__t_sectors_srcunit_tex.sum": round(run.moved[1] / SECTOR_BYTES * shape.active_sms),
    }


def _to_percent(ratio: float) -> float:
    return round(_PERCENT * min(1.0, ratio), 2)


def _measure_memory(
    run: SimulatedSm, shape: GridShape, machine: Machine, facts: MemoryFacts, cycles: float
) -> dict[str, float]:
    """Parts of the peaks of DRAM, L2 and L1, 0..1."""
    sms, sm_count = shape.active_sms, shape.sm_count
    dram_bytes, l2_bytes, tag_cycles, data_cycles, _ = run.moved.tolist()
    found = {
        "l1tex__t_output_wavefronts": tag_cycles * sms / sm_count / cycles,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared": data_cycles * sms / sm_count / cycles,
    }
    sm_hz = machine.clocks.sm_hz
    for name, level, moved in (
        ("dram__cycles_active", MemoryLevel.DRAM, dram_bytes * facts.check_ratio),
        ("lts__t_sectors", MemoryLevel.L2, l2_bytes),
    ):
        bandwidth = machine.find_bandwidth(level)
        if bandwidth is not None and bandwidth.bytes_per_s and sm_hz:
            found[name] = moved * sms / (cycles / sm_hz) / bandwidth.bytes_per_s
    return found


def _list_held(program: SassProgram, walk: KernelWalk) -> dict[str, float]:
    """Cycles of sub-cores in which each pipe was held, and those in which something was issued."""
    held = walk.executed * np.array(program.interval)
    pipe, unit = np.array(program.pipe), np.array(program.unit)
    found = {
        _PIPE.format(name): float(held[(unit < 0) & (pipe == number)].sum())
        for number, name in enumerate(PIPE_NAMES)
        if number
    }
    found[_PIPE.format("xu")] = float(held[unit == XU].sum())
    if (unit == FP64_UNIT).any():
        # one unit of the SM, not one of each sub-core
        found[_PIPE.format("fp64")] = SUB_CORES * float(held[unit == FP64_UNIT].sum())
    found[_ISSUED] = float(walk.executed.sum())
    return found


# The shortest period the profiler samples at: what is simulated is known exactly, so that no more is rounded than need be
PERIOD_CYCLES = 32

# Half a second. Where loops are shortened much, what is left of blocks is their beginnings and ends, which meet in the queues of memory more often
# than they would.
_MOST_ISSUES = 2_000_000


class SimulatedLaunch(ColumnRecord, frozen=True, kw_only=True):
    """Result of a simulated launch."""

    kernel: str  # mangled name
    cycles: float  # of the SM's clock, from the launch to its end
    active_cycles: float  # mean over all SMs of those in which they had a block
    duration_ns: float  # the same in time
    # int64[rows, reasons], in the order of :data:`~gpa_lsp.execution.simulator.reasons.REASONS`
    all_samples: npt.NDArray[np.int64]
    latency_samples: npt.NDArray[np.int64]  # of them, those in cycles without issue
    blocks_per_sm: int  # resident
    simulated_blocks: int  # of one SM
    issued: int  # warp instructions simulated one by one
    left_out: float  # share of a block's executions that turns of loops simulated stand for
    model: SmModel  # figures of the SM
    # the profiler's metrics of how busy the parts of the GPU were, and of what they held and moved
    throughputs: Mapping[str, float | str]
    unchecked: str = ""  # why no time of such a launch was checked; empty where some were


def simulate_kernel(
    kernel: Kernel,
    walk: KernelWalk,
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    *,
    own_blocks: Sequence[int] = (),
    most_issues: int | None = None,
    changes: Mapping[str, float] | None = None,
) -> SimulatedLaunch:
    """Simulate one launch.

    Args:
        most_issues: warp instructions to simulate about; None for as many as are quickly simulated.
        changes: other values of fields of the model, for experiments; None for those of the tables.

    Raises:
        InputError: nothing was walked, an SM holds no block, or too little is known of the GPU.
    """
    if not walk.walks:
        reason = walk.not_simulated[0].reason if walk.not_simulated else "no block was executed"
        raise InputError(f"not simulated: {reason}")
    most_issues = _MOST_ISSUES if most_issues is None else most_issues
    shape = _find_shape(walk, architecture, machine, memory)
    program = read_program(kernel.rows, architecture, _find_peaks(machine))
    widths = kernel.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    sampled = [one for one in walk.sampled_blocks if one in own_blocks] or walk.sampled_blocks
    own = [place_block(walk.grid, one) for one in sampled]
    traffic = find_traffic(
        walk,
        program,
        widths,
        own[0],
        resident_blocks=shape.resident * shape.sm_count,
        l2=L2Cache(size_bytes=memory.l2_bytes, ways=architecture.caches.l2_ways.value),
        fetch_bytes=architecture.caches.dram_fetch_bytes.value or SECTOR_BYTES,
    )
    model = build_model(
        architecture,
        machine,
        memory,
        traffic,
        sharing_sms=shape.sharing_sms,
        shared_bytes_per_sm=shape.resident * walk.shared_bytes,
    )
    model = replace(model, **changes) if changes else model
    walks = [one for one in walk.walks if one.block in own]
    count = count_simulated(shape, sum(map(len, walks)) // len(own), most_issues)
    streams = build_streams(walks, max(1, most_issues // count), widths)
    run = simulate_grid(program, model, streams, shape, most_issues=most_issues)
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
        left_out=streams.left_out,
        model=model,
        unchecked=find_unchecked(traffic),
        throughputs=measure_throughputs(
            program, walk, run, shape, architecture=architecture, machine=machine, facts=memory, cycles=cycles
        ),
    )


def _find_peaks(machine: Machine) -> dict[OperationKind, float]:
    """Most operations of one SM per cycle, by type."""
    return {
        one.kind: one.ops_per_cycle / machine.sm_count
        for one in machine.peaks
        if one.ops_per_cycle and machine.sm_count
    }


def _find_shape(walk: KernelWalk, architecture: Architecture, machine: Machine, memory: MemoryFacts) -> GridShape:
    threads = prod(walk.block_threads)
    block = BlockShape(threads=threads, registers_per_thread=walk.registers, shared_bytes=walk.shared_bytes)
    occupancy = find_occupancy(architecture, block, memory.carveout_bytes)
    if occupancy.blocks_per_sm < 1:
        needs = f"{format_count(threads)} threads, {format_count(walk.registers)} registers each, {format_bytes(walk.shared_bytes)} of shared memory"
        raise InputError(f"not simulated: no SM of the {machine.name} holds a block of it ({needs})")
    if machine.sm_count is None:
        raise InputError(f"not simulated: the number of SMs of the {machine.name} is not known")
    return GridShape(blocks=prod(walk.grid), sm_count=machine.sm_count, resident=occupancy.blocks_per_sm)


def _take_samples(run: SimulatedSm, shape: GridShape) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All samples, and those in cycles without issue, of the whole GPU."""
    active = run.active_cycles * shape.active_sms
    scale = active / PERIOD_CYCLES / max(1e-9, float(run.all_cycles.sum()))
    whole, part = (_round(one * scale) for one in (run.all_cycles, run.idle_cycles))
    part = np.minimum(part, whole)
    part[:, SELECTED] = 0
    return whole, part


def _round(cycles: Floats) -> npt.NDArray[np.int64]:
    """int64[rows, reasons], whole samples; those of the row behind the last one fall on the last."""
    folded = cycles[:-1].copy()
    folded[-1] += cycles[-1]
    return np.rint(folded).astype(np.int64)
