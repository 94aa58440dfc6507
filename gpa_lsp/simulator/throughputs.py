"""How busy the parts of the GPU were in a simulated launch, by the profiler's names: :func:`measure_throughputs`."""

from collections.abc import Mapping

import numpy as np

from gpa_lsp.device.model import Machine, MemoryLevel
from gpa_lsp.simulator.program import PIPES, SassProgram
from gpa_lsp.simulator.warp_walk import KernelWalk
from gpa_lsp.simulator.waves import GridShape, SimulatedSm

_PERCENT = 100.0
_SUB_CORES = 4
_METRIC = "{}.avg.pct_of_peak_sustained_elapsed"


def measure_throughputs(
    program: SassProgram, walk: KernelWalk, run: SimulatedSm, shape: GridShape, *, machine: Machine, cycles: float
) -> Mapping[str, float]:
    """Percent of the peak of DRAM, L2, L1 and the SMs, over the whole launch; what the machine's peaks are not known for is left out.

    Args:
        program: the instructions.
        walk: with their executions over the grid.
        run: of the busiest SM.
        shape: of the launch.
        machine: the GPU.
        cycles: of the launch.
    """
    dram_bytes, l2_bytes, tag_cycles, data_cycles, _ = run.moved.tolist()
    sms = shape.active_sms * shape.mean_load
    share = sms / shape.sm_count
    found = {
        "l1tex__throughput": max(tag_cycles, data_cycles) * share / cycles,
        "sm__throughput": _find_busiest(program, walk) / (_SUB_CORES * shape.sm_count * cycles),
    }
    sm_hz = machine.clocks.sm_hz
    for name, level, moved in (
        ("gpu__dram_throughput", MemoryLevel.DRAM, dram_bytes),
        ("lts__throughput", MemoryLevel.L2, l2_bytes),
    ):
        bandwidth = machine.find_bandwidth(level)
        if bandwidth is not None and bandwidth.bytes_per_s and sm_hz:
            found[name] = moved * sms / (cycles / sm_hz) / bandwidth.bytes_per_s
    return {_METRIC.format(name): round(_PERCENT * min(1.0, ratio), 2) for name, ratio in found.items()}


def _find_busiest(program: SassProgram, walk: KernelWalk) -> float:
    """Cycles of sub-cores in which the busiest pipe was held, or something was issued."""
    executed, interval = walk.executed, np.array(program.interval)
    pipe = np.array(program.pipe)
    is_piped = np.array(program.unit) < 0
    held = [float((executed * interval)[is_piped & (pipe == number)].sum()) for number in range(1, PIPES)]
    return max(float(executed.sum()), *held)
