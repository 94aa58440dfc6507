"""A simulated launch as a native profile (``gpa-lsp/profile/2``): :func:`make_document`. Everything that reads profiles reads it.

It is marked as simulated by :data:`SIMULATED_METRIC`, the tool's name, and a note.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.binary.opcodes import MemorySpace
from gpa_lsp.execution.simulator.reasons import REASONS
from gpa_lsp.execution.simulator.regimes import (
    ERROR_WORDS,
    UNCHECKED,
    UNKNOWN_TIME,
    Regime,
    describe_error,
    find_regime,
    is_time_known,
)
from gpa_lsp.execution.simulator.simulate import PERIOD_CYCLES, SimulatedLaunch
from gpa_lsp.execution.simulator.walk_kernel import find_static_shared_bytes
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR, KernelWalk, WarpWalk
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.numbers import format_count, format_duration_ns, format_percent
from gpa_lsp.gpu.device.model import Machine, MemoryFacts
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, MOVES, SECTOR_BYTES, count_access_bytes, mark_accesses
from gpa_lsp.kernel.model import Kernel, KernelRows
from gpa_lsp.profile.native import FORMAT, SIMULATING_TOOL

# Counters of a launch's instructions by the profiler's names: :func:`count_instructions`.
#
# Counts are of the walked blocks, in proportion to the executions of the whole grid.

_WAVEFRONT_BYTES = 128  # A pass through shared memory serves a word of each of its banks

_WARPS, _LANES = "inst_executed", "thread_inst_executed_true"
_LINES = "memory_l1_tag_requests_global"
_SECTORS = "memory_l2_theoretical_sectors_{}"
_WAVEFRONTS = "memory_l1_wavefronts_shared"
_IDEAL = "{}_ideal"

Counts = npt.NDArray[np.int64]
_Sums = npt.NDArray[np.float64]


def count_instructions(rows: KernelRows, walk: KernelWalk) -> Mapping[str, Counts]:
    """The profiler's name of a counter → int64[r], counts over the grid by row.

    An ideal counter is what as many lanes would move if they accessed neighbouring elements, at least one in each execution.
    """
    moved = _count_moved(len(rows), walk.walks, rows.spread_by_mnemonic(count_access_bytes, unknown=0))
    executions = moved["executions"]
    scale = np.divide(walk.executed, executions, out=np.zeros(len(rows)), where=executions > 0)
    is_global = mark_accesses(rows, GLOBAL_SPACES, MOVES)
    is_shared = mark_accesses(rows, (MemorySpace.SHARED,), MOVES)
    is_local = mark_accesses(rows, (MemorySpace.LOCAL,), MOVES)
    own_sectors = moved["sectors"] - moved["local_sectors"]
    found = {
        _WARPS: walk.executed,
        _LANES: walk.thread_executed,
        _LINES: np.where(is_global, moved["lines"] * scale, 0.0),
        _SECTORS.format("global"): np.where(is_global, own_sectors * scale, 0.0),
        _IDEAL.format(_SECTORS.format("global")): np.where(
            is_global, np.minimum(moved["ideal_sectors"], own_sectors) * scale, 0.0
        ),
        _SECTORS.format("local"): np.where(is_local | is_global, moved["local_sectors"] * scale, 0.0),
        _WAVEFRONTS: np.where(is_shared, moved["wavefronts"] * scale, 0.0),
        _IDEAL.format(_WAVEFRONTS): np.where(is_shared, moved["ideal_wavefronts"] * scale, 0.0),
    }
    return {name: np.rint(counts).astype(np.int64) for name, counts in found.items()}


def _count_moved(count: int, walks: Iterable[WarpWalk], width_bytes: npt.NDArray[np.int64]) -> dict[str, _Sums]:
    """Sums over executions by row: of sectors, those of local memory, and the lines of global memory that they lie in.

    Args:
        count: of rows.
        width_bytes: int64[r], of one lane's access.
    """
    sums: dict[str, _Sums] = defaultdict(lambda: np.zeros(count))
    for one in walks:
        instruction, sectors = one.instruction, np.diff(one.first_sector)
        asked_bytes = width_bytes[instruction] * np.bitwise_count(one.active).astype(np.int64)
        added = {
            "executions": np.ones(len(one)),
            "sectors": sectors,
            "wavefronts": one.wavefronts,
            "ideal_sectors": np.minimum(-(-asked_bytes // SECTOR_BYTES), sectors),
            "ideal_wavefronts": np.minimum(-(-asked_bytes // _WAVEFRONT_BYTES), one.wavefronts),
        }
        for name, numbers in added.items():
            sums[name] += np.bincount(instruction, numbers, count)
        of_sector, is_local = np.repeat(instruction, sectors), one.sectors >= LOCAL_SECTOR
        sums["local_sectors"] += np.bincount(of_sector, is_local, count)
        sums["lines"] += np.bincount(of_sector, one.mark_lines() & ~is_local, count)
    return sums


SIMULATED_METRIC = "gpa_lsp__simulated"  # 1 in every launch that was simulated, and in no other


_FIRST_ADDRESS = 0x10000
_ALIGNMENT = 1 << 8


class DocumentLaunch(Struct, frozen=True, kw_only=True):
    """A simulated launch with its code, walk and GPU."""

    name: str  # of the kernel, for people
    kernel: Kernel  # its code
    walk: KernelWalk  # what its warps execute
    simulated: SimulatedLaunch  # the result
    machine: Machine  # the GPU
    memory: MemoryFacts  # of the GPU
    is_guessed: bool = False  # the result rests on sizes or contents that its description marks as guesses

    @property
    def time(self) -> str:
        """Cycles and time by the model, marked as such; why there is none where the model was not checked."""
        if not is_time_known(self.kernel.rows.texts, self.walk.executed):
            return f"{UNKNOWN_TIME} (simulated)"
        simulated = self.simulated
        said = f"{format_count(round(simulated.cycles))} cycles, {format_duration_ns(simulated.duration_ns)} (simulated"
        if simulated.unchecked:
            return f"{said}; {UNCHECKED}: {simulated.unchecked})"
        return f"{said}); {self.regime.describe_range(simulated.duration_ns)}"

    @property
    def regime(self) -> Regime:
        """Regime of the launch, by what takes its time."""
        return find_regime(self.simulated.throughputs, self.simulated.model.launch_cycles / self.simulated.cycles)


def make_document(
    launches: Sequence[DocumentLaunch], problems: Sequence[Problem], sources: Mapping[str, str] = {}
) -> dict[str, Any]:
    """The profile of simulated launches.

    Args:
        problems: launches that were not simulated, and why.
        sources: texts of the sources it was compiled from, by path as compiled, as far as they are known.
    """
    images: dict[bytes, int] = {}
    modules = []
    for one in launches:
        cubin = one.kernel.cubin
        if cubin is None or cubin.image in images:
            continue
        images[cubin.image] = len(images)
        modules.append(_make_module(len(images) - 1, one.kernel, sources))
    return {
        "format": FORMAT,
        "tool_version": SIMULATING_TOOL,
        "modules": modules,
        "launches": [
            _make_launch(one, None if one.kernel.cubin is None else images[one.kernel.cubin.image]) for one in launches
        ],
        "problems": [*_note(launches), *map(_make_problem, problems)],
    }


def _note(launches: Sequence[DocumentLaunch]) -> list[dict[str, Any]]:
    if not launches:
        return []
    message = "simulated, not measured: every sample and counter is what a model of the SM says"
    if any(not one.simulated.unchecked for one in launches):
        message += f"; {ERROR_WORDS}"
    notes = [{"severity": "note", "message": message}]
    for one in launches:
        if one.simulated.unchecked:
            message = describe_error(one.simulated.unchecked)
            notes.append({"severity": "note", "message": message, "kernel": one.kernel.mangled_name})
        left_out = one.simulated.left_out
        if left_out > 0:
            message = f"the steady state of loops stands for {format_percent(left_out)} of what a block executes"
            notes.append({"severity": "note", "message": message, "kernel": one.kernel.mangled_name})
    return notes


def _make_problem(problem: Problem) -> dict[str, Any]:
    found: dict[str, Any] = {"severity": problem.severity.value, "message": problem.message}
    for name in ("place", "remedy", "kernel"):
        value = getattr(problem, name)
        if value:
            found[name] = str(value)
    return found


def _make_module(number: int, kernel: Kernel, sources: Mapping[str, str]) -> dict[str, Any]:
    cubin = kernel.cubin
    assert cubin is not None  # only those that have one get here
    return {
        "id": number,
        "compute_capability": f"{cubin.sm // 10}.{cubin.sm % 10}",
        "cubin": {"base64": base64.b64encode(cubin.image).decode("ascii")},
        "functions": [
            {"name": name, "address": hex(address), "size_bytes": cubin.functions[name].size_bytes}
            for name, address in _place_functions(cubin).items()
        ],
        **({"sources": dict(sources)} if sources else {}),
    }


def _place_functions(cubin: Cubin) -> dict[str, int]:
    """Assumed load address of each function, so that counters can name instructions: one behind the other."""
    found: dict[str, int] = {}
    address = _FIRST_ADDRESS
    for name, one in cubin.functions.items():
        found[name] = address
        address += (one.size_bytes // _ALIGNMENT + 1) * _ALIGNMENT
    return found


def _make_launch(one: DocumentLaunch, module: int | None) -> dict[str, Any]:
    kernel, simulated, machine = one.kernel, one.simulated, one.machine
    return {
        "kernel": kernel.mangled_name,
        "demangled_name": one.name,
        **({} if module is None else {"module": module}),
        "grid": list(one.walk.grid),
        "block": list(one.walk.block_threads),
        "device": _make_device(machine, one.memory),
        "duration_ns": round(simulated.duration_ns, 1),
        "metrics": _make_metrics(one),
        "sampling": {
            "period_cycles": PERIOD_CYCLES,
            "is_simulated": True,
            **({"unchecked": simulated.unchecked} if simulated.unchecked else {}),
        },
        "samples": _make_samples(kernel.rows, simulated),
        "stall_reasons": sorted(REASONS),
    }


def _make_device(machine: Machine, memory: MemoryFacts) -> dict[str, Any]:
    device: dict[str, Any] = {"name": machine.name}
    if machine.compute_capability is not None:
        device["compute_capability"] = "{}.{}".format(*machine.compute_capability)
    if machine.sm_count is not None:
        device["sm_count"] = machine.sm_count
    if machine.clocks.sm_hz is not None:
        device["sm_clock_hz"] = machine.clocks.sm_hz
    attributes = {
        "global_memory_bus_width": memory.bus_bits,
        "l2_cache_size": memory.l2_bytes,
        "ecc_enabled": int(memory.has_ecc) or None,
    }
    known = {f"device__attribute_{name}": value for name, value in attributes.items() if value is not None}
    return device | ({"attributes": known} if known else {})


def _make_metrics(one: DocumentLaunch) -> dict[str, Any]:
    simulated, machine = one.simulated, one.machine
    static_bytes = find_static_shared_bytes(one.kernel)
    metrics: dict[str, Any] = {
        **_make_counters(one),
        SIMULATED_METRIC: 1,
        "gpc__cycles_elapsed.max": round(simulated.cycles),
        "sm__cycles_active.avg": round(simulated.active_cycles),
        "launch__registers_per_thread": one.walk.registers,
        "launch__shared_mem_per_block_static": static_bytes,
        "launch__shared_mem_per_block_dynamic": one.walk.shared_bytes - static_bytes,
        **simulated.throughputs,
    }
    if machine.clocks.sm_hz is not None:
        metrics["smsp__cycles_elapsed.avg.per_second"] = machine.clocks.sm_hz
    if machine.clocks.dram_hz is not None:
        metrics["dram__cycles_elapsed.avg.per_second"] = machine.clocks.dram_hz
    return metrics


def _make_counters(one: DocumentLaunch) -> dict[str, Any]:
    """Counters of the executions and traffic of each instruction; empty without machine code."""
    rows = one.kernel.rows
    if one.kernel.cubin is None:
        return {}
    places = _place_functions(one.kernel.cubin)
    starts = np.array([places.get(function.name, -1) for function in rows.functions], dtype=np.int64)
    start = starts[rows.function_index]
    addresses = (start + rows.pc_offsets)[start >= 0].tolist()
    found = {}
    for name, counts in count_instructions(rows, one.walk).items():
        listed = counts[start >= 0].tolist()
        found[name] = {
            "value": sum(listed),
            "instances": [[at, count] for at, count in zip(addresses, listed, strict=True) if count],
        }
    return found


def _make_samples(rows: KernelRows, simulated: SimulatedLaunch) -> list[dict[str, Any]]:
    found = []
    for row in np.flatnonzero(simulated.all_samples.any(axis=1)).tolist():
        by_reason = {
            reason: {"all": count, "latency": latency}
            for reason, count, latency in zip(
                REASONS, simulated.all_samples[row].tolist(), simulated.latency_samples[row].tolist(), strict=True
            )
            if count
        }
        function = rows.function_of(row).name
        found.append({"function": function, "pc_offset": int(rows.pc_offsets[row]), "by_reason": by_reason})
    return found
