"""How busy the parts of the GPU were in a simulated launch, and what they held and moved, by the profiler's names: :func:`measure_throughputs`."""

from collections.abc import Mapping

import numpy as np

from gpa_lsp.arch.model import Architecture
from gpa_lsp.dataflow.accesses import SECTOR_BYTES
from gpa_lsp.device.model import Machine, MemoryLevel
from gpa_lsp.simulator.machine import MemoryFacts
from gpa_lsp.simulator.program import LSU, PIPE_NAMES, SUB_CORES, XU, SassProgram
from gpa_lsp.simulator.warp_walk import KernelWalk
from gpa_lsp.simulator.waves import GridShape, SimulatedSm

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
    """Percent of the peak of DRAM, L2, L1, shared memory and the pipes of the SMs, over the whole launch, and which of them make up the throughput
    of the SM and of the memory; then what the SMs held and asked of L2. What the machine's peaks are not known for is left out.

    Args:
        program: the instructions.
        walk: with their executions over the grid.
        run: of an SM.
        shape: of the launch.
        architecture: of the GPU.
        machine: the GPU.
        facts: of its memory.
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
    return found | _measure_residency(run, shape, architecture)


def _measure_residency(run: SimulatedSm, shape: GridShape, architecture: Architecture) -> dict[str, float]:
    """Waves of blocks, warps that are resident while an SM has any, and sectors asked of L2."""
    warps = float(run.all_cycles.sum()) / max(1.0, run.active_cycles)
    return {
        "launch__waves_per_multiprocessor": shape.blocks / (shape.sm_count * shape.resident),
        "sm__warps_active.avg.pct_of_peak_sustained_active": _to_percent(
            warps / architecture.occupancy.max_warps_per_sm.value
        ),
        "lts__t_sectors_srcunit_tex.sum": round(run.moved[1] / SECTOR_BYTES * shape.active_sms),
    }


def _to_percent(ratio: float) -> float:
    return round(_PERCENT * min(1.0, ratio), 2)


def _measure_memory(
    run: SimulatedSm, shape: GridShape, machine: Machine, facts: MemoryFacts, cycles: float
) -> dict[str, float]:
    """Shares of peaks."""
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
    found[_ISSUED] = float(walk.executed.sum())
    return found
